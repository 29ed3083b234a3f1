"""Decide until when a statement counts as stable, for past times.

`lua/static_rule.lua` has the same rule for the stored profile.
"""

from __future__ import annotations

from collections.abc import Sequence

TIMES = 3
"""A statement recurs if it was said on this many different days …"""
WITHIN_DAYS = 14
"""… within this many days."""
SILENT_DAYS = 180
"""After so many silent days a recurring statement is no longer stable."""
KEPT_SAYINGS = 400
"""Latest statements of a group that are considered."""
SECONDS_OF_DAY = 86_400


def stable_until(days: Sequence[int]) -> int | None:
    """Return when (seconds since 1970) a recurrence ends, from days since 1970; None if nothing recurs."""
    distinct = sorted(set(days))
    start = 0
    for index in range(1, len(distinct)):
        if distinct[index] - distinct[index - 1] >= SILENT_DAYS:
            start = index
    lately = distinct[start:]
    pairs = zip(lately, lately[TIMES - 1 :], strict=False)
    recurs = any(last - first < WITHIN_DAYS for first, last in pairs)
    return (lately[-1] + SILENT_DAYS) * SECONDS_OF_DAY if recurs else None
