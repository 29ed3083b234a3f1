"""Decide until when a repeated statement counts as stable.

This module serves profiles of past times; `lua/static_rule.lua` applies the same rule to the stored profile.
"""

from __future__ import annotations

from collections.abc import Sequence

TIMES = 3
"""A statement recurs if it was said on at least this many different days within `WITHIN_DAYS`."""
WITHIN_DAYS = 14
"""The length in days of the period in which a statement must be said on `TIMES` days."""
SILENT_DAYS = 180
"""A recurring statement is no longer stable if it was not said for this many days."""
KEPT_SAYINGS = 400
"""Only this many statements of a group are considered, the latest."""
SECONDS_OF_DAY = 86_400


def stable_until(days: Sequence[int]) -> int | None:
    """Return until when a statement is stable (seconds since 1970), or None if it does not recur.

    `days` are the days on which it was said, in days since 1970.
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
