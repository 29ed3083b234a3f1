"""Test extraction with a real small model and a small context.

Whatever the model returns, the work finishes and no request is repeated.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator
from typing import Any

import httpx
import httpx2
import pytest

from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.errors import ContextExceeded
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory_client.models import OperationKind, OperationState
from tests.support.rig import SCOPE, MakeRig
from tests.support.small_model import small_model

# On a busy machine a call takes a second or two. The server would call an unavailable model again.
pytestmark = [pytest.mark.real_model, pytest.mark.slow, pytest.mark.timeout(900)]
MODEL = "smollm2"
# A batch that does not fit is set aside after one attempt, so every repeated request is a defect.
_SETTINGS: dict[str, Any] = {"EXTRACTION_DEBOUNCE_SECONDS": "0", "WORKER_MAX_ATTEMPTS": "1"}
_TALK = [
    "My name is Anna and I live in Oslo with my two cats, Miso and Ponzu.",
    "I am allergic to peanuts, so please never suggest recipes with them.",
]
_LONG = "The museum by the river shows old maps of the town, and its keeper told us about every street. " * 100


@pytest.fixture(scope="module", params=[2048, 8192])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, int]]:
    """Start the model server. Return its URL and context size in tokens."""
    with small_model(request.param, tmp_path_factory.mktemp("model") / "log.txt") as url:
        yield url, request.param


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Record each request to the model server and the response status."""
    seen: list[tuple[str, int]] = []
    send = httpx2.AsyncClient.send

    async def watched(self: httpx2.AsyncClient, request: httpx2.Request, **options: Any) -> httpx2.Response:
        answer = await send(self, request, **options)
        if request.method == "POST":
            seen.append((json.dumps(json.loads(request.content)["messages"]), answer.status_code))
        return answer

    monkeypatch.setattr(httpx2.AsyncClient, "send", watched)
    return seen


async def _open(url: str, counter: TokenCounter) -> OpenAIChat:
    return await OpenAIChat.open(load_settings(OPENAI_BASE_URL=url, GENERATION_MODEL=MODEL, MODEL_TIMEOUT_SECONDS=500), counter=counter)


# tests/evaluation/test_weak_model_scenarios.py uses a large enough context.
@pytest.mark.parametrize("served", [2048], indirect=True)
async def test_extraction_finishes_a_session_with_a_small_real_model(
    make_rig: MakeRig, served: tuple[str, int], counter: TokenCounter, requests: list[tuple[str, int]]
) -> None:
    url, context = served
    chat = await _open(url, counter)
    async with make_rig(chat, **_SETTINGS) as rig:
        said = [_TALK[0], _LONG, _TALK[1]]
        await rig.append("s", *said)
        for _ in range(8):
            await rig.make_due(DueKind.EXTRACTION)
            await rig.work()
        stored = await rig.stored()
        # Each message is a memory, or evidence of a fact with the same words; this depends on the real model's answers.
        assert {one.text.strip() for one in stored} >= {text.strip() for text in said}
        state = await rig.rt[SessionStore].get(SCOPE, SessionRef("s"))
        assert state is not None
        assert state.extracted_to == len(said), "what was not taken stands aside"
        dead = await rig.rt[OperationService].list_operations(
            SCOPE, state=OperationState.DEAD, kind=OperationKind.EXTRACTION, offset=0, limit=10
        )
        assert all(one.reason for one in dead.operations)
        assert (chat.context.limit.tokens, chat.context.limit.source) == (context, "told")
        assert requests
        assert [text[:200] for text, times in Counter(text for text, _ in requests).items() if times > 1] == []
        assert len(requests) <= 4 * len(said)
    await chat.close()


async def test_limit_that_is_too_high_is_corrected_by_one_refusal(
    served: tuple[str, int], counter: TokenCounter, requests: list[tuple[str, int]]
) -> None:
    url, context = served
    settings = load_settings(OPENAI_BASE_URL=url, GENERATION_MODEL=MODEL, MODEL_CONTEXT_WINDOWS={MODEL: 100_000})
    chat = await OpenAIChat.open(settings, counter=counter)
    long = [ChatMessage("user", " ".join(f"tree {number}" for number in range(context // 2)))]
    for _ in range(2):
        with pytest.raises(ContextExceeded):
            await chat.text(long)
    assert [status for _, status in requests] == [400]
    assert (chat.context.limit.tokens, chat.context.limit.source) == (context, "learned")
    assert chat.room(long) < 0, "by its own count of tokens"
    await chat.close()


async def test_small_model_server_runs_a_model_with_100_million_parameters(served: tuple[str, int]) -> None:
    async with httpx.AsyncClient() as client:
        (model,) = (await client.get(f"{served[0]}/models")).json()["data"]
    assert model["meta"]["n_params"] > 100_000_000
