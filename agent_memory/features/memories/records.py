"""Convert memories to hash fields and back, and compute their digests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import Field
from pydantic_core import to_json
from ulid import ULID

from agent_memory.foundation.core.clock import stated_date
from agent_memory.foundation.core.errors import IdTaken
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.storage.keyspace import digest, joined, tag
from agent_memory.foundation.storage.scripts import Arg
from agent_memory.foundation.storage.search.metadata import PINNED_TAG, metadata_tags, writer_tag
from agent_memory.foundation.text.dates.named_times import tags_of_times
from agent_memory.foundation.text.normalization import QUESTION, ends_at, is_turn, kin_name, normal_text, restatement
from agent_memory.foundation.text.prompt_marks import PROGRAM_ROLES, TOOL_ROLES
from agent_memory_client.models import ANSWER, Evidence, MemoryRecord, SourceClass
from agent_memory_client.models._types import MAX_COUNT

Result = TypeVar("Result")

READ_FIELDS = ("t", "j", "n", "ra", "ro", "rt")

_SERVERS_OWN = {"persisted_at", "updated_at", "last_accessed", "recorded_at", "retired_at", "quarantine", "approved", "written_by"}
_COMPUTED = {"source_class", "trust", "recorded_at", "retired_at"}
_AND = ", "
WORDS, TURN, REPLY = "w", "u", "o"
RESTATED_TURN, RESTATED_REPLY = "n", "p"
# The version of a memory that an earlier step in the same call writes.
IN_BATCH = 0

# `run_in_thread` counts characters of text to analyze; parsing a record takes about a tenth of that time.
_BYTES_PER_CHARACTER = 16


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory read from Redis. `version` is the time (µs) of the last change, or `IN_BATCH`."""

    mid: str
    version: int
    record: MemoryRecord


class StoredEvidence(Evidence):
    """A stored piece of evidence. `times` is the number of repeats it represents."""

    times: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None = None


class Standing(NamedTuple):
    """A memory's entry in the index of words and slots.

    `scope` is the Redis hash. The other attributes are its fields, or "" if not indexed. `kin`
    combines words, type and date. `restatement` matches nearly identical messages.
    """

    scope: str
    kin: str
    slot: str
    words: str
    restatement: str = ""

    def __str__(self) -> str:
        return f"{self.scope} {self.kin} {self.slot} {self.words}{self.restatement and f' {self.restatement}'}"


@lru_cache(maxsize=8192)
def message_memory_id(ref: SessionRef, message_id: str) -> str:
    """Return the stable id for the memory made from a message."""
    name = bytearray(blake2b(joined(ref.namespace, ref.user_id, ref.session_id, message_id), digest_size=16).digest())
    name[0] &= 127  # A ULID begins with a time, whose first bit is never set.
    return str(ULID(bytes(name)))


def evidence_of(record: MemoryRecord) -> list[Evidence]:
    """Return the record's evidence, or one piece of evidence that cites the record itself."""
    if record.evidence:
        return record.evidence
    role = str(record.metadata["role"]) if is_turn(record) and "role" in record.metadata else None
    return [
        Evidence(
            session_id=record.session_id,
            message_ids=record.extracted_from or [],
            role=role,
            source=record.source_class or ("client" if role is None else "user" if is_from_person(record) else "assistant"),
            memory_id=record.id,
            at=record.created_at,
        )
    ]


def standing_of(tenant: str, record: MemoryRecord) -> Standing:
    """Return a memory's `Standing` within its namespace, user and agent."""
    scope = _scope_of_words(tenant, record.namespace, record.user_id, record.agent_id)
    normal = normal_text(record.text)
    words = text_digest(normal)
    if is_turn(record):
        near = restatement(record.text)
        kind, again = (TURN, RESTATED_TURN) if is_from_person(record) else (REPLY, RESTATED_REPLY)
        return Standing(scope, "", "", kind + words, again + text_digest(near) if near else "")
    slot = ""
    if record.slot is not None:
        ends = ends_at(record)
        slot = "s" + digest("slot", record.slot) if ends is None or ends > datetime.now(UTC) else ""
    return Standing(scope, "t" + text_digest(kin_name(record, normal)), slot, WORDS + words)


@lru_cache(maxsize=8192)
def _scope_of_words(tenant: str, *owner_names: str | None) -> str:
    return digest("by", tenant, *owner_names)


def text_digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()


def is_from_person(turn: MemoryRecord) -> bool:
    role = str(turn.metadata.get("role", "user"))
    return role != "assistant" and role not in PROGRAM_ROLES and role not in TOOL_ROLES


def memory_digest(record: MemoryRecord) -> str:
    """Return a digest of the fields that the writer sets."""
    return blake2b(record.model_dump_json(exclude_unset=True, exclude=_SERVERS_OWN).encode(), digest_size=16).hexdigest()


class Fields(NamedTuple):
    """The fields in a memory's hash.

    `alike` lists alternating names and values that many memories share.
    """

    own: dict[str, Arg]
    alike: Sequence[str]
    digest: str

    def flat(self) -> list[Arg]:
        return [*(part for pair in self.own.items() for part in pair), *self.alike]


def memory_fields(tenant: str, record: MemoryRecord, terms: str) -> Fields:
    """Return the fields that Redis stores for a memory."""
    created, accessed = record.created_at.timestamp(), record.last_accessed.timestamp()
    own: dict[str, Arg] = {"j": encode_memory(record), "c": created, "la": accessed, "k": terms}
    if record.session_id:
        own["s"] = tag(record.session_id)
    if record.slot:
        own["sl"] = tag(record.slot)
    for name, tags in (("tp", record.topics), ("en", record.entities)):
        if tags:
            own[name] = ",".join(dict.fromkeys(tag(value.casefold()) for value in tags))
    if record.metadata or record.pinned or record.written_by:
        own["md"] = _metadata_tags(record)
    for name, moment in (("e", record.event_date), ("vf", record.valid_from), ("z", ends_at(record))):
        if moment is not None:
            own[name] = moment.timestamp()
    if record.valid_from is not None and record.valid_from > datetime.now(UTC):
        own["b"] = record.valid_from.timestamp()
    if record.quarantine is not None:
        # -1 is lower than any trust that a search can require.
        own |= {"q": tag(record.quarantine), "tr": -1.0}
    elif (trust := trust_of(record)) < 1.0:
        own["tr"] = trust
    owner = (record.namespace, record.user_id, record.agent_id)
    alike = _alike(tenant, record.memory_type._value_, record.extraction_strategy, source_of(record), record.category, *owner)
    return Fields(own, alike, memory_digest(record))


def named_days(record: MemoryRecord) -> Sequence[str]:
    """Return index tags for days that an undated statement may refer to."""
    if record.event_date is not None or record.metadata.get(QUESTION) or not is_from_person(record):
        return ()
    return tags_of_times(record.text, (stated_date(record.metadata) or record.created_at).date())


def metadata_fields(record: MemoryRecord | None) -> list[Arg]:
    """Return the two stored fields that depend on metadata. Both are "" if there is no record."""
    return ["", ""] if record is None else [encode_memory(record), _metadata_tags(record)]


def _metadata_tags(record: MemoryRecord) -> str:
    writers = map(writer_tag, record.written_by.split(_AND)) if record.written_by else ()
    return ",".join([*metadata_tags(record.metadata), *([PINNED_TAG] if record.pinned else []), *writers])


@lru_cache(maxsize=8192)
def _alike(
    tenant: str, kind: str, strategy: str, source: str, category: str | None, namespace: str | None, user: str | None, agent: str | None
) -> Sequence[str]:
    named = (("t", tenant), ("ty", kind), ("st", strategy), ("sc", source), ("ct", category), ("ns", namespace), ("u", user), ("ag", agent))
    return tuple(part for name, value in named if value for part in (name, tag(value)))


def read_row(tenant: str, mid: str, row: Sequence[bytes | None]) -> StoredMemory | None:
    """Parse the values of `READ_FIELDS`.

    Return None if the memory is missing or belongs to another tenant. After an undo, `recorded_at`
    is when the version was first recorded.
    """
    owner, raw, version, recorded, first, retired = row
    if owner != tag(tenant).encode() or raw is None or version is None:
        return None
    record = decode_memory(raw)
    at = first or recorded
    if at is not None:
        record.recorded_at = datetime.fromtimestamp(float(at), UTC)
    if retired is not None:
        record.retired_at = datetime.fromtimestamp(float(retired), UTC)
    return StoredMemory(mid, int(version), record)


async def decode_rows(decode: Callable[[], Result], rows: Iterable[Sequence[Any]]) -> Result:
    """Run `decode` to parse `rows`, using a thread if they are large."""
    return await run_in_thread(decode, sum(len(part) for row in rows for part in row if part) // _BYTES_PER_CHARACTER)


def encode_memory(record: MemoryRecord) -> bytes:
    """Return a record as JSON. Omit None values and times that the hash stores separately."""
    body = record.model_dump_json(exclude_none=True, exclude=_COMPUTED).encode()
    return b"%b,%b" % (body[:-1], to_json({"source_class": source_of(record), "trust": trust_of(record)})[1:])


def decode_memory(raw: bytes) -> MemoryRecord:
    """Decode a stored memory without enforcing size limits. Missing lists become empty."""
    record = MemoryRecord.model_validate_json(raw, context=ANSWER)
    record.topics = record.topics or []
    record.entities = record.entities or []
    record.extracted_from = record.extracted_from or []
    return record


def owner_name(record: MemoryRecord) -> str:
    """Return a memory's owner in the form that the Lua scripts compare."""
    return " ".join(tag(name) if name else "" for name in (record.namespace, record.user_id, record.agent_id))


def one_owner_each(records: Iterable[tuple[int, MemoryRecord]]) -> None:
    """Raise IdTaken if an id has two owners. `records` contains (position, memory) pairs."""
    owners: dict[str, tuple[str | None, ...]] = {}
    for index, record in records:
        owner = (record.namespace, record.user_id, record.agent_id)
        if owners.setdefault(record.id, owner) != owner:
            raise IdTaken([record.id], field=f"memories.{index}.id")


def with_session_owner(ref: SessionRef, record: MemoryRecord) -> MemoryRecord:
    """Return a copy of the record, with missing owner fields taken from the session."""
    update = {
        "namespace": record.namespace or ref.namespace,
        "user_id": record.user_id or ref.user_id,
        "session_id": record.session_id or ref.session_id,
    }
    return record.model_copy(update=update)


TRUST: dict[str, float] = {"user": 1.0, "client": 1.0, "assistant": 0.7, "import": 0.6, "inference": 0.6, "tool": 0.3}


def source_of(record: MemoryRecord) -> SourceClass:
    """Return the record's source class, or the default for its role."""
    if record.source_class is not None:
        return record.source_class
    if not is_turn(record):
        return "client"
    role = str(record.metadata.get("role", "user"))
    if role in TOOL_ROLES:
        return "tool"
    return "client" if role in PROGRAM_ROLES else "assistant" if role == "assistant" else "user"


def trust_of(record: MemoryRecord) -> float:
    """Return the lowest trust among the record, its source and its evidence."""
    least = min([TRUST[source_of(record)], *(TRUST[piece.source] for piece in record.evidence or () if piece.source is not None)])
    return least if record.trust is None else min(least, record.trust)


def combine_trust(records: Sequence[MemoryRecord]) -> dict[str, Any]:
    """Return the lowest trust, its source class, and all writers for a merged memory."""
    least = min(records, key=trust_of)
    return {
        "source_class": source_of(least),
        "trust": trust_of(least),
        "written_by": join_writers(record.written_by for record in records),
    }


def join_writers(writers: Iterable[str | None]) -> str | None:
    """Join the distinct writers. Return None if no writer is known."""
    return _AND.join(dict.fromkeys(writer for writer in writers if writer)) or None
