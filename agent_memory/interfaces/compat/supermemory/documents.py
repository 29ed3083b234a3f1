"""A document as a session: one message, and one more for each part that came later under the same id (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from agent_memory.features.memories.annotations import REMEMBER_AS
from agent_memory_client.models import WorkingMemoryResponse

WHOLE_WINDOW = 1_000_000_000
"""The window of a document's session, in tokens: a document is kept whole, never summarized."""
# A longer text, or one of several lines, tells of more than one thing.
_NOTE_CHARS = 600


def message_of(text: str, metadata: Mapping[str, Any], said: datetime | None, name: str | None = None) -> dict[str, Any]:
    """The message of a text, whose memories get the metadata. A note is about the one whose container it is in.

    `name` is its id: a document that moves keeps it, so that a move that was interrupted is recognized.
    """
    remember_as = {**({"metadata": dict(metadata)} if metadata else {}), **({"about_user": True} if _is_note(text) else {})}
    return {
        "role": "user",
        "content": text,
        "id": name or uuid4().hex,
        **({REMEMBER_AS: remember_as} if remember_as else {}),
        **({} if said is None else {"created_at": said}),
    }


def content_of(session: WorkingMemoryResponse) -> str:
    """The text of a document: that of all its parts, each with its role if it is a conversation."""
    spoken = any(message.role != "user" for message in session.messages)
    return "\n".join(f"{message.role}: {message.content}" if spoken else message.content for message in session.messages)


def metadata_of(session: WorkingMemoryResponse) -> dict[str, Any]:
    """The metadata of a document, as it came with its newest part."""
    kept = session.messages[-1].own_fields.get(REMEMBER_AS)
    metadata = kept.get("metadata") if isinstance(kept, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def added_text(parts: Sequence[str], given: str) -> str | None:
    """Return what a text that comes under a known id adds to a document of these parts; None if it is another version of the whole.

    Callers send either what is new, or all of it once more. A part that is sent again is a retry and adds nothing. What repeats at least
    half of the known lines is a version of the whole.
    """
    known = "\n".join(parts)
    if given == known or given in parts:
        return ""
    if given.startswith(f"{known}\n") and (added := given.removeprefix(f"{known}\n")).strip():
        return added
    lines = _lines(known)
    return None if 2 * len(lines & _lines(given)) >= len(lines) else given


def _is_note(text: str) -> bool:
    return len(text) <= _NOTE_CHARS and "\n" not in text.strip()


def _lines(text: str) -> set[str]:
    return {line for line in map(str.strip, text.splitlines()) if line}
