"""Determine how long a repeated statement counts as stable.

This module is for profiles as of a past time. `lua/static_rule.lua` applies the same rule to the stored profile.
"""

from __future__ import annotations

from collections.abc import Sequence

TIMES = 3
"""A statement recurs if it was made on at least this many different days within `WITHIN_DAYS` days."""
WITHIN_DAYS = 14
"""The length, in days, of the period in which a recurring statement must be made on `TIMES` different days."""
SILENT_DAYS = 180
"""A recurring statement is no longer stable once this many days have passed without it."""
KEPT_SAYINGS = 400
"""Maximum number of a group's statements to consider; the latest ones count."""
SECONDS_OF_DAY = 86_400


def stable_until(days: Sequence[int]) -> int | None:
    """Return the time until which a statement is stable (seconds since 1970), or None if it does not recur.

    `days` are the days on which the statement was made, in days since 1970.
    """
    distinct = sorted(set(days))
    start = 0
    for index in range(1, len(distinct)):
        if distinct[index] - distinct[index - 1] >= SILENT_DAYS:
            start = index
    lately = distinct[start:]
    pairs = zip(lately, lately[TIMES - 1 :], strict=False)
    recurs = any(last - first < WITHIN_DAYS for first, last in pairs)
    return (lately[-1] + SILENT_DAYS) * SECONDS_OF_DAY if recurs else None
