"""Estimate how expensive a request is, measured in characters of text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from agent_memory_client.models import MemoryMessage, MemoryRecord

_EACH = 64
_ENOUGH = 8_000


def json_work(value: Any) -> int:
    """Estimate a JSON value's cost: the length of its strings, plus 64 per value.

    Stop counting above 8,000.
    """
    work, left = 0, [value] if value else []
    while left and work <= _ENOUGH:
        node = left.pop()
        work += _EACH + (len(node) if isinstance(node, str) else 0)
        if isinstance(node, (dict, list)):
            left.extend(cast("dict[str, Any]", node).values() if isinstance(node, dict) else cast("list[Any]", node))
    return work


def messages_work(messages: Iterable[MemoryMessage]) -> int:
    return sum([_EACH + len(each.content) + json_work(each.content_parts) + json_work(each.own_fields) for each in messages])


def memories_work(records: Iterable[MemoryRecord]) -> int:
    return sum([_EACH + len(record.text) + json_work(record.metadata) for record in records])
