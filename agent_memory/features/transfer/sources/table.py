"""Read JSON Lines, JSON or CSV with a mapping, such as `--map text=note --map user_id=customer`."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from agent_memory.features.transfer.sources.model import (
    Conversation,
    Fact,
    Fields,
    Item,
    LeftOut,
    NotUtf8,
    SourceMessage,
    Unusable,
    oldest_first,
)
from agent_memory.features.transfer.sources.reading import SourceRecord, each, records
from agent_memory.features.transfer.values import made_id

KEEPS_IDS = False
_FIELDS = {"id", "text", "user_id", "agent_id", "session_id", "created_at", "updated_at", "topics", "role", "memory_type", "event_date"}
_MAX_CELL = 1024 * 1024


def read(path: Path, mapping: Mapping[str, str]) -> Iterator[Item]:
    """Yield a fact for each row. Rows with a role and a session become conversations instead.

    `mapping` maps field names to column names, which are the same by default. All other columns
    become metadata.
    """
    if unknown := mapping.keys() - _FIELDS:
        raise Unusable(f"--map {', '.join(sorted(unknown))} is unknown: use {', '.join(sorted(_FIELDS))}")
    columns = {name: mapping.get(name, name) for name in _FIELDS}

    def convert(fields: Fields, key: str) -> Iterator[Item]:
        row = Fields({name: fields.values.get(column) for name, column in columns.items()})
        text, at = row.needed("text"), row.time("created_at")
        owner = row.text("user_id"), row.text("agent_id")
        name = row.text("id") or made_id(text, *owner, row.text("session_id"), row.text("created_at"))
        if (role := row.text("role")) and (session := row.text("session_id")):
            yield Conversation(session, [SourceMessage(name, role, text, at)], *owner)
            return
        topics = row.values.get("topics")
        rest = {column: value for column, value in fields.values.items() if column not in columns.values() and value not in (None, "")}
        yield Fact(
            name,
            text,
            *owner,
            session_id=row.text("session_id"),
            created_at=at,
            updated_at=row.time("updated_at"),
            topics=[part.strip() for part in topics.split(",")] if isinstance(topics, str) else row.texts("topics"),
            metadata=rest,
            extra={"memory_type": row.text("memory_type") or "semantic", "event_date": row.time("event_date")},
        )

    rows = _csv(path) if path.suffix.lower() in (".csv", ".tsv") else records(path, "items", "records", "data")
    yield from _joined(each(rows, convert))


def _joined(items: Iterator[Item]) -> Iterator[Item]:
    """Join each session's messages into one conversation, even if they are not consecutive."""
    talks: dict[tuple[str | None, ...], Conversation] = {}
    for item in items:
        if isinstance(item, Conversation):
            talk = talks.setdefault((item.id, item.user_id, item.agent_id), item)
            if talk is not item:
                talk.messages.extend(item.messages)
        else:
            yield item
    for talk in talks.values():
        yield replace(talk, messages=oldest_first(talk.messages))


def _csv(path: Path) -> Iterator[SourceRecord | LeftOut]:
    csv.field_size_limit(_MAX_CELL)
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", restkey="")
        try:
            for row in reader:
                values = {name: value for name, value in row.items() if name}
                yield SourceRecord(f"{path.name} line {reader.line_num}", "", values)
        except UnicodeDecodeError:
            raise NotUtf8(path.name) from None
        except csv.Error as error:
            yield LeftOut(f"{path.name} line {reader.line_num}", f"the rest was not read: {error}")
