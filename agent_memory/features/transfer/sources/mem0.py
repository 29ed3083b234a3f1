"""Read Mem0's `get_all` dumps and local stores (history, Qdrant, Chroma)."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from agent_memory.features.transfer.sources.model import Fact, Fields, Item, LeftOut, Unusable
from agent_memory.features.transfer.sources.reading import SourceRecord, each, has_table, records, rows

KEEPS_IDS = True
_LISTS = ("results", "memories")
# Keys in a stored payload that `get_all` returns outside `metadata`.
_OWN = {"data", "hash", "created_at", "updated_at", "user_id", "agent_id", "run_id", "actor_id", "role", "text_lemmatized"}


def read(path: Path, mapping: Mapping[str, str]) -> Iterator[Item]:
    """Yield the memories in a JSON file, history database, or Qdrant or Chroma folder."""
    if path.is_dir():
        payloads = _chroma(path / "chroma.sqlite3") if (path / "chroma.sqlite3").is_file() else _qdrant(path)
        yield from each(payloads, _fact)
    elif has_table(path, "history"):
        yield from each(_history(path), _fact)
    else:
        yield from each(records(path, *_LISTS), _fact)


def _fact(fields: Fields, key: str) -> Iterator[Item]:
    memory_id = fields.needed("id")
    ends = fields.time("expiration_date")
    if ends is not None:
        ends = ends.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        if ends < datetime.now(UTC):
            yield LeftOut(memory_id, "expired")
            return
    categories = fields.texts("categories")
    metadata = dict(fields.object("metadata"))
    # The server's Mem0 API reads the app, and the names that a "*" in a filter matches, from these keys.
    if app := fields.text("app_id"):
        metadata["mem0_app_id"] = app
    if named := [name for name in ("agent_id", "run_id") if fields.text(name)]:
        metadata["mem0_named"] = named
    yield Fact(
        memory_id,
        fields.needed("memory", "data", "text"),
        user_id=fields.text("user_id"),
        agent_id=fields.text("agent_id"),
        session_id=fields.text("run_id"),
        created_at=fields.time("created_at"),
        updated_at=fields.time("updated_at"),
        topics=categories,
        metadata=metadata,
        extra={"category": categories[0] if categories else None, "expires_at": ends},
    )


def _stored(memory_id: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a stored payload to the format of `get_all`."""
    own = {name: value for name, value in payload.items() if name in _OWN}
    return own | {"id": memory_id, "metadata": {name: value for name, value in payload.items() if name not in _OWN}}


def _history(path: Path) -> Iterator[SourceRecord]:
    """Yield the last state of each memory in a history database, which has no user ids."""
    memories: dict[str, dict[str, Any]] = {}
    for row in rows(path, "history", "memory_id, new_memory, event, created_at, updated_at, is_deleted"):
        name = str(row["memory_id"])
        first = memories.pop(name, None)
        if row["event"] != "DELETE" and not row["is_deleted"]:
            memories[name] = {"id": name, "memory": row["new_memory"], "created_at": (first or row)["created_at"]}
            memories[name]["updated_at"] = row["updated_at"]
    for name, memory in memories.items():
        yield SourceRecord(f"{path.name} {name}", "", memory)


def _chroma(path: Path) -> Iterator[SourceRecord]:
    payloads: dict[int, dict[str, Any]] = {}
    columns = "id, key, string_value, int_value, float_value, bool_value"
    for row in rows(path, "embedding_metadata", columns):
        values = [row["string_value"], row["int_value"], row["float_value"], row["bool_value"]]
        payloads.setdefault(row["id"], {})[str(row["key"])] = next((value for value in values if value is not None), None)
    for row in rows(path, "embeddings", "id, embedding_id"):
        name = str(row["embedding_id"])
        yield SourceRecord(f"{path.name} {name}", "", _stored(name, payloads.get(row["id"], {})))


def _qdrant(path: Path) -> Iterator[SourceRecord | LeftOut]:
    stores = sorted(path.glob("collection/*/storage.sqlite")) or sorted(path.glob("storage.sqlite"))
    stores = [store for store in stores if not store.parent.name.endswith("_entities")]
    if not stores:
        raise Unusable(f"{path.name} is not the folder of a local Qdrant or Chroma store")
    for store in stores:
        for row in rows(store, "points", "rowid, point"):
            name = f"{store.parent.name} point {row['rowid']}"
            try:
                point = _PointReader(BytesIO(row["point"])).load()
                state = cast("dict[str, Any]", point.state["__dict__"])
                yield SourceRecord(name, "", _stored(str(state["id"]), state["payload"] or {}))
            except (pickle.UnpicklingError, AttributeError, KeyError, TypeError, ValueError, EOFError, IndexError, ImportError):
                yield LeftOut(name, "is not a point of a Qdrant store")


class _Point:
    """A stand-in for Qdrant's `PointStruct`, so that the Qdrant package is not needed."""

    state: Mapping[str, Any]

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.state = state


class _PointReader(pickle.Unpickler):
    """Unpickles Qdrant points. Rejects other classes, so that no code in the file runs."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if module_name.startswith("qdrant_client.") and global_name == "PointStruct":
            return _Point
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is not part of a point")
