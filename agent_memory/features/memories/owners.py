"""Whose an id is: within a tenant an id belongs to one owner (namespace, user, agent), whatever became of its memory."""

from __future__ import annotations

from collections.abc import Iterable

from agent_memory.foundation.core.errors import IdTaken
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.storage.keyspace import tag
from agent_memory_client.models import MemoryRecord


def owner_name(record: MemoryRecord) -> str:
    """The owner of a memory as the scripts know it."""
    return " ".join(tag(name) if name else "" for name in (record.namespace, record.user_id, record.agent_id))


def one_owner_each(records: Iterable[tuple[int, MemoryRecord]]) -> None:
    """Raises IdTaken when two memories of one request (with their places in it) have an id in common, but not their owner."""
    owners: dict[str, tuple[str | None, ...]] = {}
    for index, record in records:
        owner = (record.namespace, record.user_id, record.agent_id)
        if owners.setdefault(record.id, owner) != owner:
            raise IdTaken([record.id], field=f"memories.{index}.id")


def with_session_owner(ref: SessionRef, record: MemoryRecord) -> MemoryRecord:
    """A memory that was put into a session: what does not say whose it is belongs where the session belongs."""
    update = {
        "namespace": record.namespace or ref.namespace,
        "user_id": record.user_id or ref.user_id,
        "session_id": record.session_id or ref.session_id,
    }
    return record.model_copy(update=update)
