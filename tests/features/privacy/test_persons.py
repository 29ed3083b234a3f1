"""Test export and import (row S8).

An export contains all of a user's data. An import restores it unchanged and adds nothing else.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest

from agent_memory.extensions.profile.store import ProfileOwner, ProfileStore
from agent_memory.features.extraction.rule_store import RuleStore
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.changes.store import ChangeStore
from agent_memory.features.memories.commit import ChangeOrigin, MemoryCommits
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.sessions.store import SessionStore
from agent_memory.features.transfer.export import ExportService, ExportStore
from agent_memory.features.transfer.imports import ImportService
from agent_memory.foundation.core.errors import Forbidden, RedisUnavailable
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client._wire.transfers import check_export_end
from agent_memory_client.errors import MemoryProtocolError
from agent_memory_client.models import SearchRequest, UserId
from tests.features.privacy.persons import ANN, BOB, NAMES, Face, faced, fill, picture, said, same, settle, stored_keys
from tests.registrations import registrations
from tests.support.key_spaces import empty_key_spaces
from tests.support.rig import SCOPE, Rig, record


@pytest.fixture
async def face(rig: Rig) -> AsyncGenerator[Face]:
    async with faced(rig) as one:
        yield one


async def test_erased_user_can_be_restored_from_its_export(face: Face) -> None:
    await fill(face, ANN, "trombone")
    await fill(face, BOB, "zither")
    before, other = await picture(face), await picture(face, BOB)
    # The user is erased while a profile is rebuilt.
    owner = ProfileOwner(SCOPE.tenant, "home", ANN)
    await face.rig.rt[ProfileStore].clear(owner, rebuilds=True)
    assert empty_key_spaces(await face.rig.raw_keys()) == []
    lines = await face.lines()
    assert b"zither" not in b"".join(lines)
    assert BOB.encode() not in b"".join(lines)
    kinds = {json.loads(line)["kind"] for line in lines}
    known = {"block", "procedure", "tool_memory", "item"}
    known = known.union(*(one.export_kinds for one in registrations()))
    assert kinds == {"header", "rules", "memory", "change", "session", "end", *known}
    receipt = await face.ok("GET", f"/v1/operations/{json.loads(lines[0])['operation_id']}")
    assert (receipt["state"], receipt["user_id"], receipt["stages"]["session"]) == ("done", None, 2)
    await face.erase(ANN)
    assert (await face.http.get(f"/v1/long-term-memory/{ANN}-f1")).status_code == 404

    report = await face.client.import_user(ANN, lines)
    assert (report.problems, report.complete, report.vectors_to_embed) == ([], True, 0)
    assert await face.rig.marks(DueKind.MEMORY) == {}, "every vector was reused"
    await settle(face)
    same(await picture(face), before)
    keys = await stored_keys(face)
    again = await face.client.import_user(ANN, lines)
    assert (again.problems, again.imported) == ([], {})
    assert sum(again.present.values()) == sum(report.imported.values())
    await settle(face)
    same(await picture(face), before)
    same(await picture(face, BOB), other)
    assert await stored_keys(face) == keys

    # A change before the export can be undone after the import.
    changes = (await face.ok("GET", "/v1/changes", params={"user_id": ANN, "kind": "supersede"}))["changes"]
    await face.ok("POST", f"/v1/changes/{changes[0]['id']}/undo")
    assert "valid_to" not in await face.ok("GET", f"/v1/long-term-memory/{ANN}-f2")
    forgotten = (await face.ok("GET", "/v1/changes", params={"user_id": ANN, "kind": "forget"}))["changes"][0]
    await face.ok("POST", f"/v1/changes/{forgotten['id']}/undo")
    assert (await face.ok("GET", f"/v1/long-term-memory/{ANN}-f7"))["text"] == "hums like a trombone"


async def test_export_contains_every_write_acknowledged_before_it_began(face: Face) -> None:
    """Meanwhile, other callers write and facts change, while sessions are promoted and deleted."""
    rig = face.rig
    stop, enough = asyncio.Event(), asyncio.Event()
    sure: set[str] = set()

    async def write(who: int) -> None:
        n = 0
        while not stop.is_set():
            n += 1
            word = f"w{who}x{n}y"
            session = f"s{who}-{n}"
            await face.ok("PUT", f"/v1/working-memory/{session}", json=said(f"{word} m", user=ANN))
            name = f"{ANN}-{who}"
            # One memory with changing texts, so that all but the last are in its history.
            await rig.rt[MemoryService].store(SCOPE, [record(f"{word} f", name, user_id=ANN)])
            sure.update((f"{word} m", f"{word} f"))
            if len(sure) > 20:
                enough.set()
            await rig.work(DueKind.SESSION)
            marks = rig.rt[OperationService].session_marks(SCOPE, SessionRef(session, None, ANN))[:1]
            assert await rig.rt[OperationService].wait_for_marks(SCOPE, marks, 20), "another writer promotes it"
            await face.http.delete(f"/v1/working-memory/{session}", params={"user_id": ANN})
            found = (await rig.rt[MemoryStore].find(SCOPE, [name]))[0]
            if found is not None and n % 3 == 0:
                await rig.rt[MemoryCommits].forget_memories(SCOPE, [found], ChangeOrigin("test", None), batch=f"b{who}-{n}")
                change = (await rig.rt[ChangeStore].find_changes(SCOPE, {"bt": f"b{who}-{n}"}, 0, 1))[1]
                if change:
                    await face.http.post(f"/v1/changes/{change[0]}/undo")

    writers = [asyncio.create_task(write(who)) for who in range(3)]
    try:
        for _ in range(4):
            enough.clear()
            await asyncio.wait_for(enough.wait(), 60)
            before = set(sure)
            text = b"\n".join(await face.lines()).decode()
            assert {one for one in before if one not in text} == set()
            sure.clear()
    finally:
        stop.set()
        await asyncio.gather(*writers)


async def test_unpromoted_messages_of_an_expired_session_are_exported(face: Face) -> None:
    rig = face.rig
    await face.ok("PUT", "/v1/working-memory/short", json=said("the last words", user=ANN, ttl_seconds=1))
    k = rig.keys.session(rig.sid(SessionRef("short", None, ANN)))
    await rig.rt.client.delete(k.meta, k.messages, k.ids, k.doc)  # as after its expiry
    lines = await face.lines()
    assert [json.loads(line)["kind"] for line in lines] == ["header", "waiting", "end"]
    await face.erase(ANN)
    await rig.work()
    assert await rig.stored() == []
    assert (await face.client.import_user(ANN, lines)).imported == {"waiting": 1}
    await rig.work()
    assert [one.text for one in await rig.stored()] == ["the last words"]


async def test_import_respects_the_callers_limits_and_reports_skipped_records(face: Face) -> None:
    await fill(face, ANN, "trombone")
    lines = await face.lines()
    # To another user and namespace, of another tenant.
    rt = face.rig.rt
    tenant = Scope("elsewhere", namespaces=frozenset({"attic"}), users=frozenset({BOB}))
    report = await rt[ImportService].run(tenant, "attic", BOB, b"\n".join(lines))
    refused = frozenset[str]().union(*(one.refused_kinds for one in registrations()))
    assert {one.kind for one in report.problems} == refused, report.problems
    mine = Scope("elsewhere")
    hits = (await rt[SearchService].search(mine, SearchRequest(text=None, user_id=UserId(eq=BOB), limit=50))).memories or []
    found = {one.text: one for one in hits}
    assert {(one.user_id, one.namespace) for one in hits} == {(BOB, "attic")}
    assert [found[text].pinned for text in ("trombone lessons on Tuesday", "sold the trombone in May")] == [True, False]
    history = await rt[HistoryService].read_history(mine, found["trombone lessons on Tuesday"].id)
    assert [one.record.text for one in history.versions] == ["trombone lessons on Tuesday", "trombone lessons on Monday"]
    state = await rt[SessionStore].get(mine, SessionRef(f"{ANN}-s1", "attic", BOB))
    assert state is not None
    assert [one.message.content for one in state.messages][-1] == "yes, the trombone of my aunt"
    for outside in (Scope("elsewhere", users=frozenset({ANN})), Scope("elsewhere", users=frozenset({BOB}), may_write=False)):
        with pytest.raises(Forbidden):
            await rt[ImportService].run(outside, None, BOB, b"\n".join(lines))
    with pytest.raises(Forbidden):
        await rt[ExportService].begin(Scope("elsewhere", users=frozenset({ANN})), None, BOB)
    # Bob cannot take Ann's ids with a header that claims that the export is his.
    header = bent(lines[0], user_id=BOB)
    taken = await face.client.import_user(BOB, [header, *lines[1:]])
    assert {one.reason for one in taken.problems if one.kind == "memory"} == {
        "this id already exists here with different content, which was not changed"
    }
    assert (await face.ok("GET", f"/v1/long-term-memory/{ANN}-f1"))["user_id"] == ANN


async def memory_ids(face: Face, user: str, namespace: str | None = None) -> set[str]:
    where = {"user_id": {"eq": user}, "limit": 50, "history": True} | ({"namespace": {"eq": namespace}} if namespace else {})
    return {hit["id"] for hit in (await face.ok("POST", "/v1/long-term-memory/search", json=where))["memories"]}


async def test_importing_one_users_export_as_another_creates_a_copy(face: Face) -> None:
    await fill(face, ANN, "trombone")
    lines, before = await face.lines(), await picture(face)
    report = await face.client.import_user(BOB, lines)
    assert (report.problems, report.complete, report.present) == ([], True, {})
    await settle(face)
    same(await picture(face), before)
    ours, theirs = await memory_ids(face, ANN), await memory_ids(face, BOB)
    assert len(theirs) == len(ours)
    assert ours.isdisjoint(theirs)
    for session in ("s1", "s2"):
        copy = await face.ok("GET", f"/v1/working-memory/{ANN}-{session}", params={"user_id": BOB})
        assert [one["id"] for one in copy["messages"]] == [one["id"] for one in before[f"{ANN}-{session}"]["messages"]]
    keys = await stored_keys(face)
    again = await face.client.import_user(BOB, lines)
    assert (again.problems, again.imported) == ([], {})
    await settle(face)
    assert await stored_keys(face) == keys


async def test_imported_copy_refers_only_to_its_own_memories(face: Face) -> None:
    await fill(face, ANN, "trombone")
    lines = await face.lines()
    # In parts, as a large file is sent: each part refers to records of another.
    for line in lines[1:]:
        await face.client.import_user(BOB, [lines[0], line])
    await face.rig.work()
    found = [await face.http.get(f"/v1/long-term-memory/{name}") for name in await memory_ids(face, BOB)]
    copies = {one.json()["text"]: one.json() for one in found if one.status_code == 200}
    first, then = copies["lives near the trombone hall"], copies["lives by the trombone shop"]
    assert (first["superseded_by"], then["supersedes"]) == (then["id"], [first["id"]])
    of_ann = await face.ok("GET", f"/v1/long-term-memory/{ANN}-f3/evidence")
    of_bob = await face.ok("GET", f"/v1/long-term-memory/{copies['sold the trombone in May']['id']}/evidence")
    assert len(of_bob["evidence"]) == len(of_ann["evidence"]) > 0
    named = {piece["memory_id"] for piece in of_bob["evidence"] if piece.get("memory_id")}
    assert named
    assert named.isdisjoint(NAMES), "evidence of the copy names no memory of Ann's"


async def test_undoing_a_change_of_a_copy_does_not_touch_the_original(face: Face) -> None:
    await fill(face, ANN, "trombone")
    lines = await face.lines()
    await face.client.import_user(BOB, lines)
    await face.rig.work()
    before = await picture(face)
    (forgotten,) = (await face.ok("GET", "/v1/changes", params={"user_id": BOB, "kind": "forget"}))["changes"]
    assert forgotten["batch_id"] != "b1", "nobody undoes a copy with what it was made of"
    await face.ok("POST", f"/v1/changes/batches/{forgotten['batch_id']}/undo")
    hums = {"text": "hums like a trombone", "user_id": {"eq": BOB}, "search_mode": "keyword"}
    assert [hit["text"] for hit in (await face.ok("POST", "/v1/long-term-memory/search", json=hums))["memories"]][:1] == [hums["text"]]
    (ended,) = (await face.ok("GET", "/v1/changes", params={"user_id": BOB, "kind": "supersede"}))["changes"]
    await face.ok("POST", f"/v1/changes/{ended['id']}/undo")
    same(await picture(face), before)


async def test_changes_of_a_user_imported_into_another_tenant_can_be_undone_there(face: Face) -> None:
    await fill(face, ANN, "trombone")
    before, rt, there = await picture(face), face.rig.rt, Scope("elsewhere")
    lines = b"\n".join(await face.lines())
    for repeated in (False, True):
        report = await rt[ImportService].run(there, None, ANN, lines)
        assert [problem for problem in report.problems if problem.kind == "change"] == []
        assert ("change" in report.imported) is not repeated
    (change, *_) = (await rt[HistoryService].read_changes(there, {"u": ANN, "kd": "supersede"}, None, 0, 10)).changes
    await rt[HistoryService].undo_by_id(there, change.id)
    same(await picture(face), before)


async def test_import_into_another_namespace_creates_a_copy(face: Face) -> None:
    await fill(face, ANN, "trombone")
    lines = await face.lines(namespace="home")
    before, ours = await picture(face), await memory_ids(face, ANN, "home")
    assert (await face.client.import_user(ANN, lines, namespace="home")).imported == {}, "there it is already"
    report = await face.client.import_user(ANN, lines, namespace="attic")
    assert report.problems == []
    theirs = await memory_ids(face, ANN, "attic")
    assert len(theirs) == len(ours)
    assert ours.isdisjoint(theirs)
    for name in NAMES:
        assert (await face.ok("GET", f"/v1/long-term-memory/{name}")).get("text") == before[name][1]["text"]


def bent(line: bytes, **changes: Any) -> bytes:
    return json.dumps(json.loads(line) | changes).encode()


async def test_invalid_import_lines_are_reported_and_the_rest_is_imported(face: Face) -> None:
    await fill(face, ANN, "trombone")
    lines = await face.lines()
    await face.erase(ANN)
    header, *rest = lines
    one = next(line for line in rest if b"lessons on Tuesday" in line and b'"state":"current"' in line)
    now = json.loads(one)["now"]
    wrong = [
        b"{",
        b"[]",
        b'"x"',
        b"{}",
        b'{"kind":"memory"}',
        b'{"kind":"session","session_id":"a/b"}',
        b'{"kind":"dog"}',
        b"\xff\xfe",
        b'{"kind":"memory","id":"' + b"x" * 600 + b'","state":"gone"}',
        bent(one, state="gone"),
        bent(one, now=now | {"marks": {"n": "1; DROP"}}),
        bent(one, now=now | {"marks": {"n": "99999999999999999"}}),
        bent(one, now=now | {"place": "NaN!"}),
        bent(one, now=now | {"vector": "%%%"}),
        b"[" * 100_000,
        bent(one, id="other"),
        b'{"kind":"change","id":"01HZZZZZZZZZZZZZZZZZZZZZZZ","what":"update","state":"applied","batch":"b","at":"2026-01-01T00:00:00Z",'
        b'"memories":["nobody"],"lines":[["e","nobody","abc"]]}',
        b'{"kind":"change","id":"01HZZZZZZZZZZZZZZZZZZZZZZZ","what":"update","state":"applied","batch":"b","at":"2026-01-01T00:00:00Z",'
        b'"memories":["ann-f1"],"lines":[["m","ann-f1","1 2\\n","3"]]}',
    ]
    mixed = [header, *wrong, *rest]
    report = await face.client.import_user(ANN, mixed)
    assert [one.line for one in report.problems] == list(range(2, 2 + len(wrong)))
    assert not report.complete, "the last line counts others"
    assert all("DROP" not in one.reason for one in report.problems)
    await face.rig.work()
    assert (await face.ok("GET", f"/v1/long-term-memory/{ANN}-f1"))["text"] == "trombone lessons on Tuesday"
    assert sum(report.imported.values()) == len(rest) - 1
    for body, status in ((b"", 422), (b"{}", 422), (bent(header, version=99), 422), (bent(header, format="x"), 422)):
        kind = {"content-type": "application/x-ndjson"}
        assert (await face.http.post(f"/v1/users/{ANN}/import", content=body, headers=kind)).status_code == status
    assert (await face.http.post(f"/v1/users/{ANN}/import", json={})).status_code == 415


async def test_zero_or_foreign_vectors_are_recomputed_on_import(face: Face) -> None:
    await face.rig.rt[MemoryService].store(SCOPE, [record("plays chess", "c1", user_id=ANN), record("plays cards", "c2", user_id=ANN)])
    await face.rig.work()
    header, *rest = await face.lines()
    await face.erase(ANN)
    now = json.loads(rest[0])["now"]
    zeros = bent(rest[0], now=now | {"vector": base64.b64encode(bytes(len(base64.b64decode(now["vector"])))).decode()})
    report = await face.client.import_user(ANN, [header, zeros, rest[1]])
    assert (report.vectors_reused, report.vectors_to_embed) == (1, 1)
    await face.erase(ANN)
    other = bent(header, embedding={"model": "another", "dimensions": 384, "datatype": "FLOAT16"})
    assert (await face.client.import_user(ANN, [other, *rest])).vectors_to_embed == 2
    await face.rig.work()
    found = await face.ok("POST", "/v1/long-term-memory/search", json={"text": "board games", "search_mode": "semantic"})
    assert {one["id"] for one in found["memories"]} == {"c1", "c2"}


async def test_truncated_export_is_detected(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    await face.rig.rt[MemoryService].store(SCOPE, [record("plays chess", "c1", user_id=ANN)])
    first = json.loads((await face.lines())[0])["operation_id"]
    names: list[str] = []
    begin = ExportStore.begin

    async def noted(self: ExportStore, scope: Scope) -> str:
        names.append(await begin(self, scope))
        return names[-1]

    async def away(*_: object) -> AsyncIterator[Any]:
        raise RedisUnavailable("away")
        yield

    monkeypatch.setattr(ExportStore, "begin", noted)
    monkeypatch.setattr(face.rig.rt[RuleStore], "export_lines", away)
    with pytest.raises(RuntimeError):  # over a network the connection breaks
        await face.lines()
    for seen in ([], [b"{}"], [b"{}", b'{"kind":"end","lines":2}'], [b'{"kind":"end","lines":0', b"x"]):
        with pytest.raises(MemoryProtocolError):
            check_export_end(len(seen), seen[-1] if seen else b"")
    ended = await face.ok("GET", f"/v1/operations/{names[-1]}")
    assert (ended["state"], first != names[-1]) == ("dead", True)
