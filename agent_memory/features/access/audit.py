"""Log each call to the `audit` logger.

Events contain ids and counts, never text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import structlog
from pydantic import BaseModel

from agent_memory_client.models import MemoryRecord

LOGGER = "audit"
MAX_IDS = 100
MAX_CHARS = 512

_COUNTED = (
    *("memories", "long_term_memories", "messages", "sessions", "versions", "changes", "evidence", "operations", "partitions"),
    *("deleted", "scanned", "appended", "imported", "present", "problem_count", "counts"),
)
_NAMED = (
    *("session_id", "memory_id", "memory_ids", "ids", "user_id", "namespace", "view_id"),
    *("task_id", "operation_id", "token_id", "change_id", "batch_id", "receipt_id"),
)


def record(
    *,
    operation: str,
    status: int | None,
    tenant: str | None,
    actor: str | None,
    ids: Mapping[str, Any],
    request_id: str | None,
    counts: Mapping[str, int] | None = None,
) -> None:
    """Log one event. `actor` is None for background work or invalid credentials."""
    log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(LOGGER)
    more = {"counts": dict(counts)} if counts else {}
    log.info("access", operation=operation, status=status, tenant=tenant, actor=actor, ids=dict(ids), request_id=request_id, **more)


def counts_of(answer: Any) -> dict[str, int]:
    """Return the counts and list lengths in a response, keyed by field name."""
    if isinstance(answer, MemoryRecord):
        return {"memories": 1}
    counts: dict[str, int] = {}
    for name in _COUNTED:
        value = _of(answer, name)
        if isinstance(value, list):
            counts[name] = len(cast("list[Any]", value))
        elif isinstance(value, int):
            counts[name] = value
        elif isinstance(value, dict):
            counts[name] = sum(number for number in cast("dict[str, Any]", value).values() if isinstance(number, int))
    return counts


def ids_of(*sources: Any, answer: Any) -> dict[str, Any]:
    """Return the ids in arguments and request bodies, up to MAX_IDS per kind.

    Earlier sources take precedence. From `answer`, use only `receipt_id`.
    """
    receipt_id = _of(answer, "receipt_id")
    ids: dict[str, Any] = {} if receipt_id is None else {"receipt_id": receipt_id}
    for source in sources:
        for name in _NAMED:
            value = _of(source, name)
            if name not in ids and (shown_id := _shown_id(value)) is not None:
                ids[name] = shown_id
        memories = _of(source, "memories")
        if memories and isinstance(memories, list) and "memory_ids" not in ids:
            listed = cast("list[Any]", memories)
            ids["memory_ids"] = [_shown_id(_of(memory, "id")) for memory in listed[:MAX_IDS]]
            ids["memories"] = len(listed)
    return ids


def _of(source: Any, name: str) -> Any:
    return cast("Mapping[str, Any]", source).get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def _shown_id(value: Any) -> Any:
    if isinstance(value, str):
        return value[:MAX_CHARS]
    if isinstance(value, list):
        return [str(item)[:MAX_CHARS] for item in cast("list[Any]", value)[:MAX_IDS]]
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_none=True, exclude_defaults=True, mode="json")
    return None
