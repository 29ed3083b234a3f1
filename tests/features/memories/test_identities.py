"""Memories that a former version stored with an id which is not theirs get one of their own when a worker starts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from agent_memory.core.errors import NotFound
from agent_memory.core.task_kinds import DueKind
from agent_memory.memories.changes.service import HistoryService
from agent_memory.memories.search.service import SearchService
from agent_memory.memories.service import MemoryService
from agent_memory.memories.upkeep.identity_repair import IdentityRepair
from agent_memory_client.models import CreateMemoryRecordRequest, EditMemoryRecordRequest, ExtractedMemoryRecord, SearchRequest, UserId
from agent_memory_worker.main import run_worker
from tests.support.rig import SCOPE, Rig, record
from tests.support.waiting import wait_until

WRONG = "01M81P16J22997G5ZAHV426J01"


async def stored_wrong(rig: Rig, *memory_ids: str) -> None:
    """Writes one id into the records of these memories and of their versions, as MCP did."""
    for memory_id in memory_ids:
        mid = rig.keys.mid(SCOPE.tenant, memory_id)
        versions = [name.decode() for name in await rig.rt.client.zrange(rig.keys.ledger(mid), 0, -1) if name.isdigit()]
        documents = [rig.keys.memory(mid), rig.keys.history(mid), *(rig.keys.history(f"{mid}.{version}") for version in versions)]
        for key in documents:
            raw = await rig.rt.client.hget(key, "j")
            if raw is not None:
                await rig.rt.client.hset(key, "j", json.dumps({**json.loads(raw), "id": WRONG}))


async def create(rig: Rig, memory: ExtractedMemoryRecord) -> None:
    await rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest(memories=[memory]))


@asynccontextmanager
async def a_worker(rig: Rig) -> AsyncGenerator[None]:
    """A worker that has started, and embedded what is due."""
    stop = asyncio.Event()
    worker = asyncio.create_task(run_worker(rig.rt, rig.settings, stop))
    try:

        async def started() -> bool:
            looked = await rig.rt.client.hexists(rig.keys.config, "vectors")
            return looked and not await rig.marks(DueKind.MEMORY)

        await wait_until(started, "the start of the worker")
        yield
    finally:
        stop.set()
        await worker


async def ids(rig: Rig, user: str = "ada") -> dict[str, str]:
    """The ids that a search gives, by text."""
    found = await rig.rt[SearchService].search(SCOPE, SearchRequest(text=None, user_id=UserId(eq=user), limit=50))
    assert found.memories is not None
    return {one.text: one.id for one in found.memories}


async def test_each_gets_an_id_by_which_it_is_read_changed_and_deleted(rig: Rig) -> None:
    texts = ["Ada plays the violin", "Ada lives in Lisbon", "Ada is allergic to nuts"]
    await rig.remember(*(record(text, user_id="ada") for text in texts), record("Bob sings", user_id="bob"))
    await stored_wrong(rig, *texts)
    async with a_worker(rig):
        found = await ids(rig)
        assert found.keys() == set(texts)
        assert len(set(found.values())) == len(texts)
        assert WRONG not in found.values()
        for text, memory_id in found.items():
            assert (await rig.rt[MemoryService].get(SCOPE, memory_id)).text == text
            changed = await rig.rt[MemoryService].patch(SCOPE, memory_id, EditMemoryRecordRequest(topics=["seen"]))
            assert (changed.id, changed.topics) == (memory_id, ["seen"])
        assert (await rig.rt[MemoryService].delete(SCOPE, list(found.values()))).status == "ok, deleted 3 memories"
        assert await ids(rig) == {}
        assert (await rig.rt[MemoryService].get(SCOPE, "Bob sings")).id == "Bob sings"


async def test_no_document_of_the_old_keys_stays(rig: Rig) -> None:
    await rig.remember(record("Ada plays the violin", "old", user_id="ada"))
    await stored_wrong(rig, "old")
    await rig.rt[IdentityRepair].repair_identities()
    mid = rig.keys.mid(SCOPE.tenant, "old")
    left = {key for key in await rig.raw_keys() if mid in key}
    assert left == {f"al:{mid}"}, "the id that it was meant to have is another name of it"
    assert (await rig.rt[MemoryService].get(SCOPE, "old")).text == "Ada plays the violin"


async def test_evidence_versions_and_changes_come_along(rig: Rig) -> None:
    home = {"user_id": "ada", "slot": "home_city"}
    await create(rig, ExtractedMemoryRecord(id="a", text="Ada lives in Rome", **home))
    await create(rig, ExtractedMemoryRecord(id="b", text="ada lives in rome.", user_id="ada"))
    await create(rig, ExtractedMemoryRecord(id="c", text="Ada lives in Oslo", **home))
    before = await rig.rt[HistoryService].read_history(SCOPE, "a")
    await stored_wrong(rig, "a")
    assert await rig.rt[IdentityRepair].repair_identities() == 1
    after = await rig.rt[HistoryService].read_history(SCOPE, "a")
    assert [one.record.text for one in after.versions] == [one.record.text for one in before.versions]
    assert [one.id for one in after.changes] == [one.id for one in before.changes]
    own = after.versions[0].record.id
    assert own not in ("a", WRONG)
    assert (await rig.rt[MemoryService].get(SCOPE, "b")).text == "Ada lives in Rome", "what repeated it is another name of it"
    await rig.rt[HistoryService].undo_by_id(SCOPE, after.changes[0].id)
    assert (await rig.rt[MemoryService].get(SCOPE, own)).valid_to is None


async def test_the_same_statement_again_is_evidence_of_the_repaired_one(rig: Rig) -> None:
    await rig.remember(record("Ada plays the violin", "old", user_id="ada"))
    await stored_wrong(rig, "old")
    await rig.rt[IdentityRepair].repair_identities()
    await create(rig, ExtractedMemoryRecord(id="again", text="ada plays the violin.", user_id="ada"))
    assert len(await ids(rig)) == 1


async def test_a_store_in_which_nothing_is_wrong_is_looked_through_once(rig: Rig) -> None:
    await rig.remember(record("Ada plays the violin", "old", user_id="ada"))
    assert await rig.rt[IdentityRepair].repair_until_clean() == 0
    await stored_wrong(rig, "old")
    assert await rig.rt[IdentityRepair].repair_until_clean() == 0
    with pytest.raises(NotFound):
        await rig.rt[MemoryService].get(SCOPE, (await ids(rig))["Ada plays the violin"])
    assert await rig.rt[IdentityRepair].repair_identities() == 1
    assert await rig.rt[IdentityRepair].repair_identities() == 0
