"""Convert this server's memories to Mem0's API format."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from agent_memory.foundation.text.normalization import QUESTION
from agent_memory.interfaces.compat.mem0.requests import APP, OWN_KEYS
from agent_memory.interfaces.compat.service import similarity_of
from agent_memory_client.models import MemoryHistory, MemoryRecord, MemoryRecordResult

OWN_SESSION = "mem0:"
"""Prefix of the session ids for messages without a run."""
# Keys that promotion adds to a caller's metadata.
_OUR_METADATA = frozenset({"role", "name", QUESTION})


def memory_answer(record: MemoryRecord) -> dict[str, Any]:
    """Return a memory with Mem0's field names.

    `expiration_date` is the last day the memory is visible.
    """
    run = record.session_id
    promoted = record.extraction_strategy == "message"
    return {
        "id": record.id,
        "memory": record.text,
        "user_id": record.user_id,
        "agent_id": record.agent_id,
        "app_id": record.metadata.get(APP),
        "run_id": None if run is None or run.startswith(OWN_SESSION) else run,
        "hash": record.memory_hash,
        "metadata": _own({key: value for key, value in record.metadata.items() if not (promoted and key in _OUR_METADATA)}),
        "categories": [] if record.category is None else [record.category],
        "created_at": _time(record.created_at),
        "updated_at": _time(record.updated_at),
        "expiration_date": None if record.expires_at is None else _last_day(record.expires_at),
    }


def hit_answer(hit: MemoryRecordResult) -> dict[str, Any]:
    """Return a search hit with Mem0's field names.

    `score` is the cosine similarity, or 0 for a keyword-only match.
    """
    return {**memory_answer(hit), "score": similarity_of(hit)}


def fields_of(answer: dict[str, Any], fields: Collection[str] | None) -> dict[str, Any]:
    """Return the id and the requested fields, or all fields if none are specified."""
    return answer if not fields else {name: value for name, value in answer.items() if name == "id" or name in fields}


def history_answer(history: MemoryHistory) -> list[dict[str, Any]]:
    """Return a memory's versions as ADD and UPDATE events, oldest first."""
    events: list[dict[str, Any]] = []
    before: str | None = None
    for version in reversed(history.versions):
        record = version.record
        if before is not None and record.text == before:
            continue
        events.append(
            {
                "id": f"{history.memory_id}:{version.version}",
                "memory_id": history.memory_id,
                "input": [],
                "old_memory": before,
                "new_memory": record.text,
                "event": "ADD" if before is None else "UPDATE",
                "user_id": record.user_id,
                "metadata": _own(record.metadata),
                "created_at": _time(record.created_at),
                "updated_at": _time(version.recorded_at or record.updated_at),
            }
        )
        before = record.text
    return events


def _own(metadata: Mapping[str, Any]) -> dict[str, Any] | None:
    return {key: value for key, value in metadata.items() if key not in OWN_KEYS} or None


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


def _last_day(end: datetime) -> str:
    return (end.astimezone(UTC) - timedelta(seconds=1)).date().isoformat()
