"""Plain data only in tasks: docket pickles what a task is called with, and a pickle can run code in whoever reads it.

Ours takes strings, numbers and lists of them. So a worker reads pickles that name nothing to import or to call, and refuses every other:
whoever can write to Redis can then disturb the queue, but not run code in a worker.
"""

from __future__ import annotations

import io
import pickle
from types import SimpleNamespace
from typing import Any, Never

from docket import execution, strikelist

from agent_memory.foundation.core.errors import StartupError


class _PlainReader(pickle.Unpickler):
    """Reads built-in values only: everything else in a pickle begins with a name to look up."""

    def find_class(self, module: str, name: str) -> Never:
        raise pickle.UnpicklingError("a task's arguments are plain data: this message names code")

    def persistent_load(self, pid: Any) -> Never:
        raise pickle.UnpicklingError("a task's arguments are plain data: this message names an object")


def loads(data: bytes) -> Any:
    """The value that a pickle of plain data holds. Raises UnpicklingError, ValueError, EOFError or another error of `pickle`'s."""
    return _PlainReader(io.BytesIO(data)).load()


def only_plain_data() -> None:
    """Lets docket read and write plain data only, in this process. Raises StartupError for a docket that pickles in other ways."""
    for module in (execution, strikelist):
        if not hasattr(module, "cloudpickle"):
            raise StartupError("this version of pydocket is not known: its messages could run code, so no worker starts")
        module.__dict__["cloudpickle"] = SimpleNamespace(loads=loads, dumps=pickle.dumps)
