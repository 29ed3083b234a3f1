"""Parse search replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from redis.exceptions import ResponseError

from agent_memory.foundation.core.errors import RedisUnavailable

PAST = "~"
"""The prefix of names in the history: former versions ("~<mid>.<version>") and ended memories ("~<mid>")."""
DISTANCE = "vector_distance"
"""The field with the cosine distance. Queries request it as their first field."""
_DISTANCE = DISTANCE.encode()
_NO_FIELDS: list[bytes] = []
_FARTHEST = 2.0


Row = Mapping[bytes, bytes] | list[bytes]
"""The fields of a hit: a map in RESP3, or alternating names and values in RESP2."""


class Hit(NamedTuple):
    """A search hit. `value` is its distance or score."""

    mid: str
    value: float
    fields: Mapping[bytes, bytes]


@dataclass(slots=True)
class Hits:
    """A page of hits as parallel lists, which are faster than objects."""

    total: int
    names: Sequence[str] = ()
    values: Sequence[float] = ()
    rows: Sequence[Row] = ()
    """The fields of each hit. Empty if the query requested no fields."""
    distances: bool = False
    """True if `values` are distances, False if they are scores."""

    @property
    def hits(self) -> list[Hit]:
        """The hits as a list of `Hit` objects."""
        page_rows: Sequence[Row] = self.rows or [_NO_FIELDS] * len(self.names)
        rows = (dict(zip(row[::2], row[1::2], strict=True)) if isinstance(row, list) else row for row in page_rows)
        return [Hit(*parts) for parts in zip(self.names, self.values, rows, strict=True)]

    def numbers(self, field: bytes) -> dict[str, float]:
        values = zip(self.names, _field_of(self.rows, field), strict=False)
        return {name: float(value) for name, value in values if value is not None}

    def texts(self, field: bytes, first: int | None = None) -> list[bytes]:
        """Return one field from each hit, or from the first `first` hits. Missing fields are empty."""
        return [value or b"" for value in _field_of(self.rows[:first], field)]

    @classmethod
    def of(cls, total: int, hits: Sequence[Hit], *, distances: bool) -> Hits:
        return cls(total, [hit.mid for hit in hits], [hit.value for hit in hits], [hit.fields for hit in hits], distances)


class ListEntry(NamedTuple):
    """A document in a list. `at` is the value that the list is sorted by."""

    mid: str
    at: float


class ListPage(NamedTuple):
    total: int
    rows: list[ListEntry]


def parse_listed(reply: Any) -> ListPage:
    """Parse the reply to `queue_newest`. Raises RedisUnavailable if it is incomplete."""
    # Sort keys have all of a number's digits, but RETURN rounds sortable fields.
    if isinstance(reply, list):
        total, *parts = cast("list[Any]", reply)
        keys, sorts = parts[::2], parts[1::2]
    else:
        total = parse_hits(reply).total
        keys, sorts = ([row[name] for row in reply[b"results"]] for name in (b"id", b"sortkey"))
    return ListPage(int(total), [ListEntry(name, float(sort.lstrip(b"#"))) for name, sort in zip(_names(keys), sorts, strict=True)])


def parse_hits(reply: Any) -> Hits:
    """Parse the reply to a search. Raises RedisUnavailable if it is incomplete."""
    if isinstance(reply, ResponseError):
        raise RedisUnavailable(f"the search failed: {str(reply)[:120]}", retry_after=2) from reply
    if isinstance(reply, list):
        return _parse_list(cast("list[Any]", reply))
    warnings = reply.get(b"warning") or []
    if warnings:
        raise RedisUnavailable(f"the search is incomplete: {warnings[0].decode('utf-8', 'replace')[:120]}", retry_after=2)
    results: Sequence[Any] = reply[b"results"]
    if results and b"sortkey" in results[0]:
        names, values = _names([row[b"id"] for row in results]), _distances([row[b"sortkey"] for row in results])
        return Hits(int(reply[b"total_results"]), names, values, distances=True)
    rows: list[Row] = [row.get(b"extra_attributes") or _NO_FIELDS for row in results]
    scores = None if not results or b"score" not in results[0] else [row[b"score"] for row in results]
    names = _names([row[b"id"] for row in results])
    return Hits(int(reply[b"total_results"]), names, _values(len(names), rows, scores), rows, bool(rows) and _DISTANCE in rows[0])


def _parse_list(reply: list[Any]) -> Hits:
    """Parse a RESP2 reply: the total, then the key and values of each hit."""
    total, parts = int(reply[0]), reply[1:]
    if not parts:
        return Hits(total)
    if len(parts) > 1 and isinstance(parts[1], bytes) and parts[1].startswith(b"#"):
        return Hits(total, _names(parts[::2]), _distances(parts[1::2]), distances=True)
    # Keys contain colons. Scores do not.
    scored = len(parts) > 1 and isinstance(parts[1], bytes) and b":" not in parts[1]
    fields = len(parts) > 1 + scored and not isinstance(parts[1 + scored], bytes)
    step = 1 + scored + fields
    keys: list[bytes] = parts[::step]
    rows: list[Row] = [row or _NO_FIELDS for row in parts[step - 1 :: step]] if fields else []
    return Hits(total, _names(keys), _values(len(keys), rows, parts[1::step] if scored else None), rows, fields and _DISTANCE in rows[0])


def _field_of(rows: Sequence[Row], field: bytes) -> list[bytes | None]:
    """Return a field from each row, or None if the row does not have it."""
    # The field has the same position in nearly all lists.
    at = rows[0].index(field) if rows and isinstance(rows[0], list) and field in rows[0] else 0
    values: list[bytes | None] = []
    for row in rows:
        if not isinstance(row, list):
            values.append(row.get(field))
        elif len(row) > at and row[at] == field:
            values.append(row[at + 1])
        else:
            values.append(row[row.index(field) + 1] if field in row else None)
    return values


def _names(keys: Sequence[bytes]) -> list[str]:
    """Return the names from keys that all have the same prefix."""
    if not keys:
        return []
    root, kind, _ = keys[0].rsplit(b":", 2)
    # Names contain only hexadecimal digits and periods, so they never contain the prefix.
    names = b"".join(keys).decode().split(f"{root.decode()}:{kind.decode()}:")[1:]
    return [PAST + name for name in names] if kind == b"h" else names


def _distances(sort_keys: Sequence[bytes | None]) -> list[float]:
    """Parse sort keys such as "#0.25"."""
    # The sort key of a hit deleted during the search may be missing.
    if None not in sort_keys:
        return list(map(float, b"".join(cast("Sequence[bytes]", sort_keys)).split(b"#")[1:]))
    return [float(key[1:]) if key else _FARTHEST for key in sort_keys]


def _values(count: int, rows: Sequence[Row], scores: Sequence[Any] | None) -> list[float]:
    if not rows or _DISTANCE not in rows[0]:
        return [0.0] * count if scores is None else list(map(float, scores))
    # A hit that was deleted during the search has no fields.
    if isinstance(rows[0], list):
        return [float(row[1]) if row else _FARTHEST for row in cast("Sequence[list[bytes]]", rows)]
    return [float(row[_DISTANCE]) if row else _FARTHEST for row in cast("Sequence[Mapping[bytes, bytes]]", rows)]
