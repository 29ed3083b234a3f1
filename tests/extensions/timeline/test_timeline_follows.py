"""Test that a timeline matches one rebuilt from the memories after any operations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_memory.extensions.timeline.events import events_of
from agent_memory.extensions.timeline.follower import TimelineFollower
from agent_memory.extensions.timeline.history import page_of
from agent_memory.extensions.timeline.service import TimelineService
from agent_memory.extensions.timeline.store import EventRange, TimelineKeys, TimelineOwner, TimelineStore
from agent_memory.extensions.timeline.summaries.summarizer import PeriodSummarizer
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.commit import AddEvidence, ChangeOrigin, Forget, MemoryCommits, Merge, Supersede
from agent_memory.features.memories.records import StoredMemory
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.errors import AgentMemoryError, BadInput
from agent_memory.foundation.core.feature import Owner
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import Evidence
from agent_memory_client.models.features.timeline import Timeline, TimelineQuery
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, MakeRig, Rig, record

BY_TEST = ChangeOrigin("test")
NOW = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=1)
OWNER = TimelineOwner(SCOPE.tenant, None, "ada")
TEXTS = [
    "I flew to Rome on 3 March 2024",
    "I have worked at Acme since 2020",
    "Yesterday I ran 5 km",
    "I like green tea",
    "I met Ann in May 2023",
    "I was in Oslo from 3 May to 9 June 2023",
    "I swam in 2023. On 5 May 2023 I broke my arm.",
]
RANGES = [
    EventRange(),
    EventRange(low=19_480, high=19_510),
    EventRange(low=19_480),
    EventRange(high=19_510, offset=1, limit=2),
    EventRange(facets=("t" + b"travel".hex(),)),
    EventRange(low=19_000, facets=("t" + b"travel".hex(), "e" + b"ann".hex())),
]


async def follow(rig: Rig) -> None:
    await rig.make_due(DueKind.FOLLOW)
    await rig.work(DueKind.FOLLOW)
    assert not await rig.marks(DueKind.FOLLOW)


async def state(rig: Rig) -> dict[str, Any]:
    """Return the stored timelines.

    For periods, return only event counts, because the rest depends on creation times.
    """
    client, root = rig.rt.client, rig.keys.root
    stored: dict[str, Any] = {}
    for name in sorted(await rig.raw_keys()):
        if name.startswith("tl:") and name.endswith(":s"):
            counts = await client.hgetall(root + name)
            stored[name] = {period: count for period, count in counts.items() if period.startswith(b"c")}
        elif name.startswith("tl:") and not name.endswith(":p"):
            kind = await client.type(root + name)
            stored[name] = await (client.hgetall(root + name) if kind == b"hash" else client.zrange(root + name, 0, -1, withscores=True))
        elif name.startswith("tlo:"):
            stored[name] = await client.get(root + name)
    return stored


async def summarize(rig: Rig) -> None:
    """Write a summary for each of ada's finished periods."""
    key, now = TimelineKeys(rig.keys.root).timeline(OWNER.name), datetime.now(UTC).timestamp()
    for _ in range(10):
        for name in await rig.rt.client.zrange(f"{key}:p", 0, -1):
            ends = float((await rig.rt.client.hget(f"{key}:s", b"g" + name)).split()[1])
            await rig.rt.client.zadd(f"{key}:p", {name: min(ends, now)})
        if not await rig.rt[PeriodSummarizer].summarize(OWNER.name, OWNER.tenant):
            return
    raise AssertionError("summaries are made again and again")


async def summaries_of(rig: Rig) -> dict[str, Any]:
    """Return the summaries of ada's periods, ignoring creation times."""
    key = TimelineKeys(rig.keys.root).timeline(OWNER.name) + ":s"
    stored = {name.decode(): value for name, value in (await rig.rt.client.hgetall(key)).items()}
    made = {name: json.loads(value) for name, value in stored.items() if name[0] in "dwm"}
    assert {name[1:] for name in stored if name[0] == "g"} == {name[1:] for name in stored if name[0] == "c"} - made.keys()
    return {name: {field: value for field, value in summary.items() if field != "made_at"} for name, summary in made.items()}


async def check(rig: Rig, mids: Sequence[str]) -> None:
    """Assert that the timeline matches the expected events and a rebuilt timeline."""
    before = await state(rig)
    store = rig.rt[TimelineStore]
    read = await store.read_memories(sorted(set(mids)))
    entries = [entry for memory in read if memory.memory is not None for entry in events_of(memory.memory, over=memory.over)]
    for asked in RANGES:
        total, shown, _ = await store.read_events(OWNER, asked)
        assert (total, [{name: value for name, value in event.items() if name != "until"} for event in shown]) == page_of(entries, asked)
    await summarize(rig)
    summaries = await summaries_of(rig)
    await rig.rt[TimelineFollower].rebuild(SCOPE, OWNER)
    assert await state(rig) == before
    assert not await summaries_of(rig)
    await summarize(rig)
    assert await summaries_of(rig) == summaries


class Script:
    """Runs the steps of one example."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.store, self.commits = rig.rt[MemoryStore], rig.rt[MemoryCommits]
        self.changes: list[str] = []
        self.mids: list[str] = []

    def new(self, number: int, name: str, at: datetime) -> Any:
        """Create a memory for ada. The type depends on `number`."""
        self.mids.append(self.rig.keys.mid(SCOPE.tenant, name))
        more: dict[str, Any] = {"memory_type": ("message", "semantic", "episodic")[number % 3]}
        if number % 5 == 0:
            more |= {"topics": ["Travel"], "entities": ["Ann"]}
        if number % 7 == 0:
            more["event_date"] = at - timedelta(days=number)
        return record(TEXTS[number % len(TEXTS)], name, user_id="ada", created_at=at, **more)

    async def memories(self) -> list[StoredMemory]:
        ids = sorted(memory.id for memory in await self.rig.stored())
        return [memory for memory in await self.store.find(SCOPE, ids) if memory is not None]

    async def do(self, action: str, number: int, day: int) -> None:
        """Run one step. `number` selects a memory and a text."""
        at = NOW - timedelta(days=day)
        memories = await self.memories()
        chosen = memories[number % len(memories)] if memories else None
        if action == "summarize":
            await summarize(self.rig)
        elif action == "create":
            await self.store.write(SCOPE, [self.new(number, f"m{number}-{day}", at)])
        elif action == "undo":
            await self.undo_last()
        elif chosen is None:
            return
        elif action == "say again":
            piece = Evidence(session_id=f"s{day}", message_ids=[f"m{number}"], at=at, source="user")
            await self.commits.commit(SCOPE, [AddEvidence(chosen, piece)], BY_TEST)
        elif action == "contradict":
            step = Supersede([chosen], self.new(number, f"c{number}-{day}", at))
            self.changes += [change for change in (await self.commits.commit(SCOPE, [step], BY_TEST)).changes if change]
        elif action == "edit":
            changed = chosen.record.model_copy(update={"text": TEXTS[number % len(TEXTS)], "topics": ["travel"] if number % 2 else None})
            await self.store.replace_memory(SCOPE, chosen, changed)
        elif action == "forget":
            self.changes += [change for change in (await self.commits.commit(SCOPE, [Forget(chosen)], BY_TEST)).changes if change]
        elif action == "merge" and len(memories) > 1:
            other = memories[(number + 1) % len(memories)]
            await self.commits.commit(SCOPE, [Merge(chosen, chosen.record, [other])], BY_TEST)
        elif action == "delete":
            await self.store.delete_records(SCOPE, [chosen.record])
        elif action in ("end", "expire"):
            field = "valid_to" if action == "end" else "expires_at"
            changed = chosen.record.model_copy(update={field: NOW - timedelta(days=1)})
            await self.store.replace_memory(SCOPE, chosen, changed)
            await self.store.sweep_memories([chosen.mid])

    async def undo_last(self) -> None:
        try:
            for change in self.changes[-1:]:
                self.changes.remove(change)
                await self.rig.rt[HistoryService].undo_by_id(SCOPE, change)
        except AgentMemoryError:
            return


ACTIONS = ("create", "create", "create", "summarize", "say again", "contradict", "edit", "forget", "merge", "undo", "delete")
ENDS = ("end", "expire")
STEPS = st.lists(st.tuples(st.sampled_from((*ACTIONS, *ENDS)), st.integers(0, 40), st.integers(0, 400), st.booleans()), max_size=14)


async def run_steps(rig: Rig, steps: Sequence[tuple[str, int, int, bool]]) -> None:
    """Run the steps, check the timeline, erase the user, and check that nothing is left."""
    script = Script(rig)
    for action, number, day, follows in steps:
        await script.do(action, number, day)
        if follows:
            await follow(rig)
    await follow(rig)
    await check(rig, script.mids)
    await rig.rt[MemoryStore].delete_records(SCOPE, [memory.record for memory in await all_memories(rig, script)])
    await follow(rig)
    assert not await state(rig)
    assert not [key for key in await rig.raw_keys() if key.startswith(("tl:", "tlo:", "tlp"))]


async def all_memories(rig: Rig, script: Script) -> list[StoredMemory]:
    found = await rig.rt[MemoryStore].find_by_mids(SCOPE, sorted(set(script.mids)))
    return [memory for memory in found if memory is not None]


async def test_timeline_equals_a_rebuild_after_any_operations(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        loop = asyncio.get_running_loop()

        @settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
        @given(STEPS)
        def examples(steps: list[tuple[str, int, int, bool]]) -> None:
            asyncio.run_coroutine_threadsafe(run_steps(rig, steps), loop).result(120)

        await asyncio.to_thread(examples)


async def stored(rig: Rig, name: str, text: str, **more: Any) -> None:
    """Store one of ada's events and run the followers."""
    await rig.rt[MemoryStore].write(SCOPE, [record(text, name, **{"user_id": "ada", "memory_type": "episodic", "created_at": NOW, **more})])
    await follow(rig)


async def timeline(rig: Rig, **query: Any) -> Timeline:
    return await rig.rt[TimelineService].read(SCOPE, TimelineQuery.model_validate({"user_id": "ada", **query}))


async def ids(rig: Rig, **query: Any) -> list[str]:
    return [event.id for event in (await timeline(rig, **query)).events]


async def test_date_range_is_inclusive_and_includes_overlapping_events(rig: Rig) -> None:
    await stored(rig, "rome", "Ada flew to Rome on 3 March 2024", topics=["Travel"], entities=["Rome"])
    await stored(rig, "acme", "Ada has worked at Acme since 2020", topics=["work"])
    await stored(rig, "oslo", "Ada was in Oslo from 28 February to 5 March 2024", topics=["travel"], entities=["Oslo"])
    await stored(rig, "later", "Ada moved on 4 April 2024")
    assert await ids(rig) == ["acme", "oslo", "rome", "later"]
    assert await ids(rig, **{"from": "2024-03-03", "to": "2024-03-03"}) == ["acme", "oslo", "rome"]
    assert await ids(rig, **{"from": "2024-03-06"}) == ["acme", "later"]
    assert await ids(rig, to="2020-01-01") == ["acme"]
    assert await ids(rig, to="2019-12-31") == []
    assert await ids(rig, topic="TRAVEL") == ["oslo", "rome"]
    assert await ids(rig, topic="travel", entity="rome") == ["rome"]
    page = await timeline(rig, limit=2, offset=1)
    assert (page.total, [event.id for event in page.events]) == (4, ["oslo", "rome"])
    acme = (await timeline(rig, topic="work")).events[0]
    assert (acme.start, acme.end, acme.precision, acme.who) == (date(2020, 1, 1), None, "year", "ada")
    grouped = await timeline(rig, **{"from": "2024-01-01", "granularity": "month"})
    assert not grouped.events
    assert [(period.name, len(period.events)) for period in grouped.periods or ()] == [
        ("2020", 1), ("2024-02", 1), ("2024-03", 1), ("2024-04", 1)
    ]  # fmt: skip
    with pytest.raises(BadInput):
        await timeline(rig, **{"from": "2024-03-06", "to": "2024-03-05"})


async def test_timeline_keeps_ended_events_but_not_superseded_or_expired_ones(rig: Rig) -> None:
    day = NOW - timedelta(days=30)
    await stored(rig, "trip", "Ada was in Rome", event_date=day, valid_to=day + timedelta(days=3))
    await stored(rig, "exam", "Ada's exam is on 5 May 2024")
    await stored(rig, "code", "Ada's code came on 6 May 2024", expires_at=NOW - timedelta(days=1))
    await rig.rt[MemoryStore].sweep_memories([rig.keys.mid(SCOPE.tenant, name) for name in ("trip", "code")])
    await follow(rig)
    (exam,) = await rig.rt[MemoryStore].find(SCOPE, ["exam"])
    assert exam is not None
    moved = record("Ada's exam is on 7 May 2024", "moved", user_id="ada", memory_type="episodic", created_at=NOW)
    await rig.rt[MemoryCommits].commit(SCOPE, [Supersede([exam], moved)], BY_TEST)
    await follow(rig)
    assert await ids(rig) == ["moved", "trip"]


async def test_event_stated_twice_is_one_event(rig: Rig) -> None:
    await stored(rig, "rome", "Ada flew to Rome on 3 March 2024", created_at=NOW - timedelta(days=9))
    (rome,) = await rig.rt[MemoryStore].find(SCOPE, ["rome"])
    assert rome is not None
    piece = Evidence(session_id="s2", message_ids=["m7"], at=NOW, source="user")
    await rig.rt[MemoryCommits].commit(SCOPE, [AddEvidence(rome, piece)], BY_TEST)
    await follow(rig)
    (event,) = (await timeline(rig)).events
    assert (event.times_said, event.last_said) == (2, NOW)
    assert [piece.message_ids for piece in event.evidence if piece.session_id == "s2"] == [["m7"]]


async def test_timeline_as_of_a_past_time_shows_events_and_texts_of_that_time(rig: Rig) -> None:
    await stored(rig, "rome", "Ada flew to Rome on 3 March 2024", created_at=NOW - timedelta(days=9))
    await stored(rig, "oslo", "Ada flew to Oslo on 5 March 2024", created_at=NOW - timedelta(days=5))
    assert await ids(rig, as_of=NOW - timedelta(days=7)) == ["rome"]
    assert await ids(rig, as_of=NOW) == await ids(rig) == ["rome", "oslo"]
    assert await ids(rig, known_at=NOW - timedelta(days=7)) == [], "the server did not know it yet"
    known = datetime.now(UTC)
    (oslo,) = await rig.rt[MemoryStore].find(SCOPE, ["oslo"])
    assert oslo is not None
    await rig.rt[MemoryStore].replace_memory(SCOPE, oslo, oslo.record.model_copy(update={"text": "Ada flew home on 6 March 2024"}))
    await follow(rig)
    assert [event.text for event in (await timeline(rig)).events][1] == "Ada flew home on 6 March 2024"
    assert [event.text for event in (await timeline(rig, known_at=known)).events][1] == "Ada flew to Oslo on 5 March 2024"
    assert [event.start for event in (await timeline(rig, as_of=NOW)).events][1] == date(2024, 3, 6)


async def test_a_timeline_is_read_in_one_round_trip(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await stored(rig, "rome", "Ada flew to Rome on 3 March 2024")
    await timeline(rig)
    sent = commands_of(rig, monkeypatch)
    assert await ids(rig, **{"from": "2024-03-01", "to": "2024-03-31", "entity": "x"}) == []
    assert len(sent) == 1


async def test_timeline_without_events_leaves_no_keys(rig: Rig) -> None:
    store = rig.rt[MemoryStore]
    await store.write(SCOPE, [record("I flew to Rome on 3 March 2024", "rome", user_id="ada", memory_type="episodic", namespace="home")])
    await follow(rig)
    assert any(key.startswith("tlu:") for key in await rig.raw_keys())
    await store.write(SCOPE, [record("I swam on 5 May 2024", "swam", user_id="ada", memory_type="episodic", namespace="home")])
    await rig.rt[MemoryService].delete(SCOPE, ["rome"])
    await follow(rig)
    assert any(key.startswith("tlu:") for key in await rig.raw_keys())
    await rig.rt[MemoryService].delete(SCOPE, ["swam"])
    await follow(rig)
    assert not [key for key in await rig.raw_keys() if key.startswith("tl")]


async def test_erasure_deletes_the_whole_timeline(rig: Rig) -> None:
    await stored(rig, "rome", "Ada flew to Rome on 3 March 2024", topics=["travel"], entities=["Rome"])
    await stored(rig, "choir", "Ada sang in 2023", namespace="choir")
    assert (await rig.rt[TimelineFollower].erase_owner(SCOPE, Owner("choir", "ada")))["timelines"] == 1
    assert await ids(rig) == ["rome"]
    await rig.rt[TimelineFollower].erase_owner(SCOPE, Owner(None, "ada"))
    assert not [key for key in await rig.raw_keys() if key.startswith("tl")]
