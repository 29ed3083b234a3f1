"""How much structure a request may have, checked before its validation goes through all of it."""

from __future__ import annotations

from typing import Any, cast

from agent_memory.core.errors import BadInput

MAX_LIST_ITEMS = 50_000
_FREE_JSON = frozenset({"data", "metadata", "config", "extraction_strategy_config"})


def check_lists(value: Any, root: str) -> None:
    """Refuses a list of more than MAX_LIST_ITEMS in parsed JSON, except in the caller's own. `root` names a value that is itself the list.

    Validation would go through millions of wrong items, 20 s for 8 MB of `{}`, before it reported the first one. Raises BadInput.
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
