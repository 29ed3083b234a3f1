"""Test sessions of any length.

A prompt reads and shows only the newest messages that fit its window.
"""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore, TokenWindow
from agent_memory.foundation.core.scope import SessionRef
from agent_memory_client.models import MemoryMessage, MemoryPromptRequest, UpdateWorkingMemory, WorkingMemoryRequest
from tests.support.rig import SCOPE, MakeRig, Rig

OFF = {"SUMMARIZATION_THRESHOLD": "1.0", "ENABLE_WORKING_MEMORY_SUMMARIZATION": "false"}
SAID = [f"Turn {number}: {'the boat sailed on and on ' * 3}" for number in range(2000)]


async def talk(rig: Rig, texts: list[str], session_id: str = "s", **more: Any) -> None:
    messages = [MemoryMessage(role="user", content=text, id=f"m{number}") for number, text in enumerate(texts)]
    body = UpdateWorkingMemory(messages=messages, user_id=more.pop("user_id", None))
    await rig.rt[SessionService].put(SCOPE, session_id, body, **more)


async def shown(rig: Rig, session_id: str = "s", max_tokens: int | None = None, **session: Any) -> list[str]:
    """Return the session's messages in a prompt."""
    request = MemoryPromptRequest(query="And now?", session=WorkingMemoryRequest(session_id=session_id, **session), max_tokens=max_tokens)
    prompt = await rig.rt[RecallService].prompt(SCOPE, request)
    return [message.content.text for message in prompt.messages[:-1]]  # pyright: ignore[reportAttributeAccessIssue]


async def tokens_of(rig: Rig, texts: list[str]) -> list[int]:
    found = await rig.rt[SessionStore].get(SCOPE, SessionRef("s", None, None))
    assert found is not None
    counted = {stored.message.content: stored.tokens for stored in found.messages}
    return [counted[text] for text in texts]


async def newest_within(rig: Rig, window: int, overhead: int = 0) -> list[str]:
    """Return the most recent messages that fit within the window.

    Each message costs its tokens plus the overhead.
    """
    kept: list[str] = []
    for text, tokens in zip(reversed(SAID), reversed(await tokens_of(rig, SAID)), strict=True):
        window -= tokens + overhead
        if window < 0 and kept:
            break
        kept.append(text)
    return kept[::-1]


@pytest.fixture
async def long(make_rig: MakeRig) -> Any:
    async with make_rig(**OFF) as rig:
        await talk(rig, SAID)
        yield rig


async def test_prompt_shows_the_newest_messages_within_16000_tokens_by_default(long: Rig) -> None:
    told = await shown(long)
    assert told == await newest_within(long, 16_000)
    assert 100 < len(told) < len(SAID)


@pytest.mark.parametrize("window", [1, 200, 1_000, 20_000, 10_000_000])
async def test_requested_window_overrides_the_default(long: Rig, window: int) -> None:
    assert await shown(long, context_window_max=window) == await newest_within(long, window)


async def test_default_window_is_configurable(make_rig: MakeRig) -> None:
    async with make_rig(**OFF, DEFAULT_CONTEXT_WINDOW="300") as rig:
        await talk(rig, SAID)
        assert await shown(rig) == await newest_within(rig, 300)


async def test_window_stored_with_the_session_overrides_the_default(make_rig: MakeRig) -> None:
    async with make_rig(**OFF) as rig:
        await talk(rig, SAID, context_window_max=40_000)
        assert await shown(rig) == await newest_within(rig, 40_000)
        assert await shown(rig, context_window_max=500) == await newest_within(rig, 500)


async def test_token_budget_replaces_the_default_window(long: Rig) -> None:
    within = await shown(long, max_tokens=30_000)
    assert len(within) > len(await shown(long)), "who gives a budget has named how much there may be"
    assert within == SAID[-len(within) :]
    assert sum(await tokens_of(long, within)) + 4 * len(within) <= 30_000
    assert await shown(long, max_tokens=30_000, context_window_max=400) == await newest_within(long, 400, overhead=4)


async def test_session_found_by_id_alone_has_the_same_window(make_rig: MakeRig) -> None:
    async with make_rig(**OFF, DEFAULT_CONTEXT_WINDOW="300") as rig:
        await talk(rig, SAID, user_id="ada")
        assert await shown(rig) == await shown(rig, user_id="ada")
        assert 0 < len(await shown(rig)) < 30


@pytest.mark.parametrize("more", [{}, {"max_tokens": 64}, {"context_window_max": 10}], ids=str)
async def test_newest_message_is_always_shown(make_rig: MakeRig, more: dict[str, Any]) -> None:
    async with make_rig(**OFF) as rig:
        huge = "The boat sailed on and on. " * 4000
        await talk(rig, ["Hello", huge])
        assert await shown(rig, **more) == [huge]


async def test_a_session_that_fits_is_shown_whole(rig: Rig) -> None:
    await talk(rig, SAID[:300])
    assert await shown(rig) == SAID[:300]


@pytest.mark.parametrize("tokens", [0, 90, 2_000, 10_000_000])
async def test_store_reads_only_the_turns_that_fit_the_window(long: Rig, tokens: int) -> None:
    turns = await long.rt[SessionStore].turns(SCOPE, SessionRef("s", None, None), TokenWindow(tokens, 16_000))
    assert turns is not None
    assert [turn.content for turn in turns.messages] == await newest_within(long, tokens)
    assert turns.total == len(SAID)


async def test_explanation_counts_the_messages_left_out(long: Rig) -> None:
    request = MemoryPromptRequest.model_validate(
        {"query": "And now?", "session": {"session_id": "s"}, "long_term_search": {"explain": True}}
    )
    prompt = await long.rt[RecallService].build_prompt(SCOPE, request, explain=True)
    assert prompt.explanation is not None
    assert prompt.explanation.messages_left_out == len(SAID) - len(await shown(long))


@pytest.mark.parametrize("window", [1, 200, 20_000, 10_000_000])
async def test_session_read_with_a_window_returns_the_messages_that_fit(long: Rig, window: int) -> None:
    answer = await long.rt[SessionService].get(SCOPE, "s", context_window_max=window)
    assert [message.content for message in answer.session.messages] == await newest_within(long, window)
    last = await long.rt[SessionService].get(SCOPE, "s", context_window_max=window, recent_messages_limit=5)
    assert [message.content for message in last.session.messages] == (await newest_within(long, window))[-5:]


async def test_redis_traffic_of_a_prompt_does_not_grow_with_the_session(make_rig: MakeRig) -> None:
    async with make_rig(**OFF) as rig:
        sent: list[int] = []
        for count in (500, 2000):
            await talk(rig, SAID[-count:])
            before = await bytes_sent(rig)
            await shown(rig, context_window_max=1_000)
            sent.append(await bytes_sent(rig) - before)
        assert sent[1] < 1.2 * sent[0]


async def bytes_sent(rig: Rig) -> int:
    return int((await rig.rt.client.info("stats"))["total_net_output_bytes"])
