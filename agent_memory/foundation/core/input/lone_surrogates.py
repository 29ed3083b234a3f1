"""JSON with lone surrogates, which UTF-8 and so Redis cannot carry: half an emoji that a program cut in two, say.

Text takes U+FFFD in their place, and the answer says so; an id is refused, since two ids must not become one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from agent_memory_client.models._types import REPLACEMENT

_MAX_REPAIRED_BYTES = 4 * 1024 * 1024
"""Larger bodies are refused: reading one three times takes too long."""
_NAMED_DEPTH = 6
_LONE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(rb"\\u[dD][89a-fA-F]")


class RepairedJson(NamedTuple):
    """A body as it was meant: the value as it was sent, JSON of it with U+FFFD in place of each lone surrogate, and a notice of that."""

    sent: Any
    body: bytes
    notice: str


def repair_json(body: bytes) -> RepairedJson | None:
    """The body if nothing but lone surrogates keeps it from being JSON in UTF-8, else None."""
    if len(body) > _MAX_REPAIRED_BYTES or _ESCAPED.search(body) is None:
        return None
    try:
        # Python's parser lets lone surrogates through.
        sent = json.loads(body)
        text = json.dumps(sent, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    text, count = _LONE.subn(REPLACEMENT, text)
    if not count:
        return None
    notice = f"{_first_field(sent)}: held what is no Unicode; U+FFFD stands in place of {count} lone surrogates"
    return RepairedJson(sent, text.encode(), notice)


def _first_field(value: Any) -> str:
    """The path of the first field whose value holds a lone surrogate."""
    path: list[str] = []
    while len(path) < _NAMED_DEPTH:
        members: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value).items()
        elif isinstance(value, list):
            members = enumerate(cast("list[Any]", value))
        found = next(((name, child) for name, child in members if _LONE.search(json.dumps(child, ensure_ascii=False))), None)
        if found is None:
            break
        path.append(str(found[0]))
        value = found[1]
    return _LONE.sub(REPLACEMENT, ".".join(path)) or "body"
