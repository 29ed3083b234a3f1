"""Read a ChatGPT account export (ZIP archive or folder), or its `conversations.json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_memory.features.transfer.sources.model import Conversation, Fields, Item, LeftOut, SourceMessage, Unusable
from agent_memory.features.transfer.sources.reading import each, members, stream_records

KEEPS_IDS = False
_LISTS = ("conversations",)
_TEXT_TYPES = {"text", "multimodal_text"}


def read(path: Path, mapping: Mapping[str, str]) -> Iterator[Item]:
    """Yield each conversation as the user last saw it."""
    with members(path, "conversations") as streams:
        for name, stream in streams:
            yield from each(stream_records(stream, name, *_LISTS), _conversation)


def _conversation(fields: Fields, key: str) -> Iterator[Item]:
    name = fields.needed("conversation_id", "id")
    title = fields.text("title")
    messages: list[SourceMessage] = []
    skipped: Counter[str] = Counter()
    for node in _branch(fields):
        try:
            message = _message(node)
        except Unusable as error:
            yield LeftOut(f"{name} message", str(error))
            continue
        if isinstance(message, SourceMessage):
            messages.append(message)
        elif message:
            skipped[message] += 1
    for reason, count in skipped.items():
        yield from [LeftOut(name, reason)] * count
    if messages:
        yield Conversation(name, messages, created_at=fields.time("create_time"), updated_at=fields.time("update_time"), title=title)
    else:
        yield LeftOut(name, "a conversation without messages")


def _branch(fields: Fields) -> list[Fields]:
    """Return the nodes from the root to `current_node`, or to the newest leaf if it is missing."""
    mapping = fields.object("mapping")
    if not mapping:
        raise Unusable("mapping is missing")
    at = fields.text("current_node")
    if at is None or at not in mapping:
        at = max((key for key in mapping if not _children(mapping[key])), key=lambda key: _time(mapping[key]), default=None)
    branch: list[Fields] = []
    visited: set[str] = set()
    while at is not None:
        if at in visited:
            raise Unusable("its messages form a circle")
        visited.add(at)
        node = Fields.of(mapping.get(at), "a message of the current branch")
        branch.append(node)
        at = node.text("parent")
        if at is not None and at not in mapping:
            raise Unusable("a message of the current branch is missing")
    return branch[::-1]


def _children(node: Any) -> list[Any]:
    return Fields.of(node, "a message").list("children")


def _time(node: Any) -> float:
    message = Fields.of(node, "a message").values.get("message")
    at = message.get("create_time") if isinstance(message, dict) else None
    return float(at) if isinstance(at, int | float) else 0.0


def _message(node: Fields) -> SourceMessage | str | None:
    """Return the node's message, the reason for omitting it, or None if it has no message."""
    if node.values.get("message") is None:
        return None
    message = Fields(node.object("message"))
    role = Fields(message.object("author")).text("role")
    content = Fields(message.object("content"))
    hidden = Fields(message.object("metadata")).flag("is_visually_hidden_from_conversation")
    kind = content.text("content_type")
    parts = content.list("parts") if kind in _TEXT_TYPES else []
    # A spoken message has its transcription in an object.
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    text = "\n\n".join(piece for piece in texts if isinstance(piece, str) and piece.strip())
    if role not in ("user", "assistant") or hidden or (message.text("recipient") or "all") != "all":
        return "a system or tool message" if text or kind not in _TEXT_TYPES else None
    if kind not in _TEXT_TYPES:
        return f"{kind}, not a message" if kind else "a message without content"
    if not text:
        return "a picture or file without text" if parts and any(not isinstance(part, str) for part in parts) else None
    return SourceMessage(message.text("id") or node.needed("id"), role, text, message.time("create_time"))
