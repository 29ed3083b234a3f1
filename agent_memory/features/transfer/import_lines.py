"""Validate untrusted export lines, and assign them to an owner. No I/O."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import from_json

from agent_memory.features.memories.changes.store import StoredChange
from agent_memory.features.memories.commit import ChangeKind
from agent_memory.features.memories.records import StoredEvidence
from agent_memory.features.memories.service import content_hash
from agent_memory.features.sessions.codec import beside_of, with_beside
from agent_memory.features.transfer.change_export import ChangeExport, checked_line, with_names
from agent_memory.features.transfer.memory_export import MemoryExport, State, Version
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.input.validation import validated
from agent_memory.foundation.storage.keyed_ids import KeyedIds
from agent_memory.foundation.storage.search.indexes import SCHEMA_VERSION
from agent_memory.foundation.text.passages.splitting import split_passages
from agent_memory_client.models import (
    ANSWER,
    EXPORT_FORMAT,
    EXPORT_VERSION,
    Evidence,
    Identifier,
    Instant,
    MemoryMessage,
    MemoryRecord,
    MemoryStrategyConfig,
    MemoryTypeEnum,
    OptionalIdentifier,
    SessionIdentifier,
)
from agent_memory_client.models._types import AnyObject, FreeText, Role, new_id, now

Piece = TypeVar("Piece", bound=Evidence)

_MICROS = re.compile(r"\d{1,16}\Z")
_SECONDS = re.compile(r"-?\d{1,12}(\.\d{1,6})?\Z")
_COUNT = re.compile(r"[1-9]\d{0,9}\Z")
_MARKS = {
    "n": _MICROS,
    "of": _MICROS,
    "h": re.compile(r"[0-9a-f]{32}\Z"),
    "ts": _COUNT,
    **dict.fromkeys(("ra", "ro", "rt", "ed", "ls"), _SECONDS),
}
_A_DAY = 24 * 3600 * 1_000_000


class HeaderLine(BaseModel):
    kind: Literal["header"]
    format: str
    version: int
    user_id: str | None = None
    agent_id: str | None = None
    namespace: str | None = None
    moved: bool = False
    """True for another system's data. Lines that arrived earlier are skipped."""
    terms: int = 0
    embedding: dict[str, Any] = {}


class VersionLine(BaseModel):
    record: MemoryRecord
    marks: dict[str, str]
    place: str | None = None
    terms: str | None = None
    vector: str | None = None


class MemoryLine(BaseModel):
    id: Identifier
    state: State
    now: VersionLine | None = None
    versions: Annotated[list[VersionLine], Field(max_length=10_000)] = []
    aliases: Annotated[list[tuple[Identifier, str]], Field(max_length=10_000)] = []
    evidence: Annotated[list[StoredEvidence], Field(max_length=10_000)] = []


class ChangeLine(BaseModel):
    id: Annotated[str, Field(pattern=r"^[0-9A-Za-z]{10,40}$")]
    what: ChangeKind
    state: Literal["applied", "proposed", "undone", "rejected"]
    batch: Identifier
    at: Instant
    origin: dict[str, FreeText | None] = {}
    namespace: OptionalIdentifier = None
    memories: Annotated[list[Identifier], Field(max_length=1000)]
    lines: Annotated[list[Any], Field(max_length=10_000)]
    proposal: AnyObject | None = None


class MessageLine(BaseModel):
    """A message and its processing state.

    `chat` is the original message if it contains more than text.
    """

    role: Role
    content: FreeText
    id: Identifier = Field(default_factory=new_id)
    created_at: Instant = Field(default_factory=now)
    persisted_at: Instant | None = None
    chat: MemoryMessage | None = None
    extracted: bool = False
    promoted: bool = False
    waits: bool = False
    written_by: OptionalIdentifier = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if self.chat is None and not self.content.strip():
            raise ValueError("content must not be blank")
        if self.chat is not None and self.chat.content != self.content:
            raise ValueError("chat must have the same text as content")
        return self

    def message(self) -> MemoryMessage:
        values: dict[str, Any] = {"role": self.role, "content": self.content, "id": self.id, "created_at": self.created_at}
        values |= {
            "written_by": self.written_by,
            "persisted_at": self.persisted_at,
            "discrete_memory_extracted": "t" if self.extracted else "f",
        }
        message = MemoryMessage.model_validate(values, context=ANSWER)
        return message if self.chat is None else with_beside(message, beside_of(self.chat))


class SessionLine(BaseModel):
    """A session, or the pending work of an ended session.

    Extra fields contain data from other features.
    """

    model_config = ConfigDict(extra="allow")

    kind: Literal["session", "waiting"]
    session_id: SessionIdentifier
    namespace: OptionalIdentifier = None
    user_id: OptionalIdentifier = None
    messages: list[MessageLine] = []
    memories: list[MemoryRecord] = []
    strategy: MemoryStrategyConfig = Field(default_factory=MemoryStrategyConfig)
    agent_id: OptionalIdentifier = None
    created_at: Instant | None = None
    updated_at: Instant | None = None
    last_accessed: Instant | None = None
    context: FreeText | None = None
    data: AnyObject | None = None
    ttl_seconds: Annotated[int, Field(ge=0, le=10**10)] | None = None
    seconds_left: Annotated[int, Field(ge=0, le=10**10)] | None = None
    tokens: Annotated[int, Field(ge=0, le=2**53 - 1)] = 0
    window: Annotated[int, Field(ge=1, le=2**53 - 1)] | None = None


class EndLine(BaseModel):
    lines: int


def parse_line(raw: bytes) -> dict[str, Any]:
    """Parse a line as a JSON object. Raises BadInput."""
    try:
        value = from_json(raw, allow_inf_nan=False)
    except ValueError:
        raise BadInput("is not a line of JSON", field="line") from None
    if not isinstance(value, dict):
        raise BadInput("is not a JSON object", field="line")
    return value


def header_of(line: Mapping[str, Any]) -> HeaderLine:
    """Validate an export's header. Raises BadInput if the format or version is unsupported."""
    header = validated(HeaderLine, line)
    if header.format != EXPORT_FORMAT:
        raise BadInput(f"is not a user's export: its format is not {EXPORT_FORMAT}", field="format")
    if not 1 <= header.version <= EXPORT_VERSION:
        raise BadInput(f"is {header.version}: this server reads versions up to {EXPORT_VERSION}", field="version")
    return header


class ImportPlacement:
    """Assigns imported lines to a new owner and namespace.

    If `user_id` is empty, the lines keep their users.
    """

    def __init__(
        self,
        header: HeaderLine,
        user_id: str,
        namespace: str | None,
        now: int,
        vector: Callable[[bytes, Mapping[str, Any]], bytes | None],
        clean: Callable[[str], str],
        screen: Callable[[MemoryRecord], MemoryRecord],
        ids: KeyedIds,
        source: str,
        agent_id: str | None = None,
    ) -> None:
        self._header = header
        self.source = source
        self.user_id = user_id
        self.agent_id = agent_id
        self._namespace = namespace
        self._now = now
        self._vector = vector
        self._clean = clean
        self._screen = screen
        kind, *owners = ("copy", header.user_id, user_id) if agent_id is None else ("copy of an agent", header.agent_id, agent_id)
        self._ids = ids
        self._id_parts = (kind, *owners, namespace)
        self._is_copy = owners[0] != owners[1] or namespace not in (None, header.namespace)
        """True if the imported data gets new ids."""

    def id(self, name: str) -> str:
        return self._ids.of(*self._id_parts, name) if self._is_copy else name

    def user(self, user_id: str | None) -> str | None:
        return self.user_id or user_id

    def agent(self, agent_id: str | None) -> str | None:
        return agent_id if self.agent_id is None or agent_id is None else self.agent_id

    def namespace(self, name: str | None) -> str | None:
        return self._namespace or name

    def moved(self, namespace: str | None) -> bool:
        """True if data in `namespace` is copied to another owner or namespace."""
        return self._is_copy or self.namespace(namespace) != namespace

    def record(self, exported: MemoryRecord) -> MemoryRecord:
        moved = self._is_moved(exported)
        owner: dict[str, Any] = {"user_id": self.user(exported.user_id), "namespace": self.namespace(exported.namespace)}
        if self.agent_id is not None and exported.agent_id is not None:
            owner["agent_id"] = self.agent_id
        record = self._renamed(exported).model_copy(update=owner)
        if moved and exported.memory_hash == content_hash(exported):
            record.memory_hash = content_hash(record)
        text = self._clean(record.text)
        if text != record.text:
            record.text, record.memory_hash = text, None
            record.memory_hash = content_hash(record)
        return self._screen(record)

    def _renamed(self, record: MemoryRecord) -> MemoryRecord:
        if not self._is_copy:
            return record
        named: dict[str, Any] = {"id": self.id(record.id)}
        if record.supersedes is not None:
            named["supersedes"] = [self.id(memory_id) for memory_id in record.supersedes]
        if record.superseded_by is not None:
            named["superseded_by"] = self.id(record.superseded_by)
        if record.evidence is not None:
            named["evidence"] = [self._renamed_piece(piece) for piece in record.evidence]
        return record.model_copy(update=named)

    def _renamed_piece(self, piece: Piece) -> Piece:
        return piece if piece.memory_id is None else piece.model_copy(update={"memory_id": self.id(piece.memory_id)})

    def _is_moved(self, exported: MemoryRecord) -> bool:
        owned = exported.user_id == self.user(exported.user_id) and exported.agent_id == self.agent(exported.agent_id)
        return not owned or self.moved(exported.namespace)

    def memory(self, line: Mapping[str, Any]) -> MemoryExport:
        """Parse a memory and assign it to its new owner. Raises BadInput."""
        entry = validated(MemoryLine, line)
        if (entry.now is None) != (entry.state == "gone") or (entry.state == "gone" and not entry.versions):
            raise BadInput(f"does not match the state {entry.state}", field="now")
        now = None if entry.now is None else self._version(entry.id, entry.now, "now", former=False)
        versions = [self._version(entry.id, version, f"versions.{at}", former=True) for at, version in enumerate(entry.versions)]
        names = [version.marks["n"] for version in (*versions, *([now] if now else []))]
        if len(set(names)) < len(names):
            raise BadInput("must each have a name (n) of their own", field="versions")
        digests = [(self.id(name), dig) for name, dig in entry.aliases if dig == "" or _MARKS["h"].match(dig)]
        # A search must not find a quarantined memory, even if the line says that it is current.
        state = "over" if now is not None and now.record.quarantine is not None else entry.state
        return MemoryExport(state, now, versions, digests, [self._renamed_piece(piece) for piece in entry.evidence])

    def _version(self, memory_id: str, entry: VersionLine, path: str, *, former: bool) -> Version:
        if entry.record.id != memory_id:
            raise BadInput("must be the memory's id", field=f"{path}.record.id")
        marks = {name: value for name, value in entry.marks.items() if name in _MARKS and _MARKS[name].match(value)}
        if "n" not in marks or int(marks["n"]) > self._now + _A_DAY or (former and "rt" not in marks):
            raise BadInput("must say when the version was written (n, µs) and, of a former one, when it was retired (rt, s)", field=path)
        if not former:
            marks.pop("rt", None)
        record = self.record(entry.record)
        if self._is_moved(entry.record) or record.text != entry.record.text:
            marks.pop("h", None)
        in_session = record.memory_type is MemoryTypeEnum.MESSAGE and record.session_id is not None
        terms = entry.terms if in_session and self._header.terms == SCHEMA_VERSION and _plain(entry.terms) else None
        vector = None
        if (
            entry.vector is not None
            and record.text == entry.record.text
            and not split_passages(record.text)
            and (terms is not None or not in_session)
        ):
            try:
                vector = self._vector(base64.b64decode(entry.vector, validate=True), self._header.embedding)
            except (binascii.Error, ValueError):
                raise BadInput("must be base64", field=f"{path}.vector") from None
        return Version(record, marks, _finite_number(entry.place), terms, vector)

    def change(self, line: Mapping[str, Any]) -> ChangeExport:
        """Parse a change and assign it to its new owner. Raises BadInput."""
        entry = validated(ChangeLine, line)
        proposal: dict[str, Any] | None = None
        if entry.proposal is not None:
            record = self.record(validated(MemoryRecord, _object(entry.proposal.get("record"))))
            old = entry.proposal.get("old")
            pairs = old if isinstance(old, list) else []
            if not all(
                isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], int) for pair in pairs
            ):
                raise BadInput("must be pairs of an id and a version", field="proposal.old")
            proposal = {"old": [[self.id(name), version] for name, version in pairs], "record": record.model_dump(mode="json")}
            if isinstance(former := entry.proposal.get("former"), int):
                proposal["former"] = former
        names = ("actor", "reason", "strategy", "model", "prompt_version", "decided_by")
        origin = {name: entry.origin.get(name) for name in names}
        origin["actor"] = origin["actor"] if origin["actor"] is not None else "import"
        name, batch = self.id(entry.id), self.id(entry.batch)
        change = StoredChange(name, entry.what, entry.state, batch, entry.at, origin, [], proposal)
        lines = [with_names(checked_line(words), self.id) for words in entry.lines]
        return ChangeExport(change, self.namespace(entry.namespace), [self.id(memory_id) for memory_id in entry.memories], lines)


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _plain(terms: str | None) -> bool:
    """True if the string consists of index terms from `foundation.text.terms`."""
    return terms is not None and all(term.isascii() and term.replace("_", "a").isalnum() for term in terms.split(" "))


def _finite_number(position: str | None) -> str | None:
    try:
        return None if position is None or not math.isfinite(float(position)) else repr(float(position))
    except ValueError:
        raise BadInput("must be a number", field="place") from None
