"""Limit the number of values in JSON before validation."""

from __future__ import annotations

from typing import Any, cast

from agent_memory.foundation.core.errors import BadInput

MAX_JSON_VALUES = 100_000
"""The maximum number of JSON values in a request."""
MAX_LIST_ITEMS = 10_000
_FREE_JSON = frozenset({"data", "metadata", "config", "extraction_strategy_config"})


def check_values(*parts: bytes, field: str = "body") -> None:
    """Raise BadInput if raw JSON contains more than `MAX_JSON_VALUES` values in total."""
    most = MAX_JSON_VALUES
    if sum(map(len, parts)) > most and sum(map(_count_signs, parts)) > most and sum(map(_count_values, parts)) > most:
        raise BadInput(f"must contain at most {most} values, nested ones included: send several requests", field=field)


def check_texts(value: Any, field: str) -> None:
    """Apply `check_values` to strings that look like JSON. Raises BadInput."""
    texts: list[bytes] = []
    left = [value]
    while left:
        node = left.pop()
        if isinstance(node, str):
            if looks_like_json(node):
                texts.append(node.encode("utf-8", "surrogatepass"))
        elif isinstance(node, (dict, list)):
            left.extend(cast("dict[str, Any]", node).values() if isinstance(node, dict) else cast("list[Any]", node))
    check_values(*texts, field=field)


def looks_like_json(text: str) -> bool:
    """True if the text starts like a JSON object or list."""
    return text.lstrip()[:1] in ("{", "[")


def _count_signs(body: bytes) -> int:
    # Each value but the first follows a comma or an opening bracket.
    return 1 + body.count(b",") + body.count(b"[") + body.count(b"{")


def _count_values(body: bytes) -> int:
    outside = body.replace(rb"\\", b"").replace(rb"\"", b"")
    # A value has at most four quotes, around its key and itself. Splitting a body with more quotes is slow.
    quotes = outside.count(b'"')
    return quotes if quotes > 4 * MAX_JSON_VALUES else _count_signs(b"".join(outside.split(b'"')[::2]))


def check_lists(value: Any, root: str) -> None:
    """Raise BadInput if a list in parsed JSON exceeds `MAX_LIST_ITEMS`.

    Free-form JSON, such as metadata, is exempt. `root` is the name for `value` in errors.
    """
    level: list[tuple[str, Any]] = [(root, value)]
    while level:
        below: list[tuple[str, Any]] = []
        for name, node in level:
            if isinstance(node, list):
                items = cast("list[Any]", node)
                if len(items) > MAX_LIST_ITEMS:
                    raise BadInput(f"must have at most {MAX_LIST_ITEMS} items, got {len(items)}: send several requests", field=name)
                below.extend((f"{name}.{index}", item) for index, item in enumerate(items) if isinstance(item, (list, dict)))
            else:
                members = cast("dict[str, Any]", node).items() if isinstance(node, dict) else ()
                prefix = "" if name == root else f"{name}."
                below.extend((f"{prefix}{key}", item) for key, item in members if key not in _FREE_JSON and isinstance(item, (list, dict)))
        level = below
