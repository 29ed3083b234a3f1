"""Validate requests before the client sends them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent_memory_client._wire.requests import checked, given
from agent_memory_client.errors import MemoryValidationError
from agent_memory_client.models import ClientMemoryRecord, MemoryRecord, SearchRequest, WorkingMemory, new_id

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


def check_memory(memory: ClientMemoryRecord | MemoryRecord) -> None:
    """Raise MemoryValidationError if the server would reject the record, or if its id is not a ULID."""
    checked(MemoryRecord, **memory.model_dump())
    if not _ULID.fullmatch(memory.id):
        raise MemoryValidationError(f"id: must be a ULID (26 characters of Crockford's base 32), got {memory.id!r}")


def as_records(memories: Sequence[ClientMemoryRecord | MemoryRecord | Mapping[str, Any]]) -> list[MemoryRecord]:
    """Convert memories to records with ids. Ignore None values in dicts.

    Raises MemoryValidationError for an invalid or unknown field, and for a value that is not a memory.
    """
    return [_record(memory) if isinstance(memory, Mapping) else _with_id(memory) for memory in memories]


def _with_id(memory: Any) -> MemoryRecord:
    if not isinstance(memory, MemoryRecord):
        raise MemoryValidationError("memories: give a list of mappings with 'text' or of ClientMemoryRecord")
    return memory if memory.id else memory.model_copy(update={"id": new_id()})


def _record(memory: Mapping[str, Any]) -> MemoryRecord:
    unknown = sorted(map(str, memory.keys() - ClientMemoryRecord.model_fields.keys()))
    if unknown:
        raise MemoryValidationError(f"a memory has no field {', '.join(unknown)}: remove it, or put it into `metadata`")
    return checked(ClientMemoryRecord, **given(**memory))


def check_search(parameters: Mapping[str, Any]) -> None:
    """Raise MemoryValidationError if the server would reject a search with these parameters."""
    unknown = sorted(set(parameters) - set(SearchRequest.model_fields))
    if unknown:
        raise MemoryValidationError(f"there is no search parameter {', '.join(unknown)}")
    checked(SearchRequest, **parameters)


def new_session(session_id: str, namespace: str | None, user_id: str | None, **fields: Any) -> WorkingMemory:
    """Return a new session that is not stored yet. Raises MemoryValidationError."""
    return checked(WorkingMemory, session_id=session_id, namespace=namespace, user_id=user_id, **given(**fields))
