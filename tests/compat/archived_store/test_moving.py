"""Test that repeated or killed migrations give the same result and lose nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from redis.asyncio import Redis

from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.scan import MemoryScan
from agent_memory.features.privacy.purge import PurgeService
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.features.transfer.archived_server.layout import OldKind, OldPrefixes
from agent_memory.features.transfer.archived_server.migration import Report
from agent_memory.features.transfer.export import ExportService
from agent_memory.features.transfer.import_progress import ImportProgress
from agent_memory.features.transfer.imports import ImportService
from agent_memory.foundation.core.errors import Forbidden
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.text.redaction import redact
from agent_memory_client.models import EditMemoryRecordRequest, MemoryMessage, MemoryRecord, PurgeRequest, UpdateWorkingMemory
from tests.compat.archived_store.conftest import OldRedis
from tests.compat.archived_store.moves import content_of, differences, move, picture
from tests.compat.archived_store.old_server import at, hashed, memory, session
from tests.registrations import registrations
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig

pytestmark = pytest.mark.slow


class Killed(Exception):
    """Simulates kill -9: nothing runs afterward, and only the data in Redis remains."""


def killer(at_call: int) -> Any:
    """Return a callback that stops the migration on its n-th call."""
    calls = 0

    def told(kind: OldKind, seen: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == at_call:
            raise Killed

    return told


@pytest.fixture(scope="module")
async def whole(old_redis: OldRedis, redis_url: str, local: Any, counter: Any) -> AsyncGenerator[tuple[Rig, Report, dict[str, Any]]]:
    """Migrate a store in one run, and return its report and content. Tests must not change it."""
    from tests.support.rig import open_rig

    async with open_rig(redis_url, local, counter, None) as rig:
        report = await move(rig, old_redis.url)
        yield rig, report, await picture(rig)


async def test_dry_run_writes_nothing_and_predicts_the_report(
    old_redis: OldRedis, rig: Rig, whole: tuple[Rig, Report, dict[str, Any]]
) -> None:
    _, real, _ = whole
    before = await rig.raw_keys()
    dry = await move(rig, old_redis.url, dry_run=True)
    assert await rig.raw_keys() == before <= {"cfg"}
    for kind in ("memory", "session"):
        assert dry.imported[kind] == real.imported[kind], kind
    assert (dry.vectors_reused, dry.vectors_to_embed, dry.tokens) == (real.vectors_reused, real.vectors_to_embed, real.tokens)
    assert dry.changed == real.changed != []
    assert [one for one in real.problems if one.kind != "summary"] == dry.problems


def line(name: str, text: str, minute: float, **more: Any) -> dict[str, Any]:
    """Return a memory without fields that would distinguish it from a duplicate."""
    bare = {"topics": None, "entities": None, "extracted_from": None, "event_date": None, "metadata": {}, "session_id": None}
    whose = {"user_id": "ada", "namespace": None, "pinned": False, "memory_type": "semantic", "created_at": at(minute)}
    return {**memory(0), **bare, **whose, "id": name, "text": text, "memory_hash": None, **more}


def turn(name: str, text: str, minute: float, role: str = "user", **more: Any) -> dict[str, Any]:
    return line(name, text, minute, memory_type="message", session_id="s", extracted_from=[name], metadata={"role": role}, **more)


REPEATED = [
    line("a1", "Ada keeps bees.", 1),
    line("a2", "ada keeps bees", 2),
    line("a3", "Ada keeps bees!", 3, user_id="ben"),
    line("a4", "Ada keeps bees.", 4, pinned=True),
    line("a5", "Ada keeps bees.", 5, memory_type="episodic"),
    line("a6", "Ada keeps bees.", 6, metadata={"source": "diary"}),
    line("a7", "Ada keeps bees.", 7, metadata={"source": "letter"}),
    line("a8", "Ada keeps bees.", 0.5, memory_type="message"),
    line("b1", "The trip is over.", 10),
    line("b2", "The trip is over.", 11, event_date=at(-9000)),
    line("b3", "The trip is over.", 12, event_date=at(-4000)),
    turn("c1", "I paint boats.", 20),
    turn("c2", "I paint boats.", 21),
    turn("c3", "I paint boats.", 22, role="assistant"),
    turn("c4", "I saw her yesterday.", 23),
    turn("c5", "I saw her yesterday.", 24),
    turn("c6", "I saw her yesterday.", 24 + 60 * 24 * 3),
    turn("c7", "I paint boats.", 25, pinned=True),
    line("d1", "I paint boats.", 30),
    turn("d2", "I paint boats.", 31),
    line("here 1", "A text that stands here.", 40),
    line("here 2", "a text that stands here", 41),
    line("gone", "A text that was deleted here.", 42),
    line("kept", "Another text under an id that is here.", 43),
    line("alias", "What is said here, too.", 44),
    line("of another", "A text under an id of another user.", 45),
    line("another name", "A text under another user's other id.", 46),
]


@pytest.mark.parametrize("page", [None, 1, 4])
@pytest.mark.parametrize("full", [False, True], ids=["empty", "not empty"])
async def test_duplicate_memories_are_merged_and_keep_their_ids(old_engine: str, rig: Rig, page: int | None, full: bool) -> None:
    if full:
        mine = [("mine", "A text that stands here."), ("kept", "Mine."), ("gone", "To be deleted."), ("said", "What is said here, too.")]
        await rig.rt[MemoryService].store(SCOPE, [MemoryRecord(id=name, text=text, user_id="ada") for name, text in mine])
        await rig.rt[MemoryService].store(SCOPE, [MemoryRecord(id="alias", text="What is said here, too.", user_id="ada", topics=["x"])])
        await rig.rt[MemoryService].delete(SCOPE, ["gone"])
        for name in ("of another", "another name"):
            await rig.rt[MemoryService].store(SCOPE, [MemoryRecord(id=name, text="Ben's own.", user_id="ben")])
    async with apart(old_engine, "rep") as client:
        for number, one in enumerate(REPEATED):
            await client.hset(f"rep:{number}", mapping=hashed(one, None))
        # One id under two keys, as an earlier release could store it.
        await client.hset("rep:again", mapping=hashed(REPEATED[0], None))
        for number, place in enumerate((0, 0, 3)):
            await client.set(f"rep-s:{number}", json.dumps(session(place, messages=session(place)["messages"][: 4 - number])))
        for place, name in ((6, "of another"), (9, "a1")):
            await client.set(f"rep-s:own{place}", json.dumps(session(place, memories=[line(name, "A session's own text.", 50)])))
        prefixes = OldPrefixes(memories="rep", sessions="rep-s")
        stored = {record.id: record for record in await rig.stored()}
        report = await move(rig, old_engine, prefixes=prefixes, page=page)
        assert {one.id: one for one in await rig.stored() if one.id in stored} == stored
    refused = {one.id for one in report.problems if one.kind == "memory"}
    assert refused == ({"kept", "of another", "another name"} if full else set())
    assert report.imported["memory"] + report.present["memory"] + len(refused) == len(REPEATED) + 1
    assert report.present["memory"] >= 6
    kept = await rig.rt[MemoryStore].get(SCOPE, [one["id"] for one in REPEATED])
    gone = {one["id"] for one, record in zip(REPEATED, kept, strict=True) if record is None}
    assert gone == ({"gone"} if full else set()), "every id still names a memory, except the one that was deleted here"


async def test_report_accounts_for_every_record(old_redis: OldRedis, whole: tuple[Rig, Report, dict[str, Any]]) -> None:
    rig, report, _ = whole
    left = old_redis.left
    assert report.imported["memory"] == len(left.memories)
    assert report.imported["session"] == len(left.sessions)
    assert report.present == {}
    assert {(one.kind, one.id) for one in report.problems} == left.skipped
    assert report.problem_count == len(left.skipped)
    assert all(one.reason for one in [*report.problems, *report.changed])
    assert report.tokens == 2
    assert {record.id for record in await rig.stored()} == set(left.memories)


async def test_vectors_of_the_same_model_are_reused_and_others_recomputed(whole: tuple[Rig, Report, dict[str, Any]]) -> None:
    rig, report, _ = whole
    assert report.vectors_reused == 80
    assert report.vectors_to_embed == 12 + 11
    waiting = await rig.marks(DueKind.MEMORY)
    assert len(waiting) == 12 + 11
    mid = rig.rt[MemoryStore].mid(SCOPE, memory(1)["id"])
    kept = (await rig.rt[MemoryScan].load_vectors([mid]))[mid]
    own = (await rig.rt.embedder.embed([memory(1)["text"]]))[0]
    assert float(np.dot(kept, own)) > 0.99
    assert mid not in waiting


async def test_vectors_of_another_model_are_not_reused(old_engine: str, rig: Rig) -> None:
    async with apart(old_engine, "other_idx") as client:
        turned = np.roll((await rig.embedder.embed([memory(1)["text"]]))[0], 100)
        await client.hset("other_idx:one", mapping=hashed({**memory(1), "id": "one"}, turned))
        prefixes = OldPrefixes(memories="other_idx", sessions="none:")
        assert (await move(rig, old_engine, prefixes=prefixes, dry_run=True)).vectors_reused == 0
        assert (await move(rig, old_engine, prefixes=prefixes, dry_run=True, vectors="reuse")).vectors_reused == 1
        rig.embedder.away = True
        assert (await move(rig, old_engine, prefixes=prefixes)).vectors_to_embed == 1


async def test_second_migration_changes_nothing(old_redis: OldRedis, make_rig: MakeRig, whole: tuple[Rig, Report, dict[str, Any]]) -> None:
    _, first, wanted = whole
    async with make_rig() as rig:
        before = await content_of(old_redis.url)
        for _ in range(2):
            report = await move(rig, old_redis.url)
            assert differences(await picture(rig), wanted) == []
        assert (report.imported, report.present) == ({}, first.imported)
        assert await content_of(old_redis.url) == before, "the source is never changed"


@pytest.mark.parametrize(
    ("calls", "page"),
    [([3, 2], 10), ([9, 4, 5], 10), ([21], 10), ([24, 2], 10), pytest.param([2], None, id="between the last memory and the first session")],
)
async def test_resumed_migration_equals_an_uninterrupted_one(
    old_redis: OldRedis, rig: Rig, whole: tuple[Rig, Report, dict[str, Any]], calls: list[int], page: int | None
) -> None:
    _, first, wanted = whole
    for number in calls:
        with pytest.raises(Killed):
            await move(rig, old_redis.url, killer(number), page=page)
    report = await move(rig, old_redis.url, page=page)
    assert report.present["memory"] > 0
    assert differences(await picture(rig), wanted) == []
    assert Counter(report.imported) + Counter(report.present) == first.imported
    assert len(await rig.marks(DueKind.MEMORY)) == first.vectors_to_embed


async def test_migration_killed_before_saving_progress_restarts_with_same_result(
    old_redis: OldRedis, rig: Rig, whole: tuple[Rig, Report, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    note = ImportProgress.note

    async def killed(self: ImportProgress, scope: Any, source: str, owner: Any, marks: Sequence[str]) -> None:
        if marks:
            raise Killed
        await note(self, scope, source, owner, marks)

    for page in (200, 10):
        with monkeypatch.context() as patch:
            patch.setattr(ImportProgress, "note", killed)
            with pytest.raises(Killed):
                await move(rig, old_redis.url, page=page)
    report = await move(rig, old_redis.url)
    assert report.present["memory"] > 0
    assert differences(await picture(rig), whole[2]) == []


async def test_migration_keeps_edits_and_deletions_made_here(old_redis: OldRedis, old_engine: str, rig: Rig) -> None:
    await move(rig, old_redis.url)
    edited, deleted = memory(1)["id"], memory(2)["id"]
    await rig.rt[MemoryService].patch(SCOPE, edited, EditMemoryRecordRequest(text="edited here"))
    await rig.rt[MemoryService].delete(SCOPE, [deleted])
    await rig.append("talk-1", "said here", user_id="ada")
    await rig.rt[SessionService].delete(SCOPE, "talk-2", namespace="work", user_id="ada")
    for one in registrations():
        await one.delete_moved(rig)
    wanted = await picture(rig)
    report = await move(rig, old_redis.url)
    assert differences(await picture(rig), wanted) == []
    assert (await rig.contents("talk-1", user_id="ada"))[-1] == "said here"
    assert report.imported == {}
    # A later change at the source neither replaces an edit, nor restores a memory or session that was deleted here.
    async with apart(old_engine, "later") as client:
        for place in (1, 2, 3):
            await client.hset(f"later:{place}", mapping=hashed({**memory(place), "text": f"{place} has changed there."}, None))
        await client.set("later-s:1", json.dumps(session(2, context="later")))
        report = await move(rig, old_engine, prefixes=OldPrefixes(memories="later", sessions="later-s"), source=report.name)
    assert differences(await picture(rig), wanted) == []
    assert {one.id for one in report.problems if one.kind != "summary"} == {edited, memory(3)["id"]}
    assert (report.present["memory"], report.present["session"]) == (1, 1)


async def test_repeated_migration_reports_records_deleted_by_a_users_undo(old_redis: OldRedis, rig: Rig) -> None:
    first = await move(rig, old_redis.url)
    assert first.not_restored == {}
    await rig.work()
    mine = {one.id for one in await rig.stored() if one.user_id == "ada"} & set(old_redis.left.memories)
    sessions = [name for _, user, name in old_redis.left.sessions if user == "ada"]
    assert mine
    assert sessions
    exported = b"".join([piece async for piece in (await rig.rt[ExportService].begin(SCOPE, None, "ada"))[1]])
    await rig.rt[PurgeService].order(SCOPE, PurgeRequest(import_source=first.name, unchanged=True), None, "ada", dry_run=False)
    await rig.work(DueKind.ORDER)
    for _ in range(2):
        again = await move(rig, old_redis.url)
        assert (again.imported, again.not_restored["memory"], again.not_restored["session"]) == ({}, len(mine), len(sessions))
        assert any("export the user there, and import that file here" in text for text in again.lines())
    assert mine.isdisjoint({one.id for one in await rig.stored()})
    # Follow the advice of the report: an import of the user's export restores what was deleted here.
    await rig.rt[ImportService].run(SCOPE, None, "ada", exported)
    assert mine <= {one.id for one in await rig.stored()}
    assert (await move(rig, old_redis.url)).not_restored == {}


async def test_migration_after_an_undo_reports_memories_that_are_not_restored(old_engine: str, rig: Rig) -> None:
    async with apart(old_engine, "undone") as client:
        for place in range(3):
            await client.hset(f"undone:{place}", mapping=hashed(memory(place), None))
        prefixes = OldPrefixes(memories="undone", sessions="none:")
        first = await move(rig, old_engine, prefixes=prefixes, others=False)
        await rig.rt[PurgeService].order(SCOPE, PurgeRequest(import_source=first.name, unchanged=True), None, None, dry_run=False)
        await rig.work(DueKind.ORDER)
        again = await move(rig, old_engine, prefixes=prefixes, others=False)
    assert (first.imported, again.imported, again.not_restored) == ({"memory": 3}, {}, {"memory": 3})


async def test_migration_never_overwrites_an_existing_session(old_redis: OldRedis, rig: Rig) -> None:
    mine = UpdateWorkingMemory(messages=[MemoryMessage(role="user", content="mine", id="mine")], user_id="ada")
    await rig.rt[SessionService].put(SCOPE, "talk-1", mine)
    report = await move(rig, old_redis.url)
    assert await rig.contents("talk-1", user_id="ada") == ["mine"]
    assert [one.id for one in report.problems if "already exists here with different content" in one.reason] == ["ada:talk-1"]


async def test_records_that_no_feature_imports_are_reported(old_engine: str, rig: Rig) -> None:
    view = {"id": "v", "source": "long_term", "group_by": []}
    part = {"view_id": "v", "group": {}, "summary": "?", "memory_count": 1, "computed_at": "2025-03-01T10:00:00Z"}
    names = ("summary_view:v:config", "summary_view:v:summary:")
    async with Redis.from_url(old_engine) as client:
        try:
            for name, value in zip(names, (view, part), strict=True):
                await client.set(name, json.dumps(value))
            report = await move(rig, old_engine, prefixes=OldPrefixes(memories="none", sessions="none:"), others=False)
        finally:
            await client.delete(*names)
    assert {("summary", "v:config"), ("summary", "v:summary:")} <= {(one.kind, one.id) for one in report.problems}


async def test_session_changed_at_source_is_migrated_again_unless_changed_here(old_engine: str, rig: Rig) -> None:
    async with apart(old_engine, "late:") as client:
        for place in (0, 3, 6):
            await client.set(f"late:{place}", json.dumps(session(place)))
        prefixes = OldPrefixes(memories="none", sessions="late")
        await move(rig, old_engine, prefixes=prefixes)
        await rig.rt[SessionService].put(SCOPE, "talk-3", UpdateWorkingMemory(context="mine"))
        await rig.rt[SessionService].delete(SCOPE, "talk-6", namespace="work")
        for place in (0, 3, 6):
            await client.set(f"late:{place}", json.dumps(session(place, context="later")))
        report = await move(rig, old_engine, prefixes=prefixes)
    assert (report.imported["session"], report.present["session"]) == (1, 1)
    assert [one.id for one in report.problems if "both here and there" in one.reason] == ["3"]
    state = await rig.rt[SessionStore].get(SCOPE, SessionRef("talk-0", "work"))
    assert state is not None
    assert state.context == "later"


async def test_migrated_messages_keep_their_order(whole: tuple[Rig, Report, dict[str, Any]]) -> None:
    rig, *_ = whole
    order = rig.keys.order(rig.sid(SessionRef("long talk", None, "ada")))
    names = [mid.decode() for mid in await rig.rt.client.zrange(order, 0, -1)]
    found = await rig.rt[MemoryStore].fetch_records(SCOPE, names)
    assert [one.id for one in found if one] == [f"line-{number}" for number in range(12)]


async def test_new_messages_come_after_migrated_ones(old_engine: str, rig: Rig) -> None:
    async with apart(old_engine, "said") as client:
        for number in (2, 0, 1):
            line = {**memory(0), "id": f"old-{number}", "memory_type": "message", "session_id": "s", "created_at": at(number)}
            await client.hset(f"said:{number}", mapping=hashed({**line, "user_id": None, "namespace": None}, None))
        await rig.append("s", "new one here", "new two here")
        await rig.work(DueKind.SESSION)
        await move(rig, old_engine, prefixes=OldPrefixes(memories="said", sessions="none:"), page=1)
    names = [mid.decode() for mid in await rig.rt.client.zrange(rig.keys.order(rig.sid(SessionRef("s"))), 0, -1)]
    found = [one for one in await rig.rt[MemoryStore].fetch_records(SCOPE, names) if one]
    assert [one.id for one in found[:3]] == ["old-0", "old-1", "old-2"]
    assert [one.text for one in found[3:]] == ["new one here", "new two here"]
    assert (await rig.stored()) != []


async def test_messages_are_indexed_again_when_their_neighbors_arrive(old_engine: str, rig: Rig) -> None:
    prefixes = OldPrefixes(memories="near", sessions="none:")
    async with apart(old_engine, "near") as client:
        await client.hset("near:1", mapping=hashed(turn("near 1", "I will visit the lighthouse.", 1), None))
        await move(rig, old_engine, prefixes=prefixes)
        await rig.work(DueKind.MEMORY)
        assert await rig.marks(DueKind.MEMORY) == {}
        await client.hset("near:2", mapping=hashed(turn("near 2", "Its lamp is broken.", 2), None))
        await move(rig, old_engine, prefixes=prefixes)
    assert len(await rig.marks(DueKind.MEMORY)) == 2


async def test_texts_with_secrets_are_migrated_unchanged(old_engine: str, rig: Rig) -> None:
    one = line("secret", "The alarm has the password: Tr0ub4dor&3xyz", 1)
    assert redact(one["text"]) != one["text"]
    async with apart(old_engine, "safe") as client:
        await client.hset("safe:1", mapping=hashed(one, None))
        await move(rig, old_engine, prefixes=OldPrefixes(memories="safe", sessions="none:"))
    assert [record.text for record in await rig.stored()] == [one["text"]]


async def test_whole_store_is_imported_only_for_the_whole_tenant(rig: Rig) -> None:
    with pytest.raises(Forbidden):
        await rig.rt[ImportService].run(replace(SCOPE, users=frozenset({"ada"})), None, None, b"{}")


async def test_messages_extracted_at_the_source_are_not_extracted_again(
    old_redis: OldRedis, make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike
) -> None:
    async with make_rig(chat=chat) as rig:
        await move(rig, old_redis.url)
        await rig.make_due(DueKind.EXTRACTION)
        await rig.work(DueKind.SESSION, DueKind.EXTRACTION)
        asked = "".join(json.dumps(body) for body in lookalike.bodies("chat"))
        assert "talk 7:" in asked, "what was not extracted there is here"
        assert not any(f"talk {place}:" in asked for place in range(40) if place != 7)
        promoted = [one for one in await rig.stored() if one.session_id in ("talk-7", "talk-9") and one.memory_type == "message"]
        assert {one.session_id for one in promoted} == {"talk-7"}, "and what was promoted there is not promoted again"
        state = await rig.rt[SessionService].get(SCOPE, "talk-7", user_id="ada")
        assert {message.discrete_memory_extracted for message in state.session.messages} == {"t"}


async def test_migration_without_extract_creates_no_message_memories(old_redis: OldRedis, rig: Rig) -> None:
    await move(rig, old_redis.url, extract=False)
    await rig.work(DueKind.SESSION)
    assert not [one for one in await rig.stored() if one.session_id == "talk-7" and one.memory_type == "message"]


class apart:
    """Opens a client for the old Redis, and deletes all keys with this prefix on exit."""

    def __init__(self, url: str, prefix: str) -> None:
        self._client, self._prefix = Redis.from_url(url), prefix

    async def __aenter__(self) -> Redis:
        return self._client

    async def __aexit__(self, *_: object) -> None:
        keys = [key async for key in self._client.scan_iter(match=f"{self._prefix}*", count=1000)]
        if keys:
            await self._client.delete(*keys)
        await self._client.aclose()
