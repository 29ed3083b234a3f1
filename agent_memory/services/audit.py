"""The audit trail: who asked for what and how it ended, as structured events of the logger `audit`. Ids and counts, never text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import structlog
from pydantic import BaseModel

LOGGER = "audit"
MAX_IDS = 100
MAX_CHARS = 512

_NAMED = ("session_id", "memory_id", "memory_ids", "user_id", "namespace", "view_id", "task_id", "operation_id", "token_id")


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
    """One event. `actor` is the subject of the credentials, None for who showed none that count, and for background work."""
    log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(LOGGER)
    more = {"counts": dict(counts)} if counts else {}
    log.info("access", operation=operation, status=status, tenant=tenant, actor=actor, ids=dict(ids), request_id=request_id, **more)


def ids_of(*sources: Any) -> dict[str, Any]:
    """The ids that requests name, the first source first: of a mapping of arguments, and of bodies; at most MAX_IDS of a kind."""
    found: dict[str, Any] = {}
    for source in sources:
        for name in _NAMED:
            value = _of(source, name)
            if name not in found and (said := _said(value)) is not None:
                found[name] = said
        given = _of(source, "memories")
        if given and isinstance(given, list) and "memory_ids" not in found:
            memories = cast("list[Any]", given)
            found["memory_ids"] = [_said(_of(one, "id")) for one in memories[:MAX_IDS]]
            found["memories"] = len(memories)
    return found


def _of(source: Any, name: str) -> Any:
    return cast("Mapping[str, Any]", source).get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def _said(value: Any) -> Any:
    """An id, a list of ids, or what a filter asks for; None for nothing."""
    if isinstance(value, str):
        return value[:MAX_CHARS]
    if isinstance(value, list):
        return [str(one)[:MAX_CHARS] for one in cast("list[Any]", value)[:MAX_IDS]]
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_none=True, exclude_defaults=True, mode="json")
    return None
