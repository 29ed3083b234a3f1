"""Split a file into passages. Each passage becomes a message and a memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

from agent_memory.extensions.files.store import ref_of
from agent_memory.extensions.files.text import UnreadableFile
from agent_memory.features.memories.annotations import REMEMBER_AS
from agent_memory.features.memories.quarantine.service import screen_record
from agent_memory.features.memories.service import message_memory
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.text.passages.splitting import split_passages
from agent_memory.foundation.text.redaction import redact
from agent_memory_client.models import MemoryMessage, MemoryRecord
from agent_memory_client.models.features.files import StoredFile

MOST_PASSAGES = 2_000
_FILE_ID = "file_id"


class Passage(NamedTuple):
    """A range of characters on a page. Page numbers start at 1."""

    page: int
    start: int
    end: int
    text: str


def passages_of(pages: Sequence[str]) -> list[Passage]:
    """Split pages into passages. Raises UnreadableFile."""
    passages: list[Passage] = []
    for number, page in enumerate(pages, 1):
        for start, end in _spans(page):
            text = page[start:end]
            start, text = start + len(text) - len(text.lstrip()), text.strip()
            if text:
                passages.append(Passage(number, start, start + len(text), text))
        if len(passages) > MOST_PASSAGES:
            raise UnreadableFile(f"the text has more than {MOST_PASSAGES} passages of about 800 bytes: split the file")
    if not passages:
        raise UnreadableFile("the file has no text: scanned pages need text recognition (OCR) first")
    return passages


def _spans(page: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(page):
        # One call returns a limited number of passages. For a short text, it returns none.
        spans = split_passages(page[start:]) or [(0, len(page) - start)]
        yield from ((start + first, start + last) for first, last in spans)
        start += spans[-1][1]


def message_id(file: StoredFile, number: int) -> str:
    """Return a passage's message id, which is unique to this version of the file."""
    return f"{file.digest[:16]}-{file.updated_at.timestamp():.6f}-{number}"


def messages_of(settings: Settings, file: StoredFile, passages: Sequence[Passage]) -> list[MemoryMessage]:
    """Return the messages that store a file's text. Their role is `tool`."""
    messages: list[MemoryMessage] = []
    for number, passage in enumerate(passages):
        place = {**file.metadata, "file": file.name, _FILE_ID: file.id, "page": passage.page, "start": passage.start, "end": passage.end}
        remember_as = {"metadata": place, "document": True, **({} if file.agent_id is None else {"agent_id": file.agent_id})}
        values = {
            "id": message_id(file, number),
            "role": "tool",
            "content": redact(passage.text) if settings.longterm.redact_secrets else passage.text,
            "created_at": file.updated_at + timedelta(microseconds=number),
            "name": file.name,
            REMEMBER_AS: remember_as,
        }
        messages.append(MemoryMessage.model_validate(values))
    return messages


def memories_of(settings: Settings, file: StoredFile, messages: Sequence[MemoryMessage]) -> list[MemoryRecord]:
    """Create a memory for each message of a file, and quarantine suspicious ones."""
    return [screen_record(settings, message_memory(ref_of(file), message, message.content)) for message in messages]


async def is_session_of_file(sessions: SessionStore, scope: Scope, ref: SessionRef, *, or_none: bool) -> bool:
    """True if the session stores a file's text. Return `or_none` if the session does not exist."""
    state = await sessions.get(scope, ref, 1)
    if state is None:
        return or_none
    fields = state.messages[-1].message.own_fields.get(REMEMBER_AS) if state.messages else None
    return isinstance(fields, dict) and isinstance(place := fields.get("metadata"), dict) and place.get(_FILE_ID) == ref.session_id
