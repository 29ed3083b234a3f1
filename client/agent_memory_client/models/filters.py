"""Search filters. A match must satisfy all operators.

Contradictory operators and unknown keys are rejected. `conditions()` merges equivalent operators
into `TagConditions` or `DateConditions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from agent_memory_client.models._types import MAX_FILTER_VALUES, DayOrInstant, Identifier
from agent_memory_client.models.memories import MemoryTypeEnum

_Values: TypeAlias = Annotated[list[Identifier], Field(min_length=1, max_length=MAX_FILTER_VALUES)]


@dataclass(frozen=True, slots=True)
class TagConditions:
    """A tag filter after merging equivalent operators.

    A match has at least one value from each group in `required` and no value from `excluded`.
    """

    required: tuple[tuple[str, ...], ...] = ()
    excluded: tuple[str, ...] = ()
    prefix: str | None = None


@dataclass(frozen=True, slots=True)
class DateConditions:
    """A date filter after merging all operators.

    There is at most one lower bound, one upper bound, and one excluded time or day. The narrowest
    bounds apply.
    """

    lower: datetime | None = None
    lower_inclusive: bool = True
    upper: datetime | None = None
    upper_inclusive: bool = True
    excluded: date | None = None


_OPERATORS: Mapping[str, str] = MappingProxyType(
    {
        "field": "Optional. If present, must be this field's name.",
        "enum_class": "Optional and ignored.",
        "eq": "The value must equal this one.",
        "ne": "The value must differ from this one.",
        "not_eq": "Another name for `ne`.",
        "any": "The field must contain at least one of these values.",
        "in_": "Another name for `any`.",
        "not_in": "The field must contain none of these values.",
        "all": "The field must contain all of these values. Only for fields with multiple values (topics, entities).",
        "none": "Another name for `not_in`.",
    }
)
"""Descriptions of the operators. Each filter declares the operators with its own value type."""


class Filter(BaseModel):
    """Base class of filters.

    Rejects unknown keys, contradictory operators, and filters that have no operator.
    """

    model_config = ConfigDict(extra="forbid")

    shared_descriptions: ClassVar[Mapping[str, str]] = _OPERATORS
    not_operators: ClassVar[frozenset[str]] = frozenset({"field", "enum_class", "inclusive"})
    exclusive: ClassVar[tuple[tuple[str, str], ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _equal(cls, value: Any) -> Any:
        """Treat a plain value as `eq`."""
        return {"eq": value} if isinstance(value, (str, int, float, date)) and "eq" in cls.model_fields else value

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, value: Any) -> Any:
        """Reject unknown keys with an error that lists the valid keys."""
        unknown = [key for key in value if key not in cls.model_fields] if isinstance(value, dict) else ()
        if not unknown:
            return value
        problem = PydanticCustomError("extra_forbidden", "is not a known key: use {keys}", {"keys": cls._operators()})
        raise ValidationError.from_exception_data(cls.__name__, [InitErrorDetails(type=problem, loc=(key,), input=None) for key in unknown])

    @classmethod
    def _operators(cls) -> str:
        return ", ".join(name for name in cls.model_fields if name not in cls.not_operators)

    @model_validator(mode="after")
    def _check_operators(self) -> Self:
        operators = [name for name in self.model_fields_set if name not in self.not_operators and getattr(self, name) is not None]
        if not operators:
            raise PydanticCustomError("filter_empty", "must have an operator: give one of {operators}", {"operators": self._operators()})
        for first, second in self.exclusive:
            if first in operators and second in operators:
                raise PydanticCustomError(
                    "filter_conflict", "must not combine '{first}' with '{second}': give one of them", {"first": first, "second": second}
                )
        return self


_TAG_EXCLUSIVE = (("eq", "ne"), ("eq", "not_eq"), ("ne", "not_eq"), ("any", "all"), ("any", "in_"), ("in_", "all"))


def _tag_conditions(item: Any, prefix: str | None = None) -> TagConditions:
    required: list[tuple[str, ...]] = [tuple(map(str, group)) for group in (item.any, item.in_) if group]
    if item.eq is not None:
        required.append((str(item.eq),))
    required.extend((str(value),) for value in item.all or ())
    excluded = [str(value) for value in (item.ne, item.not_eq) if value is not None]
    for group in (item.not_in, item.none):
        excluded.extend(str(value) for value in group or ())
    return TagConditions(tuple(required), tuple(dict.fromkeys(excluded)), prefix)


class TagFilter(Filter):
    """A filter on ids or tags.

    `in_` is an alias for `any`, `not_eq` for `ne`, and `none` for `not_in`.
    """

    exclusive: ClassVar[tuple[tuple[str, str], ...]] = _TAG_EXCLUSIVE + tuple(
        ("startswith", other) for other in ("eq", "ne", "not_eq", "any", "in_", "not_in", "all", "none")
    )

    eq: Identifier | None = None
    ne: Identifier | None = None
    not_eq: Identifier | None = None
    any: _Values | None = None
    in_: _Values | None = None
    not_in: _Values | None = None
    all: _Values | None = None
    none: _Values | None = None
    startswith: Identifier | None = None
    """The value must start with this text. This operator cannot be combined with others."""

    def conditions(self) -> TagConditions:
        """Return the filter with equivalent operators merged."""
        return _tag_conditions(self, self.startswith)


class SessionId(TagFilter):
    """Filter by session."""

    field: Literal["session_id"] = "session_id"


class UserId(TagFilter):
    """Filter by user. `exists: false` matches memories that have no user."""

    exclusive: ClassVar[tuple[tuple[str, str], ...]] = (
        *TagFilter.exclusive,
        *(("exists", other) for other in ("eq", "any", "in_", "all", "startswith")),
    )

    field: Literal["user_id"] = "user_id"
    exists: bool | None = None
    """True if the memory must have a user, false if it must not have one."""


class Namespace(TagFilter):
    """Filter by namespace."""

    field: Literal["namespace"] = "namespace"


class Topics(TagFilter):
    """Filter by topics."""

    field: Literal["topics"] = "topics"


class Entities(TagFilter):
    """Filter by entities."""

    field: Literal["entities"] = "entities"


class ExtractionStrategy(TagFilter):
    """Filter by the extraction strategy that created the memory."""

    field: Literal["extraction_strategy"] = "extraction_strategy"


class WrittenBy(Filter):
    """Filter by the writer of a memory's text.

    The writer is an API key (`token:` plus its id), a token's subject, or `anonymous`.
    """

    exclusive: ClassVar[tuple[tuple[str, str], ...]] = (("eq", "ne"),)

    eq: Identifier | None = None
    ne: Identifier | None = None
    any: _Values | None = None
    none: _Values | None = None


_Types: TypeAlias = Annotated[list[MemoryTypeEnum], Field(min_length=1, max_length=MAX_FILTER_VALUES)]


class MemoryType(Filter):
    """Filter by memory type."""

    exclusive: ClassVar[tuple[tuple[str, str], ...]] = _TAG_EXCLUSIVE

    field: Literal["memory_type"] = "memory_type"
    enum_class: None = None
    eq: MemoryTypeEnum | None = None
    ne: MemoryTypeEnum | None = None
    not_eq: MemoryTypeEnum | None = None
    any: _Types | None = None
    in_: _Types | None = None
    all: _Types | None = None
    not_in: _Types | None = None
    none: _Types | None = None

    def conditions(self) -> TagConditions:
        """Return the filter with equivalent operators merged."""
        return _tag_conditions(self)


class DateFilter(Filter):
    """A filter on times. A match must satisfy all bounds.

    A plain date (`2026-11-25`) means the full day in the request's time zone.
    """

    exclusive: ClassVar[tuple[tuple[str, str], ...]] = (
        ("eq", "ne"),
        *(("between", other) for other in ("eq", "ne", "gt", "lt", "gte", "lte")),
    )

    gt: DayOrInstant | None = None
    """Later than this time, or after this day."""
    lt: DayOrInstant | None = None
    """Earlier than this time, or before this day."""
    gte: DayOrInstant | None = None
    """At this time or later, or on this day or later."""
    lte: DayOrInstant | None = None
    """At this time or earlier, or on this day or earlier."""
    eq: DayOrInstant | None = None
    """At exactly this time, or on this day."""
    ne: DayOrInstant | None = None
    """At any other time, or on any other day."""
    between: Annotated[list[DayOrInstant], Field(min_length=2, max_length=2)] | None = None
    """Between the first and the second time. This operator cannot be combined with others."""
    inclusive: Literal["both", "neither", "left", "right"] = "both"
    """Which ends of `between` match: `both`, `neither`, only the first (`left`) or only the second (`right`)."""

    def conditions(self, zone: tzinfo = UTC) -> DateConditions:
        """Return the narrowest bounds that the operators imply. Dates are in time zone `zone`."""
        starts, ends = ((self.gt, False), (self.gte, True), (self.eq, True)), ((self.lt, False), (self.lte, True), (self.eq, True))
        lowers = [_lower(value, inclusive, zone) for value, inclusive in starts if value is not None]
        uppers = [_upper(value, inclusive, zone) for value, inclusive in ends if value is not None]
        if self.between is not None:
            lowers.append(_lower(self.between[0], self.inclusive in ("both", "left"), zone))
            uppers.append(_upper(self.between[1], self.inclusive in ("both", "right"), zone))
        lower, lower_inclusive = max(lowers, key=lambda bound: (bound[0], not bound[1]), default=(None, True))
        upper, upper_inclusive = min(uppers, key=lambda bound: (bound[0], bound[1]), default=(None, True))
        return DateConditions(lower, lower_inclusive, upper, upper_inclusive, self.ne)


def _lower(value: date, inclusive: bool, zone: tzinfo) -> tuple[datetime, bool]:
    return (value, inclusive) if isinstance(value, datetime) else (start_of_day(value, zone, after=not inclusive), True)


def _upper(value: date, inclusive: bool, zone: tzinfo) -> tuple[datetime, bool]:
    return (value, inclusive) if isinstance(value, datetime) else (start_of_day(value, zone, after=inclusive), False)


def start_of_day(day: date, zone: tzinfo, *, after: bool = False) -> datetime:
    """Return the start of a day in a time zone. With `after`, return the start of the next day.

    The result never exceeds the range of `datetime`.
    """
    try:
        day = day + timedelta(days=1) if after else day
        return datetime.combine(day, time(), zone).astimezone(UTC)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if day.year > 1 else datetime.min.replace(tzinfo=UTC)


class CreatedAt(DateFilter):
    """Filter by when the memory was created."""

    field: Literal["created_at"] = "created_at"


class LastAccessed(DateFilter):
    """Filter by when the memory was last read."""

    field: Literal["last_accessed"] = "last_accessed"


class EventDate(DateFilter):
    """Filter by the time of the event that the memory describes."""

    field: Literal["event_date"] = "event_date"
