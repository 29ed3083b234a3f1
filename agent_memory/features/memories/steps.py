"""Build a call to `memory_commit.lua`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Literal

from redis.asyncio import Redis

from agent_memory.features.memories.records import (
    IN_BATCH,
    WORDS,
    Standing,
    StoredEvidence,
    StoredMemory,
    is_from_person,
    memory_digest,
    memory_fields,
    message_memory_id,
    owner_name,
    standing_of,
)
from agent_memory.foundation.core.clock import iso
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.erasures import guard_of
from agent_memory.foundation.storage.keyspace import Keys, new_mid
from agent_memory.foundation.storage.scripts import Arg, Script, outbox_keys
from agent_memory.foundation.text.dates.relative import same_meaning
from agent_memory.foundation.text.normalization import is_plain, is_turn
from agent_memory.foundation.text.retrieval_units import REACH, unit_terms
from agent_memory_client.models import Evidence, MemoryRecord, MemoryTypeEnum

Step = dict[str, Any]
# The maximum length of the quote in a piece of evidence, in characters.
_MOST_QUOTED = 4000
# The delay until new memories are due for embedding if the worker that writes them will embed them itself.
_EMBEDDED_MS = 10_000


@dataclass(frozen=True, slots=True)
class Fence:
    """Moves a session's cursor in the same step that writes memories from its journal.

    If the cursor has moved in the meantime, the step writes nothing.

    - `own`: the session's own memories in the journal.
    - `refused`: the refused memories, each with its text and the reason.
    - `embeds`: True if the writer will embed the memories next.
    """

    sid: str
    epoch: str
    cursor: str
    start: int
    to: int
    keep: int
    both: bool = False
    own: Mapping[str, str] = field(default_factory=dict[str, str])
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    embeds: bool = False
    report: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def script_argument(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("sid", "epoch", "cursor", "start", "to", "keep", "both")},
            "own": [part for item in self.own.items() for part in item],
            "refused": [part for name, (raw, reason) in self.refused.items() for part in (name, raw, reason)],
            "at": iso(datetime.now(UTC)),
            **self.report,
        }


def order_of(keys: Keys, tenant: str, record: MemoryRecord) -> str | None:
    """Return the key for the session's message order, or None if the memory is not a message."""
    if record.memory_type is not MemoryTypeEnum.MESSAGE or record.session_id is None:
        return None
    return keys.order(keys.sid(tenant, SessionRef(record.session_id, record.namespace, record.user_id)))


def unique_names(put: Step) -> set[str]:
    """Return the words and slot that a put claims for its memory."""
    scope, _, slot, words, *_ = put["standing"].split(" ")
    return {f"{scope} {name}" for name, checked in ((words, "unique" in put), (slot, "slot" in put)) if checked}


def evidence_field(keys: Keys, tenant: str, record: MemoryRecord, evidence: Evidence) -> str:
    """Return the stable hash field for a piece of evidence."""
    if evidence.session_id and len(evidence.message_ids) == 1 and not names_rest(evidence):
        # A message is one piece of evidence, even if it is cited several times.
        ref = SessionRef(evidence.session_id, record.namespace, record.user_id)
        return "m" + keys.mid(tenant, message_memory_id(ref, evidence.message_ids[0]))
    name = blake2b(evidence.model_dump_json(exclude_none=True, exclude={"at"}).encode(), digest_size=12).hexdigest()
    return f"r{name}" if names_rest(evidence) else name


def names_rest(evidence: Evidence) -> bool:
    """True if a piece of evidence represents several repeats in a session."""
    return isinstance(evidence, StoredEvidence) and evidence.times is not None


def message_mids(keys: Keys, tenant: str, record: MemoryRecord, name: str, piece: Evidence) -> list[str]:
    """Return the mids of messages that the evidence in field `name` turns into aliases."""
    if not piece.session_id:
        return []
    if names_rest(piece):
        ref = SessionRef(piece.session_id, record.namespace, record.user_id)
        return [keys.mid(tenant, message_memory_id(ref, message)) for message in piece.message_ids]
    return [name[1:]] if name.startswith("m") else []


@dataclass(frozen=True, slots=True)
class PutOptions:
    """Options for writing a record.

    Unless `slot_settled` is true, refuse the record if another memory has its slot.
    """

    unique: Literal["words", "kin"] | None = None
    """Refuse if a current memory has the same words and, with "kin", the same type and date."""
    check_owner: bool = False
    """Refuse if the id belongs to another owner."""
    expect: str | None = None
    """Refuse unless the memory has this version. "" means an unused id."""
    deleted_since: bool | str = False
    """True: refuse if the memory was ever deleted. A time (µs): refuse if deleted after it."""
    slot_settled: bool = False
    superseded: Sequence[str] = ()
    """Mids of superseded memories, which may have the same words and slot."""
    leave: str | None = None
    """The key of the message order from which to remove the record."""
    same_text: bool = False
    edited: bool = False
    """A caller changed the words. The memory then counts as said once, when edited."""
    keep_digest: bool = False
    """Keep the stored digest, so that repeating the original write changes nothing."""
    written: MemoryRecord | None = None
    """The record that the writer sent, if the server has changed it."""
    alone: bool = False
    """Store the record even if another memory has its words, and do not absorb messages."""


class StepGroups:
    """Collects groups of steps for one call to `memory_commit.lua`."""

    def __init__(
        self,
        keys: Keys,
        tenant: str,
        *,
        atomic: bool,
        fence: Fence | None = None,
        revised: dict[str, Any] | None = None,
        upkeep: bool = False,
    ) -> None:
        """Create an empty collection. With `atomic`, run all groups or none.

        `revised` (an id and fields) is the change to record when the owner's put changes a memory.
        With `upkeep`, changed memories still count as unchanged since their import.
        """
        self._keys = keys
        self._tenant = tenant
        self._upkeep = upkeep
        self._shared: dict[Sequence[str], int] = {}
        # The arguments of `memory_commit.lua`.
        self.atomic = atomic
        self.fence = None if fence is None else fence.script_argument()
        self.embed_after_ms = _EMBEDDED_MS if fence is not None and fence.embeds else 0
        self.revised = revised
        self.values: list[Arg] = []
        self.groups: list[dict[str, Any]] = []

    def mid(self, memory_id: str) -> str:
        return new_mid(self._tenant, memory_id)

    def message_order(self, record: MemoryRecord) -> str | None:
        return order_of(self._keys, self._tenant, record)

    def add_group(self, *steps: Step, change: dict[str, Any] | None = None) -> None:
        self.groups.append({"steps": list(steps), **({"change": change} if change else {})})

    def put_record(
        self, record: MemoryRecord, options: PutOptions, *, before: Sequence[MemoryRecord] = (), after: Sequence[MemoryRecord] = ()
    ) -> Step:
        """Return the step that stores a record.

        Keyword searches also match words from the neighbors `before` and `after`. A message that
        repeats a current memory becomes evidence for it. A new fact turns existing messages with
        the same words into evidence.
        """
        standing = standing_of(self._tenant, record)
        fields = memory_fields(self._tenant, record, unit_terms(record, before, after))
        step: Step = {
            "op": "put",
            "mid": self.mid(record.id),
            "standing": str(standing),
            "field_names": self._add_once(tuple(fields.own)),
            "field_values": self._add(list(fields.own.values())),
            "field_count": len(fields.own),
            "shared": self._add_once(fields.alike),
            "shared_count": len(fields.alike),
            **self._put_conditions(record, standing, options),
        }
        if options.alone:
            step["first_digest"] = fields.digest
        elif not options.keep_digest:
            step["digest"] = fields.digest if options.written is None else memory_digest(options.written)
        if options.check_owner:
            step["owner"] = self._add_once((owner_name(record),))
        if options.expect is not None:
            step["expect"] = options.expect
        if record.quarantine is None and not options.alone:
            step |= self._cited(record, standing)
        return step

    def _put_conditions(self, record: MemoryRecord, standing: Standing, options: PutOptions) -> dict[str, Any]:
        # A quarantined record does not repeat or supersede another memory, and is not evidence.
        quarantined = record.quarantine is not None
        conditions: dict[str, Any] = {
            "ends": quarantined or record.valid_to is not None or record.expires_at is not None,
            "unique": options.unique if standing.kin and not quarantined else None,
            "slot": bool(standing.slot) and not (quarantined or options.slot_settled),
            "except": list(options.superseded),
            "deleted_since": "1" if options.deleted_since is True else options.deleted_since,
            "same_text": options.same_text,
            "edited": options.edited,
            "upkeep": self._upkeep,
            "said_often": len(record.evidence or ()) > 1,
            "order": self.message_order(record),
            "leave": options.leave,
            "outdates": self._cited_messages(record) if record.superseded_by and record.valid_to is not None else "",
        }
        return {name: value for name, value in conditions.items() if value}

    def _cited_messages(self, record: MemoryRecord) -> str:
        """Return the mids of the messages behind a fact, separated by spaces."""
        if is_turn(record) or not record.session_id:
            return ""
        ref = SessionRef(record.session_id, record.namespace, record.user_id)
        return " ".join(self.mid(message_memory_id(ref, message)) for message in record.extracted_from or ())

    def _cited(self, record: MemoryRecord, standing: Standing) -> dict[str, Any]:
        """Return fields that describe a message as evidence, or the digest of a statement's words."""
        words = standing.words[1:]
        if not is_turn(record):
            return {"words_digest": words}
        if not is_plain(record):
            return {}
        role, at = str(record.metadata.get("role")), record.created_at
        within = same_meaning(record.text, at)
        piece = Evidence(session_id=record.session_id, message_ids=record.extracted_from or [], role=role, at=at)
        piece.source = "user" if is_from_person(record) else "assistant"
        # The memory's words may change later; the quote does not.
        piece.quote = record.text if len(record.text) <= _MOST_QUOTED else None
        message = {
            "field": standing.words,
            "by_person": is_from_person(record) or None,
            "statement_field": WORDS + words,
            "session": record.session_id,
            "same_from": None if within is None else within[0].timestamp(),
            "same_until": None if within is None else within[1].timestamp(),
            "role": role,
            "name": record.metadata.get("name"),
            "json": piece.model_dump_json(exclude_none=True),
            "evidence_field": "m" + self.mid(record.id),
        }
        return {"message": {name: value for name, value in message.items() if value is not None}}

    def add_evidence(
        self, memory: StoredMemory, evidence: Evidence, *, alias: MemoryRecord | None = None, deleted_since: bool | str = False
    ) -> Step:
        """Return the step that adds evidence. `alias` is not stored; its id becomes an alias."""
        text = evidence.model_dump_json(exclude_none=True)
        step: Step = {
            "op": "evidence",
            "mid": memory.mid,
            "field": evidence_field(self._keys, self._tenant, memory.record, evidence),
            "json": text,
            **({"put_before": True} if memory.version == IN_BATCH else {}),
        }
        if alias is not None and alias.id != memory.record.id:
            step |= {"alias": self.mid(alias.id), "digest": memory_digest(alias), "owner": self._add_once((owner_name(memory.record),))}
        return step | ({"deleted_since": "1" if deleted_since is True else deleted_since} if deleted_since else {})

    def absorb_messages(self, record: MemoryRecord) -> Step | None:
        """Return the step that turns messages into evidence for a statement.

        Return None if `record` is a message or is quarantined.
        """
        if is_turn(record) or record.quarantine is not None:
            return None
        standing, order = standing_of(self._tenant, record), order_of(self._keys, self._tenant, record)
        step: Step = {"op": "absorb", "mid": self.mid(record.id), "scope": standing.scope, **self._cited(record, standing)}
        return step | ({"order": order} if order else {})

    def add_alias(self, memory: StoredMemory, memory_id: str, dig: str) -> Step:
        """Return the step that adds an alias. `dig` is the digest of the aliased record."""
        return {"op": "alias", "alias": self.mid(memory_id), "mid": memory.mid, "digest": dig}

    def remove_evidence(self, memory: StoredMemory, name: str, evidence: Evidence) -> Step:
        """Return the step that removes evidence and its aliases. `name` is the hash field."""
        step: Step = {"op": "forget_evidence", "mid": memory.mid, "field": name}
        aliases = message_mids(self._keys, self._tenant, memory.record, name, evidence)
        if aliases:
            ref = SessionRef(evidence.session_id or "", memory.record.namespace, memory.record.user_id)
            step |= {"aliases": aliases, "order": self._keys.order(self._keys.sid(self._tenant, ref))}
        return step

    def retire_memory(self, memory: StoredMemory, *, alias_of: str | None = None) -> Step:
        """Return the step that retires a memory. With `alias_of` (a mid), its id becomes an alias."""
        step: Step = {"op": "retire", "mid": memory.mid, "expect": str(memory.version)}
        order = order_of(self._keys, self._tenant, memory.record)
        if order is not None:
            step["order"] = order
        return step | ({} if alias_of is None else {"alias": alias_of})

    def _add(self, values: Sequence[Arg]) -> int:
        position = len(self.values)
        self.values += values
        return position

    def _add_once(self, values: Sequence[str]) -> int:
        position = self._shared.get(values)
        if position is None:
            position = self._shared[values] = self._add(values)
        return position

    async def run_steps(self, scripts: MemoryScripts) -> list[str]:
        """Run the steps. Return "ok" with each step's state, or the reason for a refusal.

        Raises ErasureUnderWay.
        """
        reply = await scripts.commit(self, **scripts.settings, guard=guard_of(self._keys.root))
        return [word.decode() for word in reply]


class MemoryScripts:
    """The script `memory_commit.lua` with its constant arguments."""

    def __init__(self, client: Redis, keys: Keys, *, fsync: bool = False, neighbors_ms: int = 0) -> None:
        """Register the script. With `fsync`, Redis writes callers' changes to disk before replying.

        A worker reindexes a new message's neighbors after `neighbors_ms`.
        """
        self.keys = keys
        self.commit = Script(client, "memories/memory_commit", fsync=fsync)
        outbox = outbox_keys(keys, DueKind.MEMORY)
        self.settings: dict[str, Any] = {**outbox, "wake": keys.wake, "root": keys.root, "reach": REACH, "neighbors_ms": neighbors_ms}

    async def run_group(self, tenant: str, *steps: Step, change: dict[str, Any] | None = None, atomic: bool = True) -> list[str]:
        """Run a single group of steps and return the result of `StepGroups.run_steps`."""
        groups = StepGroups(self.keys, tenant, atomic=atomic)
        groups.add_group(*steps, change=change)
        return await groups.run_steps(self)
