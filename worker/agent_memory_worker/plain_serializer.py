"""Restrict docket's pickles to plain data: a pickle can run code in its reader.

Tasks take strings, numbers and lists. Workers refuse pickles that name code, so whoever can write to Redis can disturb
the queue, but not run code.
"""

from __future__ import annotations

import io
import pickle
from types import SimpleNamespace
from typing import Any, Never

from docket import execution, strikelist

from agent_memory.foundation.core.errors import StartupError


class _PlainReader(pickle.Unpickler):
    """Read built-in values only; any other pickle names something to look up."""

    def find_class(self, module: str, name: str) -> Never:
        raise pickle.UnpicklingError("a task's arguments are plain data: this message names code")

    def persistent_load(self, pid: Any) -> Never:
        raise pickle.UnpicklingError("a task's arguments are plain data: this message names an object")


def loads(data: bytes) -> Any:
    """Return the value of a pickle of plain data. Raises UnpicklingError, ValueError, EOFError and others."""
    return _PlainReader(io.BytesIO(data)).load()


def only_plain_data() -> None:
    """Restrict docket in this process. Raises StartupError if this docket pickles in other ways."""
    for module in (execution, strikelist):
        if not hasattr(module, "cloudpickle"):
            raise StartupError("this version of pydocket is not known: its messages could run code, so no worker starts")
        module.__dict__["cloudpickle"] = SimpleNamespace(loads=loads, dumps=pickle.dumps)
