"""Test that a store with another embedding model is migrated, and its old indexes are dropped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.commit import ChangeOrigin, MemoryCommits, Merge, Update
from agent_memory.features.memories.retention.service import Policy, RetentionService
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.reindex import Reindexer
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory_client.models import CreateMemoryRecordRequest, ExtractedMemoryRecord, SearchRequest
from agent_memory_worker.memories.expiry import end_forgotten, sweep
from tests.support.rig import SCOPE, MakeRig, Rig, record


async def indexes(rig: Rig) -> set[str]:
    listed = [name.decode() for name in await rig.rt.client.execute_command("FT._LIST")]
    return {name.removeprefix(rig.keys.index("")).removeprefix("rebuilt:") for name in listed if name.startswith(rig.keys.index(""))}


async def hours_later(rig: Rig) -> None:
    """Make the records of former indexes look old."""
    for name in await rig.rt.client.hkeys(rig.keys.config):
        if name.startswith(b"former "):
            await rig.rt.client.hset(rig.keys.config, name, "1")


async def test_another_vector_type_gets_its_own_indexes_including_history(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        await rig.remember(record("Ada lives in Turin", "home", user_id="ada"))
        (found,) = await rig.rt[MemoryStore].find(SCOPE, ["home"])
        assert found is not None
        before = datetime.now(UTC)
        moved = found.record.model_copy(update={"text": "Ada lives in Torino"})
        await rig.rt[MemoryCommits].commit(SCOPE, [Update(found, moved)], ChangeOrigin("tests"))
        await rig.index()
        await rig.rt[Reindexer].reindex_for_model()
        old = await indexes(rig)
        async with make_rig(KEY_PREFIX=rig.settings.redis.key_prefix, VECTOR_TYPE="FLOAT32") as new:
            assert await new.rt[Reindexer].reindex_for_model() == 1
            await new.index()
            await sweep(new.rt)
            asked = SearchRequest(text="Where is her home?", search_mode="semantic", known_at=before, distance_threshold=2.0)
            assert [one.text for one in (await new.rt[SearchService].search(SCOPE, asked)).memories] == ["Ada lives in Turin"]
            await new.rt[Reindexer].drop_former_indexes()
            await hours_later(new)
            dropped = await new.rt[Reindexer].drop_former_indexes()
            assert {name.removeprefix(new.keys.index("")).split(":")[0] for name in dropped} == {"v", "p", "h", "pr", "it"}
            assert len(await indexes(new)) == len(old)


async def test_forgotten_memories_are_purged_after_the_retention_time(make_rig: MakeRig) -> None:
    old = datetime.now(UTC) - timedelta(days=100)
    async with make_rig() as rig:
        await rig.remember(*(record(f"Ada said number {n}", f"m{n}", user_id="ada", created_at=old, last_accessed=old) for n in range(3)))
        stays, goes, _ = await rig.rt[MemoryStore].find(SCOPE, ["m0", "m1", "m2"])
        assert stays is not None
        assert goes is not None
        await rig.rt[MemoryCommits].commit(SCOPE, [Merge(stays, stays.record, [goes])], ChangeOrigin("tests"))
        gone = await rig.rt[RetentionService].forget_by_policy(SCOPE, Policy(max_age_days=1), Selection(), limit=10, dry_run=False)
        assert sorted(gone.deleted_ids) == ["m0", "m2"]
        # A new copy of one of them is created: its history remains.
        await rig.rt[MemoryService].create(
            SCOPE, CreateMemoryRecordRequest(memories=[ExtractedMemoryRecord(id="m2", text="Ada said more", user_id="ada")])
        )
        assert await end_forgotten(rig.rt) == 0, "it is not long ago"
        changes = (await rig.rt[HistoryService].read_changes(SCOPE, {"kd": "forget"}, None, 0, 10)).changes
        for change in changes:
            await rig.rt.client.hset(rig.keys.change(change.id), "at", str((old + timedelta(days=1)).timestamp()))
        assert await end_forgotten(rig.rt) == 1
        assert await end_forgotten(rig.rt) == 0
        left = [
            one.memories[0].memory_id for one in (await rig.rt[HistoryService].read_changes(SCOPE, {"kd": "forget"}, None, 0, 10)).changes
        ]
        assert left == ["m2"]
        mids = {name: rig.rt[MemoryStore].mid(SCOPE, name) for name in ("m0", "m1", "m2")}
        keys = [key for key in await rig.raw_keys() if mids["m0"] in key or mids["m1"] in key]
        assert all(key.startswith("mt:") for key in keys), "no version, evidence, name or change is left of it"
        assert (await rig.rt[MemoryService].get(SCOPE, "m2")).text == "Ada said more"
