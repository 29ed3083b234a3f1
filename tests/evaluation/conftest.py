"""A running server that knows the conversations of tests/data/recall_conversations.json, put in both ways."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_memory.core.settings import load_settings
from agent_memory.llm.tokens import TokenCounter
from agent_memory_eval.datasets import Conversation, load
from agent_memory_eval.runner import Entrance, EvaluationRun, Options, run
from tests.support.stack import stack

FILE = Path(__file__).parents[1] / "data" / "recall_conversations.json"


@dataclass(frozen=True)
class Known:
    """The server's base URL, and what a run through each entrance found out."""

    url: str
    conversations: list[Conversation]
    runs: dict[Entrance, EvaluationRun]


@pytest.fixture(scope="session")
async def known(lasting_redis_url: str) -> AsyncGenerator[Known]:
    settings = load_settings(KEY_PREFIX="evaluation", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    conversations = load(FILE)
    counter = await TokenCounter.open()
    async with stack(settings, lasting_redis_url) as url:
        runs: dict[Entrance, EvaluationRun] = {}
        for entrance in ("memories", "sessions"):
            options = Options(url, f"recall-{entrance}", entrance)
            runs[entrance] = await run(options, conversations, counter, lambda *_: None)
        yield Known(url, conversations, runs)
