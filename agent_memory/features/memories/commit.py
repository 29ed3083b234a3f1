"""Commit batches of decisions about memories. Each batch is atomic.

If a memory has changed since the decision, the batch writes nothing, and the caller must decide again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from ulid import ULID

from agent_memory.features.memories.records import IN_BATCH, StoredMemory
from agent_memory.features.memories.steps import Fence, MemoryScripts, PutOptions, Step, StepGroups
from agent_memory.foundation.core.input.work import memories_work
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.storage.keyspace import Keys, tag
from agent_memory.foundation.storage.scripts import compact
from agent_memory.foundation.text.normalization import begins_at
from agent_memory_client.models import ANSWER, Evidence, MemoryRecord, MemoryTypeEnum


class ChangeKind(StrEnum):
    UPDATE = "update"
    SUPERSEDE = "supersede"
    MERGE = "merge"
    FORGET = "forget"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class Add:
    """A decision to store a new memory."""

    record: MemoryRecord
    dedupe: bool = True
    """Refuse the whole batch if a current memory has the same words."""
    apart: bool = False
    """The caller knows of a memory with these words, so `dedupe` also compares type and date."""
    expect: str | None = None
    """Refuse the batch unless the memory has this version. "" means an unused id."""
    written: MemoryRecord | None = None
    """The record that the writer sent, if it differs from `record`."""


@dataclass(frozen=True, slots=True)
class AddEvidence:
    """A decision to add evidence to a memory. `alias` is not stored; its id becomes an alias."""

    memory: StoredMemory
    evidence: Evidence
    alias: MemoryRecord | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """A decision to replace a memory but keep its id.

    `edited` is True if a caller changed the text.
    """

    memory: StoredMemory
    record: MemoryRecord
    evidence: Evidence | None = None
    alias: MemoryRecord | None = None
    edited: bool = False


@dataclass(frozen=True, slots=True)
class Supersede:
    """A decision to end the `old` facts when `record` begins, and to link the records."""

    old: Sequence[StoredMemory]
    record: MemoryRecord
    former: StoredMemory | None = None
    """The memory already stored under the record's id, if any."""
    edited: bool = False


@dataclass(frozen=True, slots=True)
class Merge:
    """A decision to merge `repeats` into `stays` and replace its content with `merged`.

    The repeats' ids become aliases.
    """

    stays: StoredMemory
    merged: MemoryRecord
    repeats: Sequence[StoredMemory]
    evidence: Sequence[Evidence] = ()
    """The evidence from the repeats' records. The merge itself moves all later evidence."""


@dataclass(frozen=True, slots=True)
class Forget:
    """A decision to retire a memory. Its id no longer resolves."""

    memory: StoredMemory


@dataclass(frozen=True, slots=True)
class Succeed:
    """A decision to move evidence (`fields`) and aliases (`names`, as mids) to a new memory."""

    old: StoredMemory
    heir: MemoryRecord
    fields: Sequence[str]
    names: Sequence[str]


Decision: TypeAlias = Add | AddEvidence | Update | Supersede | Merge | Forget | Succeed


@dataclass(frozen=True, slots=True)
class ChangeOrigin:
    """Who made a change (`actor`: "extraction", "compaction", "client", …) and why."""

    actor: str
    reason: str | None = None
    strategy: str | None = None
    model: str | None = None
    prompt_version: str | None = None


CLIENT_STATEMENT = ChangeOrigin("client", "stated by a client")
# Actors whose changes neither a caller nor a conversation caused. They do not keep an import from being undone.
UPKEEP = ("import", "compaction", "contradictions")


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """The result of a batch. If `moved` or `fenced` is True, the batch wrote nothing.

    - `moved`: a memory has changed, or an id belongs to another owner.
    - `fenced`: the session has changed.
    - `taken_groups`: the positions of the decisions whose ids belong to other owners.
    - `states`: "new", "changed", "same", "buried", "again", "done", "skipped" or "proposed" for each decision.
    - `changes`: the id of each decision's change, or None.
    """

    moved: bool = False
    fenced: bool = False
    taken_groups: Sequence[int] = ()
    states: list[str] = field(default_factory=list[str])
    changes: list[str | None] = field(default_factory=list[str | None])

    @property
    def done(self) -> bool:
        return not (self.moved or self.fenced)


def end_and_begin(old: Sequence[MemoryRecord], new: MemoryRecord) -> tuple[list[MemoryRecord], MemoryRecord]:
    """End the old facts no later than `new` begins.

    Return the old and new facts, linked to each other.
    """
    at = begins_at(new)
    ended = [
        record.model_copy(update={"valid_to": at if record.valid_to is None else min(record.valid_to, at), "superseded_by": new.id})
        for record in old
    ]
    earlier = [*(new.supersedes or ()), *(record.id for record in old)]
    begun = new.model_copy(update={"valid_from": at, "supersedes": list(dict.fromkeys(earlier)), "superseded_by": None})
    return ended, begun


def expected_version(memory: StoredMemory | None) -> str | None:
    """Return the version that a put expects, or "" if there is no memory.

    None means that the same batch wrote the memory.
    """
    if memory is None:
        return ""
    return None if memory.version == IN_BATCH else str(memory.version)


class MemoryCommits:
    def __init__(self, keys: Keys, scripts: MemoryScripts) -> None:
        self._keys = keys
        self._scripts = scripts

    async def commit(
        self,
        scope: Scope,
        decisions: Sequence[Decision],
        origin: ChangeOrigin,
        *,
        fence: Fence | None = None,
        background: bool = False,
        review: bool = False,
        allow_pinned: bool = False,
        written: Mapping[str, str] | None = None,
    ) -> CommitOutcome:
        """Commit all decisions or none.

        - `review`: turn supersessions into proposals.
        - `background`: do not store deleted memories again.
        - `written`: when callers wrote the records (µs, by record id). With `background`, only
          later deletions count.
        - `allow_pinned`: allow background decisions about pinned memories and events, instead of
          raising ValueError.
        """
        if background and not allow_pinned:
            for decision in decisions:
                check_background_decision(decision)
        if not decisions and fence is None:
            return CommitOutcome()
        batch = str(ULID())
        revised = {"id": str(ULID()), "fields": change_base(scope.tenant, ChangeKind.UPDATE, origin, batch, "applied")}
        steps = StepGroups(self._keys, scope.tenant, atomic=True, fence=fence, revised=revised, upkeep=origin.actor in UPKEEP)
        counts: list[int] = []
        changes: list[str | None] = []
        first_id = int(ULID())

        def add_groups() -> None:
            for decision in decisions:
                proposed = review and isinstance(decision, Supersede)
                group = [] if proposed else self._steps(steps, decision, _since(decision, background, written or {}))
                change = self._change(scope, steps, decision, origin, batch, proposed)
                if change is not None:
                    # The ids follow the order of the decisions, so that a batch can be undone in reverse order.
                    change["id"] = str(ULID.from_int(first_id + len(changes)))
                steps.add_group(*group, change=change)
                counts.append(len(group))
                changes.append(None if change is None else change["id"])

        await run_in_thread(add_groups, sum(map(_work, decisions)))
        reply = await steps.run_steps(self._scripts)
        if reply[0] != "ok":
            taken_groups = [int(group) - 1 for group in reply[1:]] if reply[0] == "taken" else []
            return CommitOutcome(moved=reply[0] in ("moved", "taken"), fenced=reply[0] == "fenced", taken_groups=taken_groups)
        states: list[str] = []
        at = 1
        for count in counts:
            words = reply[at : at + count]
            states.append("proposed" if not count else next((word for word in words if word in ("same", "buried")), words[-1]))
            at += count
        change_ids = [change if state not in ("same", "buried") else None for change, state in zip(changes, states, strict=True)]
        return CommitOutcome(states=states, changes=change_ids)

    async def forget_memories(
        self, scope: Scope, memories: Sequence[StoredMemory], origin: ChangeOrigin, *, batch: str
    ) -> list[StoredMemory]:
        """Retire memories that have not changed since they were read, and return them."""
        steps = StepGroups(self._keys, scope.tenant, atomic=False)
        for memory in memories:
            check_background_decision(Forget(memory))
            steps.add_group(steps.retire_memory(memory), change=self._change(scope, steps, Forget(memory), origin, batch, False))
        states = (await steps.run_steps(self._scripts))[1:] if memories else []
        return [memory for memory, state in zip(memories, states, strict=True) if state == "done"]

    async def commit_proposal(
        self, scope: Scope, change_id: str, old: Sequence[StoredMemory], record: Any, former: StoredMemory | None = None
    ) -> bool:
        """Apply a proposed supersession. Return False if it is outdated.

        `former` is the existing memory with the record's id.
        """
        decision = Supersede(old, MemoryRecord.model_validate(record, context=ANSWER), former)
        steps = StepGroups(self._keys, scope.tenant, atomic=True)
        claim = claim_change(scope, change_id, "proposed", "applied")
        mids = [*(memory.mid for memory in old), steps.mid(decision.record.id)]
        change = {"id": change_id, "fields": ["st", tag("applied")], "mids": mids}
        steps.add_group(claim, *self._steps(steps, decision, deleted_since=False), change=change)
        return (await steps.run_steps(self._scripts))[0] == "ok"

    def _steps(self, steps: StepGroups, decision: Decision, deleted_since: bool | str) -> list[Step]:
        match decision:
            case Add(record, dedupe, apart, expect, written):
                unique = ("kin" if apart else "words") if dedupe else None
                return [
                    steps.put_record(
                        record, PutOptions(unique=unique, check_owner=True, expect=expect, deleted_since=deleted_since, written=written)
                    )
                ]
            case AddEvidence(memory, evidence, alias):
                return [steps.add_evidence(memory, evidence, alias=alias, deleted_since=deleted_since)]
            case Update(memory, record, evidence, alias, edited):
                before, after = steps.message_order(memory.record), steps.message_order(record)
                put = steps.put_record(record, _revision(memory, record, leave=before if before != after else None, edited=edited))
                return [put] if evidence is None else [put, steps.add_evidence(memory, evidence, alias=alias, deleted_since=deleted_since)]
            case Supersede(old, record, former, edited):
                ended, begun = end_and_begin([memory.record for memory in old], record)
                puts = [steps.put_record(end, _revision(memory, end)) for memory, end in zip(old, ended, strict=True)]
                options = PutOptions(
                    expect=expected_version(former),
                    check_owner=former is None,
                    deleted_since=deleted_since,
                    slot_settled=any(memory.version == IN_BATCH for memory in old),
                    superseded=[memory.mid for memory in old],
                    edited=edited,
                    written=record,
                )
                return [*puts, steps.put_record(begun, options)]
            case Merge(stays, merged, repeats, evidence):
                check: Step = {"op": "check", "mid": stays.mid, "expect": str(stays.version)}
                first = steps.put_record(merged, _revision(stays, merged)) if merged != stays.record else check
                pieces = [steps.add_evidence(stays, piece) for piece in evidence]
                return [first, *pieces, *(steps.retire_memory(repeat, alias_of=stays.mid) for repeat in repeats)]
            case Forget(memory):
                return [steps.retire_memory(memory)]
            case Succeed(old, heir, fields, names):
                moved: Step = {"op": "inherit", "mid": steps.mid(heir.id), "of": old.mid, "fields": list(fields), "names": list(names)}
                free: Step = {"op": "yield", "mid": old.mid, "expect": str(old.version)}
                return [free, steps.put_record(heir, PutOptions(expect="", slot_settled=True, alone=True)), moved]

    def _change(
        self, scope: Scope, steps: StepGroups, decision: Decision, origin: ChangeOrigin, batch: str, proposed: bool
    ) -> dict[str, Any] | None:
        about = _changed_memories(decision)
        if not about:
            return None
        mids = [memory.mid for memory in about]
        proposal: dict[str, Any] = {}
        if isinstance(decision, Supersede):
            # The successor in a proposal is not stored yet, unless it existed before.
            if not proposed or decision.former is not None:
                mids.append(steps.mid(decision.record.id))
            if proposed:
                proposal["old"] = [[memory.record.id, memory.version] for memory in decision.old]
                proposal["record"] = decision.record.model_dump(mode="json")
                proposal |= {} if decision.former is None else {"former": decision.former.version}
        kind = ChangeKind(type(decision).__name__.lower())
        fields = change_fields(scope.tenant, about[0].record, kind, origin, batch, "proposed" if proposed else "applied")
        fields += ["p", json.dumps(proposal)] if proposal else []
        return {"id": str(ULID()), "fields": fields, "mids": list(dict.fromkeys(mids))}


def claim_change(scope: Scope, change_id: str, state: str, to: str) -> Step:
    """Return the step that sets a change's state and adds the caller to its origin."""
    return {"op": "claim", "id": change_id, "state": tag(state), "to": tag(to), "by": scope.actor or None}


def change_fields(tenant: str, about: MemoryRecord, kind: ChangeKind, origin: ChangeOrigin, batch: str, state: str) -> list[str]:
    """Return the fields of a change's hash as alternating names and values."""
    fields = change_base(tenant, kind, origin, batch, state)
    for name, value in (("ns", about.namespace), ("u", about.user_id), ("ag", about.agent_id)):
        if value:
            fields += [name, tag(value)]
    return fields


def change_base(tenant: str, kind: ChangeKind, origin: ChangeOrigin, batch: str, state: str) -> list[str]:
    """Return the fields of a change that do not depend on the changed memory."""
    return ["t", tag(tenant), "kd", tag(kind.value), "bt", tag(batch), "st", tag(state), "o", compact(asdict(origin))]


def _revision(memory: StoredMemory, record: MemoryRecord, *, leave: str | None = None, edited: bool = False) -> PutOptions:
    same_text = record.text == memory.record.text
    return PutOptions(expect=expected_version(memory), slot_settled=True, same_text=same_text, keep_digest=True, leave=leave, edited=edited)


def _work(decision: Decision) -> int:
    match decision:
        case Add(record) | Update(_, record) | Merge(_, record) | Succeed(_, record):
            return memories_work([record])
        case Supersede(old, record):
            return memories_work([record, *(memory.record for memory in old)])
        case _:
            return 0


def _since(decision: Decision, background: bool, written: Mapping[str, str]) -> bool | str:
    match decision:
        case Add(record) | Supersede(_, record, _, _):
            name = record.id
        case AddEvidence(_, _, alias) | Update(_, _, _, alias, _):
            name = "" if alias is None else alias.id
        case _:
            name = ""
    return background and written.get(name, background)


def check_background_decision(decision: Decision) -> None:
    """Raise ValueError if a decision is not allowed in the background."""
    touched = _changed_memories(decision)
    if isinstance(decision, Supersede):
        if any(memory.record.memory_type in (MemoryTypeEnum.EPISODIC, MemoryTypeEnum.MESSAGE) for memory in touched):
            raise ValueError("events and messages are never superseded")
    elif isinstance(decision, Merge):
        touched = decision.repeats
        if decision.merged.pinned != decision.stays.record.pinned:
            raise ValueError("a merge does not change a pin")
    if any(memory.record.pinned for memory in touched):
        raise ValueError("background work must not change pinned memories")


def _changed_memories(decision: Decision) -> Sequence[StoredMemory]:
    match decision:
        case Update(memory) | Forget(memory):
            return [memory]
        case Supersede(old):
            return old
        case Merge(stays, _, repeats):
            return [stays, *repeats]
        case _:
            return []
