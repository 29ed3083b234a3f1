"""Convert a request's filters to query text using redisvl expressions.

Queries contain values only as hexadecimal tags and numbers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any, NamedTuple

from redisvl.query.filter import FilterExpression, Num, Tag

from agent_memory.foundation.core.clock import zone_of
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.keyspace import tag
from agent_memory.foundation.storage.search.metadata import PINNED_TAG, equal_tag, present_tag, range_tags, writer_tag
from agent_memory.foundation.storage.search.syntax import all_of, has_number, negated
from agent_memory.foundation.text.dates.named_times import time_tags
from agent_memory.foundation.text.normalization import QUESTION
from agent_memory_client.models.filters import start_of_day

Filter = FilterExpression | str

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
    "written_by": "md",
}
_TIMES = {"created_at": "c", "last_accessed": "la", "event_date": "e"}
FILTERS = (*_TAGS, *_TIMES, "metadata", "filter")
_FOLDED = {"topics", "entities"}
_MOST_VALUES = 1000
# redisvl drops an empty tag from an intersection, so this tag replaces empty values.
# No document has this tag, because all tags are hexadecimal.
_NO_TAG = "none"
_QUARANTINED = str(Num("tr") < 0)
# Every search asks for current memories. These ranges are small, because few memories in the current index are about
# to end or begin; ended ones are in the history (docs/architecture.md).
_MOMENT = 0.5
_CURRENT = all_of(negated(Num("z") <= _MOMENT), negated(Num("b") > _MOMENT))
IN_QUARANTINE = all_of(_QUARANTINED, negated(has_number("rt")))
"""Clause for the history: memories in quarantine, excluding former versions."""


def tagged(field: str, values: Iterable[str]) -> FilterExpression:
    """Match documents with at least one of `values`, or nothing if `values` is empty."""
    tags = [value for value in values if value] or [_NO_TAG]
    return _with_tag(field, tags[0]) if len(tags) == 1 else Tag(field) == tags


# Cached, because every query names the same owners, and redisvl takes 12 µs to write an expression.
@lru_cache(maxsize=4096)
def _with_tag(field: str, value: str) -> FilterExpression:
    return Tag(field) == value


def is_value(field: str, value: str) -> FilterExpression:
    """Match documents whose tag field contains the tag for `value`."""
    return tagged(field, [tag(value)])


def between(field: str, low: float, high: float, inclusive: str = "both") -> FilterExpression:
    """Match documents whose number is in a range.

    `inclusive` has the same meaning as in redisvl.
    """
    return Num(field).between(low, high, inclusive)


def _values(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _tag_filters(name: str, conditions: Any) -> list[Filter]:
    field = _TAGS[name]

    def spell(value: object) -> str:
        text = value.value if hasattr(value, "value") else str(value)  # pyright: ignore[reportAttributeAccessIssue]
        return writer_tag(text) if name == "written_by" else tag(text.casefold() if name in _FOLDED else text)

    def tags(operator: str) -> list[str] | None:
        value = getattr(conditions, operator, None)
        if value is not None and len(_values(value)) > _MOST_VALUES:
            raise BadInput(f"give at most {_MOST_VALUES} values", field=name)
        return None if value is None else [spell(each) for each in _values(value)]

    filters: list[Filter] = [tagged(field, tag_values) for operator in ("eq", "any", "in_") if (tag_values := tags(operator)) is not None]
    filters += [tagged(field, [tag_value]) for tag_value in tags("all") or ()]
    for operator in ("ne", "not_eq", "not_in", "none"):
        if (unwanted := tags(operator)) is not None:
            filters.append(negated(tagged(field, unwanted)))
    if (exists := getattr(conditions, "exists", None)) is not None:
        missing = Tag(field).is_missing()
        filters.append(negated(missing) if exists else missing)
    if (start := getattr(conditions, "startswith", None)) is not None:
        filters.append(Tag(field) % f"{spell(start)}*")
    return filters


def _time_filters(name: str, conditions: Any, zone: tzinfo) -> list[Filter]:
    """Return the clauses for a time filter.

    Times are truncated to whole seconds. Days are in the time zone `zone`.
    """
    field = _TIMES[name]

    def within(low: date | None, high: date | None, *, after_low: bool = False, after_high: bool = False) -> str:
        return _within(field, _edge(low, zone, after=after_low) if low else None, _edge(high, zone, after=after_high) if high else None)

    filters: list[Filter] = []
    if conditions.eq is not None:
        filters.append(within(conditions.eq, conditions.eq, after_high=True))
    if conditions.ne is not None:
        filters.append(negated(f"({within(conditions.ne, conditions.ne, after_high=True)})"))
    filters += [within(low, None, after_low=after) for low, after in ((conditions.gte, False), (conditions.gt, True)) if low is not None]
    filters += [
        within(None, high, after_high=after) for high, after in ((conditions.lte, True), (conditions.lt, False)) if high is not None
    ]
    if conditions.between is not None:
        includes = conditions.inclusive
        filters.append(within(*conditions.between, after_low=includes not in ("both", "left"), after_high=includes in ("both", "right")))
    return filters


class _Edge(NamedTuple):
    """The second at which an interval begins or ends.

    `midnight` is UTC midnight of a day that begins there, because that is how whole days are
    stored.
    """

    second: int
    midnight: int | None = None


def _edge(value: date, zone: tzinfo, *, after: bool = False) -> _Edge:
    """Return the start of a day or second, or its end if `after` is true."""
    if isinstance(value, datetime):
        return _Edge(math.floor(value.timestamp()) + int(after))
    second, midnight = (math.floor(start_of_day(value, where, after=after).timestamp()) for where in (zone, UTC))
    return _Edge(second, midnight if midnight < second else None)


def _within(field: str, low: _Edge | None, high: _Edge | None) -> str:
    """Match times in a half-open interval. None means unbounded."""
    start, stop = low.second if low else -math.inf, high.second if high else math.inf
    inside: Filter = between(field, start, stop, "left")
    if low is not None and low.midnight is not None:
        inside = inside | between(field, low.midnight, low.midnight + 1, "left")
    if high is not None and high.midnight is not None:
        return all_of(inside, negated(between(field, high.midnight, high.midnight + 1, "left")))
    return str(inside)


def _day_after(bound: Any) -> Any:
    """Add one day to a plain date, and return any other bound unchanged."""
    # Metadata stores a day as its start in UTC.
    if not isinstance(bound, str) or len(bound) != len("2026-11-25"):
        return bound
    try:
        return (date.fromisoformat(bound) + timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        return bound


def _metadata_filters(key: str, conditions: Any) -> list[Filter]:
    filters: list[Filter] = []
    for operator in ("eq", "any", "ne", "none"):
        value = getattr(conditions, operator)
        if value is not None:
            any_of = tagged("md", [equal_tag(key, each) for each in _values(value)])
            filters.append(negated(any_of) if operator in ("ne", "none") else any_of)
    filters += [tagged("md", [equal_tag(key, each)]) for each in conditions.all or ()]
    if conditions.exists is not None:
        present = tagged("md", [present_tag(key)])
        filters.append(present if conditions.exists else negated(present))
    low = conditions.gte if conditions.gt is None else _day_after(conditions.gt)
    high = conditions.lt if conditions.lte is None else _day_after(conditions.lte)
    if low is not None or high is not None:
        # A bound that moved to the end of its day is included as a lower bound and excluded as an upper bound.
        above = conditions.gt is not None and low == conditions.gt
        below = conditions.lte is None or high != conditions.lte
        tags = range_tags(key, low, high, above=above, below=below)
        if tags is None:
            raise BadInput("bounds must be numbers, or ISO 8601 dates, both of the same kind", field=f"metadata.{key}")
        filters.append(tagged("md", tags))
    return filters


def _fields(request: Any, zone: tzinfo) -> list[list[Filter]]:
    filters: list[list[Filter]] = []
    for name in (*_TAGS, *_TIMES):
        if (conditions := getattr(request, name, None)) is not None:
            filters.append(_time_filters(name, conditions, zone) if name in _TIMES else _tag_filters(name, conditions))
    if least := getattr(request, "min_trust", None):
        # Fully trusted memories have no number.
        filters.append([negated(Num("tr") < float(least))])
    for key, conditions in (getattr(request, "metadata", None) or {}).items():
        filters.append(_metadata_filters(key, conditions))
    return filters


def names_days(request: Any) -> bool:
    """True if a time filter, even a nested one, contains a date with no time."""
    for name in _TIMES:
        bounds = getattr(request, name, None)
        values = [getattr(bounds, operator) for operator in ("eq", "ne", "gt", "gte", "lt", "lte")] if bounds is not None else []
        values += (bounds.between or ()) if bounds is not None else ()
        if any(value is not None and not isinstance(value, datetime) for value in values):
            return True
    joined = [getattr(request, "filter", None), getattr(request, "not_", None)]
    joined += [*(getattr(request, "and_", None) or ()), *(getattr(request, "or_", None) or ())]
    return any(names_days(condition) for condition in joined if condition is not None)


def only_value(request: Any, name: str) -> str | None:
    """Return the only value that a request allows for a field, or None."""
    own = getattr(request, name, None)
    if own is not None:
        values = {own.eq} if own.eq is not None else {*(own.any or own.in_ or ())}
        if len(values) == 1:
            return str(values.pop())
    required = [getattr(request, "filter", None), *(getattr(request, "and_", None) or ())]
    return next((value for part in required if part is not None and (value := only_value(part, name)) is not None), None)


def only(request: Any, names: Collection[str]) -> bool:
    """True if the request filters by no fields other than `names`."""
    filtered = (name for name in (*FILTERS, "min_trust") if getattr(request, name, None) is not None)
    return all(name in names for name in filtered)


def _joined(condition: Any, zone: tzinfo) -> str:
    parts = [f"({all_of(*filters)})" for filters in _fields(condition, zone) if filters]
    parts += (_joined(part, zone) for part in condition.and_ or ())
    if condition.or_:
        parts.append(any_of(*(_joined(part, zone) for part in condition.or_)))
    if condition.not_ is not None:
        parts.append(negated(_joined(condition.not_, zone)))
    return f"({all_of(*parts)})"


def any_of(*filters: Filter) -> str:
    return f"({' | '.join(map(str, filters))})"


def in_time(as_of: datetime | None, known_at: datetime | None, history: bool, now: datetime) -> tuple[str, str | None]:
    """Return the time clauses for memories and history. Skip the history if its clause is None.

    By default, match current memories. `as_of` matches memories that were true at that time.
    `known_at` matches memories recorded by that time and, if `as_of` is None, true at that time.
    `history` also matches ended memories.
    """
    if history:
        return (_recorded(known_at) if known_at else "", _recorded(known_at) if known_at else "")
    if as_of is None and known_at is None:
        return _CURRENT.replace(str(_MOMENT), str(now.timestamp())), None
    moment = as_of or known_at
    assert moment is not None
    at = moment.timestamp()
    began = (Num("vf") <= at) | FilterExpression(f"({all_of(Num('c') <= at, negated(has_number('vf')))})")
    true = all_of(began, negated(Num("z") <= at))
    if known_at is None:
        return true, all_of(true, negated(has_number("rt")))
    recorded = all_of(true, _recorded(known_at))
    return recorded, all_of(recorded, negated(Num("rt") <= known_at.timestamp()))


def _recorded(known_at: datetime) -> str:
    return str(Num("ra") <= known_at.timestamp())


_NO_MESSAGE = negated(is_value("ty", "message"))


def where(scope: Scope, request: Any = None) -> str:
    """Return the query text for a request within the caller's scope.

    `request` has the API's filter attributes. Days are in its `timezone` (default: UTC). The clause
    for the tenant always comes first. Raises BadInput for an unknown time zone or too many values.
    """
    try:
        zone = zone_of(getattr(request, "timezone", None))
    except ValueError as error:
        raise BadInput(str(error), field="timezone") from error
    filters: list[Filter] = [is_value("t", scope.tenant)]
    for field, values in (("ns", scope.namespaces), ("u", scope.users), ("ag", scope.agents)):
        if values is not None:
            filters.append(tagged(field, [tag(value) for value in sorted(values)]))
    for conditions in _fields(request, zone):
        filters += conditions
    joined = getattr(request, "filter", None)
    if joined is not None:
        filters.append(_joined(joined, zone))
    text = all_of(*filters)
    if not text.startswith(f"@t:{{{tag(scope.tenant)}}}"):
        raise AssertionError("a query without its tenant's clause")
    return text


def session_where(scope: Scope, *, session_id: str | None = None, namespace: str | None = None, user_id: str | None = None) -> str:
    """Return the query text for the session index. Ids must match exactly.

    Sessions that have no agent belong to all agents.
    """
    values = (("s", session_id), ("ns", namespace), ("u", user_id))
    clause = all_of(where(replace(scope, agents=None)), *(is_value(field, value) for field, value in values if value is not None))
    if scope.agents is None:
        return clause
    return all_of(clause, any_of(tagged("ag", map(tag, sorted(scope.agents))), Tag("ag").is_missing()))


def pinned() -> FilterExpression:
    return tagged("md", [PINNED_TAG])


def facts(clause: str) -> str:
    """Narrow a clause to exclude messages."""
    return all_of(clause, _NO_MESSAGE)


def of_type(clause: str, memory_type: str) -> str:
    return all_of(clause, is_value("ty", memory_type))


def further_facts(clause: str) -> str:
    """Narrow a clause to events and procedures."""
    return all_of(clause, tagged("ty", [tag("episodic"), tag("procedural")]))


def statements(clause: str) -> str:
    """Narrow a clause to users' messages that are not questions."""
    questions = tagged("md", [present_tag(QUESTION)])
    return all_of(of_type(clause, "message"), tagged("md", [equal_tag("role", "user")]), negated(questions))


def during(clause: str, start: datetime, end: datetime, zone: tzinfo = UTC, *, created: bool = True) -> str:
    """Narrow a clause to memories with an event in a half-open interval.

    If `created` is true, also match memories created in the interval. Events are compared by day in
    the time zone `zone`.
    """
    low, high = start.timestamp(), end.timestamp()
    first, last = (moment.astimezone(zone).date() for moment in (start, end))
    conditions: list[Filter] = [f"({_within('e', _edge(first, zone), _edge(last, zone))})"]
    if created:
        conditions.append(between("c", low, high, "left"))
    if tags := time_tags(first, last - timedelta(days=1)):
        conditions.append(tagged("da", tags))
    return all_of(clause, any_of(*conditions))


def made_since(clause: str, moment: datetime) -> str:
    return all_of(clause, Num("c") >= moment.timestamp())


def clauses(scope: Scope, request: Any, clause: str) -> tuple[str, str | None]:
    """Return the clauses for memories and history. Skip the history if its clause is None."""
    current, past = in_time(request.as_of, request.known_at, request.history, datetime.now(UTC))
    if past is not None:
        past = all_of(clause, past, negated(_QUARANTINED))
    if request.quarantined:
        quarantined = all_of(where(scope, request.model_copy(update={"min_trust": None})), IN_QUARANTINE)
        past = quarantined if past is None else any_of(f"({past})", f"({quarantined})")
    return all_of(clause, current), past
