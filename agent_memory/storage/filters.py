"""From wire filters to RediSearch query text. ALL escaping lives here: values enter only as hexadecimal tags and as numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from agent_memory.errors import BadInput
from agent_memory.scope import Scope
from agent_memory.storage.keys import tag
from agent_memory.storage.metadata import equal_tag, present_tag, range_tags

_TAGS = {
    "session_id": "s",
    "user_id": "u",
    "namespace": "ns",
    "topics": "tp",
    "entities": "en",
    "memory_type": "ty",
    "extraction_strategy": "st",
    "agent_id": "ag",
    "slot": "sl",
    "category": "ct",
    "source_class": "sc",
}
_TIMES = {"created_at": "c", "last_accessed": "la", "event_date": "e"}
FILTERS = (*_TAGS, *_TIMES, "metadata", "filter")
_FOLDED = {"topics", "entities"}
_MOST_VALUES = 1000
_EQUAL = {"eq"}
_QUARANTINED = "@tr:[-inf (0]"


# Between the parts of a clause that must all hold; no part has two blanks in it.
AND = "  "
IN_QUARANTINE = f"{_QUARANTINED}{AND}-@rt:[-inf +inf]"
"""In the history: what is in quarantine now. Former versions of it have been retired."""


def _any_of(field: str, values: Iterable[str]) -> str:
    return f"@{field}:{{{'|'.join(values)}}}"


def _tag_clause(name: str, wanted: Any) -> str:
    """One tag filter; its operators are all to hold."""
    field = _TAGS[name]

    def spell(value: object) -> str:
        text = value.value if hasattr(value, "value") else str(value)  # pyright: ignore[reportAttributeAccessIssue]
        return tag(text.casefold() if name in _FOLDED else text)

    if getattr(wanted, "model_fields_set", None) == _EQUAL:
        # Nearly all filters, and one or two in each search.
        return _any_of(field, (spell(wanted.eq),))
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
    there = getattr(wanted, "exists", None)
    if there is not None:
        parts.append(f"{'-' if there else ''}ismissing(@{field})")
    start = getattr(wanted, "startswith", None)
    if start is not None:
        parts.append(f"@{field}:{{{spell(start)}*}}")
    if any(part.count("|") > _MOST_VALUES for part in parts):
        raise BadInput(f"give at most {_MOST_VALUES} values", field=name)
    return AND.join(parts)


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
    return AND.join(parts)


def _metadata_clause(key: str, wanted: Any) -> str:
    """The filter on one key of the metadata; its operators are all to hold."""
    parts: list[str] = []
    for operator in ("eq", "any", "ne", "none"):
        value = getattr(wanted, operator)
        if value is not None:
            tags = [equal_tag(key, one) for one in (value if isinstance(value, list) else [value])]
            parts.append(("-" if operator in ("ne", "none") else "") + _any_of("md", tags))
    parts += [_any_of("md", [equal_tag(key, one)]) for one in wanted.all or ()]
    if wanted.exists is not None:
        parts.append(("" if wanted.exists else "-") + _any_of("md", [present_tag(key)]))
    low, high = (next((bound for bound in pair if bound is not None), None) for pair in ((wanted.gt, wanted.gte), (wanted.lt, wanted.lte)))
    if low is not None or high is not None:
        tags = range_tags(key, low, high, above=wanted.gt is not None, below=wanted.lt is not None)
        if tags is None:
            raise BadInput("bounds must be numbers, or ISO 8601 dates, both of the same kind", field=f"metadata.{key}")
        parts.append(_any_of("md", tags or ["none"]))
    return AND.join(parts)


_CLAUSES: dict[str, Callable[[str, Any], str]] = {**dict.fromkeys(_TAGS, _tag_clause), **dict.fromkeys(_TIMES, _time_clause)}


def _fields(filters: Any) -> list[str]:
    """The clauses of every field that is filtered."""
    parts: list[str] = []
    for name in _CLAUSES:
        wanted = getattr(filters, name, None)
        if wanted is not None:
            parts.append(_CLAUSES[name](name, wanted))
    least = getattr(filters, "min_trust", None)
    if least:
        # What is wholly trusted carries no number.
        parts.append(f"-@tr:[-inf ({float(least)!r}]")
    for key, wanted in (getattr(filters, "metadata", None) or {}).items():
        parts.append(_metadata_clause(key, wanted))
    return parts


def only(filters: Any, names: Collection[str]) -> bool:
    """Whether nothing but some fields is filtered."""
    given = (name for name in (*FILTERS, "min_trust") if getattr(filters, name, None) is not None)
    return all(name in names for name in given)


def _joined(condition: Any) -> str:
    """The clause of conditions joined by and, or and not; each in brackets of its own, so that none reaches into another."""
    parts = [f"({part.replace(AND, ' ')})" for part in _fields(condition) if part]
    parts += [_joined(one) for one in condition.and_ or ()]
    if condition.or_:
        parts.append(f"({' | '.join(_joined(one) for one in condition.or_)})")
    if condition.not_ is not None:
        parts.append(f"-{_joined(condition.not_)}")
    return f"({' '.join(parts)})"


def in_time(as_of: datetime | None, known_at: datetime | None, history: bool, now: datetime) -> tuple[str, str | None]:
    """What narrows a clause to what is current, was true at a time, or was known at one; for the memories, and for their history.

    None for the history means that it need not be asked, as in every ordinary read. `known_at` alone asks for what was true and known then.
    """
    if history:
        return (_recorded(known_at) if known_at else "", _recorded(known_at) if known_at else "")
    if as_of is None and known_at is None:
        # Few memories are about to end or begin, so these ranges are small: see docs/architecture.md.
        at = repr(now.timestamp())
        return f"-@z:[-inf {at}]{AND}-@b:[({at} +inf]", None
    moment = as_of or known_at
    assert moment is not None
    at = repr(moment.timestamp())
    true = f"(@vf:[-inf {at}] | (@c:[-inf {at}] -@vf:[-inf +inf])){AND}-@z:[-inf {at}]"
    if known_at is None:
        return true, f"{true}{AND}-@rt:[-inf +inf]"
    known = f"{true}{AND}{_recorded(known_at)}"
    return known, f"{known}{AND}-@rt:[-inf {known_at.timestamp()!r}]"


def current(clause: str) -> str:
    """A clause narrowed to what is current now."""
    return AND.join((clause, in_time(None, None, False, datetime.now(UTC))[0]))


def _recorded(known_at: datetime) -> str:
    """What was recorded by a time; a memory from before that was noted counts as recorded when it was made."""
    at = repr(known_at.timestamp())
    return f"(@ra:[-inf {at}] | (@c:[-inf {at}] -@ra:[-inf +inf]))"


def where(scope: Scope, filters: Any = None) -> str:
    """The query text for what the caller may see and asks for.

    `filters` is any object with the contract's filter attributes (a SearchRequest, say). The tenant's clause always comes first.
    """
    parts = [_any_of("t", [tag(scope.tenant)])]
    if scope.namespaces is not None:
        parts.append(_any_of("ns", [tag(v) for v in sorted(scope.namespaces)] or ["none"]))
    if scope.users is not None:
        parts.append(_any_of("u", [tag(v) for v in sorted(scope.users)] or ["none"]))
    if scope.agents is not None:
        parts.append(_any_of("ag", [tag(v) for v in sorted(scope.agents)] or ["none"]))
    parts += _fields(filters)
    joined = getattr(filters, "filter", None)
    if joined is not None:
        parts.append(_joined(joined))
    text = AND.join(part for part in parts if part)
    if not text.startswith(f"@t:{{{tag(scope.tenant)}}}"):
        raise AssertionError("a query without its tenant's clause")
    return text


def session_where(scope: Scope, *, session_id: str | None = None, namespace: str | None = None, user_id: str | None = None) -> str:
    """The same for the index of sessions: exact identities only."""
    # Sessions have no agent.
    parts = [where(scope if scope.agents is None else replace(scope, agents=None))]
    for field, value in (("s", session_id), ("ns", namespace), ("u", user_id)):
        if value is not None:
            parts.append(_any_of(field, [tag(value)]))
    return AND.join(parts)


def during(clause: str, start: datetime, end: datetime) -> str:
    """A clause narrowed to memories that were made, or are about something, in a half-open interval."""
    low, high = start.timestamp(), end.timestamp()
    return f"{clause}{AND}(@c:[{low} ({high}] | @e:[{low} ({high}])"


def scoring(clause: str, terms: Iterable[str], mute: Collection[str] = ()) -> str:
    """As `having` any of the terms, for BM25: a memory scores by every one of the terms that it has, but for those of `mute`."""
    found = list(terms)
    # Where an intersection skips through a union, RediSearch 2.10 scores a document that is the last one of a term (so the only one of a
    # rare term, too) by that term alone. So the union only filters, inside an intersection that weighs nothing (a weight on the union is
    # lost when but one of its terms exists), and the terms score one by one, each optional.
    return f"{' '.join(f'~@k:{term}' for term in found if term not in mute)} ({having(clause, found)})=>{{$weight: 0.0}}"


def having(clause: str, terms: Iterable[str], *, every: bool = False) -> str:
    """A clause narrowed to memories with any (or every) of some index terms of `agent_memory.analysis`."""
    found = list(terms)
    if not found or not all(term.isascii() and term.replace("_", "a").isalnum() for term in found):
        raise AssertionError("search terms come from agent_memory.analysis")
    # Tags count in BM25 too, and RediSearch 2.10 gets the weight of one that has more postings than there are documents (which any
    # rewritten document brings about) hugely wrong: an unsigned difference wraps around. So the clause filters and does not score.
    # The order matters: with the weighted clause first, the parser applies its weight to the words as well.
    return f"@k:({(' ' if every else '|').join(found)}) ({clause})=>{{$weight: 0.0}}"


def quoting(phrases: Sequence[str], loose: Iterable[str], *, every: bool) -> str:
    """A clause of quoted phrases (of `agent_memory.analysis`): every one of them, or any of them or of the loose terms; "" without any."""
    if not phrases:
        return ""
    return " ".join(f"@k:{phrase}" for phrase in phrases) if every else f"@k:({'|'.join([*phrases, *loose])})"


def clauses(scope: Scope, request: Any, clause: str) -> tuple[str, str | None]:
    """A search's filter (`clause`, which `where` made of it) of what is current, or of the time that it asks for, and the one of history
    where that is asked, too."""
    here, past = in_time(request.as_of, request.known_at, request.history, datetime.now(UTC))
    if past is not None:
        past = AND.join(filter(None, (clause, past, f"-{_QUARANTINED}")))
    if request.quarantined:
        aside = AND.join((where(scope, request.model_copy(update={"min_trust": None})), IN_QUARANTINE))
        past = aside if past is None else f"({past.replace(AND, ' ')}) | ({aside.replace(AND, ' ')})"
    return AND.join(filter(None, (clause, here))), past
