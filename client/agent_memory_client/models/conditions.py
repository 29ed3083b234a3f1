"""Filters on metadata, and conditions combined with `and`, `or` and `not`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator
from pydantic_core import PydanticCustomError

from agent_memory_client.models._types import MAX_FILTER_VALUES, FreeText, Number
from agent_memory_client.models.filters import (
    CreatedAt,
    Entities,
    EventDate,
    ExtractionStrategy,
    Filter,
    LastAccessed,
    MemoryType,
    Namespace,
    SessionId,
    TagFilter,
    Topics,
    UserId,
    WrittenBy,
)

MAX_CONDITION_DEPTH = 8
MAX_CONDITIONS = 64

Scalar: TypeAlias = StrictBool | Annotated[int, Field(strict=True)] | Annotated[Number, Field(strict=True)] | FreeText
_Scalars: TypeAlias = Annotated[list[Scalar], Field(min_length=1, max_length=MAX_FILTER_VALUES)]
_Bound: TypeAlias = Annotated[int, Field(strict=True)] | Annotated[Number, Field(strict=True)] | FreeText


class MetadataFilter(Filter):
    """A filter on one metadata key.

    Bounds are numbers or ISO 8601 dates. Text never equals a number or boolean.
    """

    exclusive: ClassVar[tuple[tuple[str, str], ...]] = (("gt", "gte"), ("lt", "lte"))

    eq: Scalar | None = None
    """The value must equal this one. Text never equals a number or boolean."""
    ne: Scalar | None = None
    """The value must differ from this one."""
    any: _Scalars | None = None
    """The value, or at least one entry of a list, must be one of these."""
    all: _Scalars | None = None
    """A list value that must contain all of these values."""
    none: _Scalars | None = None
    """The value, or every entry of a list, must differ from all of these."""
    gt: _Bound | None = None
    """Greater than this number, or later than this ISO 8601 date."""
    gte: _Bound | None = None
    """At least this number, or this ISO 8601 date or later."""
    lt: _Bound | None = None
    """Less than this number, or earlier than this ISO 8601 date."""
    lte: _Bound | None = None
    """At most this number, or this ISO 8601 date or earlier."""
    exists: bool | None = None
    """True if the metadata must have the key, false if it must not."""


MetadataFilters: TypeAlias = Annotated[dict[str, MetadataFilter], Field(max_length=16)]


class MemoryFilters(BaseModel):
    """The memory fields that can be used in searches and combined conditions."""

    session_id: SessionId | None = None
    user_id: UserId | None = None
    namespace: Namespace | None = None
    topics: Topics | None = None
    entities: Entities | None = None
    memory_type: MemoryType | None = None
    extraction_strategy: ExtractionStrategy | None = None
    created_at: CreatedAt | None = None
    last_accessed: LastAccessed | None = None
    event_date: EventDate | None = None
    agent_id: TagFilter | None = None
    """The memory's agent."""
    slot: TagFilter | None = None
    """The fact's slot, such as `home_city`."""
    category: TagFilter | None = None
    """The memory's category, from the extraction rules."""
    source_class: TagFilter | None = None
    """The memory's source: `user`, `assistant`, `tool`, `import`, `inference` or `client`."""
    written_by: WrittenBy | None = None
    metadata: MetadataFilters | None = None
    """A filter for each key in the memory's metadata: `{"tool": {"eq": "web"}}`."""


class Condition(MemoryFilters):
    """A combined condition.

    All fields, all conditions in `and` and at least one condition in `or` must match. The condition
    in `not` must not match. At most 8 levels and 64 conditions are allowed.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    and_: Annotated[list[Condition], Field(min_length=1, max_length=MAX_CONDITIONS)] | None = Field(default=None, alias="and")
    """All of these conditions must hold."""
    or_: Annotated[list[Condition], Field(min_length=1, max_length=MAX_CONDITIONS)] | None = Field(default=None, alias="or")
    """At least one of these conditions must hold."""
    not_: Condition | None = Field(default=None, alias="not")
    """This condition must not hold."""

    @model_validator(mode="before")
    @classmethod
    def _check_size(cls, value: Any) -> Any:
        """Reject too many or too deeply nested conditions before parsing them. Not recursive."""
        level, count = [value], 0
        for _ in range(MAX_CONDITION_DEPTH):
            level = [part for node in level if isinstance(node, dict) for part in _parts(node)]
            count += len(level)
            if not level or count > MAX_CONDITIONS:
                break
        if level or count > MAX_CONDITIONS:
            message = "must have at most {depth} levels and {count} conditions: simplify it"
            raise PydanticCustomError("filter_too_large", message, {"depth": MAX_CONDITION_DEPTH, "count": MAX_CONDITIONS})
        return value

    @model_validator(mode="after")
    def _check_given(self) -> Condition:
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise PydanticCustomError("filter_empty", "must have a condition: give a field, 'and', 'or' or 'not'")
        return self


def _parts(value: dict[str, Any]) -> list[Any]:
    parts: list[Any] = []
    for name in ("and", "or", "and_", "or_"):
        operands = value.get(name)
        parts.extend(operands if isinstance(operands, list) else ())
    return [*parts, *(value[name] for name in ("not", "not_") if value.get(name) is not None)]
