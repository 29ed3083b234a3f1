"""Read memories from Redis directly as JSON values.

Creating and serializing models took up half of the search time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple, cast

from pydantic_core import from_json, to_jsonable_python
from redis.asyncio import Redis

from agent_memory.features.memories.records import decode_memory
from agent_memory.foundation.core.permissions import within
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.keyspace import Keys, tag
from agent_memory.foundation.storage.lua_files import load
from agent_memory.foundation.storage.search.results import PAST, Hits
from agent_memory.foundation.text.passages.splitting import split_passages
from agent_memory_client.models import ANSWER, Evidence, HitExplanation, MemoryRecord, MemoryRecordResult

# Defaults of the fields that every response contains, in the model's order. Other fields are omitted when empty.
_ALWAYS: dict[str, Any] = {
    name: None if field.is_required() or field.default_factory is not None else field.default
    for name, field in MemoryRecordResult.model_fields.items()
    if field.exclude_if is None
} | {"extraction_strategy_config": {}, "metadata": {}, "memory_type": "message"}
_RECORD_FIELDS = frozenset(MemoryRecord.model_fields)
_STORED = frozenset(name for name, field in MemoryRecord.model_fields.items() if field.is_required() or field.default_factory is not None)
_INSTANTS = ("last_accessed", "created_at", "updated_at", "persisted_at", "event_date", "valid_from", "valid_to", "expires_at")
_TAGS = ("topics", "entities", "extracted_from")
# In order: created, tenant, record, recorded, first recorded, retired, last said, times said, superseded, edited.
ROW_FIELDS = ("c", "t", "j", "ra", "ro", "rt", "ls", "ts", "nt", "ed")
_EVIDENCE: dict[str, Any] = dict.fromkeys(Evidence.model_fields)
_ROWS = load("memories/memory_rows")


class MemoryRow(NamedTuple):
    """A memory as received from Redis: key name, values of `ROW_FIELDS`, and usage."""

    name: str
    fields: Sequence[bytes | None]
    used: bytes | None

    @property
    def last_said(self) -> float:
        """The time (epoch seconds) when the memory was last stated or, if unknown, created."""
        return float(self.fields[6] or self.fields[0] or 0)

    @property
    def edited(self) -> bool:
        return self.fields[9] is not None


class ShownMemoryReader:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def __call__(self, scope: Scope, names: Sequence[str]) -> list[ShownMemory | None]:
        """Return the memory for each key name, or None if it is missing or inaccessible.

        Names of past versions begin with `PAST`.
        """
        return self.shown_memories(scope, await self.load_rows(names))

    async def load_rows(self, names: Sequence[str]) -> list[MemoryRow]:
        """Load rows by key name, without checking their owners."""
        if not names:
            return []
        mids = list(map(_mid, names))
        memories = [
            self._keys.history(name.removeprefix(PAST)) if name.startswith(PAST) else self._keys.memory(mid)
            for name, mid in zip(names, mids, strict=True)
        ]
        command = _ROWS.read_only(usage=self._keys.usage, memories=memories, fields=len(ROW_FIELDS), values=[*ROW_FIELDS, *mids])
        replies = (await read(self._client, lambda pipe: pipe.execute_command(*command)))[0]
        return list(map(MemoryRow, names, replies, replies[-1]))

    @staticmethod
    def shown_memories(scope: Scope, rows: Sequence[MemoryRow]) -> list[ShownMemory | None]:
        """Return the memory in each row, or None if it is missing or inaccessible."""
        tenant = tag(scope.tenant).encode()
        memories = [_read_card(tenant, row) for row in rows]
        return [memory if memory is None or within(scope, memory) else None for memory in memories] if scope.limited else memories

    def memories_of_hits(self, scope: Scope, hits: Hits) -> list[ShownMemory]:
        """Return the accessible memories among hits that contain `ROW_FIELDS`."""
        names = [field.encode() for field in ROW_FIELDS]
        rows = [MemoryRow(hit.mid, [hit.fields.get(name) for name in names], None) for hit in hits.hits]
        return [memory for memory in self.shown_memories(scope, rows) if memory is not None]


def _mid(name: str) -> str:
    return name.removeprefix(PAST).partition(".")[0] if name[0] == PAST else name


@dataclass(slots=True, eq=False)
class ShownMemory:
    """A memory in a response. `values` are the JSON values of the response model.

    - `last_said_at`: None unless the memory was repeated.
    - `ended_at`: when a later fact superseded the fact in a message.
    - `edited_at`: when a caller changed the words.
    - `beside`: the mid of the neighboring hit, if the memory itself is not a hit.
    """

    mid: str
    values: dict[str, Any]
    last_said_at: datetime | None = None
    times_said: int = 1
    ended_at: datetime | None = None
    edited_at: datetime | None = None
    beside: str | None = None

    @classmethod
    def of(cls, mid: str, record: MemoryRecord) -> ShownMemory:
        """Convert a record that did not come from Redis to its response form."""
        return cls(mid, {**_ALWAYS, **to_jsonable_python(record)})

    @property
    def id(self) -> str:
        return self.values["id"]

    @property
    def text(self) -> str:
        return self.values["text"]

    @property
    def user_id(self) -> str | None:
        return self.values["user_id"]

    @property
    def namespace(self) -> str | None:
        return self.values["namespace"]

    @property
    def agent_id(self) -> str | None:
        return self.values.get("agent_id")

    @property
    def memory_type(self) -> str:
        return self.values["memory_type"]

    @property
    def is_message(self) -> bool:
        return self.values["memory_type"] == "message"

    @property
    def created_at(self) -> datetime:
        return datetime.fromisoformat(self.values["created_at"])

    @property
    def event_date(self) -> datetime | None:
        date = self.values["event_date"]
        return None if date is None else datetime.fromisoformat(date)

    @property
    def when(self) -> datetime:
        """The event date or, if there is none, the creation time."""
        return self.event_date or self.created_at

    def set_score(self, distance: float, score: float | None, kind: str | None, why: HitExplanation | None = None) -> None:
        self.values.update(dist=distance, score=score, score_type=kind, explanation=why)

    def set_passage(self, number: int) -> None:
        """Set the best passage by its number, starting at 1. Ignore numbers that are too high."""
        if number <= len(passages := split_passages(self.text)):
            start, end = passages[number - 1]
            self.values["passage"] = {"text": self.text[start:end], "start": start, "end": end}

    def model(self) -> MemoryRecordResult:
        return MemoryRecordResult.model_validate(self.values, context=ANSWER)


# A user's questions often find the same memories. For each of them, the cache saves 15 µs.
@lru_cache(maxsize=4096)
def _stored_card(
    used: bytes | None,
    raw: bytes,
    recorded: bytes | None,
    first: bytes | None,
    retired: bytes | None,
    last_said: bytes | None,
    times: bytes | None,
    ended: bytes | None,
    edited: bytes | None,
) -> tuple[Mapping[str, Any], datetime | None, int, datetime | None, datetime | None]:
    """Return the arguments for a `ShownMemory`."""
    values = _values(raw)
    if used is not None:
        count, read_at = used.split()
        values["access_count"] = max(values["access_count"], int(count))
        moment = datetime.fromtimestamp(int(read_at) / 1000, UTC)
        if moment > datetime.fromisoformat(values["last_accessed"]):
            values["last_accessed"] = _instant(moment)
    for name, seconds in (("recorded_at", _moment(first or recorded)), ("retired_at", _moment(retired))):
        if seconds is not None:
            values[name] = _instant(seconds)
    ended_at = _moment(None if ended is None else ended.split()[0])
    return values, _moment(last_said), 1 if times is None else int(times), ended_at, _moment(edited)


def _values(raw: bytes) -> dict[str, Any]:
    body = cast("dict[str, Any]", from_json(raw))
    if not (_STORED <= body.keys() <= _RECORD_FIELDS) or None in body.values():
        body = cast("dict[str, Any]", to_jsonable_python(decode_memory(raw)))
    values = {**_ALWAYS, **body}
    for name in _INSTANTS:
        text = values.get(name)
        if text is not None and text[-1] != "Z":
            values[name] = _instant(datetime.fromisoformat(text))
    for name in _TAGS:
        values[name] = values[name] or []
    if evidence := body.get("evidence"):
        values["evidence"] = [{**_EVIDENCE, "message_ids": [], **piece} for piece in evidence]
    return values


def _read_card(tenant: bytes, row: MemoryRow) -> ShownMemory | None:
    _, owner, raw, *rest = row.fields
    if owner != tenant or raw is None:
        return None
    values, last_said, times_said, ended, edited = _stored_card(row.used, raw, *rest)
    return ShownMemory(_mid(row.name), dict(values), last_said, times_said, ended, edited)


def _moment(seconds: bytes | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(float(seconds), UTC)


def _instant(moment: datetime) -> str:
    """Format a time the way pydantic does."""
    return f"{(moment if moment.tzinfo is UTC else moment.astimezone(UTC)).isoformat()[:-6]}Z"
