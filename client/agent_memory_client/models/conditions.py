"""Filters that programs compose: metadata of their own, and conditions joined by and, or and not."""

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
)

MAX_CONDITION_DEPTH = 8
MAX_CONDITIONS = 64

Scalar: TypeAlias = StrictBool | Annotated[int, Field(strict=True)] | Annotated[Number, Field(strict=True)] | FreeText
_Scalars: TypeAlias = Annotated[list[Scalar], Field(min_length=1, max_length=MAX_FILTER_VALUES)]
_Bound: TypeAlias = Annotated[int, Field(strict=True)] | Annotated[Number, Field(strict=True)] | FreeText


class MetadataFilter(Filter):
    """A filter on one key of the metadata. Bounds are numbers or ISO 8601 dates; text, numbers and booleans never equal each other."""

    exclusive: ClassVar[tuple[tuple[str, str], ...]] = (("gt", "gte"), ("lt", "lte"))

    eq: Scalar | None = None
    ne: Scalar | None = None
    any: _Scalars | None = None
    all: _Scalars | None = None
    none: _Scalars | None = None
    gt: _Bound | None = None
    gte: _Bound | None = None
    lt: _Bound | None = None
    lte: _Bound | None = None
    exists: bool | None = None


MetadataFilters: TypeAlias = Annotated[dict[str, MetadataFilter], Field(max_length=16)]


class Condition(BaseModel):
    """What must hold: every field that is given, all of `and`, one of `or`, and not `not`. At most 8 levels and 64 conditions."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    and_: Annotated[list[Condition], Field(min_length=1, max_length=MAX_CONDITIONS)] | None = Field(default=None, alias="and")
    or_: Annotated[list[Condition], Field(min_length=1, max_length=MAX_CONDITIONS)] | None = Field(default=None, alias="or")
    not_: Condition | None = Field(default=None, alias="not")
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
    slot: TagFilter | None = None
    category: TagFilter | None = None
    source_class: TagFilter | None = None
    metadata: MetadataFilters | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_size(cls, value: Any) -> Any:
        """Refuses what is too deep or too large before it is looked at; walks without recursion."""
        level, count = [value], 0
        for _ in range(MAX_CONDITION_DEPTH):
            level = [part for one in level if isinstance(one, dict) for part in _parts(one)]
            count += len(level)
            if not level:
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
        found = value.get(name)
        parts.extend(found if isinstance(found, list) else ())
    return [*parts, *(value[name] for name in ("not", "not_") if value.get(name) is not None)]
