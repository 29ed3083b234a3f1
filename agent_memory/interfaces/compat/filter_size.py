"""Limit the size of filters in compatible APIs before the server parses them."""

from __future__ import annotations

from typing import Any, cast

from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.input.bounds import check_values

_MOST_OBJECTS = 1_000


def check_filter_size(filters: object) -> None:
    """Raise BadInput if filters contain more objects than one of our conditions may contain."""
    if isinstance(filters, str):
        check_values(filters.encode(), field="filters")
        return
    left: list[Any] = [filters]
    objects = 0
    while left:
        node = left.pop()
        if isinstance(node, dict):
            objects += 1
            left.extend(cast("dict[str, Any]", node).values())
        elif isinstance(node, list):
            left.extend(cast("list[Any]", node))
        if objects > _MOST_OBJECTS:
            raise BadInput("must have at most 8 levels and 64 conditions: simplify it", field="filters")
