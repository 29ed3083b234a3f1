"""Test that forgotten text disappears from summaries and from its neighbors' terms and vectors.

All of these are rebuilt.
"""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.memories.records import message_memory_id
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.privacy.forget.service import ForgetService
from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.text.terms import terms
from agent_memory_client.models import AppendMessagesRequest, ForgetMemoryRequest, MemoryMessage, MemoryPromptRequest, SearchRequest, UserId
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig, record

BEFORE, SECRET, AFTER = "The harbour was foggy this morning.", "I am allergic to peanuts.", "My canoe needs a new paddle."
TWO = "I am allergic to peanuts. I work at Acme."
OTHERS = ("The chimney sweep came by bicycle.", "My violin lost a string.")


async def say(rig: Rig, session: str, *texts: str) -> None:
    messages = [MemoryMessage(role="user", content=text, id=f"{session}{number}") for number, text in enumerate(texts)]
    await rig.rt[SessionService].append(SCOPE, session, AppendMessagesRequest(messages=messages, user_id="ana"))
    await rig.work()
    await rig.make_due(DueKind.MEMORY)
    await rig.work()


async def forget(rig: Rig) -> None:
    answer = await rig.rt[ForgetService].forget(SCOPE, ForgetMemoryRequest(text="I am allergic to peanuts", user_id="ana"))
    assert answer.forgotten


def mid(rig: Rig, session: str, number: int) -> str:
    return rig.rt[MemoryStore].mid(SCOPE, message_memory_id(SessionRef(session, None, "ana"), f"{session}{number}"))


async def index_terms(rig: Rig, name: str) -> str:
    value: Any = await rig.rt.client.hget(rig.keys.memory(name), "k")
    return (value or b"").decode()


@pytest.mark.parametrize("said", [SECRET, TWO])
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_neighbors_lose_the_forgotten_words_and_are_reindexed(rig: Rig, said: str, elsewhere: bool) -> None:
    """Covers neighbors of the same text in another session, whose terms contain it too."""
    (word,) = terms("peanuts")
    await say(rig, "a", BEFORE, said, AFTER)
    neighbours = [mid(rig, "a", 0), mid(rig, "a", 2)]
    if elsewhere:
        await say(rig, "b", OTHERS[0], said, OTHERS[1])
        neighbours += [mid(rig, "b", 0), mid(rig, "b", 2)]
    for name in neighbours:
        assert word in (await index_terms(rig, name)).split()
    await forget(rig)
    for name in neighbours:
        assert word not in (await index_terms(rig, name)).split()
    assert set(neighbours) <= set(await rig.marks(DueKind.MEMORY))


async def test_statement_that_absorbed_a_neighbor_loses_the_forgotten_words(rig: Rig) -> None:
    (word,) = terms("peanuts")
    await rig.remember(record(AFTER, "statement", user_id="ana"))
    await say(rig, "a", BEFORE, SECRET, AFTER)
    name = rig.rt[MemoryStore].mid(SCOPE, "statement")
    assert word in (await index_terms(rig, name)).split()
    await forget(rig)
    assert word not in (await index_terms(rig, name)).split()
    assert name in await rig.marks(DueKind.MEMORY)


async def vectors(rig: Rig, names: list[str]) -> list[bytes]:
    """Return the vectors of memories, assuming that each is its document's longest field."""
    client: Any = rig.rt.client
    return [max((await client.hgetall(rig.keys.vector(name))).values(), key=len) for name in names]


async def test_neighbor_vectors_match_those_of_a_session_without_the_text(make_rig: MakeRig) -> None:
    async with make_rig() as rig, make_rig() as other:
        await say(rig, "a", BEFORE, SECRET, AFTER)
        await say(other, "a", BEFORE, AFTER)
        ours, theirs = [mid(rig, "a", 0), mid(rig, "a", 2)], [mid(other, "a", 0), mid(other, "a", 1)]
        assert await vectors(rig, ours) != await vectors(other, theirs)
        await forget(rig)
        await rig.work(DueKind.MEMORY)
        assert await vectors(rig, ours) == await vectors(other, theirs)


async def test_results_show_no_forgotten_words_even_before_reindexing(rig: Rig) -> None:
    """Until a worker runs, a neighbor may still match, but only its own words are shown."""
    await say(rig, "a", BEFORE, SECRET, AFTER)
    await forget(rig)
    search = {"user_id": {"eq": "ana"}, "limit": 20}
    body = MemoryPromptRequest.model_validate({"query": "Am I allergic to peanuts?", "long_term_search": search})
    prompt = await rig.rt[RecallService].prompt(SCOPE, body)
    assert "peanut" not in "".join(memory.text for memory in prompt.long_term_memories or []).casefold()
    found = await rig.rt[SearchService].search(SCOPE, SearchRequest(text="allergic to peanuts", user_id=UserId(eq="ana")))
    assert found.memories
    assert "peanut" not in str([memory.model_dump() for memory in found.memories]).casefold()


async def test_next_model_summary_does_not_contain_the_forgotten_text(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    """The old summary is deleted entirely. The next one covers only later messages."""
    async with make_rig(chat) as rig:

        def told(start: int) -> list[str]:
            return [
                f"In chapter {n} the miller of Rye repairs {n} wheels of his mill with oak and patience" for n in range(start, start + 40)
            ]

        messages = [MemoryMessage(role="user", content=text) for text in (SECRET, *told(0))]
        session = AppendMessagesRequest(messages=messages, user_id="ana", context_window_max=1000)
        await rig.rt[SessionService].append(SCOPE, "a", session)
        await rig.work()

        async def summary() -> str:
            return (await rig.rt[SessionService].get(SCOPE, "a", user_id="ana")).session.context or ""

        assert "peanuts" in await summary()
        await forget(rig)
        assert not await summary()
        assert rig.sid(SessionRef("a", None, "ana")) in await rig.marks(DueKind.SESSION)
        asked = len(lookalike.bodies("chat"))
        later = [MemoryMessage(role="user", content=text) for text in told(40)]
        await rig.rt[SessionService].append(SCOPE, "a", session.model_copy(update={"messages": later}))
        await rig.work()
        assert await summary()
        assert "peanut" not in await summary()
        assert len(lookalike.bodies("chat")) > asked
        assert "peanut" not in str(lookalike.bodies("chat")[asked:])
