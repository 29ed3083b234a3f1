"""Read items from a LangGraph store: a JSON dump (`item.dict()`) or an SQLite file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_memory.features.transfer.sources.model import Fact, Fields, Item, Unusable
from agent_memory.features.transfer.sources.reading import LeftOut, SourceRecord, each, has_table, records, rows

KEEPS_IDS = False
_TEXTS = ("text", "content", "memory", "data", "value", "description", "summary")


def read(path: Path, mapping: Mapping[str, str]) -> Iterator[Item]:
    """Yield each item as a fact.

    `mapping["user"]` is the index of the user in the namespace, which defaults to the last one.
    """
    position = mapping.get("user", "-1")
    if not re.fullmatch(r"-?[0-9]{1,3}", position):
        raise Unusable("--map user=N must be a position in the namespace, such as user=1")

    def convert(fields: Fields, key: str) -> Iterator[Item]:
        namespace = fields.values.get("namespace", fields.values.get("prefix"))
        names = [str(name) for name in namespace] if isinstance(namespace, list) else str(namespace or "").split(".")
        try:
            user = names[int(position)] if len(names) > 1 else None
        except IndexError:
            raise Unusable(f"its namespace {names} has no position {position}") from None
        name = json.dumps([names, fields.needed("key")])
        if (ends := fields.time("expires_at")) is not None and ends <= datetime.now(UTC):
            yield LeftOut(name, "expired")
            return
        value = Fields.of(fields.values.get("value"), "value")
        text, rest = _text(value)
        yield Fact(
            name,
            text,
            user_id=user,
            created_at=fields.time("created_at"),
            updated_at=fields.time("updated_at"),
            metadata=rest | {"langgraph_namespace": names, "langgraph_key": fields.needed("key")},
            extra={"expires_at": ends},
        )

    yield from each(_rows(path) if has_table(path, "store") else records(path, "items"), convert)


def _rows(path: Path) -> Iterator[SourceRecord | LeftOut]:
    # Stores of early versions have no column `expires_at`.
    for row in rows(path, "store", "*", order="created_at, prefix, key"):
        name = f"{row['prefix']} {row['key']}"
        try:
            yield SourceRecord(name, "", dict(row) | {"value": json.loads(row.get("value", ""))})
        except (ValueError, TypeError, RecursionError):
            yield LeftOut(name, "its value is not JSON")


def _text(value: Fields) -> tuple[str, dict[str, Any]]:
    """Return a value's text and its remaining fields. LangMem nests the text."""
    for name in _TEXTS:
        inner = value.values.get(name)
        rest = {key: other for key, other in value.values.items() if key != name}
        if isinstance(inner, dict):
            text, more = _text(Fields(inner))
            return text, rest | more
        if isinstance(inner, str) and (text := value.text(name)) is not None:
            return text, rest
    return json.dumps(dict(value.values), ensure_ascii=False, sort_keys=True), {}
