"""Test that pins, metadata, ids and dates survive any sequence of operations.

Undone operations leave nothing behind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ulid import ULID

from agent_memory.features.extraction.facts import Candidate
from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.commit import ChangeOrigin, MemoryCommits
from agent_memory.features.memories.retention.service import Policy, RetentionService
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.reindex import Reindexer
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.errors import Conflict, ModelAnswerInvalid
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.text.normalization import is_turn, normal_text
from agent_memory_client.models import (
    AppendMessagesRequest,
    CreateMemoryRecordRequest,
    EditMemoryRecordRequest,
    Evidence,
    ExtractedMemoryRecord,
    MemoryMessage,
    MemoryRecord,
    MemoryTypeEnum,
    SearchRequest,
    UserId,
)
from agent_memory_worker.extraction.reconcile import decide
from agent_memory_worker.memories.duplicates import compact
from agent_memory_worker.memories.expiry import sweep
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig

WHEN = datetime(2024, 1, 1, tzinfo=UTC)
TEXTS = ["Ada lives in Turin", "ada lives in turin.", "Ada lives in Oslo now", "Ada drinks green tea"]
FORGOTTEN = Policy(budget=1)
READ = {"recorded_at", "access_count", "last_accessed"}

_records = st.fixed_dictionaries(
    {"text": st.sampled_from(TEXTS), "created_at": st.integers(0, 3).map(lambda days: WHEN + timedelta(days=days))},
    optional={
        "pinned": st.booleans(),
        "metadata": st.sampled_from([{"k": 1}, {"k": 2}, {"other": "x"}]),
        "event_date": st.sampled_from([WHEN, WHEN + timedelta(days=40)]),
        "valid_from": st.just(WHEN),
        "slot": st.just("home"),
        "memory_type": st.sampled_from([MemoryTypeEnum.EPISODIC, MemoryTypeEnum.PROCEDURAL]),
    },
)
_edits = st.fixed_dictionaries(
    {},
    optional={
        "text": st.sampled_from(TEXTS),
        "pinned": st.booleans(),
        "metadata": st.sampled_from([{"k": 3}, {"new": True}]),
        "topics": st.just(["home"]),
        "slot": st.just("home"),
    },
).filter(bool)
_steps = st.one_of(
    st.tuples(st.just("create"), _records, st.booleans()),
    st.tuples(st.just("create"), _records, st.booleans()),
    st.tuples(st.just("patch"), st.integers(0, 9), _edits),
    st.tuples(st.just("reconcile"), st.sampled_from(TEXTS), st.sampled_from(["ADD", "UPDATE", "SUPERSEDE", "NONE"]), st.booleans()),
    st.tuples(st.just("say"), st.sampled_from(TEXTS), st.sampled_from(["one", "two"])),
    st.tuples(st.just("erase"), st.sampled_from(["one", "two"])),
    st.tuples(st.just("compact")),
    st.tuples(st.just("forget")),
    st.tuples(st.just("undo"), st.integers(0, 2)),
    st.tuples(st.just("expire"), st.integers(0, 9)),
    st.tuples(st.just("rewrite")),
)


def differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the differences field by field, because records are long."""
    found: dict[str, Any] = {}
    for name, old in before.items():
        new = after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            found |= {f"{name}.{key}": (old[key], new.get(key)) for key in old if old[key] != new.get(key)}
        elif old != new:
            found[name] = (old, new)
    return found


def _message(text: str) -> MemoryMessage:
    return MemoryMessage(role="user", content=text, id=str(ULID()))


@dataclass
class World:
    """A user's memories, and the fields set by callers, keyed by the callers' ids."""

    rig: Rig
    chat: OpenAIChat
    model: Lookalike
    user: str = field(default_factory=lambda: str(ULID()))
    said: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def all(self) -> Selection:
        return Selection(user_id=UserId(eq=self.user))

    async def current(self, memory_id: str) -> MemoryRecord | None:
        return (await self.rig.rt[MemoryStore].get(SCOPE, [memory_id]))[0]

    async def picture(self) -> dict[str, Any]:
        """Return get and list responses."""
        answers: dict[str, Any] = {}
        for name in self.said:
            one = await self.current(name)
            answers[name] = None if one is None else one.model_dump(exclude=READ)
        listed = await self.rig.rt[SearchService].search(SCOPE, SearchRequest(user_id=UserId(eq=self.user), limit=100))
        shown = {f"listed {one.id}": one.model_dump(exclude=READ) for one in listed.memories}
        return answers | shown | {"all": [one.id for one in listed.memories]}

    # Operations.

    async def create(self, given: dict[str, Any], dedupe: bool) -> None:
        record = ExtractedMemoryRecord(id=f"{self.user}-{len(self.said)}", user_id=self.user, **given)
        await self.rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest(memories=[record], deduplicate=dedupe))
        self.said[record.id] = {"metadata": {}, "pinned": False, "event_date": None, "valid_from": None, **given}

    async def patch(self, place: int, edit: dict[str, Any]) -> None:
        ids = list(self.said)
        if not ids or (target := await self.current(ids[place % len(ids)])) is None:
            return
        names = [name for name in ids if (one := await self.current(name)) is not None and one.id == target.id]
        edited = await self.rig.rt[MemoryService].patch(SCOPE, target.id, EditMemoryRecordRequest(**edit))
        for name in names:  # Each alias of a memory names the same derived memory.
            self.said[name] |= {key: edit[key] for key in ("metadata", "pinned") if key in edit}
            if "text" in edit or "slot" in edit:
                self.said[name]["text"] = edited.text

    async def reconcile(self, text: str, action: str, review: bool) -> None:
        """Script arbitrary decisions, and check that the server rejects the disallowed ones."""
        now = datetime.now(UTC)
        piece = Evidence(session_id="s", message_ids=[str(ULID())], role="user", source="user", at=now)
        name = f"{text}, she said on {ULID()}"
        more = {"slot": "home", "valid_from": now, "event_date": now, "metadata": {"k": 99}, "evidence": [piece], "source_class": "user"}
        record = MemoryRecord(id=str(ULID()), text=name, user_id=self.user, memory_type=MemoryTypeEnum.SEMANTIC, **more)
        known = [one.text for one in await self.rig.stored() if one.user_id == self.user]
        self.model.scripted.decisions = {name: [action, *known]}
        try:
            decisions = await decide(self.rig.rt, self.chat, SCOPE, [Candidate(record, piece, True)])
        except ModelAnswerInvalid:
            return
        await self.rig.rt[MemoryCommits].commit(SCOPE, decisions, ChangeOrigin("extraction"), background=True, review=review)

    async def say(self, text: str, session: str) -> None:
        """Repeat the text in a message. It becomes evidence, an alias, or a memory."""
        await self.rig.rt[SessionService].append(SCOPE, session, AppendMessagesRequest(messages=[_message(text)], user_id=self.user))
        await self.rig.work(DueKind.SESSION)
        listed = [one for one in await self.rig.stored() if one.user_id == self.user]
        turns = [normal_text(one.text) for one in listed if is_turn(one)]
        assert len(turns) == len(set(turns)), "said by one person in the same words, it is one memory"

    async def erase(self, session: str) -> None:
        """Erase a session, and assert that nothing else changes."""
        before = await self.picture()
        await self.rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, self.user, session))
        await self.rig.work(DueKind.DELETION)
        after = await self.picture()
        left = {name for name in before["all"] if before[f"listed {name}"]["session_id"] != session}
        assert left <= set(after["all"])
        assert {name: before[f"listed {name}"] for name in left} == {name: after[f"listed {name}"] for name in left}

    async def compact(self) -> None:
        await self._and_undone(lambda: compact(self.rig.rt, SCOPE, self.all))
        await compact(self.rig.rt, SCOPE, self.all)

    async def forget(self) -> None:
        await self._and_undone(lambda: self.rig.rt[RetentionService].forget_by_policy(SCOPE, FORGOTTEN, self.all, limit=9, dry_run=False))

    async def _and_undone(self, act: Any) -> None:
        before = await self.picture()
        known = {one.id for one in await self._changes()}
        await act()
        for one in await self._changes():
            if one.id not in known:
                await self.rig.rt[HistoryService].undo_by_id(SCOPE, one.id)
        assert differences(before, await self.picture()) == {}

    async def _changes(self) -> list[Any]:
        found = await self.rig.rt[HistoryService].read_changes(SCOPE, {"u": self.user, "st": "applied"}, None, 0, 100)
        return [one for one in found.changes if one.kind != "undo"]

    async def undo(self, place: int) -> None:
        """Undo a change, unless a caller made it and expects it to remain."""
        changes = [one for one in await self._changes() if one.actor != "client"]
        if place < len(changes):
            try:
                await self.rig.rt[HistoryService].undo_by_id(SCOPE, changes[place].id)
            except Conflict:
                return

    async def expire(self, place: int) -> None:
        ids = list(self.said)
        if ids and await self.current(ids[place % len(ids)]) is not None:
            over = datetime.now(UTC) - timedelta(seconds=1)
            await self.rig.rt[MemoryService].patch(SCOPE, ids[place % len(ids)], EditMemoryRecordRequest(expires_at=over))
            await sweep(self.rig.rt)

    async def rewrite(self) -> None:
        """Reindex everything, as after a change of layout or model."""
        before = await self.picture()
        await self.rig.rt[Reindexer].mark_all_memories()
        await self.rig.index()
        assert differences(before, await self.picture()) == {}

    # Invariants.

    async def check(self) -> None:
        for name, said in self.said.items():
            one = await self.current(name)
            assert one is not None, "every id that was given answers"
            assert one.metadata.items() >= said["metadata"].items()
            if one.id != name:
                continue
            assert one.created_at == said["created_at"]
            for date in ("event_date", "valid_from"):
                assert said[date] is None or getattr(one, date) == said[date]
            assert one.pinned == said["pinned"]
            if one.pinned:
                assert one.text == said["text"], "what is pinned is changed by its callers alone"


@pytest.fixture
async def world(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> Any:
    async with make_rig(chat, COMPACT_SEMANTIC_DUPLICATES=False) as rig:
        yield lambda: World(rig, chat, lookalike)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(_steps, min_size=4, max_size=12))
async def test_pins_metadata_ids_and_dates_survive_any_sequence_of_operations(world: Any, steps: list[tuple[Any, ...]]) -> None:
    one: World = world()
    for name, *arguments in steps:
        await getattr(one, name)(*arguments)
        await one.check()
