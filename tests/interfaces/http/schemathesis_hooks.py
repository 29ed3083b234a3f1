"""Adapt schemathesis to this API; its process loads this module through SCHEMATHESIS_HOOKS."""

from __future__ import annotations

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(_: Any, value: Any) -> bytes:
    """Return any value as one line, a list as one line per item, and bytes unchanged."""
    if isinstance(value, bytes):
        return value
    return b"".join(json.dumps(one, default=str).encode() + b"\n" for one in (value if isinstance(value, list) else [value]))
