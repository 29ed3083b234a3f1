"""Convert a source's items to export lines. Pure functions, no I/O.

The same item always produces the same lines, so a repeated import changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from pydantic import ValidationError

from agent_memory.features.memories.service import message_memory
from agent_memory.features.privacy.forget.matching import subject_to_forget
from agent_memory.features.transfer.import_lines import MemoryLine, SessionLine
from agent_memory.features.transfer.sources.model import Conversation, CoreBlock, Fact, SourceMessage, Unusable
from agent_memory.features.transfer.values import cleaned_json, made_id, tags_of
from agent_memory.foundation.core.input.validation import first_problem
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.text.statements import memorable
from agent_memory_client.models import ANSWER, EXPORT_FORMAT, EXPORT_VERSION, MemoryMessage
from agent_memory_client.models._types import MAX_TEXT_BYTES

# Larger conversations become several sessions, because a session is read whole.
_MAX_MESSAGES, _MAX_CHARS = 500, 500_000
_MAX_ROLE = 64
_BLOCK_CHARS = 5_000
# Reading a memory changes these fields, but not the memory.
_USAGE = {"last_accessed", "access_count", "updated_at", "persisted_at"}


@dataclass(frozen=True, slots=True)
class Placement:
    """The owner of imported lines. If `keeps_ids` is false, the lines get derived ids."""

    source: str
    user_id: str | None
    agent_id: str | None
    namespace: str | None
    keeps_ids: bool = False
    extracts: bool = False

    @property
    def header(self) -> dict[str, Any]:
        owner = {"agent_id": self.agent_id} if self.user_id is None else {"user_id": self.user_id}
        return {"kind": "header", "format": EXPORT_FORMAT, "version": EXPORT_VERSION, "namespace": self.namespace, "moved": True, **owner}

    def id(self, name: str) -> str:
        return name if self.keeps_ids else made_id(self.source, self.namespace, self.user_id, self.agent_id, name)


def fact_line(fact: Fact, place: Placement, default: datetime) -> dict[str, Any]:
    """Convert a fact to an export line. Raises Unusable.

    `default` is the fallback creation time.
    """
    created = fact.created_at or default
    extra = {name: _plain(value) for name, value in fact.extra.items() if value not in (None, [])}
    record: dict[str, Any] = {
        "id": place.id(fact.id),
        "text": fact.text,
        "session_id": fact.session_id,
        "user_id": place.user_id,
        "agent_id": fact.agent_id,
        "namespace": place.namespace,
        "created_at": _plain(created),
        "last_accessed": _plain(created),
        "updated_at": _plain(fact.updated_at or created),
        "memory_type": "semantic",
        "discrete_memory_extracted": "t",
        "topics": tags_of(list(fact.topics), "topics", []),
        "metadata": cleaned_json(dict(fact.metadata), []) or {},
        "source_class": "import",
        **extra,
    }
    line = _checked_line({name: value for name, value in record.items() if value is not None}, fact.updated_at or created)
    return _with_dating(line, undated=fact.undated or fact.created_at is None)


def memory_line(record: dict[str, Any], changed: float, position: float | None = None) -> dict[str, Any]:
    """Convert a memory to an export line. `changed` is when it last changed (epoch seconds)."""
    content = {name: value for name, value in record.items() if name not in _USAGE}
    same = json.dumps(content, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")
    marks = {"n": str(max(round(changed * 1e6), 1)), "h": blake2b(same, digest_size=16).hexdigest()}
    marks["ra"] = f"{datetime.now(UTC).timestamp():.6f}"
    now: dict[str, Any] = {"record": record, "marks": marks} | ({} if position is None else {"place": str(position)})
    return {"kind": "memory", "id": record["id"], "state": _state(record), "now": now}


def _with_dating(line: dict[str, Any], *, undated: bool) -> dict[str, Any]:
    """Mark a line whose times come from its file, so that `ImportProgress.mark_of` ignores them."""
    return {"undated": True, **line} if undated else line


def _checked_line(record: dict[str, Any], changed: datetime, position: float | None = None) -> dict[str, Any]:
    line = memory_line(record, changed.timestamp(), position)
    _check(MemoryLine, line)
    return line


def _state(record: Mapping[str, Any]) -> str:
    """Return "over" if a fact is no longer true, otherwise "current"."""
    ends = record.get("valid_to")
    return "over" if ends is not None and datetime.fromisoformat(ends) <= datetime.now(UTC) else "current"


def block_line(block: CoreBlock, place: Placement, default: datetime) -> dict[str, Any]:
    """Convert a block to an export line. `default` is the fallback creation time."""
    at = _plain(block.created_at or default)
    stored = {"label": block.label, "value": block.text, "description": block.description, "read_only": block.read_only}
    stored |= {"limit": max(block.limit, len(block.text), _BLOCK_CHARS), "chars": len(block.text), "tokens": 0}
    stored |= {"version": 1, "created_at": at, "updated_at": at}
    owner = {"user_id": place.user_id, "agent_id": block.agent_id, "namespace": place.namespace}
    line = {"kind": "block", "id": block.label, **owner, "label": block.label, "block": stored, "base": block.text}
    return _with_dating(line, undated=block.created_at is None)


def conversation_lines(talk: Conversation, place: Placement, default: datetime) -> Iterator[dict[str, Any] | tuple[str, str]]:
    """Yield export lines for a conversation's memories and sessions. Raises Unusable.

    For messages that cannot become memories, yield the id and the reason instead. Long
    conversations are split into multiple sessions.
    """
    undated = not (talk.created_at or talk.updated_at or any(message.at for message in talk.messages))
    dated_messages = _dated(talk, default)
    for number, part in enumerate(_parts(dated_messages)):
        session = (talk.id if number == 0 else f"{talk.id}~{number + 1}").replace("/", ":")
        ref = SessionRef(session, place.namespace, place.user_id)
        messages: list[dict[str, Any]] = []
        for position, message in enumerate(part):
            chat = MemoryMessage.model_validate(
                {"role": message.role[:_MAX_ROLE], "content": message.text, "id": message.id, "created_at": message.at}, context=ANSWER
            )
            text = memorable(message.text, message.role)
            if text is not None and len(text.encode("utf-8", "replace")) > MAX_TEXT_BYTES:
                yield message.id, "a message over 64 KiB: it is stored in its session, but not as a memory"
            elif text is not None:
                record = message_memory(ref, chat, text).model_dump(mode="json", exclude_unset=True, exclude_none=True)
                record |= {"agent_id": talk.agent_id} if talk.agent_id else {}
                record.pop("persisted_at", None)
                yield _with_dating(_checked_line(record, chat.created_at, position + 1 - 1e6), undated=undated)
            # Old requests to forget something must not delete anything now.
            waits = place.extracts and text is not None and subject_to_forget(chat) is None
            common = {"role": chat.role, "content": message.text, "id": message.id, "created_at": _plain(chat.created_at)}
            messages.append(common | {"extracted": not waits, "promoted": True, "waits": waits})
        yield _with_dating(_session_line(talk, session, place, part, messages), undated=undated)


def _session_line(talk: Conversation, session: str, place: Placement, part: Sequence[SourceMessage], messages: list[Any]) -> dict[str, Any]:
    first, last = part[0].at, part[-1].at
    assert first is not None
    assert last is not None
    line: dict[str, Any] = {
        "kind": "session",
        "session_id": session,
        "namespace": place.namespace,
        "user_id": place.user_id,
        "agent_id": talk.agent_id,
        "messages": messages,
        "created_at": _plain(first),
        "updated_at": _plain(last),
        "last_accessed": _plain(last),
        "data": {"imported_from": place.source} | ({"title": talk.title} if talk.title else {}),
    }
    _check(SessionLine, line)
    return line


def _dated(talk: Conversation, default: datetime) -> list[SourceMessage]:
    """Give messages unique ids. Messages without a time get the time of the previous one."""
    at = talk.created_at or next((message.at for message in talk.messages if message.at), None) or talk.updated_at or default
    messages: list[SourceMessage] = []
    ids: set[str] = set()
    for position, message in enumerate(talk.messages):
        at = message.at or at
        name = message.id if message.id not in ids else f"{message.id}~{position}"
        ids.add(name)
        messages.append(replace(message, at=at, id=name))
    return messages


def _parts(messages: Sequence[SourceMessage]) -> Iterator[list[SourceMessage]]:
    part: list[SourceMessage] = []
    size = 0
    for message in messages:
        if part and (len(part) >= _MAX_MESSAGES or size + len(message.text) > _MAX_CHARS):
            yield part
            part, size = [], 0
        part.append(message)
        size += len(message.text)
    if part:
        yield part


def _check(model: type[MemoryLine] | type[SessionLine], line: Mapping[str, Any]) -> None:
    try:
        model.model_validate(line)
    except ValidationError as error:
        raise Unusable(": ".join(first_problem(error)).removeprefix("now.record.")) from None


def _plain(value: Any) -> Any:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
