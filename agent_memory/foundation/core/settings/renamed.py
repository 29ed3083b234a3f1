"""Find old or misspelled environment variables."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dotenv import dotenv_values

from agent_memory.foundation.core.settings import variables
from agent_memory.foundation.core.tables import read_table

_TABLE = read_table("core/settings/data/retired.toml")
RETIRED: Mapping[str, str] = {name: group["reason"] for group in _TABLE["retired"] for name in group["names"]}
# Other programs also read these.
_COMMON = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
_NEVER_READ = "REDIS_MEMORY_"
_NEAR, _NEAR_IN_OUR_FILE = 0.88, 0.8
_SHORTEST = 8


@dataclass(frozen=True, slots=True)
class UnreadVariable:
    """A variable that is set but never read. If `common` is true, other programs may use it."""

    name: str
    advice: str
    common: bool = False


def unread_variables(dotenv: Path | None = None) -> list[UnreadVariable]:
    """Return variables in the environment and `.env` that the server never reads.

    Ignore empty values and names that do not look like settings.
    """
    ours = dotenv_values(dotenv) if dotenv is not None and dotenv.is_file() else {}
    return unread([name for name, value in os.environ.items() if value], [name for name, value in ours.items() if value])


def unread(environment: Iterable[str], file: Iterable[str] = ()) -> list[UnreadVariable]:
    """Return variables that look like settings but are never read.

    Names in `environment` must be more similar to a known variable than names in `file`.
    """
    variable_names = list(variables())
    unread: dict[str, UnreadVariable] = {}
    for names, near in ((file, _NEAR_IN_OUR_FILE), (environment, _NEAR)):
        for name in names:
            upper = name.upper()
            if upper in variable_names or name in unread:
                continue
            if reason := RETIRED.get(upper):
                unread[name] = UnreadVariable(name, f"{upper} is not read any more: {reason}", upper in _COMMON)
            elif upper.startswith(_NEVER_READ):
                unread[name] = UnreadVariable(name, f"{name} is not read, and never was")
            elif len(upper) >= _SHORTEST and (like := difflib.get_close_matches(upper, variable_names, 1, near)):
                unread[name] = UnreadVariable(name, f"{name} is not read: did you mean {like[0]}?")
    return [unread[name] for name in sorted(unread)]
