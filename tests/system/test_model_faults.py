"""Test that model server faults lose no data and store no partial results (F8, F9)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agent_memory.features.extraction.prompts import ExtractionAnswer
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.errors import ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.llm.openai.embeddings import OpenAIEmbedder
from agent_memory.foundation.llm.openai.structured import UnusableAnswer, parse_answer
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.storage.search.indexes import vector_index_name
from agent_memory_client.models import OperationKind
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig, open_rig, record
from tests.support.waiting import wait_until
from tests.system.conftest import MakeChat
from tests.system.faults.pictures import finished
from tests.system.faults.proxy import Proxy

pytestmark = pytest.mark.slow

_SAID = [f"In year {number} I bought {number} violins in Lisbon" for number in range(6)]
_FACTS = sorted(f"User said: {text}" for text in _SAID)
# Unrecoverable faults, each with a word of its reason; the others are repaired or parsed.
_BAD_ANSWERS = ("garbage", "truncated", "wrong_types", "refusal", "empty_choices", "no_content", "html", "null", "garbage_body")
_GOOD_ANYWAY = ("fenced", "prose_around", "thinking")
_AWAY = ("500", "503", "429", "401")
_SETTINGS: dict[str, Any] = {"EXTRACTION_DEBOUNCE_SECONDS": 0, "DEFAULT_CONTEXT_WINDOW": 256}


async def facts(rig: Rig) -> list[str]:
    return sorted(one.text for one in await rig.stored() if one.extraction_strategy == "discrete")


async def told(rig: Rig) -> None:
    await rig.append("s", *_SAID)
    await rig.work(DueKind.SESSION, DueKind.MEMORY)


@pytest.mark.parametrize("kind", _BAD_ANSWERS)
async def test_unusable_answer_stores_nothing_and_becomes_dead_letter_with_reason(
    make_rig: MakeRig, make_chat: MakeChat, lookalike: Lookalike, kind: str
) -> None:
    async with make_rig(await make_chat(), **_SETTINGS) as rig:
        lookalike.set_fault(kind, endpoint="chat")
        await rig.append("s", *_SAID)
        sid = next(iter(await rig.marks(DueKind.EXTRACTION)))
        for attempt in range(1, 9):
            await rig.make_due(DueKind.EXTRACTION)
            calls = lookalike.calls["chat"]
            await rig.work(DueKind.EXTRACTION)
            assert await facts(rig) == [], f"attempt {attempt} stored facts of an answer that was {kind}"
            assert lookalike.calls["chat"] - calls <= 4, "more calls than the ladder has rungs"
            reason = (await rig.rt.outbox.reasons(DueKind.EXTRACTION))[sid]
            assert reason.startswith("ModelAnswerInvalid"), reason
        await rig.make_due(DueKind.EXTRACTION)
        await rig.work(DueKind.EXTRACTION)
        assert (await rig.rt.outbox.backlog())[DueKind.EXTRACTION].dead == 1
        # The verbatim memories need no model, and a replay with a healthy model stores every fact once.
        await finished(rig)
        assert sorted(one.text for one in await rig.stored()) == sorted(_SAID)
        lookalike.set_fault(None)
        await rig.rt[OperationService].replay_operation(SCOPE, f"{DueKind.EXTRACTION}-{sid}.0")
        await finished(rig)
        assert await facts(rig) == _FACTS
        assert (await rig.rt.outbox.backlog())[DueKind.EXTRACTION].dead == 0
        assert await rig.rt.outbox.reasons(DueKind.EXTRACTION) == {}


@pytest.mark.parametrize("kind", _GOOD_ANYWAY)
async def test_badly_formatted_answer_is_parsed(make_rig: MakeRig, make_chat: MakeChat, lookalike: Lookalike, kind: str) -> None:
    async with make_rig(await make_chat(), **_SETTINGS) as rig:
        lookalike.set_fault(kind)
        await told(rig)
        await finished(rig)
        assert await facts(rig) == _FACTS


async def test_truncated_answer_keeps_its_complete_facts(make_rig: MakeRig, make_chat: MakeChat, lookalike: Lookalike) -> None:
    async with make_rig(await make_chat(), **_SETTINGS) as rig:
        lookalike.set_fault("length", endpoint="chat")
        await told(rig)
        await rig.make_due(DueKind.EXTRACTION)
        await rig.work(DueKind.EXTRACTION)
        taken = await facts(rig)
        assert taken
        assert set(taken) < set(_FACTS), "what stands behind the cut is not guessed"


@pytest.mark.parametrize("kind", _AWAY)
async def test_unavailable_model_consumes_no_attempts(make_rig: MakeRig, make_chat: MakeChat, lookalike: Lookalike, kind: str) -> None:
    async with make_rig(await make_chat(), **_SETTINGS) as rig:
        lookalike.set_fault(kind)
        await told(rig)
        for _ in range(8):
            await rig.make_due(DueKind.EXTRACTION)
            await rig.work(DueKind.EXTRACTION)
        backlog = (await rig.rt.outbox.backlog())[DueKind.EXTRACTION]
        assert (backlog.pending, backlog.dead) == (1, 0)
        assert "ModelUnavailable" in next(iter((await rig.rt.outbox.reasons(DueKind.EXTRACTION)).values()))
        assert await facts(rig) == []
        assert await rig.contents("s"), "the session is read as ever"
        lookalike.set_fault(None)

        async def extracted() -> bool:
            await rig.make_due(DueKind.EXTRACTION)
            await rig.work(DueKind.EXTRACTION)
            return bool(await facts(rig))

        await wait_until(extracted, "the breaker closes: it opens for seconds, and each try asks it")
        assert await facts(rig) == _FACTS


@pytest.mark.parametrize("kind", ["timeout", "drip", "reset"])
async def test_hanging_dripping_or_disconnecting_model_consumes_no_attempts(make_rig: MakeRig, lookalike: Lookalike, kind: str) -> None:
    async with Proxy(lookalike.port).running() as proxy:
        url = f"http://127.0.0.1:{proxy.port}/v1"
        chat = await OpenAIChat.open(load_settings(OPENAI_BASE_URL=url, OPENAI_API_KEY="sk-test-0000", MODEL_TIMEOUT_SECONDS=0.4))
        async with make_rig(chat, **_SETTINGS) as rig:
            if kind == "reset":
                proxy.lose_replies(1000)
            else:
                lookalike.set_fault(kind)
            await told(rig)
            for _ in range(4):
                await rig.make_due(DueKind.EXTRACTION)
                await rig.work(DueKind.EXTRACTION)
            backlog = (await rig.rt.outbox.backlog())[DueKind.EXTRACTION]
            assert (backlog.pending, backlog.dead) == (1, 0)
            listed = await rig.rt[OperationService].list_operations(SCOPE, state=None, kind=OperationKind.EXTRACTION, offset=0, limit=9)
            assert [(one.attempts, (one.reason or "").split(":")[0]) for one in listed.operations] == [(0, "ModelUnavailable")]
            assert await facts(rig) == []
            assert await rig.contents("s"), "the session is read as ever"
            lookalike.set_fault(None)
            proxy.heal()

            async def extracted() -> bool:
                await rig.make_due(DueKind.EXTRACTION)
                await rig.work(DueKind.EXTRACTION)
                return bool(await facts(rig))

            await wait_until(extracted, "the breaker closes: it opens for seconds, and each try asks it")
            assert await facts(rig) == _FACTS


@pytest.mark.parametrize(("said", "least", "most"), [("1", 0, 60), ("3600", 250, 310)])
async def test_retry_after_of_the_model_is_respected_up_to_a_maximum(
    make_rig: MakeRig, make_chat: MakeChat, lookalike: Lookalike, said: str, least: float, most: float
) -> None:
    """A Retry-After of 3600 neither blocks a task nor delays the retry for an hour."""
    async with make_rig(await make_chat(), **_SETTINGS) as rig:
        lookalike.set_fault("429")
        lookalike.retry_after = said
        try:
            await told(rig)
            await rig.work(DueKind.EXTRACTION)
        finally:
            lookalike.retry_after = "7"
        assert 1 <= lookalike.calls["chat"] <= 4
        seconds, _ = await rig.rt.client.time()
        (due,) = (await rig.marks(DueKind.EXTRACTION)).values()
        assert least <= due / 1000 - seconds <= most


async def test_session_and_summary_survive_bad_model_answers(make_rig: MakeRig, make_chat: MakeChat, lookalike: Lookalike) -> None:
    """Every message stays until an extractive summary replaces it."""
    async with make_rig(await make_chat(), **_SETTINGS) as rig:
        lookalike.set_fault("wrong_types")
        said = [f"In year {number} I bought {number} violins and a very old ladder in Lisbon, near the harbour" for number in range(16)]
        await rig.append("s", *said)
        for attempt in range(3):
            await rig.make_due(DueKind.SESSION)
            await rig.work(DueKind.SESSION)
            assert await rig.contents("s") == said, f"attempt {attempt} dropped messages without a summary"
        await rig.make_due(DueKind.SESSION)
        await rig.work(DueKind.SESSION)
        left = await rig.contents("s")
        assert left == said[len(said) - len(left) :]
        assert 0 < len(left) < len(said)
        assert (await rig.rt[SessionService].get(SCOPE, "s")).session.context


@pytest.mark.parametrize("kind", ["wrong_dimension", "nan", "zero", "short_batch", "ragged", "html", "429", "500"])
async def test_bad_embeddings_never_reach_the_index(redis_url: str, lookalike: Lookalike, counter: TokenCounter, kind: str) -> None:
    settings = load_settings(
        OPENAI_BASE_URL=lookalike.url,
        OPENAI_API_KEY="sk-test-0000",
        EMBEDDING_MODEL="text-embedding-any",
        EMBEDDING_DIMENSIONS=64,
        MODEL_TIMEOUT_SECONDS=5,
    )
    embedder = await OpenAIEmbedder.open(settings, counter=counter)
    async with open_rig(redis_url, embedder, counter, None) as rig:
        lookalike.set_fault(kind, endpoint="embeddings")
        await rig.rt[MemoryService].store(SCOPE, [record(text) for text in _SAID])
        for _ in range(3):
            await rig.make_due(DueKind.MEMORY)
            await rig.work(DueKind.MEMORY)
            assert not [key for key in await rig.raw_keys() if key.startswith("v:")]
        reasons = set((await rig.rt.outbox.reasons(DueKind.MEMORY)).values())
        expected = ModelUnavailable if kind in ("429", "500") else ModelAnswerInvalid
        assert reasons
        assert all(reason.startswith(expected.__name__) for reason in reasons), reasons
        assert len(await rig.stored()) == len(_SAID), "the memories themselves are there, and found by their words"
        lookalike.set_fault(None)
        await rig.rt.outbox.mark_due(DueKind.MEMORY, [key.removeprefix("m:") for key in await rig.raw_keys() if key.startswith("m:")])

        async def worked_off() -> bool:
            await rig.make_due(DueKind.MEMORY)
            await rig.work(DueKind.MEMORY)
            return not await rig.marks(DueKind.MEMORY)

        await wait_until(worked_off, "the breaker closes and all memories are embedded")
        await _all_indexed(rig, len(_SAID))
    await embedder.close()


async def _all_indexed(rig: Rig, count: int) -> None:
    """Assert that every memory has an indexed vector of length 1."""
    spec = rig.rt.spec
    info = await rig.rt.client.execute_command("FT.INFO", vector_index_name(rig.keys, spec))
    assert int(info[b"num_docs"]) == count
    assert int(info[b"hash_indexing_failures"]) == 0
    names = [key for key in await rig.raw_keys() if key.startswith("v:")]
    assert len(names) == count
    for name in names:
        vector = np.frombuffer(await rig.rt.client.hget(rig.keys.root + name, spec.field), spec.numpy_type)
        assert vector.shape == (64,)
        assert abs(float(np.linalg.norm(vector.astype(np.float32))) - 1) < 0.01


@pytest.mark.parametrize(
    "answer",
    [
        '{"memories": [{"text": "Ana sails", "topics": ["boats"], "entities": [], "event_date": null, "messages": [1]',
        '{"memories": [{"text": "Ana sails", "topics": []',
        '```json\n{"memories": [{"text": "Ana sails", "topics": [], "entities": [',
        '{"memories": [{"text": "Ana sails", "topics": [], "entities": []}, {"text": "Ana d',
    ],
)
def test_truncated_answer_is_not_parsed_as_empty(answer: str) -> None:
    """Treating a truncated answer as "no facts" would skip messages."""
    with pytest.raises(UnusableAnswer):
        parse_answer(answer, ExtractionAnswer)
