"""Read JSON profiles, events and chat blobs from Memobase's API or client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from agent_memory.features.transfer.sources.model import Conversation, Fact, Fields, Item, LeftOut, SourceMessage
from agent_memory.features.transfer.sources.reading import each, records

KEEPS_IDS = False
_LISTS = ("profiles", "events", "blobs", "data.profiles", "data.events", "data.gists")


def read(path: Path, mapping: Mapping[str, str]) -> Iterator[Item]:
    """Yield profile entries and events as facts, and chat blobs as conversations."""
    yield from each(records(path, *_LISTS), _convert)


def _convert(fields: Fields, key: str) -> Iterator[Item]:
    user, at = fields.text("user_id"), fields.time("created_at")
    kind = fields.text("blob_type", "type")
    if kind == "chat" or fields.values.get("messages"):
        yield _chat(fields, user)
        return
    attributes = Fields(fields.object("attributes"))
    topic, part = fields.text("topic") or attributes.text("topic"), fields.text("sub_topic") or attributes.text("sub_topic")
    event = Fields(fields.object("event_data") or fields.object("gist_data"))
    if topic is not None:
        text = f"{topic}: {part} - {fields.needed('content')}" if part else f"{topic}: {fields.needed('content')}"
        extra = {}
    elif event.values:
        deltas = [Fields.of(delta).text("content") for delta in event.list("profile_delta")]
        text = event.text("event_tip", "content") or "\n".join(delta for delta in deltas if delta)
        extra = {"memory_type": "episodic", "event_date": at}
    else:
        yield LeftOut(fields.text("id") or key, "is not a profile entry, event or chat")
        return
    topics = [name for name in (topic, part) if name]
    yield Fact(fields.needed("id"), text, user_id=user, created_at=at, updated_at=fields.time("updated_at"), topics=topics, extra=extra)


def _chat(fields: Fields, user: str | None) -> Conversation:
    entries = fields.list("messages") or Fields(fields.object("blob_data")).list("messages")
    messages: list[SourceMessage] = []
    for position, value in enumerate(entries):
        message = Fields.of(value, "a message")
        if text := message.text("content"):
            messages.append(SourceMessage(str(position), message.needed("role"), text, message.time("created_at")))
    return Conversation(f"memobase-{fields.needed('id')}", messages, user_id=user, created_at=fields.time("created_at"))
