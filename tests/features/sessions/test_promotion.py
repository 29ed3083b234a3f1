"""Test that session messages become memories exactly once, whatever happens to the session."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from agent_memory.features.memories.records import message_memory_id
from agent_memory.features.memories.service import MemoryService, message_memory
from agent_memory.features.memories.store import Fence, MemoryStore
from agent_memory.features.memories.upkeep.reindex import Reindexer
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import CreateMemoryRecordRequest, EditMemoryRecordRequest, MemoryMessage, MemoryRecord, UpdateWorkingMemory
from agent_memory_worker.sessions.promote import promote_session
from agent_memory_worker.task_handlers import Tasks
from tests.support.rig import SCOPE, MakeRig, Rig, gathered

S = DueKind.SESSION
REF = SessionRef("s")


def body(*texts: str, **more: object) -> UpdateWorkingMemory:
    return UpdateWorkingMemory.model_validate({"messages": [{"role": "user", "content": text, "id": text[:50]} for text in texts], **more})


async def put(rig: Rig, *texts: str, **more: object) -> None:
    await rig.rt[SessionService].put(SCOPE, "s", body(*texts, **more))


async def remembered(rig: Rig) -> list[str]:
    return sorted(one.text for one in await rig.stored())


async def test_session_memory_of_a_client_counts_as_extracted(rig: Rig) -> None:
    await put(rig, memories=[{"id": "own", "text": "own memory", "memory_type": "semantic"}])
    await rig.work(S)
    (one,) = await rig.stored()
    assert (one.id, one.discrete_memory_extracted) == ("own", "t")


async def test_promoted_message_records_its_session_and_message(rig: Rig) -> None:
    await rig.append("s", "I live in Oslo", namespace="n", user_id="u")
    await rig.work()
    (one,) = await rig.stored()
    assert (one.text, one.memory_type, one.session_id, one.namespace, one.user_id) == ("I live in Oslo", "message", "s", "n", "u")
    assert one.extracted_from == ["s-I live in Oslo"]
    assert one.id == message_memory_id(SessionRef("s", "n", "u"), "s-I live in Oslo")
    assert one.persisted_at is not None
    answer = await rig.rt[SessionService].get(SCOPE, "s", namespace="n", user_id="u")
    (message,) = answer.session.messages
    assert message.persisted_at is not None
    assert message.discrete_memory_extracted == "t"
    assert one.created_at == message.created_at


async def test_small_talk_is_not_remembered_but_marked_as_processed(rig: Rig) -> None:
    await rig.append("s", "hello!", "Thank you!", "😀", "I like figs")
    await rig.work()
    assert await remembered(rig) == ["I like figs"]
    assert await rig.marks(S) == {}
    assert {m.discrete_memory_extracted for m in (await rig.rt[SessionService].get(SCOPE, "s")).session.messages} == {"t"}


@pytest.mark.parametrize(
    "message",
    [
        {"content": "very long " * 20_000},
        {"content": "figs", "id": "an,id with, commas"},
        {"content": "tabs\tand\nnew lines \u2028 and 😀"},
        {"content": "role", "role": "a role, with comma"},
        {"content": "id", "id": "x" * 512},
        {"content": "\u00a0nbsp\u3000", "id": "日本語"},
    ],
    ids=["long", "comma", "breaks", "role", "long id", "unicode"],
)
async def test_every_accepted_message_can_be_promoted(rig: Rig, message: dict[str, str]) -> None:
    """A message that cannot be promoted would block all later ones."""
    given = MemoryMessage.model_validate({"role": "user", "id": "given", **message})
    await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory(messages=[given, MemoryMessage(role="user", content="afterwards")]))
    await promote_session(rig.rt, rig.sid(REF))
    assert sorted([given.content, "afterwards"]) == await remembered(rig)
    await rig.index()
    (found,) = [one for one in await rig.stored() if one.text == given.content]
    assert (await rig.rt[MemoryService].get(SCOPE, found.id)).extracted_from == [given.id]


async def test_messages_replaced_before_promotion_are_still_promoted(rig: Rig) -> None:
    await put(rig, "first figs", "second figs")
    await put(rig, "second figs", "third figs")
    await put(rig)
    await rig.work(S)
    assert await remembered(rig) == ["first figs", "second figs", "third figs"]


async def test_edited_message_is_one_memory_with_the_latest_text(rig: Rig) -> None:
    for text in ("I live in Oslo", "I live in Rome"):
        await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory(messages=[MemoryMessage(role="user", content=text, id="1")]))
        await rig.work()
    assert await remembered(rig) == ["I live in Rome"]


async def test_expired_session_is_still_promoted(rig: Rig) -> None:
    await put(rig, "gone in a moment", ttl_seconds=0, memories=[{"id": "own", "text": "own memory", "memory_type": "semantic"}])
    assert await rig.rt[SessionStore].get(SCOPE, REF) is None
    await rig.work(S)
    assert await remembered(rig) == ["gone in a moment", "own memory"]
    assert {one.session_id for one in await rig.stored()} == {"s"}
    assert {key for key in await rig.raw_keys() if key.startswith(("j:", "w"))} <= {"wake"}


async def test_a_deleted_session_promotes_nothing(rig: Rig) -> None:
    await put(rig, "gone figs", memories=[{"id": "own", "text": "own"}])
    (claim,) = await rig.claim(S)
    await rig.rt[SessionService].delete(SCOPE, "s")
    await Tasks(rig.rt).process_session(claim.member, claim.lease, claim.attempt)
    await promote_session(rig.rt, rig.sid(REF))
    assert await remembered(rig) == []
    assert await rig.raw_keys() <= {"wake", "cfg"}


async def test_a_session_deleted_between_read_and_write_promotes_nothing(rig: Rig) -> None:
    await put(rig, "gone figs", memories=[{"id": "own", "text": "own"}])
    journal = await rig.rt[SessionStore].journal(rig.sid(REF), "jp", 10)
    assert journal is not None
    for again in (False, True):
        await rig.rt[SessionService].delete(SCOPE, "s")
        if again:
            await put(rig, "gone figs", "other figs")
        fence = Fence(rig.sid(REF), journal.epoch, "jp", journal.start, journal.start + 1, 10, own=journal.own)
        assert (
            await rig.rt[MemoryStore].write(
                SCOPE, [message_memory(journal.ref, journal.waiting[0].message, "figs")], fence=fence, background=True
            )
            is None
        )
        assert await remembered(rig) == []
    await rig.work(S)
    assert await remembered(rig) == ["gone figs", "other figs"]


async def test_deleted_memory_is_not_promoted_again(rig: Rig) -> None:
    await put(rig, "I like figs", memories=[{"id": "own", "text": "own"}])
    await rig.work(S)
    await rig.rt[MemoryService].delete(SCOPE, [one.id for one in await rig.stored()])
    # The program sends its whole copy of the session again.
    await put(rig, "I like figs", "and plums", memories=[{"id": "own", "text": "own"}])
    await rig.work(S)
    assert await remembered(rig) == ["and plums"]


async def test_concurrent_promotion_creates_each_memory_once(rig: Rig) -> None:
    texts = [f"fact {number}" for number in range(450)]
    await rig.append("s", *texts)
    made = await gathered(promote_session(rig.rt, rig.sid(REF)) for _ in range(4))
    assert sum(map(len, made)) == 450
    assert await remembered(rig) == sorted(texts)
    order = [member for member, _ in await rig.rt.client.zrange(rig.keys.order(rig.sid(REF)), 0, -1, withscores=True)]
    assert [one.text for one in await rig.rt[MemoryStore].fetch_records(SCOPE, [m.decode() for m in order]) if one] == texts


async def test_repeated_late_and_reordered_task_deliveries_change_nothing(rig: Rig) -> None:
    tasks = Tasks(rig.rt)
    await rig.append("s", "one fig")
    (old,) = await rig.claim(S)
    await rig.make_due(S)
    (new,) = await rig.claim(S)
    await tasks.process_session(new.member, new.lease, new.attempt)
    before = {memory.id: memory for memory in await rig.stored()}
    assert len(before) == 1
    for claim in (old, old, new):
        await tasks.process_session(claim.member, claim.lease, claim.attempt)
    assert {memory.id: memory for memory in await rig.stored()} == before
    assert (await rig.marks(S), await rig.rt.client.exists(rig.keys.tries(S))) == ({}, 0)
    await rig.append("s", "two figs")
    # The delivery that runs first processes the session up to its newest message.
    await gathered(tasks.process_session(claim.member, claim.lease, claim.attempt) for claim in (new, old, old, new))
    assert await rig.marks(S) == {}
    assert await remembered(rig) == ["one fig", "two figs"]


async def test_session_memories_inherit_the_sessions_namespace_user_and_strategy(rig: Rig) -> None:
    more = {"namespace": "n", "user_id": "u", "long_term_memory_strategy": {"strategy": "summary"}}
    await put(rig, memories=[{"id": "1", "text": "figs"}, {"id": "2", "text": "plums", "user_id": "v", "persisted_at": None}], **more)
    await rig.work(S)
    one, two = sorted(await rig.stored(), key=lambda found: found.id)
    assert (one.namespace, one.user_id, one.session_id, one.extraction_strategy) == ("n", "u", "s", "summary")
    assert (two.namespace, two.user_id) == ("n", "v")
    seen = (await rig.rt[SessionService].get(SCOPE, "s", namespace="n", user_id="u")).session.memories
    assert all(record.persisted_at is not None for record in seen)


async def test_session_memory_marked_as_persisted_is_not_stored(rig: Rig) -> None:
    await put(rig, memories=[{"id": "1", "text": "figs", "persisted_at": "2024-01-01T00:00:00Z"}])
    assert await rig.marks(S) == {}
    await promote_session(rig.rt, rig.sid(REF))
    assert await rig.stored() == []


async def test_repeated_put_adds_and_changes_no_memory(rig: Rig) -> None:
    """Most programs do not send ids or times."""
    sent = {"messages": [{"role": "user", "content": "I like figs"}], "memories": [{"text": "own figs"}, {"id": "x", "text": "named"}]}
    seen: list[list[MemoryRecord]] = []
    for _ in range(3):
        await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory.model_validate(sent))
        await rig.work()
        seen.append(sorted(await rig.stored(), key=lambda one: one.id))
    assert len(seen[0]) == 3
    assert seen[0] == seen[1] == seen[2]


async def test_put_during_promotion_keeps_the_newer_memory(rig: Rig) -> None:
    await put(rig, memories=[{"id": "1", "text": "old"}])
    journal = await rig.rt[SessionStore].journal(rig.sid(REF), "jp", 10)
    assert journal is not None
    await put(rig, memories=[{"id": "1", "text": "new"}])
    fence = Fence(rig.sid(REF), journal.epoch, "jp", 0, 0, 10, own=journal.own)
    assert await rig.rt[MemoryStore].write(SCOPE, [], fence=fence, background=True) == []
    await rig.work(S)
    assert await remembered(rig) == ["new"]


async def test_replaced_session_memories_are_still_promoted(rig: Rig) -> None:
    await put(rig, memories=[{"id": "1", "text": "first"}])
    await put(rig, memories=[{"id": "2", "text": "second"}])
    await rig.work(S)
    assert await remembered(rig) == ["first", "second"]


async def test_thousands_of_session_memories_are_promoted(rig: Rig) -> None:
    await put(rig, "and a message", memories=[{"id": str(number), "text": f"memory {number}"} for number in range(2500)])
    await rig.work(S)
    assert len(await rig.stored()) == 2501


async def test_journal_is_trimmed_to_ten_processed_messages(rig: Rig) -> None:
    k = rig.keys.session(rig.sid(REF))
    for start in range(0, 300, 100):
        await rig.append("s", *(f"fact {number}" for number in range(start, start + 100)))
        await rig.work(S)
    assert await rig.rt.client.llen(k.journal_list) == 10
    await rig.append("s", "one more")
    journal = await rig.rt[SessionStore].journal(k.sid, "jp", 100)
    assert journal is not None
    assert [m.message.content for m in journal.before] == [f"fact {number}" for number in range(290, 300)]
    assert [m.message.content for m in journal.waiting] == ["one more"]


@pytest.mark.parametrize("order", ["work first", "ttl first", "no messages"])
async def test_journal_expires_after_a_session_with_a_ttl(rig: Rig, order: str) -> None:
    k = rig.keys.session(rig.sid(REF))
    if order == "no messages":
        await put(rig, ttl_seconds=500)
    elif order == "ttl first":
        await put(rig, "fig", ttl_seconds=500)
        assert await rig.rt.client.ttl(k.journal) == -1, "what waits does not expire"
        await rig.work(S)
    else:
        await put(rig, "fig")
        await rig.work(S)
        await put(rig, "fig", ttl_seconds=500)
    assert 500 < await rig.rt.client.ttl(k.journal) <= 560
    await put(rig, "fig" if order != "no messages" else "new fig")
    assert await rig.rt.client.ttl(k.journal) == -1


async def test_promotion_does_nothing_if_long_term_memory_is_off(make_rig: MakeRig) -> None:
    async with make_rig(LONG_TERM_MEMORY="false") as rig:
        await put(rig, "I like figs", memories=[{"id": "1", "text": "own"}])
        await rig.work()
        assert await rig.stored() == []
        assert await rig.marks(S) == {}


async def test_only_session_memories_are_promoted_if_message_promotion_is_off(make_rig: MakeRig) -> None:
    async with make_rig(INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY="false") as rig:
        await put(rig, "I like figs", memories=[{"id": "1", "text": "own"}])
        await rig.work()
        assert await remembered(rig) == ["own"]


async def test_concurrent_appends_promotion_and_summaries_lose_no_message(make_rig: MakeRig) -> None:
    """Each message is promoted once, and remains in the session or its summary."""
    async with make_rig() as rig:

        async def append(writer: int) -> None:
            for turn in range(10):
                text = f"writer {writer} says in turn {turn} that fig number {writer * 100 + turn} is ripe and round and red"
                await rig.append("s", text, context_window_max=1000)

        async def work() -> None:
            for _ in range(30):
                await rig.work(S)
                await asyncio.sleep(0)

        await gathered([*(append(writer) for writer in range(20)), *(work() for _ in range(3))])
        await rig.work(S)
        assert len(await remembered(rig)) == len(set(await remembered(rig))) == 200
        state = await rig.rt[SessionStore].get(SCOPE, REF)
        assert state is not None
        assert [stored.seq for stored in state.messages] == list(range(201 - len(state.messages), 201))
        assert state.message_tokens == sum(stored.tokens for stored in state.messages) <= 700
        assert state.context
        assert (await rig.rt.outbox.backlog())[S].dead == 0


async def test_edited_memory_is_not_overwritten_by_a_repeated_message(rig: Rig) -> None:
    await rig.append("s", "I live in Oslo")
    await rig.work()
    (one,) = await rig.stored()
    await rig.rt[MemoryService].patch(SCOPE, one.id, EditMemoryRecordRequest(text="I live in Rome"))
    await rig.append("s", "I live in Oslo", "more figs")
    await rig.work()
    assert await remembered(rig) == ["I live in Rome", "more figs"]
    created = CreateMemoryRecordRequest.model_validate({"memories": [{"id": one.id, "text": "I live in Bergen"}]})
    await rig.rt[MemoryService].create(SCOPE, created)
    assert await remembered(rig) == ["I live in Bergen", "more figs"]


async def test_deleting_everything_leaves_only_expiring_traces(rig: Rig) -> None:
    await rig.rt[Reindexer].reindex_for_model()
    await put(rig, "I like figs", "and plums", memories=[{"id": "1", "text": "own"}], data={"a": 1}, namespace="n", user_id="u")
    await rig.append("t", "another session", "with figs")
    await rig.work()
    await rig.make_due(DueKind.FOLLOW)
    await rig.work()
    await rig.append("t", "not yet promoted")
    await rig.rt[SessionService].delete(SCOPE, "s", namespace="n", user_id="u")
    await rig.rt[SessionService].delete(SCOPE, "t")
    await rig.rt[MemoryService].delete(SCOPE, [one.id for one in await rig.stored()])
    await rig.work()
    await rig.make_due(DueKind.FOLLOW)
    await rig.work()
    left = {key for key in await rig.raw_keys() if key not in ("wake", "cfg")}
    # For a month, the ids of deleted memories remain, and so does the name of their empty profile.
    assert {key.split(":")[0] for key in left} == {"mt", "pf", "pfu"}
    month = timedelta(days=30).total_seconds()
    assert all([month - 3600 < await rig.rt.client.ttl(rig.keys.root + key) <= month for key in left])


async def test_neighbors_of_a_message_are_reindexed_after_a_delay(make_rig: MakeRig) -> None:
    async with make_rig(NEIGHBOURS_AFTER_SECONDS=600) as rig:

        async def terms(text: str) -> str:
            (one,) = [one for one in await rig.stored() if one.text == text]
            return (await rig.rt.client.hget(rig.keys.memory(rig.keys.mid(SCOPE.tenant, one.id)), "k")).decode()

        for text in ("Anna lives in Oslo", "she paints boats", "and she sells kayaks"):
            await rig.append("s", text)
            await rig.work()
        assert "oslo" in await terms("and she sells kayaks"), "what was said before is known at once"
        assert "kayak" not in await terms("Anna lives in Oslo")
        marks = await rig.marks(DueKind.MEMORY)
        assert len(marks) == 2, "both that stand before it, each once"
        seconds, _ = await rig.rt.client.time()
        assert all(0 < due - seconds * 1000 <= 601_000 for due in marks.values())
        await rig.make_due(DueKind.MEMORY)
        await rig.work()
        assert {"boat", "kayak"} <= set((await terms("Anna lives in Oslo")).split())
        assert await rig.marks(DueKind.MEMORY) == {}
