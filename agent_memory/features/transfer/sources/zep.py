"""Read edges (facts), episodes and thread messages exported from Zep or Graphiti."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent_memory.features.transfer.sources.model import Conversation, Fact, Fields, Item, LeftOut, SourceMessage, oldest_first
from agent_memory.features.transfer.sources.reading import each, records

KEEPS_IDS = False
_LISTS = ("edges", "facts", "episodes", "messages", "nodes")
_SPEAKERS = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}


def read(path: Path, mapping: Mapping[str, str]) -> Iterator[Item]:
    """Yield facts from edges and episodes, and a conversation for each thread."""
    threads: defaultdict[tuple[str | None, str], list[SourceMessage]] = defaultdict(list)

    def convert(fields: Fields, key: str) -> Iterator[Item]:
        if fields.text("fact"):
            yield _edge(fields)
        elif fields.text("content") and (fields.text("role", "role_type") or fields.text("source") == "message"):
            owner = _owner(fields)
            role, text = _speaker(fields)
            thread = fields.text("thread_uuid", "thread_id", "session_id") or f"zep-{owner or fields.text('graph_uuid') or 'messages'}"
            message = SourceMessage(
                fields.needed("uuid", "uuid_", "id"), role, text, fields.time("reference_time", "valid_at", "created_at")
            )
            threads[owner, thread].append(message)
        elif fields.text("content"):
            yield _episode(fields)
        else:
            yield LeftOut(fields.text("uuid", "uuid_", "name") or key, "is a node: its facts are in the edges")

    yield from each(records(path, *_LISTS), convert)
    for (owner, thread), messages in threads.items():
        yield Conversation(thread, oldest_first(messages), user_id=owner)


def _owner(fields: Fields) -> str | None:
    return fields.text("user_id", "user_uuid", "group_id")


def _edge(fields: Fields) -> Fact:
    # `invalid_at` is when the fact ended; `expired_at` is when Zep learned it.
    return Fact(
        fields.needed("uuid", "uuid_", "id"),
        fields.needed("fact"),
        user_id=_owner(fields),
        created_at=fields.time("created_at"),
        metadata=fields.object("attributes"),
        topics=[name.replace("_", " ").lower()] if (name := fields.text("name")) else [],
        extra={
            "entities": [name for name in (fields.text("source_node_name"), fields.text("target_node_name")) if name] or None,
            "valid_from": fields.time("valid_at"),
            "valid_to": fields.time("invalid_at", "expired_at"),
        },
    )


def _episode(fields: Fields) -> Fact:
    return Fact(
        fields.needed("uuid", "uuid_", "id"),
        fields.needed("content"),
        user_id=_owner(fields),
        created_at=fields.time("reference_time", "valid_at", "created_at"),
        metadata=fields.object("metadata") or fields.object("episode_metadata"),
    )


def _speaker(fields: Fields) -> tuple[str, str]:
    """Return a message's role and text. Graphiti episodes start with the role ("user: Hello")."""
    text, role = fields.needed("content"), fields.text("role", "role_type")
    if role is None:
        before, colon, after = text.partition(":")
        role = before.strip().lower() if colon and before.strip().lower() in _SPEAKERS and after.strip() else "user"
        text = after.strip() if after.strip() and before.strip().lower() == role else text
    return _SPEAKERS.get(role, role), text
