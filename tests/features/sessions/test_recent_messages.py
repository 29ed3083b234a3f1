"""Test that a prompt finds messages from its user's other sessions before promotion.

Other users' messages are not found.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent_memory.features.memories.records import message_memory_id
from agent_memory.features.memories.usage.log import UsageLog
from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.codec import StoredMessage, decode_entry
from agent_memory.features.sessions.recent import RecentMessages
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.connection import PipelineReader
from agent_memory_client.models import AppendMessagesRequest, MemoryPromptRequest, MemoryRecordResult, SearchRequest, UserId
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, Rig

_QUERY = "Which ferry goes to Bergen?"


async def says(rig: Rig, session: str, text: str, user: str | None = "ann", namespace: str | None = "n") -> None:
    body = {"messages": [{"role": "user", "content": text, "id": f"{session}-{text}"[:100]}], "user_id": user, "namespace": namespace}
    await rig.rt[SessionService].append(SCOPE, session, AppendMessagesRequest.model_validate(body))


async def prompt(rig: Rig, query: str = _QUERY, search: Any = True, **session: Any) -> list[MemoryRecordResult]:
    body: dict[str, Any] = {"query": query, "long_term_search": search}
    if session:
        body["session"] = session
    return (await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))).long_term_memories or []


async def test_message_of_another_session_is_one_memory_before_and_after_promotion(rig: Rig) -> None:
    await says(rig, "other", "The ferry to Bergen goes at nine")
    await says(rig, "other", "I like plums")
    (found,) = await prompt(rig, session_id="this", user_id="ann", namespace="n")
    assert (found.text, found.session_id, found.user_id) == ("The ferry to Bergen goes at nine", "other", "ann")
    assert found.id == message_memory_id(SessionRef("other", "n", "ann"), "other-The ferry to Bergen goes at nine")
    await rig.work()
    (later, *_) = await prompt(rig, session_id="this", user_id="ann", namespace="n")
    assert (later.id, later.text) == (found.id, found.text)
    waiting = [key for key in await rig.raw_keys() if key.startswith("wt:")]
    assert waiting == [], "what was promoted does not wait"


async def test_unpromoted_messages_are_limited_to_the_same_user_and_namespace(rig: Rig) -> None:
    await says(rig, "a", "The ferry of Ann to Bergen")
    await says(rig, "b", "The ferry of Ben to Bergen", user="ben")
    await says(rig, "c", "The ferry of nobody to Bergen", user=None)
    await says(rig, "d", "The ferry of the other Ann to Bergen", namespace="o")
    await says(rig, "e", "The ferry of the third Ann to Bergen", namespace=None)

    def texts(found: list[MemoryRecordResult]) -> list[str]:
        return sorted(one.text.removeprefix("The ferry of ").removesuffix(" to Bergen") for one in found)

    # Later memories have the same words; no message is promoted yet, so all results come from the sessions.
    assert texts(await prompt(rig, session_id="x", user_id="ann", namespace="n")) == ["Ann"]
    assert texts(await prompt(rig, session_id="x", user_id="ann")) == ["Ann", "the other Ann", "the third Ann"]
    assert texts(await prompt(rig, session_id="x", user_id="ben", namespace="n")) == ["Ben"]
    assert texts(await prompt(rig, session_id="x", user_id="an")) == []
    assert texts(await prompt(rig, search={"user_id": {"eq": "ben"}})) == ["Ben"]
    assert texts(await prompt(rig, search={"user_id": {"ne": "ben"}})) == []
    assert texts(await prompt(rig, search={"user_id": {"eq": "ann"}, "topics": {"any": ["boats"]}})) == []
    assert texts(await prompt(rig)) == [], "without a user there is nobody whose messages they could be"


@pytest.mark.parametrize(
    "narrowed",
    [
        {"agent_id": "robot"},
        {"slot": "ferry"},
        {"category": "travel"},
        {"source_class": "import"},
        {"metadata": {"kept": True}},
        {"filter": {"not": {"namespace": "n"}}},
        {"min_trust": 0.9},
        {"as_of": "2020-01-01T00:00:00Z"},
        {"known_at": "2020-01-01T00:00:00Z"},
        {"topics": "boats"},
    ],
    ids=lambda one: next(iter(one)),
)
async def test_unpromoted_messages_are_left_out_by_filters_other_than_the_user(rig: Rig, narrowed: dict[str, Any]) -> None:
    await says(rig, "a", "The ferry of Ann to Bergen")
    assert [one.text for one in await prompt(rig, search={"user_id": "ann"})] == ["The ferry of Ann to Bergen"]
    assert await prompt(rig, search={"user_id": "ann", **narrowed}) == []


async def test_unpromoted_messages_are_shown_to_callers_of_their_agent_only(rig: Rig) -> None:
    """A caller limited to certain agents sees only their messages, as with memories."""
    message = {"role": "user", "content": "The ferry of Ann to Bergen", "remember_as": {"agent_id": "coach"}}
    body = AppendMessagesRequest.model_validate({"messages": [message], "user_id": "ann"})
    await rig.rt[SessionService].append(SCOPE, "a", body)
    await says(rig, "b", "The ferry of nobody's agent to Bergen")
    asked = MemoryPromptRequest.model_validate({"query": _QUERY, "long_term_search": {"user_id": "ann"}})
    shown = {}
    for agent in ("coach", "robot"):
        answer = await rig.rt[RecallService].prompt(replace(SCOPE, agents=frozenset({agent})), asked)
        shown[agent] = [one.text for one in answer.long_term_memories or []]
    assert shown == {"coach": ["The ferry of Ann to Bergen"], "robot": []}


async def test_messages_of_the_prompts_own_session_are_not_repeated(rig: Rig) -> None:
    await says(rig, "this", "The ferry to Bergen is late")
    await says(rig, "other", "The ferry to Bergen goes at nine")
    assert [one.text for one in await prompt(rig, session_id="this")] == ["The ferry to Bergen goes at nine"]


async def test_messages_of_a_deleted_session_are_not_found(rig: Rig) -> None:
    await says(rig, "other", "The ferry to Bergen goes at nine")
    await rig.rt[SessionService].delete(SCOPE, "other", namespace="n", user_id="ann")
    assert await prompt(rig, session_id="this", user_id="ann", namespace="n") == []
    assert not [key for key in await rig.raw_keys() if key.startswith("wt:")]


async def test_number_of_unpromoted_sessions_changes_neither_round_trips_nor_result_size(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = commands_of(rig, monkeypatch)
    trips: list[int] = []
    for number in range(150):
        await says(rig, f"s{number}", f"The ferry number {number} to Bergen goes at nine. {'More of it. ' * 50}")
        if number in (0, 149):
            await prompt(rig, session_id="this", user_id="ann", namespace="n")
            await rig.rt[UsageLog].flush()  # the server counts readings after the response
            sent.clear()
            found = await prompt(rig, session_id="this", user_id="ann", namespace="n")
            trips.append(len(sent))
    assert trips[0] == trips[1] <= 4, f"the query's statistics, the read of everything, the memories found: {[one[:200] for one in sent]}"
    assert len(found) == 5
    assert len(await rig.claim(DueKind.SESSION)) == 150, "the other sessions wait as well"


async def waits(rig: Rig, count: int, sessions: int = 1, namespace: str = "n") -> None:
    """Store `count` unpromoted messages from Ann about ferries to Bergen."""
    each = count // sessions
    for number in range(sessions):
        texts = [f"Ferry number {number}-{n} to Bergen is {'very ' * 5}slow" for n in range(each)]
        messages = [{"role": "user", "content": text, "id": f"m{n}"} for n, text in enumerate(texts)]
        for start in range(0, each, 1000):
            body = {"messages": messages[start : start + 1000], "user_id": "ann", "namespace": namespace}
            await rig.rt[SessionService].append(SCOPE, f"old-{number}", AppendMessagesRequest.model_validate(body))


@pytest.mark.parametrize("sessions", [1, 500])
async def test_newest_message_is_found_among_ten_thousand_unpromoted_ones(rig: Rig, sessions: int) -> None:
    await waits(rig, 10_000, sessions)
    await says(rig, "other", "The harbour café opens at seven")
    await says(rig, "old-0", "My aunt's parrot speaks Norwegian")
    await says(rig, "other", "I like plums")
    # The prompt's own session has many messages, too, and displaces no others.
    for number in range(3):
        await rig.append("this", *(f"I talk of the ferry, {number}-{n}" for n in range(100)), user_id="ann", namespace="n")
    for query, text in [
        ("When does the harbour cafe open?", "The harbour café opens at seven"),
        ("Which languages does the parrot speak?", "My aunt's parrot speaks Norwegian"),
    ]:
        (found, *_) = await prompt(rig, query, session_id="this", user_id="ann", namespace="n")
        assert found.text == text
    assert len(await prompt(rig, session_id="this", user_id="ann", namespace="n")) == 5


async def test_messages_of_another_namespace_do_not_crowd_out_the_users(rig: Rig) -> None:
    await says(rig, "other", "The ferry to Bergen goes at nine")
    await waits(rig, 2_000, 40, namespace="o")
    assert [one.text for one in await prompt(rig, session_id="this", user_id="ann", namespace="n")] == ["The ferry to Bergen goes at nine"]


async def test_huge_message_does_not_hide_another_session(rig: Rig) -> None:
    await says(rig, "other", "The ferry to Bergen goes at nine")
    await says(rig, "huge", "Ferry Bergen " * 100_000)
    assert [one.text for one in await prompt(rig, session_id="this", user_id="ann", namespace="n")] == ["The ferry to Bergen goes at nine"]


@pytest.mark.parametrize("sessions", [1, 500])
async def test_prompt_reads_a_bounded_number_of_ten_thousand_unpromoted_messages(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, sessions: int
) -> None:
    decoded: list[bytes] = []

    def decode(raw: bytes) -> StoredMessage:
        decoded.append(raw)
        return decode_entry(raw)

    monkeypatch.setattr("agent_memory.features.sessions.recent.decode_entry", decode)
    await waits(rig, 10_000, sessions)
    assert len(await prompt(rig, session_id="this", user_id="ann", namespace="n")) == 5
    assert len(decoded) == 6
    recent, search = rig.rt[RecentMessages], SearchRequest(text=_QUERY, user_id=UserId(eq="ann"))
    wanted = recent.recent_query(SCOPE, search)
    assert wanted is not None
    (reply,) = await PipelineReader(rig.rt.client)(lambda pipe: recent.queue_recent(pipe, wanted))
    assert len(reply) <= 16
    entries = [entry for _, _, _, _, _, *some in reply for entry in some]
    assert len(entries) <= 32
    assert sum(map(len, entries)) <= 16 * 1024
