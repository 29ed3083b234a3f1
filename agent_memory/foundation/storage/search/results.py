"""Replies of searches: what matched, its distance or score, and the fields that were asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from redis.exceptions import ResponseError

from agent_memory.foundation.core.errors import RedisUnavailable

PAST = "~"
"""Stands before the name of what stands in history: a version ("~<mid>.<version>") or a memory whose time is over ("~<mid>")."""
DISTANCE = "vector_distance"
"""The field of a hit's cosine distance, as redisvl's queries name it; it is the first that is asked for."""
_DISTANCE = DISTANCE.encode()
_NO_FIELDS: list[bytes] = []
_FARTHEST = 2.0


Row = Mapping[bytes, bytes] | list[bytes]
"""The fields of a hit as Redis sent them: RESP3 has a map, RESP2 names and values in turn."""


class Hit(NamedTuple):
    """One document of a search answer; `value` is its distance or its score. `fields` are as Redis sent them."""

    mid: str
    value: float
    fields: Mapping[bytes, bytes]


@dataclass(slots=True)
class Hits:
    """A search answer: the number of all matches, and a page of them, as lists side by side: a search of ten reads hundreds of places."""

    total: int
    names: Sequence[str] = ()
    values: Sequence[float] = ()
    rows: Sequence[Row] = ()
    """None at all where no fields were asked for."""
    distances: bool = False
    """Whether values are distances, and not scores."""

    @property
    def hits(self) -> list[Hit]:
        """The page, one by one."""
        given: Sequence[Row] = self.rows or [_NO_FIELDS] * len(self.names)
        rows = (dict(zip(row[::2], row[1::2], strict=True)) if isinstance(row, list) else row for row in given)
        return [Hit(*parts) for parts in zip(self.names, self.values, rows, strict=True)]

    def numbers(self, field: bytes) -> dict[str, float]:
        """The numbers in a field, of those that have it."""
        pairs = zip(self.names, self.rows, strict=False)
        first = self.rows[0] if self.rows else _NO_FIELDS
        if not isinstance(first, list):
            return {name: float(row[field]) for name, row in pairs if field in row and not isinstance(row, list)}
        # It stands at the same place in nearly all of them.
        at = first.index(field) if field in first else len(first)
        found: dict[str, float] = {}
        for name, row in pairs:
            if isinstance(row, list) and field in row:
                found[name] = float(row[at + 1] if row[at : at + 1] == [field] else row[row.index(field) + 1])
        return found

    def texts(self, field: bytes) -> list[bytes]:
        """The text in a field of each hit; empty where there is none."""
        rows = (dict(zip(row[::2], row[1::2], strict=True)) if isinstance(row, list) else row for row in self.rows)
        return [row.get(field, b"") for row in rows]

    @classmethod
    def of(cls, total: int, hits: Sequence[Hit], *, distances: bool) -> Hits:
        """An answer of single hits."""
        return cls(total, [hit.mid for hit in hits], [hit.value for hit in hits], [hit.fields for hit in hits], distances)


class ListEntry(NamedTuple):
    """One document of a list, and when (epoch seconds) it was created."""

    mid: str
    at: float


class ListPage(NamedTuple):
    """A list: the number of all matches, and a part of them."""

    total: int
    rows: list[ListEntry]


def parse_listed(reply: Any) -> ListPage:
    """A reply of `queue_newest`. Raises RedisUnavailable as `parse_hits`."""
    # Sort keys have all digits of the number; what RETURN answers for a sortable field is rounded.
    if isinstance(reply, list):
        total, *parts = cast("list[Any]", reply)
        keys, sorts = parts[::2], parts[1::2]
    else:
        total = parse_hits(reply).total
        keys, sorts = ([row[name] for row in reply[b"results"]] for name in (b"id", b"sortkey"))
    return ListPage(int(total), [ListEntry(name, float(sort.lstrip(b"#"))) for name, sort in zip(_names(keys), sorts, strict=True)])


def parse_hits(reply: Any) -> Hits:
    """A reply of FT.SEARCH. Raises RedisUnavailable rather than pass on an incomplete answer."""
    if isinstance(reply, ResponseError):
        raise RedisUnavailable(f"the search failed: {str(reply)[:120]}", retry_after=2) from reply
    if isinstance(reply, list):
        return _parse_list(cast("list[Any]", reply))
    warnings = reply.get(b"warning") or []
    if warnings:
        raise RedisUnavailable(f"the search is incomplete: {warnings[0].decode('utf-8', 'replace')[:120]}", retry_after=2)
    found: Sequence[Any] = reply[b"results"]
    if found and b"sortkey" in found[0]:
        names, values = _names([row[b"id"] for row in found]), _distances([row[b"sortkey"] for row in found])
        return Hits(int(reply[b"total_results"]), names, values, distances=True)
    rows: list[Row] = [row.get(b"extra_attributes") or _NO_FIELDS for row in found]
    scores = None if not found or b"score" not in found[0] else [row[b"score"] for row in found]
    names = _names([row[b"id"] for row in found])
    return Hits(int(reply[b"total_results"]), names, _values(len(names), rows, scores), rows, bool(rows) and _DISTANCE in rows[0])


def _parse_list(reply: list[Any]) -> Hits:
    """A reply of RESP2: the total, then for each hit its key, its score and its fields, as far as these were asked for."""
    total, parts = int(reply[0]), reply[1:]
    if not parts:
        return Hits(total)
    if len(parts) > 1 and isinstance(parts[1], bytes) and parts[1].startswith(b"#"):
        return Hits(total, _names(parts[::2]), _distances(parts[1::2]), distances=True)
    # Keys have colons, scores have none.
    scored = len(parts) > 1 and isinstance(parts[1], bytes) and b":" not in parts[1]
    fields = len(parts) > 1 + scored and not isinstance(parts[1 + scored], bytes)
    step = 1 + scored + fields
    keys: list[bytes] = parts[::step]
    rows: list[Row] = [row or _NO_FIELDS for row in parts[step - 1 :: step]] if fields else []
    return Hits(total, _names(keys), _values(len(keys), rows, parts[1::step] if scored else None), rows, fields and _DISTANCE in rows[0])


def _names(keys: Sequence[bytes]) -> list[str]:
    """The names in keys of one index, whose keys begin alike."""
    if not keys:
        return []
    root, kind, _ = keys[0].rsplit(b":", 2)
    # Names are hexadecimal digits and points.
    names = b"".join(keys).decode().split(f"{root.decode()}:{kind.decode()}:")[1:]
    return [PAST + name for name in names] if kind == b"h" else names


def _distances(sort_keys: Sequence[bytes | None]) -> list[float]:
    """Of sort keys ("#0.25"). What went away meanwhile may have none."""
    if None not in sort_keys:
        return list(map(float, b"".join(cast("Sequence[bytes]", sort_keys)).split(b"#")[1:]))
    return [float(key[1:]) if key else _FARTHEST for key in sort_keys]


def _values(count: int, rows: Sequence[Row], scores: Sequence[Any] | None) -> list[float]:
    """Distances where they were asked for, else scores, else nothing."""
    if not rows or _DISTANCE not in rows[0]:
        return [0.0] * count if scores is None else list(map(float, scores))
    # It is the first field that is asked for. What went away meanwhile has none.
    if isinstance(rows[0], list):
        return [float(row[1]) if row else _FARTHEST for row in cast("Sequence[list[bytes]]", rows)]
    return [float(row[_DISTANCE]) if row else _FARTHEST for row in cast("Sequence[Mapping[bytes, bytes]]", rows)]
