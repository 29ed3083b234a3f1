"""Test extraction with a model whose context is smaller than assumed.

The work is split, and rejected requests are not repeated, whatever the server's error message.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.errors import ContextExceeded
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory_client.models import (
    AppendMessagesRequest,
    MemoryMessage,
    MemoryStrategyConfig,
    OperationKind,
    OperationRecord,
    OperationState,
    UpdateWorkingMemory,
)
from tests.support.lookalike import Lookalike
from tests.support.lookalike.limits import NAME_NO_LIMIT, REFUSALS
from tests.support.rig import SCOPE, MakeRig, Rig, record

pytestmark = pytest.mark.slow

X = DueKind.EXTRACTION
OFF = {"INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY": "false", "EXTRACTION_DEBOUNCE_SECONDS": "0"}
LIMIT = 3500
SAID = [f"In year {1900 + number} our shop in Lisbon sold {number} violins to the orchestra of Porto" for number in range(60)]


async def facts(rig: Rig) -> list[str]:
    return sorted(one.text for one in await rig.stored() if one.memory_type != "message")


async def aside(rig: Rig) -> list[OperationRecord]:
    """Return the batches that extraction gave up on."""
    kind = OperationKind.EXTRACTION
    return (await rig.rt[OperationService].list_operations(SCOPE, state=OperationState.DEAD, kind=kind, offset=0, limit=10)).operations


def sent_twice(lookalike: Lookalike) -> list[dict[str, Any]]:
    """Return rejected requests that were sent again."""
    counted = Counter(json.dumps(body, sort_keys=True) for body in lookalike.bodies("chat"))
    return [body for body in lookalike.context.refused if counted[json.dumps(body, sort_keys=True)] > 1]


@pytest.mark.parametrize("wording", REFUSALS)
async def test_long_session_is_extracted_completely_despite_a_small_context(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, wording: str
) -> None:
    lookalike.context.tokens, lookalike.context.wording = LIMIT, wording
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", *SAID)
        await rig.work()
        assert await facts(rig) == sorted(f"User said: {text}" for text in SAID)
        assert sent_twice(lookalike) == []
        refused = len(lookalike.context.refused)
        # If the refusal names a limit, one refusal is enough. Otherwise the server halves the size until a request fits.
        assert refused <= (4 if wording in NAME_NO_LIMIT else 2)
        assert lookalike.calls["chat"] <= 30
        assert await rig.rt.outbox.reasons(X) == {}


async def test_learned_context_limit_is_shared_with_other_workers(make_rig: MakeRig, lookalike: Lookalike, make_chat: Any) -> None:
    lookalike.context.tokens = LIMIT
    first, second = await make_chat(), await make_chat()
    async with make_rig(first, **OFF) as rig:
        await rig.append("s", *SAID)
        await rig.work()
        refused = len(lookalike.context.refused)
        assert refused > 0
        async with make_rig(second, KEY_PREFIX=rig.settings.redis.key_prefix, **OFF) as other:
            await other.append("t", *(text.replace("our shop in Lisbon", "their mill in Graz") for text in SAID))
            await other.work()
            assert len(await facts(other)) == 2 * len(SAID)
        assert len(lookalike.context.refused) == refused
    assert second.context.limit.source == "learned"


@pytest.mark.parametrize("tells", ["llama.cpp", "llama.cpp of old", "vllm", "openrouter", "groq", "lm studio", "ollama", "tgi"])
async def test_context_limit_reported_by_the_server_is_used_from_the_first_request(
    make_rig: MakeRig, make_chat: Any, lookalike: Lookalike, tells: str
) -> None:
    lookalike.context.tokens, lookalike.context.tells = LIMIT, tells
    chat = await make_chat(GENERATION_MODEL="any-name")
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", *SAID)
        await rig.work()
        assert (chat.context.limit.tokens, chat.context.limit.source) == (LIMIT, "told")
        assert len(await facts(rig)) == len(SAID)


async def test_server_is_asked_for_its_limit_once_and_never_during_a_request(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike
) -> None:
    lookalike.context.tokens, lookalike.context.tells = LIMIT, "vllm"
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", *SAID[:3])
        assert lookalike.context.asked == []
        await rig.work()
        await rig.append("s", *SAID[3:6])
        await rig.work()
        assert lookalike.context.asked == ["/v1/models"]


async def test_failed_limit_query_falls_back_to_the_assumed_limit(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", *SAID[:3])
        await rig.work()
        assert len(await facts(rig)) == 3
        assert chat.context.limit.source == "assumed"


async def test_unloaded_ollama_model_is_assumed_to_have_4096_tokens(make_rig: MakeRig, make_chat: Any, lookalike: Lookalike) -> None:
    lookalike.context.tells = "ollama, not loaded"
    chat = await make_chat(GENERATION_MODEL="any-name")
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", *SAID)
        await rig.work()
        assert (chat.context.limit.tokens, chat.context.limit.source) == (4096, "assumed")
        assert lookalike.calls["chat"] > 2, "in parts that have room there"


async def test_configured_context_limit_overrides_the_servers(make_rig: MakeRig, make_chat: Any, lookalike: Lookalike) -> None:
    lookalike.context.tells, lookalike.context.tokens = "vllm", 100_000
    chat = await make_chat(GENERATION_MODEL="any-name", MODEL_CONTEXT_WINDOWS={"any-name": 2500})
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", *SAID)
        await rig.work()
        assert (chat.context.limit.tokens, chat.context.limit.source) == (2500, "set")
        assert len(await facts(rig)) == len(SAID)
        assert all(lookalike.context.sent(body) <= 2500 for body in lookalike.bodies("chat"))


async def test_configured_limit_that_is_too_high_is_corrected_by_a_refusal(make_rig: MakeRig, make_chat: Any, lookalike: Lookalike) -> None:
    lookalike.context.tokens = LIMIT
    chat = await make_chat(GENERATION_MODEL="any-name", MODEL_CONTEXT_WINDOWS={"any-name": 200_000})
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", *SAID)
        await rig.work()
        assert (chat.context.limit.tokens, chat.context.limit.source) == (LIMIT, "learned")
        assert len(await facts(rig)) == len(SAID)


@pytest.mark.parametrize("wording", ["llama.cpp", "groq"])
async def test_oversized_message_is_sent_as_its_beginning_and_end(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, wording: str
) -> None:
    lookalike.context.tokens, lookalike.context.wording = LIMIT, wording
    long = "Anna lives in Oslo. " + "The weather was fine and we walked along the harbour. " * 2000 + "Ben lives in Rome."
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", SAID[0])
        await rig.rt[SessionService].append(SCOPE, "s", _message(long))
        await rig.append("s", SAID[1])
        await rig.work()
        found = await facts(rig)
        assert {f"User said: {SAID[0]}", f"User said: {SAID[1]}"} < set(found)
        taken = [body["messages"][-1]["content"] for body in lookalike.bodies("chat") if body not in lookalike.context.refused]
        assert any("Anna lives in Oslo." in text and "Ben lives in Rome." in text for text in taken)
        assert sent_twice(lookalike) == []
        assert await rig.rt.outbox.reasons(X) == {}


def _message(text: str) -> AppendMessagesRequest:
    return AppendMessagesRequest(messages=[MemoryMessage(role="user", content=text, id="long")])


@pytest.mark.parametrize("wording", ["llama.cpp", "groq"])
async def test_model_without_room_for_the_instructions_becomes_a_dead_letter(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, wording: str
) -> None:
    lookalike.context.tokens, lookalike.context.wording = 300, wording
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", *SAID, namespace="n")
        await rig.work()
        calls = lookalike.calls["chat"]
        assert calls <= 8
        dead = (
            await rig.rt[OperationService].list_operations(
                SCOPE, state=OperationState.DEAD, kind=OperationKind.EXTRACTION, offset=0, limit=10
            )
        ).operations
        assert dead
        assert all(one.reason is not None and "ContextExceeded" in one.reason for one in dead)
        # Later messages do not wait for the batch that was set aside, and a replay extracts that batch once it fits.
        lookalike.context.tokens = None
        chat.context.note_limit(None)
        chat.context._learned = None  # pyright: ignore[reportPrivateUsage] - as an hour later
        chat.context._refused.clear()  # pyright: ignore[reportPrivateUsage]
        await rig.rt.client.delete(rig.keys.context_limit(chat.context.where, chat.context.model))
        await rig.append("s", "Anna lives in Oslo", namespace="n")
        await rig.work()
        assert "User said: Anna lives in Oslo" in await facts(rig)
        for one in dead:
            await rig.rt[OperationService].replay_operation(SCOPE, one.id)
        await rig.work()
        assert len(await facts(rig)) == len(SAID) + 1


async def test_replaying_a_batch_that_still_does_not_fit_calls_no_model(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    lookalike.context.tokens = 300
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", *SAID[:5], namespace="n")
        await rig.work()
        (dead,) = (
            await rig.rt[OperationService].list_operations(
                SCOPE, state=OperationState.DEAD, kind=OperationKind.EXTRACTION, offset=0, limit=10
            )
        ).operations
        calls = lookalike.calls["chat"]
        await rig.rt[OperationService].replay_operation(SCOPE, dead.id)
        for _ in range(10):
            await rig.make_due(X)
            await rig.work(X)
        assert lookalike.calls["chat"] == calls
        assert (await rig.rt[OperationService].get_operation(SCOPE, dead.id)).state is OperationState.DEAD


@pytest.mark.parametrize("wording", ["llama.cpp", "vllm", "groq"])
async def test_session_summary_covers_every_message_despite_a_small_context(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, wording: str
) -> None:
    lookalike.context.tokens, lookalike.context.wording = 2000, wording
    async with make_rig(chat, ENABLE_DISCRETE_MEMORY_EXTRACTION="false") as rig:
        await rig.append("s", *SAID, context_window_max=1000)
        await rig.work(DueKind.SESSION)
        left = await rig.contents("s")
        shown = "\n".join(json.dumps(body) for body in lookalike.bodies("chat") if body not in lookalike.context.refused)
        assert 0 < len(left) < len(SAID)
        assert [text for text in SAID if text not in left and text not in shown] == []
        assert sent_twice(lookalike) == []
        assert await rig.rt.outbox.reasons(DueKind.SESSION) == {}


async def test_session_summary_falls_back_to_sentences_if_no_prompt_fits(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    lookalike.context.tokens = 200
    async with make_rig(chat, ENABLE_DISCRETE_MEMORY_EXTRACTION="false") as rig:
        await rig.append("s", *SAID, context_window_max=1000)
        await rig.work(DueKind.SESSION)
        assert len(await rig.contents("s")) < len(SAID)
        context = (await rig.rt[SessionService].get(SCOPE, "s")).session.context
        assert context
        assert "violins" in context
        assert lookalike.calls["chat"] <= 4


@pytest.mark.parametrize("wording", ["llama.cpp", "groq"])
async def test_thread_summary_covers_every_message_despite_a_small_context(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, wording: str
) -> None:
    lookalike.context.tokens, lookalike.context.wording = 2000, wording
    async with make_rig(chat, **OFF) as rig:
        strategy = MemoryStrategyConfig(strategy="summary", config={"max_summary_length": 400})
        messages = [MemoryMessage(role="user", content=text) for text in SAID]
        await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory(messages=messages, long_term_memory_strategy=strategy))
        await rig.work()
        shown = "\n".join(json.dumps(body) for body in lookalike.bodies("chat") if body not in lookalike.context.refused)
        assert [text for text in SAID if text not in shown] == []
        assert len(await facts(rig)) == 1
        assert sent_twice(lookalike) == []
        assert await rig.rt.outbox.reasons(X) == {}


async def test_reconciliation_is_split_if_many_memories_do_not_fit(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    lookalike.context.tokens = 2600
    async with make_rig(chat, **OFF) as rig:
        long = " and many more things that nobody needs to know of it" * 8
        await rig.remember(*(record(f"{text}, as Anna told{long}", f"kept-{number}") for number, text in enumerate(SAID[:24])))
        await rig.append("s", *SAID[:24])
        await rig.work()
        assert {f"User said: {text}" for text in SAID[:24]} <= set(await facts(rig))
        decided = [
            body for body in lookalike.bodies("chat") if '"decisions"' in json.dumps(body) or "decisions" in body["messages"][0]["content"]
        ]
        assert len(decided) > 1
        assert sent_twice(lookalike) == []


async def test_extraction_is_split_if_the_answer_does_not_fit(make_rig: MakeRig, make_chat: Any, lookalike: Lookalike) -> None:
    """The prompt fits the context, but the model's response is cut off."""
    lookalike.context.tokens, lookalike.context.tells = 3000, "vllm"
    chat = await make_chat(GENERATION_MODEL="any-name")
    lookalike.context.wording = "llama.cpp"
    async with make_rig(chat, **OFF) as rig:
        # The facts of each message are much longer than the message itself.
        for text in SAID[:12]:
            lookalike.scripted.facts[text] = [{"text": f"{text}, and fact {letter} of it"} for letter in "abcdefgh"]
        await rig.append("s", *SAID[:12])
        await rig.work()
        assert len(await facts(rig)) == 12 * 8
        assert await rig.rt.outbox.reasons(X) == {}


async def test_refused_request_is_not_sent_again(chat: OpenAIChat, lookalike: Lookalike) -> None:
    lookalike.context.tokens = 100
    asked = [ChatMessage("user", "fig tree " * 200)]
    for _ in range(3):
        with pytest.raises(ContextExceeded):
            await chat.text(asked)
    assert lookalike.calls["chat"] == 1
