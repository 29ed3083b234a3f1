from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from agent_memory.features.memories.records import message_memory_id
from agent_memory.features.memories.service import MemoryService, content_hash
from agent_memory.foundation.core.errors import NotFound, UnsupportedRequest
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import CreateMemoryRecordRequest, EditMemoryRecordRequest
from tests.support.rig import SCOPE, MakeRig, Rig, gathered, record


async def create(rig: Rig, *records: dict[str, Any]) -> None:
    answer = await rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest.model_validate({"memories": list(records)}))
    assert answer.status == "ok"


async def patch(rig: Rig, memory_id: str, **changes: Any) -> Any:
    return await rig.rt[MemoryService].patch(SCOPE, memory_id, EditMemoryRecordRequest(**changes))


async def test_create_stores_a_memory_that_get_returns(rig: Rig) -> None:
    await create(rig)
    await create(rig, {"id": "1", "text": "figs", "persisted_at": "2024-01-01T00:00:00Z", "user_id": ""})
    one = await rig.rt[MemoryService].get(SCOPE, "1")
    assert (one.text, one.memory_type, one.persisted_at, one.user_id, one.discrete_memory_extracted) == (
        "figs",
        "semantic",
        None,
        None,
        "t",
    )
    assert one.memory_hash == content_hash(one)
    for scope, memory_id in ((SCOPE, "2"), (Scope("other"), "1")):
        with pytest.raises(NotFound):
            await rig.rt[MemoryService].get(scope, memory_id)


async def test_last_of_equal_ids_in_one_request_wins(rig: Rig) -> None:
    await create(rig, {"id": "1", "text": "first"}, {"id": "2", "text": "two"}, {"id": "1", "text": "last"})
    assert sorted(one.text for one in await rig.stored()) == ["last", "two"]


async def test_a_repeated_create_keeps_times_and_vector(rig: Rig) -> None:
    await create(rig, {"id": "1", "text": "figs"})
    await rig.index()
    before = await rig.rt[MemoryService].get(SCOPE, "1")
    await create(rig, {"id": "1", "text": "figs"})
    assert await rig.rt[MemoryService].get(SCOPE, "1") == before
    assert await rig.marks(DueKind.MEMORY) == {}


async def test_patch_changes_only_the_named_fields(rig: Rig) -> None:
    await create(rig, {"id": "1", "text": "figs", "topics": ["t"], "user_id": "u", "event_date": "2024-01-01T00:00:00Z", "pinned": True})
    before = await rig.rt[MemoryService].get(SCOPE, "1")
    changed = await patch(rig, "1", topics=[], user_id="", pinned=False)
    assert changed == await rig.rt[MemoryService].get(SCOPE, "1")
    assert (changed.topics, changed.user_id, changed.pinned, changed.text, changed.event_date) == (
        [],
        None,
        False,
        "figs",
        before.event_date,
    )
    assert changed.memory_hash == before.memory_hash
    assert changed.updated_at > before.updated_at
    assert (await patch(rig, "1", text="plums")).memory_hash != before.memory_hash
    for nothing in ({}, {"text": None, "pinned": None}):
        with pytest.raises(UnsupportedRequest):
            await patch(rig, "1", **nothing)
    with pytest.raises(NotFound):
        await patch(rig, "2", text="x")


FULL = {
    "user_id": "u",
    "namespace": "n",
    "session_id": "s",
    "agent_id": "a",
    "topics": ["t"],
    "entities": ["e"],
    "slot": "home",
    "category": "c",
    "metadata": {"k": 1},
    "event_date": "2024-01-01T00:00:00Z",
    "valid_from": "2024-01-01T00:00:00Z",
    "valid_to": "2224-01-01T00:00:00Z",
    "expires_at": "2224-01-01T00:00:00Z",
}


async def test_null_in_a_patch_clears_each_optional_field(rig: Rig) -> None:
    assert set(FULL) == set(EditMemoryRecordRequest.model_fields) - {"text", "memory_type", "pinned"}
    for number, name in enumerate(FULL):
        memory_id = str(number)
        await create(rig, {"id": memory_id, "text": f"figs {name}", **FULL, "slot": name})
        before = (await rig.rt[MemoryService].get(SCOPE, memory_id)).model_dump()
        assert before[name]
        await patch(rig, memory_id, **{name: None}, pinned=None)
        after = (await rig.rt[MemoryService].get(SCOPE, memory_id)).model_dump()
        assert not after.get(name)
        changed = {field for field in before if before[field] != after.get(field)}
        # The hash covers the owner of a memory.
        assert changed - {"updated_at", "memory_hash", "last_accessed", "access_count"} == {name}


async def test_concurrent_patches_lose_no_field(rig: Rig) -> None:
    await create(rig, {"id": "1", "text": "figs"})
    changes: list[dict[str, Any]] = [
        {"text": "plums"},
        {"topics": ["t"]},
        {"entities": ["e"]},
        {"user_id": "u"},
        {"namespace": "n"},
        {"pinned": True},
    ]
    await gathered(patch(rig, "1", **change) for change in changes)
    one = await rig.rt[MemoryService].get(SCOPE, "1")
    assert (one.text, one.topics, one.entities, one.user_id, one.namespace, one.pinned) == ("plums", ["t"], ["e"], "u", "n", True)


async def test_patch_never_restores_a_concurrently_deleted_memory(rig: Rig) -> None:
    async def change(number: int) -> None:
        try:
            await patch(rig, "1", text=f"figs {number}")
        except NotFound:
            return

    for _ in range(5):
        await create(rig, {"id": "1", "text": "figs"})
        await gathered(
            [*(change(number) for number in range(10)), rig.rt[MemoryService].delete(SCOPE, ["1"]), *(change(n) for n in range(10))]
        )
        with pytest.raises(NotFound):
            await rig.rt[MemoryService].get(SCOPE, "1")


async def test_delete_counts_only_existing_memories(rig: Rig) -> None:
    await create(rig, {"id": "1", "text": "figs"}, {"id": "2", "text": "plums"})
    assert (await rig.rt[MemoryService].delete(SCOPE, ["1", "1", "3"])).status == "ok, deleted 1 memories"
    assert (await rig.rt[MemoryService].delete(SCOPE, ["1"])).status == "ok, deleted 0 memories"
    assert (await rig.rt[MemoryService].delete(SCOPE, [])).status == "ok, deleted 0 memories"
    assert (await rig.rt[MemoryService].delete(Scope("other"), ["2"])).status == "ok, deleted 0 memories"
    assert [one.id for one in await rig.stored()] == ["2"]


async def test_service_refuses_everything_if_long_term_memory_is_off(make_rig: MakeRig) -> None:
    async with make_rig(LONG_TERM_MEMORY="false") as rig:
        for work in (
            rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest(memories=[])),
            rig.rt[MemoryService].get(SCOPE, "1"),
            rig.rt[MemoryService].delete(SCOPE, ["1"]),
            patch(rig, "1", text="x"),
        ):
            with pytest.raises(UnsupportedRequest):
                await work


def test_promoted_message_ids_differ_between_sessions_namespaces_and_users() -> None:
    places = [
        SessionRef("s"),
        SessionRef("s", "n"),
        SessionRef("s", None, "n"),
        SessionRef("s", "n", "n"),
        SessionRef("ss"),
        SessionRef("s", "s"),
        SessionRef("1:s"),
    ]
    ids = {message_memory_id(place, message) for place in places for message in ("1", "11", "s", "1:1", "-")}
    assert len(ids) == len(places) * 5
    assert message_memory_id(SessionRef("s", "n"), "1") == message_memory_id(SessionRef("s", "n"), "1")
    assert len(next(iter(ids))) == 26


def test_content_hash_follows_the_contract() -> None:
    for fields in ({"text": 'She said "ä\n\t"'}, {"text": "x", "user_id": "ü", "session_id": "s\\", "namespace": "n/😀"}):
        of = record(fields.pop("text"), "1", **fields)
        parts = {"text": of.text, "user_id": of.user_id, "session_id": of.session_id, "namespace": of.namespace}
        parts["memory_type"] = of.memory_type.value
        assert content_hash(of) == sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    one = record("figs", user_id="u")
    assert content_hash(one) == content_hash(one.model_copy(update={"topics": ["t"], "id": "2"}))
    for change in ({"text": "x"}, {"user_id": "v"}, {"session_id": "s"}, {"namespace": "n"}, {"memory_type": "episodic"}):
        assert content_hash(one) != content_hash(record(**{"text": "figs", "user_id": "u"} | change))
