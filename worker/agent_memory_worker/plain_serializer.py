"""Restrict docket's pickles to plain data, because loading a pickle can run arbitrary code."""

from __future__ import annotations

import io
import pickle
from types import SimpleNamespace
from typing import Any, Never

from docket import execution, strikelist

from agent_memory.foundation.core.errors import StartupError


class _PlainReader(pickle.Unpickler):
    """Loads only built-in values. Rejects pickles that refer to classes or functions."""

    def find_class(self, module: str, name: str) -> Never:
        raise pickle.UnpicklingError("a task's arguments must be plain data, but this message refers to code")

    def persistent_load(self, pid: Any) -> Never:
        raise pickle.UnpicklingError("a task's arguments must be plain data, but this message refers to an object")


def loads(data: bytes) -> Any:
    """Unpickle plain data.

    May raise UnpicklingError, ValueError, EOFError and other errors.
    """
    return _PlainReader(io.BytesIO(data)).load()


def only_plain_data() -> None:
    """Restrict docket's pickles to plain data.

    Raises StartupError if docket does not use cloudpickle.
    """
    for module in (execution, strikelist):
        if not hasattr(module, "cloudpickle"):
            raise StartupError("unsupported version of pydocket, whose messages could run code: install the version in the lock file")
        module.__dict__["cloudpickle"] = SimpleNamespace(loads=loads, dumps=pickle.dumps)
