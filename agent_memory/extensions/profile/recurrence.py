"""Until when something that was said on some days counts as stable (pure).

What makes an entry of the profile that is kept ready static is decided in `lua/static_rule.lua`; this is the same rule for other times.
"""

from __future__ import annotations

from collections.abc import Sequence

TIMES = 3
"""On so many different days …"""
WITHIN_DAYS = 14
"""… of any so many in a row: then it recurs."""
SILENT_DAYS = 180
"""What recurred and was not said for so long is recent no more, and stable no more."""
KEPT_SAYINGS = 400
"""Of what a group of statements holds so many sayings are looked at, the latest."""
SECONDS_OF_DAY = 86_400


def stable_until(days: Sequence[int]) -> int | None:
    """When (seconds since 1970) a recurrence ends, of days (since 1970) in ascending order; None where nothing recurs."""
    distinct = sorted(set(days))
    start = 0
    for index in range(1, len(distinct)):
        if distinct[index] - distinct[index - 1] >= SILENT_DAYS:
            start = index
    lately = distinct[start:]
    pairs = zip(lately, lately[TIMES - 1 :], strict=False)
    recurs = any(last - first < WITHIN_DAYS for first, last in pairs)
    return (lately[-1] + SILENT_DAYS) * SECONDS_OF_DAY if recurs else None
