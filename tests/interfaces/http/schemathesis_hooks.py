"""Adapt schemathesis to this API. Its process loads this module through SCHEMATHESIS_HOOKS."""

from __future__ import annotations

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(_: Any, value: Any) -> bytes:
    """Encode a value as JSON lines, one per list item. Return bytes unchanged."""
    if isinstance(value, bytes):
        return value
    return b"".join(json.dumps(one, default=str).encode() + b"\n" for one in (value if isinstance(value, list) else [value]))
