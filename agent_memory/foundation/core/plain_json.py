"""JSON of plain data: answers of searches and prompts, and the arguments of Lua scripts.

orjson writes ten memories in a quarter of the time that pydantic takes (15 instead of 60 µs, 3 % of a search's CPU).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from pydantic_core import to_json, to_jsonable_python


def plain_json(values: Mapping[str, Any]) -> bytes:
    """Values of JSON, times (UTC as "Z"), and models among them; no number at all is null.

    What orjson refuses (integers beyond 64 bits, which JSON has) pydantic writes. Raises PydanticSerializationError (a
    ValueError) for what is no Unicode.
    """
    try:
        return orjson.dumps(values, default=to_jsonable_python, option=orjson.OPT_UTC_Z)
    except TypeError:
        return to_json(values, inf_nan_mode="null")
