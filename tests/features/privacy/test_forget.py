"""Test that forgetting deletes all of a statement at once and nothing else.

An undo restores it unchanged.
"""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.commit import Add, ChangeOrigin, MemoryCommits, Supersede, Update
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import Fence, MemoryStore
from agent_memory.features.memories.usage.log import UsageLog
from agent_memory.features.privacy.forget.service import ForgetService
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.features.transfer.export import ExportService
from agent_memory.foundation.core.errors import BadInput, IdTaken, NotFound
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import (
    AppendMessagesRequest,
    Evidence,
    ForgetMemoryRequest,
    ForgetMemoryResponse,
    MemoryMessage,
    MemoryRecord,
    SearchRequest,
    UserId,
)
from tests.support.rig import SCOPE, MakeRig, Rig, record

BY = ChangeOrigin("tests")
WHO = {"user_id": "ana"}


def fact(text: str, name: str, *messages: str, session: str = "s", **more: Any) -> MemoryRecord:
    """Return a fact extracted from messages in a session."""
    evidence = [Evidence(source="user", session_id=session, message_ids=[message], quote=message.partition("-")[2]) for message in messages]
    return record(text, name, **{"user_id": "ana", "evidence": evidence or None, **more})


async def shown(rig: Rig, text: str = "", user: str = "ana") -> list[Any]:
    """Search a user's memories, and return fields that depend only on their content.

    The engine's scores include deleted memories until it collects them.
    """
    request = SearchRequest(text=text or None, user_id=UserId(eq=user), limit=100)
    answer = await rig.rt[SearchService].search(SCOPE, request)
    hidden = {"access_count", "last_accessed", "score"}
    return sorted((memory.model_dump(mode="json", exclude=hidden) for memory in answer.memories), key=lambda memory: memory["id"])


async def texts(rig: Rig, user: str = "ana") -> list[str]:
    return sorted(memory["text"] for memory in await shown(rig, user=user))


async def forget(rig: Rig, text: str | None = None, *, scope: Scope = SCOPE, **more: Any) -> ForgetMemoryResponse:
    values: dict[str, Any] = {"text": text, "user_id": "ana", **more}
    return await rig.rt[ForgetService].forget(scope, ForgetMemoryRequest(**values))


async def everything(rig: Rig) -> bytes:
    """Return everything in this store."""
    parts: list[Any] = []
    client: Any = rig.rt.client
    async for key in client.scan_iter(match=rig.keys.root.replace("{", "\\{") + "*", count=1000):
        kind = await client.type(key)
        if kind == b"string":
            parts.append(await client.get(key))
        elif kind == b"hash":
            parts += [part for pair in (await client.hgetall(key)).items() for part in pair]
        elif kind == b"list":
            parts += await client.lrange(key, 0, -1)
        elif kind in (b"set", b"zset"):
            parts += await (client.smembers(key) if kind == b"set" else client.zrange(key, 0, -1))
        parts.append(key)
    return b"\n".join(parts)


async def say(rig: Rig, *texts: str, session: str = "s", role: str = "user", user: str = "ana") -> None:
    """Append messages with ids like "<session><number>"."""
    for text in texts:
        count = len(await rig.contents(session, user_id=user)) if await rig.rt[SessionStore].find(SCOPE, session, None, user) else 0
        message = MemoryMessage(role=role, content=text, id=f"{session}{count + 1}")
        await rig.rt[SessionService].append(SCOPE, session, AppendMessagesRequest(messages=[message], user_id=user))


async def add(rig: Rig, *facts: MemoryRecord) -> None:
    await rig.rt[MemoryCommits].commit(SCOPE, [Add(each) for each in facts], BY)
    await rig.index()


async def peanuts(rig: Rig) -> None:
    """Store a message that makes two statements, and a fact for each."""
    await say(rig, "I am allergic to peanuts. I work at Acme.", "We talked about the weather in Rome.")
    await rig.work()
    quote = "I am allergic to peanuts. I work at Acme."
    evidence = [Evidence(source="user", session_id="s", message_ids=["s1"], quote=quote)]
    allergy = record("User has a peanut allergy", "f", user_id="ana", evidence=evidence)
    await add(rig, allergy, record("User works at Acme", "g", user_id="ana", evidence=evidence))


async def test_forget_deletes_the_statement_its_message_and_its_fact(rig: Rig) -> None:
    await say(rig, "I am allergic to peanuts.", "I work at Acme.")
    await rig.work()
    await add(rig, fact("User has a peanut allergy", "f", "s1"), fact("User works at Acme", "g", "s2"))
    answer = await forget(rig, "that I am allergic to peanuts")
    assert answer.forgotten == {"facts": 1, "messages": 1, "session_messages": 1}
    assert not answer.ambiguous
    assert {match.kind for match in answer.matches} == {"fact", "message", "session_message"}
    assert await texts(rig) == ["I work at Acme.", "User works at Acme"]
    assert await rig.contents("s", **WHO) == ["I work at Acme."]


async def test_forget_without_undo_window_leaves_nothing_in_redis(make_rig: MakeRig) -> None:
    async with make_rig(FORGET_UNDO_SECONDS=0) as rig:
        await peanuts(rig)
        assert b"llerg" in await everything(rig)
        answer = await forget(rig, "I am allergic to peanuts")
        assert answer.undo_until is None
        await rig.work()
        assert b"llerg" not in await everything(rig)


async def test_forget_deletes_the_whole_message_but_keeps_its_other_facts(rig: Rig) -> None:
    await peanuts(rig)
    answer = await forget(rig, "I am allergic to peanuts")
    assert answer.forgotten == {"facts": 1, "messages": 1, "session_messages": 1}
    assert await texts(rig) == ["User works at Acme", "We talked about the weather in Rome."]
    (work,) = await rig.rt[MemoryStore].find(SCOPE, ["g"])
    assert work is not None
    assert [piece.quote for piece in work.record.evidence or ()] == [None]
    assert [piece.message_ids for piece in work.record.evidence or ()] == [["s1"]]
    await rig.work()
    assert await rig.contents("s", **WHO) == ["We talked about the weather in Rome."]


async def test_undo_restores_memories_search_results_and_messages(rig: Rig) -> None:
    await peanuts(rig)
    before, found = await shown(rig), await shown(rig, "peanut allergy")
    session = await rig.contents("s", **WHO)
    answer = await forget(rig, "I am allergic to peanuts")
    assert await shown(rig) != before
    assert answer.receipt_id is not None
    assert answer.undo_until is not None
    await rig.work()
    undone = await rig.rt[ForgetService].undo(SCOPE, answer.receipt_id)
    assert undone.restored == {"memories": 2, "messages": 1, "kept_newer": 0}
    assert await rig.rt[ForgetService].undo(SCOPE, answer.receipt_id) == undone
    assert await shown(rig) == before
    await rig.work()
    assert await shown(rig) == before
    assert await shown(rig, "peanut allergy") == found
    assert await rig.contents("s", **WHO) == session


async def test_undo_copy_is_erased_with_its_user(rig: Rig) -> None:
    await peanuts(rig)
    await forget(rig, "I am allergic to peanuts")
    assert b"llerg" in await everything(rig)
    order = await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure("default", None, "ana", None))
    await rig.work(DueKind.DELETION)
    assert order
    assert b"llerg" not in await everything(rig)


async def test_undo_copy_is_not_exported(rig: Rig) -> None:
    await peanuts(rig)
    await forget(rig, "I am allergic to peanuts")
    _, body = await rig.rt[ExportService].begin(SCOPE, None, "ana")
    lines = [line async for line in body]
    assert lines
    assert "llerg" not in str(lines)


async def test_forget_dry_run_lists_matches_and_changes_nothing(rig: Rig) -> None:
    await peanuts(rig)
    before = await everything(rig)
    answer = await forget(rig, "I am allergic to peanuts", dry_run=True)
    assert [match.kind for match in answer.matches if match.clear] == ["fact", "message", "session_message"]
    assert all(match.why for match in answer.matches)
    assert answer.dry_run
    assert answer.receipt_id is None
    assert await everything(rig) == before


async def test_ambiguous_forget_request_returns_candidates_and_deletes_nothing(rig: Rig) -> None:
    await add(rig, fact("User's email address is a@b.example", "mail"), fact("Anna's address is 5 Elm Road", "anna"))
    before = await texts(rig)
    answer = await forget(rig, "my address")
    assert answer.ambiguous
    assert not answer.forgotten
    assert {match.id for match in answer.matches} == {"mail", "anna"}
    assert not any(match.clear for match in answer.matches)
    assert await texts(rig) == before
    await add(rig, fact("User's address is 12 Oak Street", "home"))
    answer = await forget(rig, "my address")
    assert not answer.ambiguous
    assert answer.forgotten == {"facts": 1}
    assert await texts(rig) == before
    answer = await forget(rig, None, ids=["mail"])
    assert answer.forgotten == {"facts": 1}
    assert await texts(rig) == ["Anna's address is 5 Elm Road"]


async def test_forget_keeps_a_message_about_another_person(rig: Rig) -> None:
    said = ["Anna's address is 5 Elm Road. I like tea."]
    await say(rig, *said)
    await rig.work()
    answer = await forget(rig, "my address")
    assert answer.ambiguous
    assert not answer.forgotten
    assert await texts(rig) == said
    assert await rig.contents("s", **WHO) == said


async def test_forget_by_name_deletes_messages_that_mention_the_person(rig: Rig) -> None:
    await say(rig, "My ex Lorenzo keeps texting me.", "I started pottery.")
    await rig.work()
    await forget(rig, "Lorenzo")
    assert await texts(rig) == ["I started pottery."]
    assert await rig.contents("s", **WHO) == ["I started pottery."]


@pytest.mark.parametrize(
    "text", ["what I said about Anna", "forget what I said about Anna", "please forget everything about anna", "vergiss alles über Anna"]
)
async def test_forget_all_about_a_person_deletes_every_mention(rig: Rig, text: str) -> None:
    await say(rig, "Anna is my sister.", "I met Anna in Rome.", "I live in Berlin.")
    await rig.work()
    assert (await forget(rig, "Anna")).ambiguous
    answer = await forget(rig, text)
    assert not answer.ambiguous
    assert answer.forgotten["messages"] == 2
    assert await texts(rig) == ["I live in Berlin."]


async def test_forget_does_not_match_negated_statements(rig: Rig) -> None:
    await say(rig, "I am vegetarian.", "I'm not vegetarian anymore.", "No, I am vegetarian at home.")
    await rig.work()
    await forget(rig, "that I am vegetarian")
    assert await rig.contents("s", **WHO) == ["I'm not vegetarian anymore."]
    assert await texts(rig) == ["I'm not vegetarian anymore."]


async def test_forget_deletes_the_assistants_repetitions_too(rig: Rig) -> None:
    await say(rig, "My locker code is 7721.", "I work at Acme.")
    await say(rig, "Noted: 7721.", "Acme is a fine place.", role="assistant")
    await say(rig, "Please forget my locker code")
    await rig.work()
    await forget(rig, "my locker code")
    assert await rig.contents("s", **WHO) == ["I work at Acme.", "Acme is a fine place."]
    assert not any("7721" in text for text in await texts(rig))


async def test_forget_matches_former_versions(rig: Rig) -> None:
    await add(rig, fact("User lives in Berlin", "a", slot="home.city"))
    (old,) = await rig.rt[MemoryStore].find(SCOPE, ["a"])
    assert old is not None
    await rig.rt[MemoryCommits].commit(SCOPE, [Supersede([old], fact("User lives in Paris", "b", slot="home.city"))], BY)
    await add(rig, fact("User likes tea", "c"))
    (tea,) = await rig.rt[MemoryStore].find(SCOPE, ["c"])
    assert tea is not None
    await rig.rt[MemoryCommits].commit(SCOPE, [Update(tea, fact("User likes coffee", "c"))], BY)
    assert (await forget(rig, "that I live in Berlin")).forgotten == {"facts": 1}
    assert (await forget(rig, "I like tea")).forgotten == {"facts": 1}
    assert await texts(rig) == ["User likes coffee", "User lives in Paris"]
    history = await rig.rt[HistoryService].read_history(SCOPE, "c")
    assert [version.record.text for version in history.versions] == ["User likes coffee"]


async def test_forget_fences_off_late_extraction(rig: Rig) -> None:
    """A worker that has already read the forgotten text must not write any of it."""
    await say(rig, "I am allergic to peanuts.", "I work at Acme.")
    sid = rig.sid(SessionRef("s", None, "ana"))
    journal = await rig.rt[SessionStore].journal(sid, "jp", 10)
    assert journal is not None
    assert len(journal.waiting) == 2
    assert (await forget(rig, "I am allergic to peanuts")).forgotten == {"session_messages": 1}
    late = Fence(sid, journal.epoch, "jp", journal.start, journal.end, 10)
    assert await rig.rt[MemoryStore].write(SCOPE, [record("User is allergic to peanuts", "x", user_id="ana")], fence=late) is None
    await rig.work()
    assert await texts(rig) == ["I work at Acme."]


async def test_message_restored_before_promotion_is_promoted(rig: Rig) -> None:
    await say(rig, "I am allergic to peanuts.", "I work at Acme.")
    answer = await forget(rig, "I am allergic to peanuts")
    await rig.work()
    assert await texts(rig) == ["I work at Acme."]
    assert answer.receipt_id is not None
    await rig.rt[ForgetService].undo(SCOPE, answer.receipt_id)
    await rig.work()
    assert await texts(rig) == ["I am allergic to peanuts.", "I work at Acme."]


async def test_undo_keeps_a_newer_value_of_the_slot(rig: Rig) -> None:
    await add(rig, fact("User lives in Berlin", "a", slot="home.city"))
    await rig.rt[MemoryService].get(SCOPE, "a")
    await rig.rt[UsageLog].flush()
    answer = await forget(rig, "that I live in Berlin")
    await add(rig, fact("User lives in Paris", "b", slot="home.city"))
    assert answer.receipt_id is not None
    undone = await rig.rt[ForgetService].undo(SCOPE, answer.receipt_id)
    assert undone.restored["kept_newer"] == 1
    assert await texts(rig) == ["User lives in Paris"]
    mid = rig.keys.mid(SCOPE.tenant, "a")
    left = [name async for name in rig.rt.client.scan_iter(f"*{mid}*")]
    assert left == [rig.keys.tombstone(mid).encode()]
    assert await rig.rt.client.hlen(rig.keys.usage) == 0


async def test_undo_restores_how_often_a_memory_was_read(rig: Rig) -> None:
    await add(rig, fact("User lives in Berlin", "a"))
    await rig.rt[MemoryService].get(SCOPE, "a")
    await rig.rt[UsageLog].flush()
    before = await rig.rt.client.hgetall(rig.keys.usage)
    answer = await forget(rig, "that I live in Berlin")
    assert await rig.rt.client.hlen(rig.keys.usage) == 0
    assert answer.receipt_id is not None
    await rig.rt[ForgetService].undo(SCOPE, answer.receipt_id)
    assert await rig.rt.client.hgetall(rig.keys.usage) == before != {}


async def test_forget_that_deletes_the_last_statement_of_the_given_session(rig: Rig) -> None:
    await say(rig, "I work at Acme.", "I am allergic to peanuts.", "Forget that")
    await rig.work()
    answer = await forget(rig, "that", session_id="s")
    assert "I am allergic to peanuts." in [match.text for match in answer.matches]
    assert answer.forgotten["session_messages"] == 1
    with pytest.raises(BadInput):
        await forget(rig, "that")


async def test_forget_receipts_are_limited_to_their_owner(rig: Rig) -> None:
    await peanuts(rig)
    await add(rig, record("User is allergic to peanuts", "bob", user_id="bob"))
    answer = await forget(rig, "I am allergic to peanuts", namespace=None)
    assert answer.receipt_id is not None
    assert await texts(rig, "bob") == ["User is allergic to peanuts"]
    for scope in (Scope("other"), Scope("default", users=frozenset({"bob"})), Scope("default", namespaces=frozenset({"work"}))):
        with pytest.raises(NotFound):
            await rig.rt[ForgetService].undo(scope, answer.receipt_id)
    with pytest.raises(BadInput, match="user_id"):
        await forget(rig, "I am allergic to peanuts", user_id=None)
    alone = await forget(rig, "I am allergic to peanuts", user_id=None, scope=Scope("default", users=frozenset({"bob"})))
    assert alone.forgotten == {"facts": 1}
    assert await texts(rig, "bob") == []


async def test_forget_request_in_a_conversation_is_proposed_and_can_be_approved(rig: Rig) -> None:
    await say(rig, "I am allergic to peanuts.", "I work at Acme.")
    await rig.work()
    await say(rig, "Please forget that I am allergic to peanuts")
    await rig.work()
    assert await texts(rig) == ["I am allergic to peanuts.", "I work at Acme."]
    (change,) = (await rig.rt[HistoryService].read_changes(SCOPE, {"st": "proposed"}, None, 0, 10)).changes
    assert change.kind == "forget"
    assert change.actor == "conversation"
    assert (await rig.rt[HistoryService].approve_proposal(SCOPE, change.id)).state == "applied"
    assert await texts(rig) == ["I work at Acme."]
    with pytest.raises(NotFound):
        await rig.rt[HistoryService].approve_proposal(SCOPE, change.id)


async def test_auto_policy_executes_forget_requests_of_a_conversation(make_rig: MakeRig) -> None:
    async with make_rig(FORGET_IN_CONVERSATION="auto") as rig:
        await say(rig, "I am allergic to peanuts.", "I work at Acme.", "Please forget that I am allergic to peanuts", "I like tea.")
        await rig.work()
        assert await texts(rig) == ["I like tea.", "I work at Acme."]
        assert await rig.contents("s", **WHO) == ["I work at Acme.", "I like tea."]
        await say(rig, "Forget that")
        await rig.work()
        await rig.work()
        assert await texts(rig) == ["I work at Acme."]


async def test_only_the_users_own_unquoted_request_forgets(make_rig: MakeRig) -> None:
    async with make_rig(FORGET_IN_CONVERSATION="auto") as rig:
        await say(rig, "I am allergic to peanuts.")
        await say(rig, "Please forget that I am allergic to peanuts", role="assistant")
        await say(rig, "Please forget that I am allergic to peanuts", role="tool")
        await say(rig, '"Please forget that I am allergic to peanuts", he said.')
        await rig.work()
        assert "I am allergic to peanuts." in await texts(rig)
    async with make_rig(FORGET_IN_CONVERSATION="off") as rig:
        await say(rig, "I am allergic to peanuts.", "Please forget that I am allergic to peanuts")
        await rig.work()
        assert await texts(rig) == ["I am allergic to peanuts."]


async def test_forget_deletes_a_summary_with_the_named_statement(rig: Rig) -> None:
    said = ["I am allergic to peanuts.", "We move to Lisbon with 64 boxes.", "My dentist is Mrs Okonkwo."]
    long = "Explain step by step how a water wheel turns a millstone and what the miller does with the flour after that " * 3
    for text in (*said, long, long):
        messages = [MemoryMessage(role="user", content=text)]
        await rig.rt[SessionService].append(SCOPE, "s", AppendMessagesRequest(messages=messages, user_id="ana", context_window_max=200))
    await rig.work()

    async def summary() -> str:
        return (await rig.rt[SessionService].get(SCOPE, "s", user_id="ana")).session.context or ""

    before = await summary()
    assert all(word in before for word in ("peanuts", "64 boxes", "Okonkwo"))
    answer = await forget(rig, "I am allergic to peanuts")
    assert [match.text for match in answer.matches if match.kind == "summary"] == [before]
    assert not await summary()
    assert {*said} - {*await texts(rig)} == {said[0]}
    # The next summary does not contain it either.
    await rig.rt[SessionService].append(
        SCOPE, "s", AppendMessagesRequest(messages=[MemoryMessage(role="user", content=long)] * 2, user_id="ana")
    )
    await rig.work()
    assert "mill" in await summary()
    assert "peanut" not in await summary()


async def test_undo_restores_the_summary(rig: Rig) -> None:
    for text in ("I am allergic to peanuts.", "We move to Lisbon with 64 boxes.", "Tell me of mills and their wheels and stones. " * 20):
        messages = [MemoryMessage(role="user", content=text)] * (2 if "mills" in text else 1)
        await rig.rt[SessionService].append(SCOPE, "s", AppendMessagesRequest(messages=messages, user_id="ana", context_window_max=200))
    await rig.work()
    before = (await rig.rt[SessionService].get(SCOPE, "s", user_id="ana")).session.context
    assert before is not None
    assert "peanuts" in before
    answer = await forget(rig, "I am allergic to peanuts")
    assert answer.receipt_id is not None
    await rig.rt[ForgetService].undo(SCOPE, answer.receipt_id)
    assert (await rig.rt[SessionService].get(SCOPE, "s", user_id="ana")).session.context == before


async def test_forgotten_id_stays_reserved_until_its_undo_expires_or_is_erased(rig: Rig) -> None:
    """If another owner took the id, the undo would fail."""
    await rig.rt[MemoryService].store(SCOPE, [record("User is allergic to peanuts", "mine", user_id="ana")])
    answer = await forget(rig, None, ids=["mine"])
    theirs = record("Bob's boat", "mine", user_id="bob")
    with pytest.raises(IdTaken):
        await rig.rt[MemoryService].store(SCOPE, [theirs])
    assert answer.receipt_id is not None
    assert (await rig.rt[ForgetService].undo(SCOPE, answer.receipt_id)).restored == {"memories": 1, "messages": 0, "kept_newer": 0}
    answer = await forget(rig, None, ids=["mine"])
    await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, "ana", None))
    await rig.work(DueKind.DELETION)
    assert not any(key.startswith(("fo:", "fg")) for key in await rig.raw_keys())
    await rig.rt[MemoryService].store(SCOPE, [theirs])


@pytest.mark.parametrize("erased", [Erasure(SCOPE.tenant, None, "ana", "s"), Erasure(SCOPE.tenant, None, None, None, "coach")])
async def test_undo_restores_nothing_of_an_erased_session_or_agent(rig: Rig, erased: Erasure) -> None:
    await rig.rt[MemoryService].store(SCOPE, [record("Ana rows at dawn", "gone", user_id="ana", session_id="s", agent_id="coach")])
    await rig.rt[MemoryService].store(SCOPE, [record("Ana likes tea", "kept", user_id="ana")])
    gone, kept = await forget(rig, None, ids=["gone"]), await forget(rig, None, ids=["kept"])
    await rig.rt[ErasureOrders].order_erasure(SCOPE, erased)
    await rig.work(DueKind.DELETION)
    assert gone.receipt_id is not None
    assert kept.receipt_id is not None
    with pytest.raises(NotFound):
        await rig.rt[ForgetService].undo(SCOPE, gone.receipt_id)
    assert (await rig.rt[ForgetService].undo(SCOPE, kept.receipt_id)).restored["memories"] == 1
    assert await texts(rig) == ["Ana likes tea"]
