"""A store that a former version, or another embedding model, left: it is taken over, and what only they needed goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agent_memory.memories.changes.service import HistoryService
from agent_memory.memories.commit import ChangeOrigin, MemoryCommits, Merge, Update
from agent_memory.memories.retention.service import Policy, RetentionService
from agent_memory.memories.search.service import SearchService
from agent_memory.memories.service import MemoryService
from agent_memory.memories.store import MemoryStore
from agent_memory.memories.upkeep.reindex import Reindexer
from agent_memory.memories.upkeep.scan import Selection
from agent_memory.storage.search.indexes import memory_index_name
from agent_memory_client.models import CreateMemoryRecordRequest, EditMemoryRecordRequest, ExtractedMemoryRecord, SearchRequest
from agent_memory_worker.memories.expiry import end_forgotten, sweep
from agent_memory_worker.periodic_runner import run_job
from tests.support.rig import SCOPE, MakeRig, Rig, record
from tests.support.waiting import wait_until


async def indexes(rig: Rig) -> set[str]:
    """Whether they were built at first or again."""
    listed = [name.decode() for name in await rig.rt.client.execute_command("FT._LIST")]
    return {name.removeprefix(rig.keys.index("")).removeprefix("rebuilt:") for name in listed if name.startswith(rig.keys.index(""))}


async def at_rest(rig: Rig) -> None:
    """Waits until no index reads documents that were there before it: dropping one that does can end the engine."""

    async def none_reads() -> bool:
        for name in await rig.rt.client.execute_command("FT._LIST"):
            told = await rig.rt.client.execute_command("FT.INFO", name)
            told = told if isinstance(told, dict) else dict(zip(told[::2], told[1::2], strict=True))
            if int(told.get(b"indexing", told.get("indexing", 0))):
                return False
        return True

    await wait_until(none_reads, "the indexes are at rest")


async def hours_later(rig: Rig) -> None:
    """Lets what was noted of former indexes have been noted long ago."""
    for name in await rig.rt.client.hkeys(rig.keys.config):
        if name.startswith(b"former "):
            await rig.rt.client.hset(rig.keys.config, name, "1")


async def test_a_store_of_a_former_schema_is_searched_edited_and_repeated_and_its_indexes_go(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        await rig.remember(record("Ada keeps bees", "bees", user_id="ada"), record("Ada sails", "sails", user_id="ada"))
        now = await indexes(rig)
        prefix = {"KEY_PREFIX": rig.settings.redis.key_prefix}
        await at_rest(rig)
        # As a former version left it: its own index over the same documents, which knew neither times nor whose words they are.
        for name in now:
            await rig.rt.client.execute_command("FT.DROPINDEX", rig.keys.index(name))
        old = rig.keys.index("m:2")
        await rig.rt.client.execute_command("FT.CREATE", old, "ON", "HASH", "PREFIX", 1, rig.keys.memory_prefix, "SCHEMA", "t", "TAG")
        await at_rest(rig)
        for memory_id in ("bees", "sails"):
            mid = rig.rt[MemoryStore].mid(SCOPE, memory_id)
            await rig.rt.client.hdel(rig.keys.memory(mid), "bk", "ra", "md", "vf", "z", "sc", "tr")
        await rig.rt.client.hset(rig.keys.memory(rig.rt[MemoryStore].mid(SCOPE, "sails")), "bk", "0123456789abcdef t0123 ")
        async with make_rig(**prefix) as new:
            assert await indexes(new) == now | {"m:2"}
            found = await new.rt[SearchService].search(SCOPE, SearchRequest(text="who keeps bees?"))
            assert [one.id for one in found.memories][:1] == ["bees"]
            await new.rt[MemoryService].patch(SCOPE, "sails", EditMemoryRecordRequest(topics=["sea"]))
            for memory_id in ("bees", "sails"):  # Once written again, they are known by their words.
                await new.rt[MemoryService].patch(SCOPE, memory_id, EditMemoryRecordRequest(pinned=False))
            again = ExtractedMemoryRecord(id="again", text="ada keeps bees.", user_id="ada")
            await new.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest(memories=[again]))
            assert (await new.rt[MemoryService].get(SCOPE, "again")).text == "Ada keeps bees"
            assert (await new.rt[HistoryService].read_history(SCOPE, "sails")).versions[0].record.topics == ["sea"]
            await run_job(new.rt, "usage", 900)
            assert await indexes(new) == now | {"m:2"}, "processes of the former version may still search"
            await hours_later(new)
            await run_job(new.rt, "usage", 900)
            assert await indexes(new) == now
            await new.rt[Reindexer].drop_former_indexes()
            kept = await new.rt.client.hkeys(new.keys.config)
            assert not [name for name in kept if name.startswith(b"former ")]
            assert len(await new.stored()) == 2
            assert memory_index_name(new.keys).removeprefix(new.keys.index("")) in now


async def test_another_type_of_vectors_gets_its_own_indexes_history_included(make_rig: MakeRig) -> None:
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


async def test_what_was_forgotten_long_ago_is_deleted_for_good(make_rig: MakeRig) -> None:
    old = datetime.now(UTC) - timedelta(days=100)
    async with make_rig() as rig:
        await rig.remember(*(record(f"Ada said number {n}", f"m{n}", user_id="ada", created_at=old, last_accessed=old) for n in range(3)))
        stays, goes, _ = await rig.rt[MemoryStore].find(SCOPE, ["m0", "m1", "m2"])
        assert stays is not None
        assert goes is not None
        await rig.rt[MemoryCommits].commit(SCOPE, [Merge(stays, stays.record, [goes])], ChangeOrigin("tests"))
        gone = await rig.rt[RetentionService].forget_by_policy(SCOPE, Policy(max_age_days=1), Selection(), limit=10, dry_run=False)
        assert sorted(gone.deleted_ids) == ["m0", "m2"]
        # One of them comes back by itself: its history stays.
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
