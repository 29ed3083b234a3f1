"""Repair JSON that contains lone surrogates, which UTF-8 and Redis cannot store.

In text, U+FFFD replaces them and the response includes a notice. In an id, they are an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from agent_memory_client.models._types import REPLACEMENT

_MAX_REPAIRED_BYTES = 4 * 1024 * 1024
"""The maximum size of a body to repair, in bytes."""
_NAMED_DEPTH = 6
_LONE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(rb"\\u[dD][89a-fA-F]")


class RepairedJson(NamedTuple):
    """A repaired request body. `sent` is the original value, and `notice` informs the caller."""

    sent: Any
    body: bytes
    notice: str


def repair_json(body: bytes) -> RepairedJson | None:
    """Return the repaired body, or None if it is too large or otherwise invalid."""
    if len(body) > _MAX_REPAIRED_BYTES or _ESCAPED.search(body) is None:
        return None
    try:
        # Python's parser accepts lone surrogates.
        sent = json.loads(body)
        text = json.dumps(sent, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    text, count = _LONE.subn(REPLACEMENT, text)
    if not count:
        return None
    notice = f"{_first_field(sent)}: contained invalid Unicode; {count} lone surrogates were replaced with U+FFFD"
    return RepairedJson(sent, text.encode(), notice)


def _first_field(value: Any) -> str:
    path: list[str] = []
    while len(path) < _NAMED_DEPTH:
        members: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value).items()
        elif isinstance(value, list):
            members = enumerate(cast("list[Any]", value))
        first_member = next(((name, child) for name, child in members if _LONE.search(json.dumps(child, ensure_ascii=False))), None)
        if first_member is None:
            break
        path.append(str(first_member[0]))
        value = first_member[1]
    return _LONE.sub(REPLACEMENT, ".".join(path)) or "body"
