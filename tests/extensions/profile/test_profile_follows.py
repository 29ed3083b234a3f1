"""Test that a profile matches one rebuilt from the memories after any operations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_memory.extensions.profile.entries import entry_of
from agent_memory.extensions.profile.follower import ProfileFollower
from agent_memory.extensions.profile.history import classify
from agent_memory.extensions.profile.service import ProfileService
from agent_memory.extensions.profile.store import MOST_SHOWN, ProfileKeys, ProfileOwner, ProfileStore, followed_item
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.commit import AddEvidence, ChangeOrigin, Forget, MemoryCommits, Merge, Supersede
from agent_memory.features.memories.records import StoredMemory
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore, metadata_fields
from agent_memory.foundation.core.errors import AgentMemoryError
from agent_memory.foundation.core.feature import Owner
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.text.normalization import QUESTION
from agent_memory_client.models import Evidence
from agent_memory_worker.profile import note_lapses
from tests.support.rig import SCOPE, MakeRig, Rig, record

BY_TEST = ChangeOrigin("test")
NOW = datetime.now(UTC).replace(hour=12)
OWNER = ProfileOwner(SCOPE.tenant, None, "ada")
TEXTS = [
    "I only train at home",
    "Trained at home today",
    "I train at home every evening",
    "I like green tea",
    "My name is Ada",
    "Ran 5 km in 26 minutes",
    "I had green tea again",
    "I moved to Rome",
]


async def follow(rig: Rig) -> None:
    await rig.make_due(DueKind.FOLLOW)
    await rig.work(DueKind.FOLLOW)
    assert not await rig.marks(DueKind.FOLLOW)


async def state(rig: Rig, owner: ProfileOwner = OWNER) -> dict[str, Any]:
    """Return the stored profile, excluding its version, user and moves."""
    client, base = rig.rt.client, ProfileKeys(rig.keys.root).profile(owner.name)
    pages = {name: text for name, text in (await client.hgetall(f"{base}:r")).items() if name not in (b"v", b"u")}
    heads = {name: json.loads(text) if name[:1] == b"m" else text for name, text in (await client.hgetall(base)).items()}
    sets = {letter: await client.zrange(f"{base}:{letter}", 0, -1, withscores=True) for letter in "gsdl"}
    return {"pages": pages, "heads": heads, "sets": sets}


async def classified(rig: Rig) -> tuple[list[Any], list[Any], list[Any]]:
    """Classify the current memories."""
    mids = [rig.keys.mid(SCOPE.tenant, memory.id) for memory in await rig.stored()]
    read = await rig.rt[ProfileStore].read_memories(mids)
    entries = [entry for memory in read if memory.memory is not None and (entry := entry_of(memory.memory)) is not None]
    pages = classify(entries, datetime.now(UTC) + timedelta(days=1))
    return list(pages.static)[:MOST_SHOWN], list(pages.dynamic)[:MOST_SHOWN], list(pages.slots)


async def check(rig: Rig) -> None:
    """Assert that the profile matches the expected one and a rebuilt one."""
    before = await state(rig)
    pages, _ = await rig.rt[ProfileStore].read_profile(OWNER, MOST_SHOWN)
    assert (list(pages.static), list(pages.dynamic), list(pages.slots)) == await classified(rig)
    await rig.rt[ProfileFollower].rebuild(SCOPE, OWNER)
    assert await state(rig) == before
    await check_expiry(rig, emptied=not before["heads"])


async def check_expiry(rig: Rig, *, emptied: bool) -> None:
    """Assert that keys expire only if the profile is empty."""
    base = ProfileKeys(rig.keys.root).profile(OWNER.name)
    for key in (f"{base}:r", f"{base}:h", f"{rig.keys.root}pfu:{OWNER.user_key}"):
        ttl = await rig.rt.client.ttl(key)
        assert ttl == -2 or (ttl > 0) == emptied, key


class Script:
    """Runs the steps of one example."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.store, self.commits = rig.rt[MemoryStore], rig.rt[MemoryCommits]
        self.changes: list[str] = []
        self.undone = 0

    async def memories(self) -> list[StoredMemory]:
        ids = sorted(memory.id for memory in await self.rig.stored())
        return [memory for memory in await self.store.find(SCOPE, ids) if memory is not None]

    async def do(self, action: str, number: int, day: int) -> None:
        """Run one step. `number` selects a memory and a text."""
        at, text = NOW - timedelta(days=day), TEXTS[number % len(TEXTS)]
        memories = await self.memories()
        chosen = memories[number % len(memories)] if memories else None
        if action == "create":
            slot = "user.home_city" if number % 3 == 0 else None
            name = f"m{number}-{day}"
            await self.store.write(SCOPE, [record(text, name, user_id="ada", created_at=at, slot=None)])
            if slot and chosen:
                await self.commits.commit(SCOPE, [Supersede([chosen], record(text, f"s{number}-{day}", user_id="ada", slot=slot))], BY_TEST)
        elif action == "undo":
            await self.undo_last()
        elif chosen is None:
            return
        elif action == "say again":
            piece = Evidence(session_id=f"s{day}", message_ids=[f"m{number}"], at=at, source="user")
            await self.commits.commit(SCOPE, [AddEvidence(chosen, piece)], BY_TEST)
        elif action == "contradict":
            new = record(f"{text} no more", f"c{number}-{day}", user_id="ada", created_at=at)
            self.changes += [change for change in (await self.commits.commit(SCOPE, [Supersede([chosen], new)], BY_TEST)).changes if change]
        elif action == "edit":
            await self.store.replace_memory(SCOPE, chosen, chosen.record.model_copy(update={"text": text}))
        elif action == "forget":
            self.changes += [change for change in (await self.commits.commit(SCOPE, [Forget(chosen)], BY_TEST)).changes if change]
        elif action == "merge" and len(memories) > 1:
            other = memories[(number + 1) % len(memories)]
            await self.commits.commit(SCOPE, [Merge(chosen, chosen.record, [other])], BY_TEST)
        elif action == "delete":
            await self.store.delete_records(SCOPE, [chosen.record])
        elif action == "expire":
            key = self.rig.keys.memory(chosen.mid)
            await self.rig.rt.client.hset(key, "z", "1")
            await self.store.sweep_memories([chosen.mid])

    async def undo_last(self) -> None:
        try:
            for change in self.changes[-1:]:
                self.changes.remove(change)
                await self.rig.rt[HistoryService].undo_by_id(SCOPE, change)
                self.undone += 1
        except AgentMemoryError:
            return


ACTIONS = ("create", "create", "say again", "say again", "contradict", "edit", "forget", "merge", "undo", "delete", "expire")
UNDONE = [
    [("create", 1, 2, True), ("say again", 0, 9, False), ("say again", 1, 5, True), ("forget", 0, 0, follows), ("undo", 0, 0, True)]
    for follows in (True, False)
] + [
    [("create", 0, 3, True), ("create", 1, 2, True), ("contradict", 1, 1, follows), ("say again", 0, 1, True), ("undo", 0, 0, True)]
    for follows in (True, False)
]
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 40), st.integers(0, 400), st.booleans()), max_size=14)


async def run_steps(rig: Rig, steps: Sequence[tuple[str, int, int, bool]]) -> Script:
    """Run the steps, check the profile, delete all memories, and check that nothing is left."""
    script = Script(rig)
    for action, number, day, follows in steps:
        await script.do(action, number, day)
        if follows:
            await follow(rig)
    await follow(rig)
    await check(rig)
    await rig.rt[MemoryStore].delete_records(SCOPE, [memory.record for memory in await script.memories()])
    await follow(rig)
    left = await state(rig)
    assert not left["heads"]
    assert not left["pages"]
    assert not any(left["sets"].values())
    await check_expiry(rig, emptied=True)
    return script


@pytest.mark.parametrize("steps", UNDONE)
async def test_undo_restores_the_profile(rig: Rig, steps: list[tuple[str, int, int, bool]]) -> None:
    assert (await run_steps(rig, steps)).undone == 1


async def test_profile_equals_a_rebuild_after_any_operations(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        loop = asyncio.get_running_loop()

        @settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
        @given(STEPS)
        def examples(steps: list[tuple[str, int, int, bool]]) -> None:
            asyncio.run_coroutine_threadsafe(run_steps(rig, steps), loop).result(120)

        await asyncio.to_thread(examples)


async def entry(rig: Rig, name: str, text: str, *days: int) -> None:
    """Store a memory with one statement for each of these ages, in days."""
    first, *again = sorted(days, reverse=True)
    await rig.rt[MemoryStore].write(SCOPE, [record(text, name, user_id="ada", created_at=NOW - timedelta(days=first))])
    for day in again:
        (memory,) = await rig.rt[MemoryStore].find(SCOPE, [name])
        assert memory is not None
        piece = Evidence(session_id=f"s{day}", message_ids=[f"{name}{day}"], at=NOW - timedelta(days=day), source="user")
        await rig.rt[MemoryCommits].commit(SCOPE, [AddEvidence(memory, piece)], BY_TEST)


async def lists(rig: Rig, at: datetime | None = None) -> tuple[list[str], list[str]]:
    """Return the static texts and the dynamic texts."""
    profile = await rig.rt[ProfileService].read(SCOPE, "ada", None, as_of=at)
    return [one.text for one in profile.static], [one.text for one in profile.dynamic]


async def test_fact_stated_on_three_days_within_fourteen_is_static(rig: Rig) -> None:
    await entry(rig, "tea", "I drink green tea", 13, 6, 0)
    await entry(rig, "coffee", "I had some coffee", 14, 6, 0)
    await follow(rig)
    assert await lists(rig) == (["I drink green tea"], ["I had some coffee"])
    static, dynamic = await lists(rig, NOW - timedelta(days=1))
    assert not static
    assert set(dynamic) == {"I drink green tea", "I had some coffee"}


async def test_short_fact_implied_by_others_is_static(rig: Rig) -> None:
    await entry(rig, "home", "I only train at home", 9)
    await entry(rig, "log1", "Trained at home today, 45 minutes of pull-ups, squats and planks", 6)
    await entry(rig, "log2", "Legs at home: trained 5 rounds of lunges and burpees", 2)
    await follow(rig)
    static, dynamic = await lists(rig)
    assert static == ["I only train at home"]
    assert len(dynamic) == 2


async def test_permanent_fact_is_static_at_once_and_unrepeated_fact_expires_from_static(rig: Rig) -> None:
    await entry(rig, "name", "My name is Ada", 0)
    await entry(rig, "tea", "I drink green tea", 205, 203, 200)
    await follow(rig)
    assert await lists(rig) == (["My name is Ada"], ["I drink green tea"])
    assert await lists(rig, NOW - timedelta(days=100)) == (["I drink green tea"], [])
    await entry(rig, "again", "I drink green tea with mint", 0)
    await follow(rig)
    assert (await lists(rig))[0] == ["My name is Ada"], "one day after a long silence is no recurrence"


async def test_slot_has_its_present_value_until_a_future_value_begins(rig: Rig) -> None:
    now = datetime.now(UTC)
    for number, (name, days) in enumerate((("rome", None), ("oslo", 3), ("bonn", 9))):
        begins = None if days is None else now + timedelta(days=days)
        fields = {"valid_from": begins, "created_at": now - timedelta(hours=3 - number)}
        home = record(f"Ada lives in {name}", name, user_id="ada", slot="user.home_city", **fields)
        await rig.rt[MemoryService].store(SCOPE, [home])
        await follow(rig)
    for day, value in ((None, "rome"), (1, "rome"), (4, "oslo"), (10, "bonn")):
        profile = await rig.rt[ProfileService].read(SCOPE, "ada", None, as_of=None if day is None else now + timedelta(days=day))
        assert profile.slots["home"]["home_city"].id == value


async def test_a_superseded_value_leaves_its_slot_and_each_move_is_recorded(rig: Rig) -> None:
    store, commits = rig.rt[MemoryStore], rig.rt[MemoryCommits]
    await store.write(SCOPE, [record("Ada lives in Rome", "rome", user_id="ada", slot="user.home_city")])
    await follow(rig)
    profile = await rig.rt[ProfileService].read(SCOPE, "ada", None)
    assert profile.slots["home"]["home_city"].text == "Ada lives in Rome"
    assert [one.id for one in profile.static] == ["rome"]
    (rome,) = await store.find(SCOPE, ["rome"])
    assert rome is not None
    await commits.commit(SCOPE, [Supersede([rome], record("Ada lives in Oslo", "oslo", user_id="ada", slot="user.home_city"))], BY_TEST)
    await follow(rig)
    profile = await rig.rt[ProfileService].read(SCOPE, "ada", None)
    assert profile.slots["home"]["home_city"].id == "oslo"
    moves = (await rig.rt[ProfileService].read_moves(SCOPE, "ada", None, 10)).moves
    assert {(move.memory_id, move.before, move.after) for move in moves} == {
        ("rome", None, "static"),
        ("rome", "static", None),
        ("oslo", None, "static"),
    }


async def moves(rig: Rig) -> list[tuple[str, str | None, str | None]]:
    found = (await rig.rt[ProfileService].read_moves(SCOPE, "ada", None, 100)).moves
    return [(move.memory_id, move.before, move.after) for move in reversed(found)]


async def test_demotion_of_an_unrepeated_fact_is_recorded_once(rig: Rig) -> None:
    await entry(rig, "tea", "I drink green tea", 4, 2)
    await follow(rig)
    await entry(rig, "old", "I collect old stamps", 205, 203, 200)
    await follow(rig)
    came = [("tea", None, "dynamic"), ("old", None, "dynamic")]
    assert await moves(rig) == came, "what was over from the beginning never was static"
    await entry(rig, "more", "I drink green tea with mint", 0)
    await follow(rig)
    static = [*came, ("more", None, "dynamic"), ("tea", "dynamic", "static")]
    assert sorted((await moves(rig))[2:], key=str) == sorted(static[2:], key=str)
    assert not await note_lapses(rig.rt), "nothing has been silent for too long since"
    client, base = rig.rt.client, ProfileKeys(rig.keys.root).profile(OWNER.name)
    await client.zadd(f"{base}:s", {rig.keys.mid(SCOPE.tenant, "tea"): 1})
    await client.zadd(f"{rig.keys.root}pfl", {OWNER.name: 1})
    assert await note_lapses(rig.rt) == 1
    assert (await moves(rig))[-1] == ("tea", "static", "dynamic")
    assert await note_lapses(rig.rt) == 0
    (tea,) = await rig.rt[MemoryStore].find(SCOPE, ["tea"])
    assert tea is not None
    await rig.rt[MemoryCommits].commit(
        SCOPE, [AddEvidence(tea, Evidence(session_id="s", message_ids=["m"], at=NOW, source="user"))], BY_TEST
    )
    await follow(rig)
    assert (await moves(rig))[-1] == ("tea", "dynamic", "static")


async def test_rebuild_records_only_actual_moves(rig: Rig) -> None:
    await entry(rig, "home", "I only train at home", 4, 2)
    await entry(rig, "more", "Trained at home today", 0)
    await entry(rig, "name", "My name is Ada", 0)
    await follow(rig)
    before = await moves(rig)
    assert len(before) >= 3
    await rig.rt[ProfileFollower].rebuild(SCOPE, OWNER)
    assert await moves(rig) == before
    # A change that the profile does not know of.
    mid = rig.keys.mid(SCOPE.tenant, "name")
    await rig.rt.client.hset(
        ProfileKeys(rig.keys.root).profile(OWNER.name), f"m{mid}0", json.dumps({"i": "ghost", "g": [], "d": [], "l": 1})
    )
    await rig.rt.client.zadd(f"{ProfileKeys(rig.keys.root).profile(OWNER.name)}:d", {f"{mid}0": 1})
    await rig.rt[ProfileFollower].rebuild(SCOPE, OWNER)
    assert await moves(rig) == [*before, ("ghost", "dynamic", None)]
    assert not [key for key in await rig.raw_keys() if key.endswith(":b") and key.startswith("pf:")]


async def test_version_changes_only_with_the_profile(rig: Rig) -> None:
    await entry(rig, "tea", "I drink green tea", 0)
    await follow(rig)
    version = (await rig.rt[ProfileService].read(SCOPE, "ada", None)).version
    await rig.rt[ProfileFollower].follow_memories([rig.keys.mid(SCOPE.tenant, "tea"), rig.keys.mid(SCOPE.tenant, "nobody")])
    assert (await rig.rt[ProfileService].read(SCOPE, "ada", None)).version == version
    await entry(rig, "milk", "I drink oat milk", 0)
    await follow(rig)
    assert (await rig.rt[ProfileService].read(SCOPE, "ada", None)).version > version


async def test_follow_skips_a_record_that_indexing_marked_after_it_was_read(rig: Rig) -> None:
    """A slow worker must not write outdated data.

    Indexing marks a record but does not change its version.
    """
    await entry(rig, "name", "My name is Ada", 0)
    mid = rig.keys.mid(SCOPE.tenant, "name")
    (read,) = await rig.rt[ProfileStore].read_memories([mid])
    assert read.memory is not None
    marked = read.memory.record.model_copy(update={"metadata": {QUESTION: True}})
    await rig.rt.client.hset(rig.keys.memory(mid), "j", dict(zip(("j", "md"), metadata_fields(marked), strict=True))["j"])
    entry_read = entry_of(read.memory)
    assert entry_read is not None
    assert await rig.rt[ProfileStore].follow([followed_item(read, entry_read.values())]) == [False]


async def test_erasure_deletes_the_whole_profile(rig: Rig) -> None:
    await entry(rig, "tea", "I drink green tea", 5, 3, 1)
    await rig.rt[MemoryStore].write(SCOPE, [record("I sing", "sing", user_id="ada", namespace="choir")])
    await follow(rig)
    assert (await rig.rt[ProfileFollower].erase_owner(SCOPE, Owner("choir", "ada")))["profiles"] == 1
    assert (await lists(rig))[0] == ["I drink green tea"]
    await rig.rt[ProfileFollower].erase_owner(SCOPE, Owner(None, "ada"))
    assert not [key for key in await rig.raw_keys() if key.startswith("pf")]
