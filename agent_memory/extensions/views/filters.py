"""Validate summary views, and select the memories in their partitions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.foundation.core.errors import BadInput, UnsupportedRequest
from agent_memory.foundation.core.input.validation import first_problem
from agent_memory_client import models

_F = TypeVar("_F", bound=BaseModel)

GROUP_FIELDS: dict[str, type[BaseModel]] = {
    "user_id": models.UserId,
    "namespace": models.Namespace,
    "session_id": models.SessionId,
    "memory_type": models.MemoryType,
}
FILTER_FIELDS: dict[str, type[BaseModel]] = {
    **GROUP_FIELDS,
    "extraction_strategy": models.ExtractionStrategy,
    "topics": models.Topics,
    "event_date": models.EventDate,
}

_EXCLUDING = {"ne", "not_eq", "not_in", "none"}


def check_view(body: models.CreateSummaryViewRequest) -> None:
    """Raise UnsupportedRequest or BadInput for an invalid view."""
    if body.source != "long_term":
        raise UnsupportedRequest("views of working memory are not supported: use source long_term", field="source")
    unknown = sorted(set(body.group_by) - GROUP_FIELDS.keys())
    if unknown:
        names = ", ".join(name[:100] for name in unknown[:10])
        raise UnsupportedRequest(f"Unsupported group_by fields: {names}; use {', '.join(GROUP_FIELDS)}", field="group_by")
    if len(set(body.group_by)) != len(body.group_by):
        raise UnsupportedRequest("name each field only once", field="group_by")
    unknown = sorted(body.filters.keys() - FILTER_FIELDS.keys())
    if unknown:
        raise UnsupportedRequest(f"cannot filter by {unknown[0][:100]}: use {', '.join(FILTER_FIELDS)}", field="filters")
    for name, value in body.filters.items():
        _filter(FILTER_FIELDS[name], value, f"filters.{name}")


def users_named(filters: Mapping[str, Any]) -> list[str]:
    """Return the user ids in a view's filters."""
    return _texts(filters.get("user_id"))


def without_user(filters: Mapping[str, Any], user_id: str) -> dict[str, Any] | None:
    """Remove a user's id from a view's filters. Return None if no other user matches them."""
    rest: dict[str, Any] = {}
    condition = _filter(models.UserId, filters["user_id"], "filters.user_id")
    for operator, operand in condition.model_dump(exclude_none=True, exclude=set(condition.not_operators)).items():
        others = [item for item in operand if item != user_id] if isinstance(operand, list) else operand
        if others and others != user_id:
            rest[operator] = others
        elif operator not in _EXCLUDING:
            return None
    return {name: value for name, value in filters.items() if name != "user_id"} | ({"user_id": rest} if rest else {})


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = cast("list[Any]", list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [])
    return [text for item in inner for text in _texts(item)]


def check_group(view: models.SummaryView, group: Mapping[str, str]) -> dict[str, str]:
    """Return the group, normalized to Unicode NFC. Raises UnsupportedRequest or BadInput."""
    if set(group) != set(view.group_by):
        required_fields = ", ".join(view.group_by) or "no fields"
        raise UnsupportedRequest(f"the group must have exactly the fields that the view groups by: {required_fields}", field="group")
    filters: dict[str, Any] = {name: _filter(GROUP_FIELDS[name], value, f"group.{name}") for name, value in group.items()}
    return {name: str(value_filter.eq) for name, value_filter in filters.items()}


def selection_of(view: models.SummaryView, now: datetime) -> Selection:
    filters_by_name: dict[str, Any] = {name: _filter(FILTER_FIELDS[name], value, f"filters.{name}") for name, value in view.filters.items()}
    if view.time_window_days is not None:
        filters_by_name["created_at"] = models.CreatedAt(gte=_days_before(now, view.time_window_days))
    return Selection(**filters_by_name)


def within(selection: Selection, group: Mapping[str, str]) -> Selection | None:
    """Limit a selection to a group. Return None if nothing can match."""
    narrowed: dict[str, Any] = {}
    for name, value in group.items():
        own: Any = getattr(selection, name)
        # A memory must match the view's filter and the group. If the group's value fails the filter, no memory can
        # match.
        if own is not None and not _lets_through(own, value):
            return None
        narrowed[name] = _filter(GROUP_FIELDS[name], value, f"group.{name}")
    return selection.model_copy(update=narrowed)


def _lets_through(own: Any, value: str) -> bool:
    conditions = own.conditions()
    if any(value not in options for options in conditions.required) or value in conditions.excluded:
        return False
    return conditions.prefix is None or value.startswith(conditions.prefix)


def _filter(kind: type[_F], value: Any, field: str) -> _F:
    """Parse a value (`eq`), a list (`any`) or an object with operators. Raises BadInput."""
    if not isinstance(value, dict):
        value = {"any": value} if isinstance(value, list) else {"eq": value}
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        path, reason = first_problem(error)
        raise BadInput(reason, field=f"{field}.{path}".rstrip(".")) from error


def _days_before(now: datetime, days: int) -> datetime:
    try:
        return now - timedelta(days=days)
    except OverflowError:
        return datetime(1, 1, 2, tzinfo=UTC)
