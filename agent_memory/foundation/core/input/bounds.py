"""How much structure a request may have, checked before its validation goes through all of it."""

from __future__ import annotations

from typing import Any, cast

from agent_memory.foundation.core.errors import BadInput

MAX_JSON_VALUES = 100_000
"""8 MB of text are read in 20 ms, 8 MB of `{},{},…` took seconds in each of parser, validation, counting of tokens and writing."""
MAX_LIST_ITEMS = 10_000
_FREE_JSON = frozenset({"data", "metadata", "config", "extraction_strategy_config"})


def check_values(*parts: bytes, field: str = "body") -> None:
    """Refuse JSON of more than MAX_JSON_VALUES values in all its parts, unparsed. Raises BadInput."""
    most = MAX_JSON_VALUES
    if sum(map(len, parts)) > most and sum(map(_count_signs, parts)) > most and sum(map(_count_values, parts)) > most:
        raise BadInput(f"must hold at most {most} values (lists, objects and what they hold): send several requests", field=field)


def check_texts(value: Any, field: str) -> None:
    """As `check_values`, for the texts in parsed JSON that may be JSON themselves."""
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
    """True if a text begins as a list or an object does."""
    return text.lstrip()[:1] in ("{", "[")


def _count_signs(body: bytes) -> int:
    """At least as many as there are values: each but the first of a list or an object stands behind a comma."""
    return 1 + body.count(b",") + body.count(b"[") + body.count(b"{")


def _count_values(body: bytes) -> int:
    """As `_count_signs`, without the signs inside texts."""
    outside = body.replace(rb"\\", b"").replace(rb"\"", b"")
    # A value has at most two texts, its key and itself. Splitting at more quotes takes long.
    quotes = outside.count(b'"')
    return quotes if quotes > 4 * MAX_JSON_VALUES else _count_signs(b"".join(outside.split(b'"')[::2]))


def check_lists(value: Any, root: str) -> None:
    """Refuse a list of more than MAX_LIST_ITEMS in parsed JSON, except in the caller's own. `root` names a value that is itself the list.

    Validation would go through all wrong items before it reported the first one. Raises BadInput.
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
