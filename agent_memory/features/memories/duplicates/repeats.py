"""Choose repeated memories to merge, but never messages. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from agent_memory.features.memories.commit import Merge
from agent_memory.features.memories.records import StoredMemory
from agent_memory.features.memories.service import fact_memory_id
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.text.normalization import kin, normal_text
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum

_NUMBER = re.compile(r"\d+")
_NEGATION = re.compile(r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot|\w+n['’]t)\b", re.IGNORECASE)
# A worker sets `updated_at` and `persisted_at` of a new fact within this span.
_MOMENT = timedelta(seconds=60)
_MOST_TAGS = 64
_INCIDENTAL = {
    "id",
    "text",
    "topics",
    "entities",
    "created_at",
    "updated_at",
    "last_accessed",
    "persisted_at",
    "access_count",
    "extracted_from",
    "memory_hash",
    "discrete_memory_extracted",
}


def is_unedited_extraction(record: MemoryRecord) -> bool:
    """True if a worker extracted the fact and nobody has edited it since."""
    ref = SessionRef(record.session_id or "", record.namespace, record.user_id)
    ids = (fact_memory_id(ref, record.text), fact_memory_id(ref, record.text, record.extracted_from or ()))
    if record.session_id is None or record.persisted_at is None or record.id not in ids:
        return False
    return abs(record.updated_at - record.persisted_at) < _MOMENT


def identical(record: MemoryRecord, other: MemoryRecord) -> bool:
    """True if two memories differ only in ids, times and counts."""
    return _essence(record) == _essence(other)


def _essence(record: MemoryRecord) -> dict[str, Any]:
    tags = {name: sorted(getattr(record, name) or ()) for name in ("topics", "entities")}
    return {**record.model_dump(exclude=_INCIDENTAL), **tags, "text": normal_text(record.text)}


def may_go(record: MemoryRecord, stays: MemoryRecord) -> bool:
    return not record.pinned and (is_unedited_extraction(record) or identical(record, stays))


def precedence(memory: StoredMemory) -> tuple[bool, bool, datetime, str]:
    """Return a sort key that puts the memory to keep first.

    Prefer pinned memories, then memories whose ids callers know, then the oldest.
    """
    record = memory.record
    return not record.pinned, is_unedited_extraction(record), record.created_at, record.id


def plan(group: Sequence[StoredMemory]) -> list[Merge]:
    """Plan merges for memories with the same words, owner, type and date."""
    staying: list[tuple[StoredMemory, list[StoredMemory]]] = []
    for memory in sorted(group, key=precedence):
        target = next((repeats for first, repeats in staying if may_go(memory.record, first.record)), None)
        if target is None:
            staying.append((memory, []))
        else:
            target.append(memory)
    return [Merge(first, merge_records(first.record, [r.record for r in repeats]), repeats) for first, repeats in staying if repeats]


def merge_records(stays: MemoryRecord, repeats: Sequence[MemoryRecord]) -> MemoryRecord:
    """Return a copy of `stays` with details added from `repeats`."""
    everyone = [stays, *repeats]
    return stays.model_copy(
        update={
            "extracted_from": _union(record.extracted_from for record in everyone),
            "topics": _union((record.topics for record in everyone), _MOST_TAGS),
            "entities": _union((record.entities for record in everyone), _MOST_TAGS),
            "access_count": sum(record.access_count for record in everyone),
            "last_accessed": max(record.last_accessed for record in everyone),
            "metadata": {name: value for record in reversed(everyone) for name, value in record.metadata.items()},
        }
    )


def _union(lists: Any, most: int | None = None) -> list[str] | None:
    present = [items for items in lists if items is not None]
    return list(dict.fromkeys(item for items in present for item in items))[:most] if present else None


def comparable(stays: MemoryRecord, other: MemoryRecord) -> bool:
    """True if a model should compare these similar memories."""
    if not is_unedited_extraction(other) or other.pinned or MemoryTypeEnum.MESSAGE in (stays.memory_type, other.memory_type):
        return False
    if kin(stays)[1:5] != kin(other)[1:5]:
        return False
    dates = {stays.event_date, other.event_date}
    if len(dates) > 1 and (None not in dates or stays.memory_type is MemoryTypeEnum.EPISODIC):
        return False
    return _details(stays.text) == _details(other.text)


def _details(text: str) -> tuple[list[str], bool]:
    return sorted(_NUMBER.findall(text)), bool(_NEGATION.search(text))
