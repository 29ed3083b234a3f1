"""What is checked here rather than by the server: pure functions, shared by the asynchronous and the synchronous client."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError

from agent_memory_client._calls import checked
from agent_memory_client.errors import MemoryValidationError
from agent_memory_client.models import ClientMemoryRecord, MemoryRecord, SearchRequest, WorkingMemory

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


class Checks:
    """Methods that send nothing."""

    def validate_memory_record(self, memory: ClientMemoryRecord | MemoryRecord) -> None:
        """Raises MemoryValidationError when a record would be refused, or when its id is not a ULID."""
        try:
            MemoryRecord.model_validate(memory.model_dump())
        except ValidationError as error:
            raise checked(error) from error
        if not _ULID.fullmatch(memory.id):
            raise MemoryValidationError(f"id: must be a ULID (26 characters of Crockford's base 32), got {memory.id!r}")

    def validate_search_filters(self, **filters: Any) -> None:
        """Raises MemoryValidationError when a search with these parameters would be refused."""
        unknown = sorted(set(filters) - set(SearchRequest.model_fields))
        if unknown:
            raise MemoryValidationError(f"there is no search parameter {', '.join(unknown)}")
        try:
            SearchRequest.model_validate(filters)
        except ValidationError as error:
            raise checked(error) from error


def new_session(session_id: str, namespace: str | None, user_id: str | None, **fields: Any) -> WorkingMemory:
    """A new session. Raises MemoryValidationError."""
    given = {key: value for key, value in fields.items() if value is not None}
    try:
        return WorkingMemory(session_id=session_id, namespace=namespace, user_id=user_id, **given)
    except ValidationError as error:
        raise checked(error) from error
