"""Convert documents and conversations to session messages.

Each part of a document becomes a message.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any
from uuid import uuid4

from agent_memory.features.memories.annotations import REMEMBER_AS
from agent_memory.foundation.core.errors import BadInput, NotSupported
from agent_memory.foundation.text.pictures import pictures_of
from agent_memory_client.models import WorkingMemoryResponse

WHOLE_WINDOW = 1_000_000_000
"""A context window (tokens) so large that documents are never summarized."""
# Longer texts, and texts with several lines, have several subjects.
_NOTE_CHARS = 600
_MESSAGE_FIELDS = ("tool_calls", "tool_call_id", "name")


def message_of(text: str, metadata: Mapping[str, Any], stated_at: datetime | None, name: str | None = None) -> dict[str, Any]:
    """Return the message that stores a document's text.

    A short note is treated as a statement about the container's user. `name` is the message id.
    """
    remember_as = {**({"metadata": dict(metadata)} if metadata else {}), **({"about_user": True} if _is_note(text) else {})}
    return {
        "role": "user",
        "content": text,
        "id": name or uuid4().hex,
        **({REMEMBER_AS: remember_as} if remember_as else {}),
        **({} if stated_at is None else {"created_at": stated_at}),
    }


def content_of(session: WorkingMemoryResponse) -> str:
    """Return a document's text. Include roles only if it is a conversation."""
    spoken = {message.role for message in session.messages} not in ({"user"}, {"tool"})
    return "\n".join(f"{message.role}: {message.content}" if spoken else message.content for message in session.messages)


def metadata_of(session: WorkingMemoryResponse) -> dict[str, Any]:
    """Return the metadata from a document's newest part."""
    remembered = session.messages[-1].own_fields.get(REMEMBER_AS)
    metadata = remembered.get("metadata") if isinstance(remembered, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def added_text(parts: Sequence[str], new_text: str) -> str | None:
    """Return the text to append to a document, or None to create a new version.

    Text that equals an existing part is treated as a retry, so nothing is appended.
    """
    whole_text = "\n".join(parts)
    if new_text == whole_text or new_text in parts:
        return ""
    if new_text.startswith(f"{whole_text}\n") and (added := new_text.removeprefix(f"{whole_text}\n")).strip():
        return added
    lines = _lines(whole_text)
    return None if 2 * len(lines & _lines(new_text)) >= len(lines) else new_text


def _is_note(text: str) -> bool:
    return len(text) <= _NOTE_CHARS and "\n" not in text.strip()


def _lines(text: str) -> set[str]:
    return {line for line in map(str.strip, text.splitlines()) if line}


def messages_of(sent: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a conversation's messages with metadata and stable ids.

    Raises BadInput if there is nothing to store, or NotSupported if none of the content is
    supported.
    """
    counts: Counter[str] = Counter()
    messages: list[dict[str, Any]] = []
    for message in sent:
        text = _text_of(message.get("content"))
        beside = {name: message[name] for name in _MESSAGE_FIELDS if message.get(name) not in (None, "", [])}
        pictures = _pictures_in(message.get("content"))
        if not (text.strip() or pictures or "tool_calls" in beside):
            continue
        content_key = json.dumps([message.get("role"), text, beside, *([pictures] if pictures else [])], sort_keys=True)
        name = blake2b(f"{counts[content_key]} {content_key}".encode(), digest_size=16).hexdigest()
        counts[content_key] += 1
        remember_as = {REMEMBER_AS: {"metadata": dict(metadata)}} if metadata else {}
        parts = [*([{"type": "text", "text": text}] if text.strip() else []), *pictures] if pictures else None
        messages.append({"role": message.get("role"), "content": parts or text or None, "id": name, **beside, **remember_as})
    if not messages:
        if any(isinstance(message.get("content"), list) for message in sent):
            raise NotSupported("messages: parts without a text or picture")
        raise BadInput("must contain a text", field="messages")
    return messages


def _pictures_in(content: object) -> list[Any]:
    return [part for part in content if pictures_of([part])] if isinstance(content, list) else []


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type", "text") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))
