"""Test that the checker reports every kind of damage and no false positives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agent_memory.extensions.blocks.owners import BlockOwner
from agent_memory.extensions.blocks.service import BlockService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.keyspace import SessionKeys
from agent_memory_client.models import MemoryRecord
from agent_memory_client.models.features.blocks import EditBlockRequest, PutBlockRequest
from tests.support.rig import SCOPE, MakeRig, Rig, record
from tests.system.conftest import MakeChat
from tests.system.faults.block_actors import LABEL
from tests.system.faults.derived import differences
from tests.system.faults.invariants import Checker, Findings
from tests.system.faults.journal import Journal
from tests.system.faults.pictures import finished

_TEXTS = [f"I bought {number} violins in Lisbon" for number in range(5)]
_KEY = "s\n\n"


async def healthy(rig: Rig, path: Path) -> None:
    """Write a session, a memory and a deleted memory to the store and the journal."""
    journal = Journal(path)
    for text in _TEXTS:
        op = journal.intend("append", _KEY, messages=[[f"s-{text}"[:100], "user", text, True]])
        await rig.append("s", text)
        journal.outcome(op, ok=True, tries=1)
    for name, text in (("kept", "Ana sails"), ("gone", "Ben climbs")):
        op = journal.intend("create", name, memories=[[name, text]])
        await rig.rt[MemoryService].store(SCOPE, [record(text, name)])
        journal.outcome(op, ok=True, tries=1)
    op = journal.intend("delete_memories", "gone", ids=["gone"])
    await rig.rt[MemoryService].delete(SCOPE, ["gone"])
    journal.outcome(op, ok=True, tries=1)
    for user, value in (("bea", "Bea sails"), ("cem", "Cem climbs")):
        op = journal.intend("block", user, value=value)
        await rig.rt[BlockService].put(SCOPE, block_owner(user), LABEL, PutBlockRequest(value=value), None)
        journal.outcome(op, ok=True, tries=1)
    op = journal.intend("block", "cem", value=None)
    await rig.rt[BlockService].delete(SCOPE, block_owner("cem"), LABEL, None)
    journal.outcome(op, ok=True, tries=1)
    journal.close()
    await finished(rig)


def block_owner(user: str) -> BlockOwner:
    return BlockOwner(None, user, None)


async def look(rig: Rig, path: Path) -> Findings:
    spec = rig.rt.spec
    return await Checker(rig.rt.client, path, spec, prefix=rig.keys.prefix).check()


def keys_of(rig: Rig) -> SessionKeys:
    return rig.keys.session(rig.sid(SessionRef("s")))


async def fact(rig: Rig) -> MemoryRecord:
    return next(one for one in await rig.stored() if one.text.startswith("User said"))


async def _drop_a_message(rig: Rig) -> None:
    await rig.rt.client.lpop(keys_of(rig).messages)


async def _double_a_message(rig: Rig) -> None:
    await rig.rt.client.rpush(keys_of(rig).messages, await rig.rt.client.lindex(keys_of(rig).messages, -1))


async def _swap_two_messages(rig: Rig) -> None:
    first = await rig.rt.client.lpop(keys_of(rig).messages)
    await rig.rt.client.linsert(keys_of(rig).messages, "AFTER", await rig.rt.client.lindex(keys_of(rig).messages, 0), first)


async def _lose_the_session(rig: Rig) -> None:
    k = keys_of(rig)
    await rig.rt.client.delete(k.meta, k.messages, k.ids, k.doc, k.journal, k.journal_list)


async def _lose_a_memory(rig: Rig) -> None:
    await rig.rt[MemoryService].delete(SCOPE, ["kept"])


async def _change_a_memory(rig: Rig) -> None:
    await rig.rt[MemoryService].store(SCOPE, [record("Ana swims", "kept")])
    await finished(rig)


async def _bring_a_memory_back(rig: Rig) -> None:
    await rig.rt[MemoryService].store(SCOPE, [record("Ben climbs", "gone")])
    await finished(rig)


async def _lose_a_fact(rig: Rig) -> None:
    await rig.rt[MemoryService].delete(SCOPE, [(await fact(rig)).id])


async def _double_a_fact(rig: Rig) -> None:
    await rig.rt[MemoryStore].write(SCOPE, [(await fact(rig)).model_copy(update={"id": "another"})])
    await finished(rig)


async def _lose_a_vector(rig: Rig) -> None:
    await rig.rt.client.delete(rig.keys.vector(rig.rt[MemoryStore].mid(SCOPE, "kept")))


async def _spoil_a_vector(rig: Rig) -> None:
    name = rig.keys.vector(rig.rt[MemoryStore].mid(SCOPE, "kept"))
    spec = rig.rt.spec
    await rig.rt.client.hset(name, spec.field, b"\0\0")


async def _edit_a_block_twice(rig: Rig) -> None:
    edit = EditBlockRequest(operation="append", content="Bea sails")
    await rig.rt[BlockService].edit(SCOPE, block_owner("bea"), LABEL, edit)


async def _bring_a_block_back(rig: Rig) -> None:
    await rig.rt[BlockService].put(SCOPE, block_owner("cem"), LABEL, PutBlockRequest(value="Cem climbs"), None)


async def _leak_a_key(rig: Rig) -> None:
    await rig.rt.client.set(f"{rig.keys.root}strange", "1")


async def _leave_work(rig: Rig) -> None:
    await rig.rt.outbox.mark_due(DueKind.SESSION, [rig.sid(SessionRef("s"))])


_DAMAGE: dict[Callable[[Rig], Awaitable[None]], str] = {
    _drop_a_message: "lost",
    _double_a_message: "duplicated",
    _swap_two_messages: "wrong",
    _lose_the_session: "lost",
    _lose_a_memory: "lost",
    _change_a_memory: "lost",
    _bring_a_memory_back: "resurrected",
    _lose_a_fact: "lost",
    _double_a_fact: "duplicated",
    _lose_a_vector: "wrong",
    _spoil_a_vector: "wrong",
    _edit_a_block_twice: "lost",
    _bring_a_block_back: "resurrected",
    _leak_a_key: "wrong",
    _leave_work: "wrong",
}


async def test_checker_finds_nothing_in_a_healthy_store(make_rig: MakeRig, make_chat: MakeChat, tmp_path: Path) -> None:
    async with make_rig(await make_chat(), EXTRACTION_DEBOUNCE_SECONDS=0) as rig:
        await healthy(rig, tmp_path / "journal")
        found = await look(rig, tmp_path / "journal")
        assert found.violations == []
        assert (found.counts["memories"], found.counts["messages"]) == (11, 5)


@pytest.mark.parametrize("damage", _DAMAGE, ids=lambda damage: damage.__name__.strip("_"))
async def test_checker_finds_each_kind_of_damage(
    make_rig: MakeRig, make_chat: MakeChat, tmp_path: Path, damage: Callable[[Rig], Awaitable[None]]
) -> None:
    async with make_rig(await make_chat(), EXTRACTION_DEBOUNCE_SECONDS=0) as rig:
        await healthy(rig, tmp_path / "journal")
        await damage(rig)
        found = await look(rig, tmp_path / "journal")
        assert getattr(found, _DAMAGE[damage]), f"found instead: {found.violations}"


def test_keys_changed_by_a_rebuild_are_named() -> None:
    before = {"pf:a": {b"m1": b"{}"}, "tl:a": {b"e1": b"{}"}}
    assert differences(before, before) == []
    (changed, missing) = differences(before, {"pf:a": {b"m1": b"[]"}})
    assert "pf:a" in changed
    assert "tl:a" in missing
