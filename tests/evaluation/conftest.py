"""Provide a server with the recall test conversations, stored with both methods."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory_eval.api import Api
from agent_memory_eval.question_sets import Conversation, load
from agent_memory_eval.runner import EvaluationRun, Row, Via, choose
from tests.support.stack import stack

FILE = Path(__file__).parents[1] / "data" / "recall_conversations.json"
PROMPTS = 100


@dataclass(frozen=True)
class Known:
    """The server's URL, and the results for each storage method."""

    url: str
    conversations: tuple[Conversation, ...]
    rows: dict[Via, list[Row]]


@pytest.fixture(scope="session")
async def known(lasting_redis_url: str) -> AsyncGenerator[Known]:
    settings = load_settings(KEY_PREFIX="evaluation", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    questions = load(FILE)
    async with stack(settings, lasting_redis_url) as url, Api(url) as api:
        rows: dict[Via, list[Row]] = {}
        for via in ("memories", "sessions"):
            rows[via] = choose(questions, None, PROMPTS)
            await EvaluationRun(api, f"recall-{via}", via).measure(rows[via], None)
        yield Known(url, questions.conversations, rows)
