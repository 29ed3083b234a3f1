"""Index metadata as tags: digests of keys and values, which cannot contain query syntax.

Numbers and dates become 64-bit integers with the same order. Each value has tags for the prefixes
of its integer, so that a few tags cover any range. This is Lucene's trie range method (Schindler
and Diepenbroek, "Generic XML-based framework for metadata portals", Computers & Geosciences 34,
2008).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, cast

_STEP = 4
_BITS = 64
_MOST_KEYS = 64
_MOST_ITEMS = 64
_DATE_CHARS = (10, 40)


def _digest(*parts: str) -> str:
    h = blake2b(digest_size=12)
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        h.update(b"%d:" % len(raw))
        h.update(raw)
    return h.hexdigest()


def _sortable(value: float) -> int:
    """Map a float to an unsigned 64-bit integer, preserving order."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", value + 0.0))
    return bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 0x8000000000000000)


def _instant(value: object) -> float | None:
    """Convert an ISO 8601 time (UTC by default) to seconds since 1970, or return None."""
    if not isinstance(value, str) or not _DATE_CHARS[0] <= len(value) <= _DATE_CHARS[1] or value[4:5] != "-":
        return None
    try:
        moment = datetime.fromisoformat(value)
        return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).timestamp()
    except (ValueError, OverflowError):
        return None


def _comparable(value: object) -> tuple[str, int] | None:
    """Return ("n" or "d", integer) for a number or date. The integers sort like the values."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            return None
        return ("n", _sortable(number)) if math.isfinite(number) else None
    seconds = _instant(value)
    return None if seconds is None else ("d", _sortable(seconds))


def equal_tag(key: str, value: str | float | bool) -> str:
    """Return the tag for a key and value. Strings, numbers and Booleans never share tags."""
    if isinstance(value, bool):
        return _digest(key, "b", str(value))
    if isinstance(value, str):
        return _digest(key, "s", value)
    comparable = _comparable(value)
    return _digest(key, "n", str(value)) if comparable is None else _digest(key, "n", f"{_BITS}", f"{comparable[1]:x}")


# Metadata tags are digests of at least two parts.
PINNED_TAG = _digest("pinned")
"""The tag of pinned memories. It differs from every metadata tag."""


@lru_cache(maxsize=8192)
def writer_tag(writer: str) -> str:
    """Return the tag for memories written by `writer`. It differs from all metadata tags."""
    return _digest(f"written by {writer}")


def present_tag(key: str) -> str:
    """Return the tag for all records that have this metadata key."""
    return _digest(key, "e")


def metadata_tags(metadata: Mapping[str, Any]) -> list[str]:
    """Return the tags for the first 64 keys and, in lists, the first 64 items."""
    tags: dict[str, None] = {}
    for key, value in list(metadata.items())[:_MOST_KEYS]:
        tags[present_tag(key)] = None
        for one in cast("list[Any]", value)[:_MOST_ITEMS] if isinstance(value, list) else [value]:
            if isinstance(one, str | int | float):
                tags[equal_tag(key, one)] = None
                comparable = _comparable(one)
                if comparable is not None:
                    tags.update(
                        (_digest(key, comparable[0], f"{_BITS - s}", f"{comparable[1] >> s:x}"), None) for s in range(0, _BITS, _STEP)
                    )
    return list(tags)


def range_tags(
    key: str, low: str | float | None, high: str | float | None, *, above: bool = False, below: bool = False
) -> list[str] | None:
    """Return tags that match all values in a range and no others.

    `above` excludes the lower bound, and `below` the upper bound. Returns None unless all bounds
    are numbers or all bounds are ISO dates.
    """
    bounds = [None if bound is None else _comparable(bound) for bound in (low, high)]
    kinds = {bound[0] for bound in bounds if bound is not None}
    if len(kinds) != 1 or any(comparable is None and bound is not None for comparable, bound in zip(bounds, (low, high), strict=True)):
        return None
    kind = kinds.pop()
    start = 0 if bounds[0] is None else bounds[0][1] + int(above)
    end = 2**_BITS - 1 if bounds[1] is None else bounds[1][1] - int(below)
    return [_digest(key, kind, f"{_BITS - shift}", f"{prefix:x}") for shift, prefix in _cover(start, end)]


def _cover(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the fewest aligned blocks (shift, prefix) that cover an inclusive interval."""
    while start <= end:
        shift = 0
        while shift + _STEP < _BITS and start % (1 << (shift + _STEP)) == 0 and start + (1 << (shift + _STEP)) - 1 <= end:
            shift += _STEP
        yield shift, start >> shift
        start += 1 << shift
