"""From wire filters to RediSearch query text. ALL escaping lives here: values enter only as hexadecimal tags and as numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from agent_memory.errors import BadInput
from agent_memory.scope import Scope
from agent_memory.storage.keys import tag

_TAGS = {
    "session_id": "s",
    "user_id": "u",
    "namespace": "ns",
    "topics": "tp",
    "entities": "en",
    "memory_type": "ty",
    "extraction_strategy": "st",
}
_TIMES = {"created_at": "c", "last_accessed": "la", "event_date": "e"}
FILTERS = (*_TAGS, *_TIMES)
_FOLDED = {"topics", "entities"}
_MOST_VALUES = 1000


def _any_of(field: str, values: Iterable[str]) -> str:
    return f"@{field}:{{{'|'.join(values)}}}"


def _tag_clause(name: str, wanted: Any) -> str:
    """One tag filter; its operators are all to hold."""
    field = _TAGS[name]

    def spell(value: object) -> str:
        text = value.value if hasattr(value, "value") else str(value)  # pyright: ignore[reportAttributeAccessIssue]
        return tag(text.casefold() if name in _FOLDED else text)

    parts: list[str] = []
    for operator in ("eq", "any", "in_"):
        value = getattr(wanted, operator, None)
        if value is not None:
            parts.append(_any_of(field, [spell(v) for v in (value if isinstance(value, list) else [value])]))
    for value in getattr(wanted, "all", None) or ():
        parts.append(_any_of(field, [spell(value)]))
    for operator in ("ne", "not_eq", "not_in", "none"):
        value = getattr(wanted, operator, None)
        if value is not None:
            parts.append("-" + _any_of(field, [spell(v) for v in (value if isinstance(value, list) else [value])]))
    start = getattr(wanted, "startswith", None)
    if start is not None:
        parts.append(f"@{field}:{{{spell(start)}*}}")
    if any(part.count("|") > _MOST_VALUES for part in parts):
        raise BadInput(f"give at most {_MOST_VALUES} values", field=name)
    return " ".join(parts)


def _number(moment: datetime, *, exclusive: bool = False) -> str:
    return ("(" if exclusive else "") + str(math.floor(moment.timestamp()))


def _time_clause(name: str, wanted: Any) -> str:
    """One time filter, cut to whole seconds as the contract has it; its operators are all to hold."""
    field = _TIMES[name]
    parts: list[str] = []

    def span(low: str, high: str) -> str:
        return f"@{field}:[{low} {high}]"

    def whole(moment: datetime) -> str:
        second = math.floor(moment.timestamp())
        return span(str(second), f"({second + 1}")

    if wanted.eq is not None:
        parts.append(whole(wanted.eq))
    if wanted.ne is not None:
        parts.append("-" + whole(wanted.ne))
    if wanted.gte is not None:
        parts.append(span(_number(wanted.gte), "+inf"))
    if wanted.gt is not None:
        parts.append(span(str(math.floor(wanted.gt.timestamp()) + 1), "+inf"))
    if wanted.lte is not None:
        parts.append(span("-inf", f"({math.floor(wanted.lte.timestamp()) + 1}"))
    if wanted.lt is not None:
        parts.append(span("-inf", _number(wanted.lt, exclusive=True)))
    if wanted.between is not None:
        low, high = (math.floor(moment.timestamp()) for moment in wanted.between)
        start = str(low) if wanted.inclusive in ("both", "left") else str(low + 1)
        end = f"({high + 1}" if wanted.inclusive in ("both", "right") else f"({high}"
        parts.append(span(start, end))
    return " ".join(parts)


def where(scope: Scope, filters: Any = None) -> str:
    """The query text for what the caller may see and asks for.

    `filters` is any object with the contract's filter attributes (a SearchRequest, say). The tenant's clause always comes first.
    """
    parts = [_any_of("t", [tag(scope.tenant)])]
    if scope.namespaces is not None:
        parts.append(_any_of("ns", [tag(v) for v in sorted(scope.namespaces)] or ["none"]))
    if scope.users is not None:
        parts.append(_any_of("u", [tag(v) for v in sorted(scope.users)] or ["none"]))
    kinds: list[tuple[dict[str, str], Callable[[str, Any], str]]] = [(_TAGS, _tag_clause), (_TIMES, _time_clause)]
    for names, clause in kinds:
        for name in names:
            wanted = getattr(filters, name, None)
            if wanted is not None:
                parts.append(clause(name, wanted))
    text = " ".join(part for part in parts if part)
    if not text.startswith(f"@t:{{{tag(scope.tenant)}}}"):
        raise AssertionError("a query without its tenant's clause")
    return text


def session_where(scope: Scope, *, session_id: str | None = None, namespace: str | None = None, user_id: str | None = None) -> str:
    """The same for the index of sessions: exact identities only."""
    parts = [where(scope)]
    for field, value in (("s", session_id), ("ns", namespace), ("u", user_id)):
        if value is not None:
            parts.append(_any_of(field, [tag(value)]))
    return " ".join(parts)


def during(clause: str, start: datetime, end: datetime) -> str:
    """A clause narrowed to memories that were made, or are about something, in a half-open interval."""
    low, high = start.timestamp(), end.timestamp()
    return f"{clause} (@c:[{low} ({high}] | @e:[{low} ({high}])"


def scoring(clause: str, terms: Iterable[str]) -> str:
    """As `having` any of the terms, for BM25: a memory scores by every one of the terms that it has."""
    found = list(terms)
    # Where an intersection skips through a union, RediSearch 2.10 scores a document that is the last one of a term (so the only one of a
    # rare term, too) by that term alone. So the union only filters, inside an intersection that weighs nothing (a weight on the union is
    # lost when but one of its terms exists), and the terms score one by one, each optional.
    return f"{' '.join(f'~@k:{term}' for term in found)} ({having(clause, found)})=>{{$weight: 0.0}}"


def having(clause: str, terms: Iterable[str], *, every: bool = False) -> str:
    """A clause narrowed to memories with any (or every) of some index terms of `agent_memory.analysis`."""
    found = list(terms)
    if not found or not all(term.isascii() and term.replace("_", "a").isalnum() for term in found):
        raise AssertionError("search terms come from agent_memory.analysis")
    # Tags count in BM25 too, and RediSearch 2.10 gets the weight of one that has more postings than there are documents (which any
    # rewritten document brings about) hugely wrong: an unsigned difference wraps around. So the clause filters and does not score.
    # The order matters: with the weighted clause first, the parser applies its weight to the words as well.
    return f"@k:({(' ' if every else '|').join(found)}) ({clause})=>{{$weight: 0.0}}"
