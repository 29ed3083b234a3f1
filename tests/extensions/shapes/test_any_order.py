"""Test that derived data matches a rebuild after any operations, and that erasure leaves nothing.

To run more and longer examples, set `SHAPES_EXAMPLES=200 SHAPES_STEPS=28`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_memory.extensions.blocks.codec import replay_change
from agent_memory.extensions.blocks.owners import BlockOwner
from agent_memory.extensions.blocks.service import BlockService
from agent_memory.extensions.profile.entries import entry_of
from agent_memory.extensions.profile.follower import ProfileFollower
from agent_memory.extensions.profile.history import classify
from agent_memory.extensions.profile.store import MOST_SHOWN, ProfileOwner, ProfileStore
from agent_memory.extensions.timeline.events import events_of
from agent_memory.extensions.timeline.follower import TimelineFollower
from agent_memory.extensions.timeline.history import page_of
from agent_memory.extensions.timeline.store import EventRange, TimelineStore
from agent_memory.features.jobs import operations as background
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.storage.keyspace import tag
from tests.extensions.shapes.world import LABEL, World, faced
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig

Step = tuple[str, int, int, bool]
EXAMPLES, LONGEST = int(os.environ.get("SHAPES_EXAMPLES", "12")), int(os.environ.get("SHAPES_STEPS", "16"))
SEARCHES = "SHAPES_EXAMPLES" in os.environ
# Repeat each step this often, so that an undo has a target; use few users, and erase them repeatedly.
TIMES = {"create": 1, "say_again": 3, "contradict": 4, "edit": 3, "forget": 3, "undo": 5, "erase": 1, "expire": 2, "close": 1, "move": 1}
ACTIONS = [action for action, times in TIMES.items() for _ in range(times)]
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, 1000), st.integers(0, 400), st.booleans()),
    min_size=6,
    max_size=LONGEST,
)
SHAPES = ("m:", "h:", "v:", "ev:", "pf", "tl", "bl:", "bla", "blh", "blu", "blg", "pr:", "prf", "w:", "j:", "fg:")


async def derived(rig: Rig) -> dict[str, Any]:
    """Return the stored profiles and timelines, ignoring versions, moves and due times."""
    client, root, found = rig.rt.client, rig.keys.root, dict[str, Any]()
    for name in sorted(key for key in await rig.raw_keys() if key.startswith(("pf", "tl"))):
        if name.endswith((":h", ":p")) or name.startswith("pfu"):
            continue
        match await client.type(root + name):
            case b"hash":
                rows = (await client.hgetall(root + name)).items()
                found[name] = {field: _value(value) for field, value in rows if field not in (b"v", b"u") and field[:1] != b"g"}
            case b"string":
                found[name] = await client.get(root + name)
            case _ if name != "tlp":
                found[name] = await client.zrange(root + name, 0, -1, withscores=True)
            case _:
                continue
    return {name: value for name, value in found.items() if value}


def _value(stored: bytes) -> Any:
    """Parse a stored value, ignoring a summary's creation time."""
    value = json.loads(stored) if stored[:1] in (b"{", b"[") else stored
    return {name: one for name, one in value.items() if name != "made_at"} if isinstance(value, dict) else value


async def check_profile(world: World, owner: ProfileOwner, mids: Sequence[str]) -> None:
    """Assert that a profile matches the one computed from the memories."""
    store, follower = world.rig.rt[ProfileStore], world.rig.rt[ProfileFollower]
    zone = await follower.zone_of(owner)
    read = [one.memory for one in await store.read_memories(mids) if one.memory is not None]
    mine = [one for one in read if (one.tenant, one.record.namespace, one.record.user_id) == owner]
    entries = [entry for one in mine if (entry := entry_of(one, zone, statements=world.model is None)) is not None]
    wanted = classify(entries, datetime.now(UTC) + timedelta(days=2), zone)
    pages, _ = await store.read_profile(owner, MOST_SHOWN)
    shown = [list(pages.static), list(pages.dynamic), dict(pages.slots or {})]
    assert shown == [list(wanted.static)[:MOST_SHOWN], list(wanted.dynamic)[:MOST_SHOWN], dict(wanted.slots or {})]


async def check_timeline(world: World, owner: ProfileOwner, mids: Sequence[str]) -> None:
    """Assert that a timeline matches the one computed from the memories."""
    store = world.rig.rt[TimelineStore]
    zone = await world.rig.rt[TimelineFollower].zone_of(owner)
    read = [(one.memory, one.over) for one in await store.read_memories(mids) if one.memory is not None]
    mine = [(one, over) for one, over in read if (one.tenant, one.record.namespace, one.record.user_id) == owner]
    entries = [entry for one, over in mine for entry in events_of(one, zone, statements=world.model is None, over=over)]
    total, shown, _ = await store.read_events(owner, EventRange())
    assert (total, [{name: value for name, value in event.items() if name != "until"} for event in shown]) == page_of(entries, EventRange())


async def check_block(world: World) -> None:
    """Assert that the block matches its expected text and a replay of its changes."""
    owner, service = BlockOwner(user_id=world.user), world.rig.rt[BlockService]
    shown = await world.call("GET", f"/v1/blocks/{LABEL}", user_id=world.user)
    assert (shown and shown["value"]) == world.block
    if world.block is None:
        return
    history = await service.history(SCOPE, owner, LABEL)
    text = history.base
    for change in history.changes:
        text = replay_change(text, change)
    assert text == world.block


async def check(world: World) -> None:
    """Finish all work and check all derived data."""
    await world.work()
    await world.close()
    # Current memories and expired ones; ids of former versions contain a dot.
    keys = await world.rig.raw_keys()
    mids = sorted({key.partition(":")[2] for key in keys if key.startswith(("m:", "h:")) and "." not in key})
    before = await derived(world.rig)
    for owner in world.owners:
        await check_profile(world, owner, mids)
        await check_timeline(world, owner, mids)
        await world.rig.rt[ProfileFollower].rebuild(SCOPE, owner)
        await world.rig.rt[TimelineFollower].rebuild(SCOPE, owner)
    await world.close()
    assert await derived(world.rig) == before
    await check_block(world)
    for one in await world.procedures():
        assert [one["helped"], one["failed"]] == world.feedback[one["id"]]


async def check_nothing_left(world: World, others: set[str]) -> None:
    """Erase both users and assert that no data remains.

    `others` are keys from an earlier failed example.
    """
    for user in (world.user, world.other):
        await world.call("DELETE", f"/v1/users/{user}")
    await world.work()
    left = {key for key in await world.rig.raw_keys() if key.startswith(SHAPES)} - others
    assert not left, left
    signs = (world.user.encode(), tag(world.user).encode())
    for key in await world.rig.raw_keys():
        raw = await world.rig.rt.client.dump(world.rig.keys.root + key) or b""
        assert not any(sign in raw or sign in key.encode() for sign in signs), key


async def play(rig: Rig, http: Any, model: Lookalike | None, steps: Sequence[Step]) -> None:
    world, others = World(rig, http, model), await rig.raw_keys()
    await world.begin(sum(n for _, n, _, _ in steps))
    for action, n, day, follows in steps:
        await getattr(world, action)(n, day)
        if follows:
            await world.work()
    await check(world)
    await check_nothing_left(world, others)


@pytest.mark.timeout(180 if not SEARCHES else 7200)
@pytest.mark.parametrize("with_model", [False, True])
async def test_derived_data_equals_a_rebuild_after_any_operations(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, monkeypatch: pytest.MonkeyPatch, with_model: bool
) -> None:
    monkeypatch.setattr(background, "MAX_WAIT_SECONDS", 0.0)  # The test does the work itself.
    async with make_rig(chat if with_model else None) as rig, faced(rig) as http:
        loop, model = asyncio.get_running_loop(), lookalike if with_model else None

        @settings(max_examples=EXAMPLES, derandomize=not SEARCHES, database=None, deadline=None, suppress_health_check=list(HealthCheck))
        @given(STEPS)
        def examples(steps: list[Step]) -> None:
            asyncio.run_coroutine_threadsafe(play(rig, http, model, steps), loop).result(120)

        await asyncio.to_thread(examples)
