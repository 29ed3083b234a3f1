"""Read Supermemory's JSON: documents from `documents/list`, or memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from agent_memory.features.transfer.sources.model import Fact, Fields, Item, LeftOut
from agent_memory.features.transfer.sources.reading import each, records

KEEPS_IDS = False
_LISTS = ("memories", "memoryEntries", "documents")


def read(path: Path, mapping: Mapping[str, str]) -> Iterator[Item]:
    """Yield each document or memory as a fact about its container's user."""
    yield from each(records(path, *_LISTS), _fact)


def _fact(fields: Fields, key: str) -> Iterator[Item]:
    name = fields.needed("id", "customId")
    system = Fields(fields.object("system"))
    if fields.flag("isForgotten") or fields.values.get("isLatest") is False:
        yield LeftOut(name, "was forgotten or replaced there")
        return
    if (ends := fields.time("forgetAfter")) is not None and ends <= datetime.now(UTC):
        yield LeftOut(name, "expired")
        return
    text = fields.text("memory", "content", "summary", "title")
    if text is None:
        yield LeftOut(name, "has no content: list the documents with their content")
        return
    tags = fields.texts("containerTags") or [tag for tag in (fields.text("containerTag", "namespace"),) if tag]
    metadata = dict(fields.object("metadata"))
    # The server's Supermemory API stores all container tags except the first there.
    if tags[1:]:
        metadata["container_tags"] = tags[1:]
    for ours in ("url", "title"):
        if (value := fields.text(ours)) and value != text:
            metadata.setdefault(ours, value)
    yield Fact(
        name,
        text,
        user_id=tags[0] if tags else None,
        created_at=fields.time("createdAt", "created_at") or system.time("createdAt", "created_at"),
        updated_at=fields.time("updatedAt", "updated_at") or system.time("updatedAt", "updated_at"),
        metadata=metadata,
        extra={"expires_at": ends},
    )
