"""What schemathesis has to be told to speak to us; loaded by its process (SCHEMATHESIS_HOOKS)."""

from __future__ import annotations

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(_: Any, value: Any) -> bytes:
    """Any value as one line, a list as a line for each; bytes as they are."""
    if isinstance(value, bytes):
        return value
    return b"".join(json.dumps(one, default=str).encode() + b"\n" for one in (value if isinstance(value, list) else [value]))
