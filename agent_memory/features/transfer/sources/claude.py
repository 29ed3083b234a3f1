"""Read a Claude account export (ZIP archive or folder), or its `conversations.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from agent_memory.features.transfer.sources.model import Conversation, Fields, Item, LeftOut, SourceMessage, Unusable
from agent_memory.features.transfer.sources.reading import each, members, stream_records

KEEPS_IDS = False
_ROLES = {"human": "user", "assistant": "assistant"}


def read(path: Path, mapping: Mapping[str, str]) -> Iterator[Item]:
    """Yield each conversation as the user last saw it."""
    with members(path, "conversations") as streams:
        for name, stream in streams:
            yield from each(stream_records(stream, name, "conversations"), _conversation)


def _conversation(fields: Fields, key: str) -> Iterator[Item]:
    name = fields.needed("uuid", "id")
    messages: list[SourceMessage] = []
    for message in _branch(fields):
        place = f"{name} message {message.text('uuid') or ''}"
        try:
            role, text = message.text("sender"), _text(message)
            if role not in _ROLES:
                yield LeftOut(place, "is from neither the person nor the assistant")
            elif text is None:
                yield LeftOut(place, "has no text")
            else:
                messages.append(SourceMessage(message.needed("uuid"), _ROLES[role], text, message.time("created_at")))
        except Unusable as error:
            yield LeftOut(place, str(error))
    if messages:
        at, changed = fields.time("created_at"), fields.time("updated_at")
        yield Conversation(name, messages, created_at=at, updated_at=changed, title=fields.text("name"))
    else:
        yield LeftOut(name, "a conversation without messages")


def _branch(fields: Fields) -> list[Fields]:
    """Return the messages up to the current leaf, or all messages if there are no branches."""
    messages = [Fields.of(value, "a message") for value in fields.list("chat_messages")]
    by_id = {message.text("uuid"): message for message in messages}
    at = fields.text("current_leaf_message_uuid")
    if at not in by_id or not any(message.text("parent_message_uuid") in by_id for message in messages):
        return messages
    branch: list[Fields] = []
    visited: set[str | None] = set()
    while at in by_id:
        if at in visited:
            raise Unusable("its messages form a circle")
        visited.add(at)
        branch.append(by_id[at])
        at = by_id[at].text("parent_message_uuid")
    return branch[::-1]


def _text(message: Fields) -> str | None:
    """Return a message's text, excluding thinking and tool calls."""
    parts = [Fields.of(part, "a part") for part in message.list("content")]
    texts = [text for part in parts if part.text("type") == "text" and (text := part.text("text"))]
    return "\n\n".join(texts) or (message.text("text") if not parts else None)
