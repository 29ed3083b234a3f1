"""Convert sessions and messages between the wire models and their stored form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from agent_memory.features.memories.annotations import REMEMBER_AS
from agent_memory.foundation.core.clock import from_micros, iso, statement_time
from agent_memory.foundation.core.scope import Rights, Scope, SessionRef
from agent_memory.foundation.text.chat_messages import ToolCallLinks, links_of
from agent_memory.foundation.text.pictures import words_of_files
from agent_memory_client.models import ANSWER, MemoryMessage, MemoryRecord, MemoryStrategyConfig

# `lua/session_write.lua` reads this field of an entry, too.
_WRITER = "w"


class StoredMessage(NamedTuple):
    """A stored message. `seq` is its 1-based number in the session, counting deleted messages."""

    seq: int
    tokens: int
    message: MemoryMessage
    promote: bool = True

    @property
    def links(self) -> ToolCallLinks | None:
        message = self.message
        if message.content_parts is None and not message.own_fields:
            return None
        return links_of(message.role, message.content_parts, message.own_fields)


def words_digest(message: MemoryMessage) -> str:
    """Return a digest of a message's role and text."""
    return blake2b(message.role.encode() + b"\0" + message.content.encode(), digest_size=9).hexdigest()


def message_identity(message: MemoryMessage) -> str:
    """Return a message's identity: its id and digests of its content."""
    plain = f"{message.id}\n{words_digest(message)}"
    if not (beside := beside_of(message)):
        return plain
    return f"{plain}\n{blake2b(json.dumps(beside, sort_keys=True).encode(), digest_size=9).hexdigest()}"


def beside_of(message: MemoryMessage) -> dict[str, Any]:
    """Return a message's non-text content.

    The keys are "p" (content parts), "n" (why content is missing) and "f" (custom fields).
    """
    beside: dict[str, Any] = {}
    if message.content_parts is not None:
        beside["p"] = message.content_parts
    if message.no_content is not None:
        beside["n"] = message.no_content
    if fields := message.own_fields:
        beside["f"] = fields
    return beside


def with_beside(message: MemoryMessage, beside: Mapping[str, Any]) -> MemoryMessage:
    return message.model_copy(update=_fields_beside(beside))


def _fields_beside(beside: Mapping[str, Any]) -> dict[str, Any]:
    return {**beside.get("f", {}), "content_parts": beside.get("p"), "no_content": beside.get("n")}


def encode_beside(message: MemoryMessage) -> str:
    """Encode the result of `beside_of` as JSON, or return "" if it is empty."""
    beside = beside_of(message)
    return to_json(beside).decode() if beside else ""


def encode_message(message: MemoryMessage, writer: str | None = None) -> str:
    """Encode a message as an entry's JSON. Scripts expect the writer at the end."""
    body: dict[str, Any] = {"i": message.id, "r": message.role, "c": message.content, "t": iso(message.created_at)}
    if (metadata := message.own_fields.get("metadata")) is not None:
        body["d"] = iso(statement_time(metadata, message.created_at))
    if isinstance(name := message.own_fields.get("name"), str):
        body["s"] = name
    if isinstance(remember_as := message.own_fields.get(REMEMBER_AS), dict):
        # As text, so that scripts do not mistake a caller's fields for the entry's.
        body["a"] = to_json(remember_as).decode()
    if words := words_of_files(message.content_parts):
        body["fw"] = words
    if message.discrete_memory_extracted == "t":
        body["f"] = 1
    if message.persisted_at is not None:
        body["p"] = iso(message.persisted_at)
    if writer:
        body[_WRITER] = writer
    return to_json(body).decode()


def decode_entry(raw: bytes) -> StoredMessage:
    """Decode an entry of the form "<seq> <tokens> <json>".

    A leading "-" means that the message is not promoted.
    """
    promote = not raw.startswith(b"-")
    seq, tokens, text = (raw if promote else raw[1:]).split(b" ", 2)
    body = from_json(text)
    values: dict[str, Any] = {
        "role": body["r"],
        "content": body["c"],
        "id": body["i"],
        "created_at": body["t"],
        "persisted_at": body.get("p"),
        "discrete_memory_extracted": "t" if "f" in body else "f",
        "written_by": body.get(_WRITER),
    }
    if (beside := body.get("x")) is not None:
        values |= _fields_beside(beside)
    else:
        if "fw" in body:  # This is a journal's entry. Background work also reads the words of files.
            values["content"] = "\n".join(filter(None, (body["c"], body["fw"])))
        values["created_at"] = body.get("d", body["t"])
        if "s" in body:
            values["name"] = body["s"]
        if "a" in body:
            values[REMEMBER_AS] = from_json(body["a"])
    try:
        message = MemoryMessage.model_validate(values, context=ANSWER)
    except ValidationError:  # The rules for requests became stricter after this message was written.
        times = {name: datetime.fromisoformat(values[name]) for name in ("created_at", "persisted_at") if values[name]}
        message = MemoryMessage.model_construct(None, **{**values, **times})
    return StoredMessage(int(seq), int(tokens), message, promote)


class PromptTurn(NamedTuple):
    """The parts of a message shown in a prompt."""

    tokens: int
    id: str
    role: str
    content: str
    beside: Mapping[str, Any] | None = None
    """The content other than the text, as `beside_of` returns it."""

    @property
    def links(self) -> ToolCallLinks | None:
        beside = self.beside
        return None if beside is None else links_of(self.role, beside.get("p"), beside.get("f", _NO_FIELDS))


_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


# Prompts show the same messages every turn; the cache saves 4 µs for each.
@lru_cache(maxsize=4096)
def decode_turn(raw: bytes) -> PromptTurn:
    """Decode the parts of an entry shown in a prompt."""
    _, tokens, text = raw.split(b" ", 2)
    body = from_json(text)
    return PromptTurn(int(tokens), body["i"], body["r"], body["c"], body.get("x"))


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session as stored in Redis. `fence` changes with the oldest messages or the context."""

    ref: SessionRef
    version: int
    epoch: str
    fence: str
    message_tokens: int
    created_at: datetime
    updated_at: datetime
    last_accessed: datetime
    context: str | None = None
    context_tokens: int = 0
    data: dict[str, Any] | None = None
    memories: list[dict[str, Any]] = field(default_factory=list)
    promoted: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    strategy: MemoryStrategyConfig = field(default_factory=MemoryStrategyConfig)
    ttl_seconds: int | None = None
    client_tokens: int = 0
    window: int | None = None
    messages: list[StoredMessage] = field(default_factory=list)
    promoted_to: int = 0
    extracted_to: int = 0
    promoted_at: datetime | None = None
    pictures_seen_to: int | None = None
    """The number of the last message whose images were seen, or None for plain text."""
    agent_id: str | None = None
    parted: bool = False
    """True if the first messages answer an older tool call that was not read."""


@dataclass(slots=True)
class SessionTurns:
    """A session's newest messages that fit into a prompt's window, out of `total` messages."""

    ref: SessionRef
    context: str | None
    messages: list[PromptTurn]
    total: int
    parted: bool = False


def decode_session(meta: Mapping[bytes, bytes], entries: list[bytes], cursors: list[bytes | None]) -> SessionState | None:
    """Decode a session from its meta hash, entries and journal cursors (jp, je)."""
    if not meta:
        return None

    raw = {name.decode(): value.decode() for name, value in meta.items()}

    def number(name: str) -> int:
        return int(raw.get(name, 0))

    updated = from_micros(number("ua"))
    return SessionState(
        ref=SessionRef(raw.get("sid", ""), raw.get("ns"), raw.get("us")),
        version=number("v"),
        epoch=raw.get("ep", ""),
        fence=raw.get("hd", ""),
        message_tokens=number("mt"),
        created_at=datetime.fromisoformat(raw["co"]) if "co" in raw else from_micros(number("ca")),
        updated_at=updated,
        last_accessed=datetime.fromisoformat(raw["la"]) if "la" in raw else updated,
        context=raw.get("ctx"),
        context_tokens=number("ct"),
        data=json.loads(raw.get("data", "null")),
        memories=json.loads(raw.get("mems", "[]")),
        promoted=json.loads(raw.get("pm", "{}")),
        refused=json.loads(raw.get("pr", "{}")),
        strategy=MemoryStrategyConfig.model_validate_json(raw.get("st", "{}")),
        ttl_seconds=number("ttl") if "ttl" in raw else None,
        client_tokens=number("tok"),
        window=number("cw") or None,
        messages=[decode_entry(entry) for entry in entries],
        promoted_to=int(cursors[0] or 0),
        extracted_to=int(cursors[1] or 0),
        promoted_at=from_micros(number("pt")) if "pt" in raw else None,
        pictures_seen_to=number("pd") if "mx" in raw else None,
        agent_id=raw.get("ag"),
    )


class OwnMemory(NamedTuple):
    """A pending memory in a session's journal, with only the fields that its writer set.

    `rights` are the writer's permissions. `written` is the time of the PUT request in µs.
    """

    record: MemoryRecord
    rights: Rights
    written: str | None = None


def encode_own(record: MemoryRecord, scope: Scope) -> str:
    """Encode a pending memory as JSON, with its writer's rights and the fields that were set."""
    limits = {"ns": scope.namespaces, "us": scope.users, "ag": scope.agents}
    rights = {name: sorted(limit) for name, limit in limits.items() if limit is not None}
    named_fields = sorted(record.model_fields_set | {"id"})
    written = record.model_dump(mode="json") | {"written_by": record.written_by or scope.actor or None}
    return json.dumps({"given": named_fields, "record": written, "by": rights}, ensure_ascii=False)


def decode_own(raw: str) -> OwnMemory:
    """Decode the JSON from `encode_own`, including the time added by the Redis script."""
    body = json.loads(raw)
    record = MemoryRecord.model_validate(body["record"], context=ANSWER)
    memory = MemoryRecord.model_construct(_fields_set=set(body["given"]), **dict(record))
    limits = [body["by"].get(name) for name in _RIGHTS]
    rights = Rights(*(None if limit is None else frozenset(limit) for limit in limits))
    return OwnMemory(memory, rights, body.get("at"))


_RIGHTS = ("ns", "us", "ag")
# Fields that do not count as content: times and the server's own fields. The creation time is compared separately.
_NOT_CONTENT = {
    "created_at",
    "updated_at",
    "last_accessed",
    "persisted_at",
    "access_count",
    "memory_hash",
    "quarantine",
    "approved",
    "written_by",
}


def content_mark(record: MemoryRecord) -> str:
    """Return a digest of a memory's content, ignoring default and empty values."""
    values = record.model_dump(mode="json", exclude=_NOT_CONTENT, exclude_defaults=True)
    values = {name: value for name, value in values.items() if value not in (None, [], {})}
    return blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=12).hexdigest()
