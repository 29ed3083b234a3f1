"""Define a source's records: facts, conversations, blocks and skipped records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

from agent_memory.features.transfer.values import clean_text, instant


class Unusable(ValueError):
    """Raised if a record or an entire file cannot be imported. The message explains why."""


class NotUtf8(Unusable):
    """Raised if a file is not UTF-8."""

    def __init__(self, name: str = "") -> None:
        super().__init__(f"{name} is not UTF-8: save it as UTF-8".lstrip())


@dataclass(frozen=True, slots=True)
class Fact:
    """A memory from another system. `extra` contains additional `MemoryRecord` fields."""

    id: str
    text: str
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    created_at: datetime | None = None
    undated: bool = False
    """True if `created_at` is only the file's time, which may differ in the next import."""
    updated_at: datetime | None = None
    topics: list[str] = field(default_factory=list[str])
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """A message in a conversation. If it has no time, it gets the previous message's time."""

    id: str
    role: str
    text: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation from another system, with the oldest message first."""

    id: str
    messages: list[SourceMessage]
    user_id: str | None = None
    agent_id: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class CoreBlock:
    """Text that is always part of an agent's prompt."""

    label: str
    text: str
    user_id: str | None = None
    agent_id: str | None = None
    description: str = ""
    limit: int = 0
    read_only: bool = False
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A record that is not imported, and why. `name` is human-readable."""

    name: str
    reason: str


def oldest_first(messages: list[SourceMessage]) -> list[SourceMessage]:
    """Return messages in the order of their times. If a message has no time, keep the order."""
    times = [message.at for message in messages if message.at is not None]
    if not times or len(times) < len(messages):
        return messages
    # If the newest message is first, messages with the same time are in reverse order, too.
    step = -1 if times[0] > times[-1] else 1
    return [message for _, message in sorted(zip(times[::step], messages[::step], strict=True), key=itemgetter(0))]


Item: TypeAlias = Fact | Conversation | CoreBlock | LeftOut


class Source(Protocol):
    """A module that reads one system's files."""

    KEEPS_IDS: bool
    """True if the system's ids are globally unique. The import keeps these ids."""

    def read(self, path: Path, mapping: Mapping[str, str]) -> Iterator[Item]:
        """Yield the items in a file or folder. Raises Unusable for other formats."""
        ...


@dataclass(frozen=True, slots=True)
class Fields:
    """An untrusted JSON object. Each method returns a validated field or raises Unusable."""

    values: Mapping[str, Any]

    @classmethod
    def of(cls, value: Any, noun: str = "the record") -> Fields:
        if not isinstance(value, dict):
            raise Unusable(f"{noun} is not an object")
        return cls(cast("dict[str, Any]", value))

    def text(self, *names: str) -> str | None:
        """Return the first non-empty text among these fields, with control characters replaced."""
        for name in names:
            value = self.values.get(name)
            if value is None or value == "":
                continue
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise Unusable(f"{name} is not a text")
            if (text := clean_text(value, [], name)).strip():
                return text
        return None

    def needed(self, *names: str) -> str:
        text = self.text(*names)
        if text is None:
            raise Unusable(f"{' or '.join(names)} is missing")
        return text

    def time(self, *names: str) -> datetime | None:
        for name in names:
            if self.values.get(name) in (None, ""):
                continue
            moment = instant(self.values[name], name, notes := [])
            if moment is None or notes:
                raise Unusable(f"{name} is not a date")
            return moment
        return None

    def list(self, name: str) -> list[Any]:
        value = self.values.get(name)
        if value is not None and not isinstance(value, list):
            raise Unusable(f"{name} is not a list")
        return cast("list[Any]", value) or []

    def object(self, name: str) -> dict[str, Any]:
        value = self.values.get(name)
        if value is not None and not isinstance(value, dict):
            raise Unusable(f"{name} is not an object")
        return cast("dict[str, Any]", value) or {}

    def texts(self, name: str) -> list[str]:
        """Return the non-empty strings in a list field."""
        values = self.list(name)
        if not all(isinstance(value, str | int) for value in values):
            raise Unusable(f"{name} is not a list of texts")
        return [str(value) for value in values if str(value).strip()]

    def flag(self, name: str) -> bool:
        return self.values.get(name) is True


def guarded(name: str, items: Iterable[Item]) -> Iterator[Item]:
    """Yield a record's items, or a `LeftOut` if it is unreadable."""
    try:
        yield from items
    except Unusable as error:
        yield LeftOut(name, str(error))
    except RecursionError:
        yield LeftOut(name, "is nested too deeply")
