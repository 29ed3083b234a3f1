"""Convert the archived server's data to this server's models. Pure functions, no I/O.

Each change adds a note. Data that cannot be converted raises `UnmovableRecord`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from pydantic import ValidationError

from agent_memory.features.sessions.strategies import check_strategy
from agent_memory.features.transfer.values import (
    clean_text,
    cleaned_json,
    count_of,
    decode_text,
    instant,
    json_object,
    made_id,
    memory_type_of,
    number_or_text,
    split_tags,
    tags_of,
    to_json,
    ulid_time,
)
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.input.validation import first_problem
from agent_memory_client.models import (
    ANSWER,
    MemoryMessage,
    MemoryRecord,
    MemoryStrategyConfig,
    MemoryTypeEnum,
    WorkingMemory,
)

_MAX_ROLE_CHARS = 64
_TIMES = ("created_at", "last_accessed", "updated_at", "persisted_at", "event_date")
_VECTORS = (b"vector", b"embedding")


class UnmovableRecord(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class OldMemory:
    """A converted memory, its old float32 vector, and notes about changed values."""

    record: MemoryRecord
    vector: bytes | None
    notes: list[str]


@dataclass(frozen=True, slots=True)
class OldSession:
    """A converted session. `body.ttl_seconds` is the value from its last PUT."""

    body: WorkingMemory
    notes: list[str] = field(default_factory=list[str])


def memory_of_hash(name: str, fields: Mapping[bytes, bytes]) -> OldMemory:
    """Convert a memory's hash. Raises UnmovableRecord.

    `name` is the memory's key without the prefix.
    """
    notes: list[str] = []
    values: dict[str, Any] = {}
    for raw_name, raw in fields.items():
        if raw_name not in _VECTORS:
            values[decode_text(raw_name, [], "")] = decode_text(raw, notes, decode_text(raw_name, [], ""))
    values["id"] = values.get("id_") or values.get("id") or name
    for tags in ("topics", "entities", "extracted_from"):
        values[tags] = split_tags(values.get(tags))
    for objects in ("metadata", "extraction_strategy_config"):
        values[objects] = json_object(values.get(objects), objects, notes)
    for times in _TIMES:
        values[times] = number_or_text(values.get(times))
    if values.get("pinned") is not None:
        values["pinned"] = str(values["pinned"]).strip().lower() in ("1", "true", "t", "yes")
    values.setdefault("memory_type", MemoryTypeEnum.SEMANTIC.value)
    record = record_of(values, notes, flag="t")
    vector = next((fields[field] for field in _VECTORS if fields.get(field)), None)
    return OldMemory(record, vector, notes)


def record_of(values: Mapping[str, Any], notes: list[str], *, flag: str) -> MemoryRecord:
    """Convert a memory's values. Raises UnmovableRecord.

    `flag` is the default for `discrete_memory_extracted`.
    """
    text = clean_text(values.get("text"), notes, "text")
    if not text.strip():
        raise UnmovableRecord("it has no text")
    fields: dict[str, Any] = {"id": values.get("id"), "text": text}
    for name in ("session_id", "user_id", "namespace"):
        fields[name] = values.get(name) or None
    for name in ("topics", "entities"):
        fields[name] = tags_of(values.get(name), name, notes)
    references = [str(reference) for reference in values.get("extracted_from") or () if str(reference).strip()]
    fields["extracted_from"] = references or None
    fields["memory_hash"] = values.get("memory_hash") or None
    fields["pinned"] = bool(values.get("pinned"))
    fields["access_count"] = count_of(values.get("access_count"), notes)
    fields["discrete_memory_extracted"] = mark if (mark := values.get("discrete_memory_extracted")) in ("t", "f") else flag
    fields["memory_type"] = memory_type_of(values.get("memory_type"), notes)
    fields["extraction_strategy"] = clean_text(values.get("extraction_strategy"), notes, "extraction_strategy").strip() or "discrete"
    for name in ("metadata", "extraction_strategy_config"):
        fields[name] = values.get(name) or {}
    for name in _TIMES:
        if (moment := instant(values.get(name), name, notes)) is not None:
            fields[name] = moment
    _fill_times(fields)
    try:
        return MemoryRecord.model_validate(fields, context=ANSWER)
    except ValidationError as error:
        raise UnmovableRecord(": ".join(first_problem(error))) from None


def _fill_times(fields: dict[str, Any]) -> None:
    times = [fields[name] for name in ("created_at", "persisted_at", "updated_at", "last_accessed") if name in fields]
    nearest = times[0] if times else ulid_time(str(fields["id"]))
    for name in ("created_at", "updated_at", "last_accessed"):
        if nearest is not None:
            fields.setdefault(name, nearest)


def session_of(raw: bytes) -> OldSession:
    """Convert a session's JSON. Raises UnmovableRecord."""
    notes: list[str] = []
    values = _document(raw, notes)
    times = {name: instant(values.get(name), name, notes) for name in ("created_at", "last_accessed", "updated_at")}
    first = times["created_at"] or times["updated_at"] or times["last_accessed"]
    dated = {
        "created_at": first,
        "last_accessed": times["last_accessed"] or times["updated_at"] or first,
        "updated_at": times["updated_at"] or times["last_accessed"] or first,
    }
    body: dict[str, Any] = {name: moment for name, moment in dated.items() if moment is not None} | {
        "session_id": values.get("session_id"),
        "namespace": values.get("namespace") or None,
        "user_id": values.get("user_id") or None,
        "context": clean_text(values.get("context"), notes, "context") or None,
        "tokens": count_of(values.get("tokens"), notes),
        "ttl_seconds": _ttl(values.get("ttl_seconds"), notes),
        "data": cleaned_json(values.get("data"), notes),
        "messages": _messages(values.get("messages"), first, notes),
        "memories": _own_memories(values.get("memories"), first, notes),
        "long_term_memory_strategy": _strategy(values.get("long_term_memory_strategy"), notes),
    }
    try:
        return OldSession(WorkingMemory.model_validate(body, context=ANSWER), notes)
    except ValidationError as error:
        raise UnmovableRecord(": ".join(first_problem(error))) from None


def view_of(raw: bytes) -> dict[str, Any]:
    """Parse a summary view's fields. Raises UnmovableRecord."""
    return _document(raw, [])


def partition_of(raw: bytes, notes: list[str]) -> dict[str, Any]:
    """Parse a computed partition's fields. Raises UnmovableRecord."""
    values = _document(raw, notes)
    values["summary"] = clean_text(values.get("summary"), notes, "summary")
    return values


def _document(raw: bytes, notes: list[str]) -> dict[str, Any]:
    text = decode_text(raw, notes, "the document")
    try:
        values: Any = json.loads(text)
        values = json.loads(values) if isinstance(values, str) else values
    except (ValueError, RecursionError):
        raise UnmovableRecord("it is not JSON") from None
    if isinstance(values, list) and len(values) == 1:
        values = values[0]
    if not isinstance(values, dict):
        raise UnmovableRecord("it is not a JSON object")
    return cast("dict[str, Any]", values)


def _messages(values: Any, first: datetime | None, notes: list[str]) -> list[MemoryMessage]:
    messages: list[MemoryMessage] = []
    moment = first
    for position, value in enumerate(cast("list[Any]", values) if isinstance(values, list) else ()):
        if not isinstance(value, dict):
            notes.append(f"message {position} is not an object and was omitted")
            continue
        fields = cast("dict[str, Any]", value)
        content = fields.get("content")
        text = clean_text(content if content is None or isinstance(content, str) else to_json(content), notes, f"message {position}")
        if not text.strip():
            notes.append(f"message {position} has no text and was omitted")
            continue
        moment = instant(fields.get("created_at"), f"message {position}: created_at", notes) or moment
        persisted = instant(fields.get("persisted_at"), f"message {position}: persisted_at", notes)
        role = re.sub(r"[\n\t\r]", " ", clean_text(fields.get("role"), notes, f"message {position}: role")).strip()
        name = fields.get("id")
        built = {
            # A missing id is derived from content and position, so that every run creates the same id.
            "id": name if isinstance(name, str) and name.strip() else made_id(str(position), text, moment),
            "role": role[:_MAX_ROLE_CHARS] or "user",
            "content": text,
            "persisted_at": persisted,
            "discrete_memory_extracted": "t" if fields.get("discrete_memory_extracted") == "t" else "f",
        } | ({} if moment is None else {"created_at": moment})
        try:
            messages.append(MemoryMessage.model_validate(built, context=ANSWER))
        except ValidationError as error:
            built["id"] = made_id(str(position), text, moment)
            messages.append(MemoryMessage.model_validate(built, context=ANSWER))
            notes.append(f"message {position} got a new id: {': '.join(first_problem(error))}")
    return messages


def _own_memories(values: Any, first: datetime | None, notes: list[str]) -> list[MemoryRecord]:
    memories: list[MemoryRecord] = []
    for position, value in enumerate(cast("list[Any]", values) if isinstance(values, list) else ()):
        fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        text = str(fields.get("text") or "")
        filled = {"memory_type": MemoryTypeEnum.MESSAGE.value, "created_at": first, **fields}
        filled["id"] = fields.get("id") or made_id(f"memory {position}", text)
        for name in ("metadata", "extraction_strategy_config"):
            filled[name] = cleaned_json(fields.get(name), notes) or {}
        for name in ("topics", "entities", "extracted_from"):
            filled[name] = split_tags(filled.get(name))
        try:
            memories.append(record_of(filled, notes, flag="f"))
        except UnmovableRecord as error:
            notes.append(f"memory {position} of the session was omitted: {error}")
    return memories


def _strategy(value: Any, notes: list[str]) -> MemoryStrategyConfig:
    if value is None:
        return MemoryStrategyConfig()
    try:
        strategy = MemoryStrategyConfig.model_validate(value)
        check_strategy(strategy)
        return strategy
    except (ValidationError, BadInput):
        notes.append("its strategy is not supported: discrete was used")
        return MemoryStrategyConfig()


def _ttl(value: Any, notes: list[str]) -> int | None:
    if value is None:
        return None
    try:
        return max(int(float(value)), 0)
    except (TypeError, ValueError, OverflowError):
        notes.append("ttl_seconds is not a number: the session is kept until it is deleted")
        return None
