"""How often each periodic job runs: the minutes from one run to the next, by the settings where there is one (pure).

A feature announces its jobs with these in its `feature.py`; workers run them (`agent_memory_worker/periodic_runner.py`).
"""

from __future__ import annotations

from agent_memory.core.settings import Settings

_SUMMARIES_MINUTES = 5.0
_ITEMS_MINUTES = 10.0
_PROCEDURES_MINUTES = 60.0


def minutes_of_compaction(settings: Settings) -> float | None:
    """Repeats are merged."""
    return settings.compaction.every_minutes if settings.longterm.enabled else None


def minutes_of_contradictions(settings: Settings) -> float | None:
    """Facts that were never judged together are."""
    return settings.compaction.every_minutes if settings.longterm.enabled else None


def minutes_of_retention(settings: Settings) -> float | None:
    """What a policy gives up is forgotten."""
    rules = settings.forgetting
    wanted = rules.enabled and (rules.max_age_days, rules.max_inactive_days, rules.budget_keep_top_n) != (None, None, None)
    return rules.every_minutes if wanted else None


def minutes_of_upkeep(settings: Settings) -> float | None:
    """Readings are brought to the index, and memories that have ended leave the current ones."""
    return settings.longterm.usage_every_minutes if settings.longterm.enabled else None


def minutes_of_summaries(settings: Settings) -> float | None:
    """Days, weeks and months that are over get their summaries."""
    return _SUMMARIES_MINUTES if settings.longterm.enabled else None


def minutes_of_procedures(settings: Settings) -> float | None:
    """Procedures that stopped helping are retired, and those that lack their vector get it."""
    return _PROCEDURES_MINUTES if settings.longterm.enabled else None


def minutes_of_items(settings: Settings) -> float:
    """Items that lack their vector get it."""
    return _ITEMS_MINUTES


def minutes_of_views(settings: Settings) -> float:
    """Continuous summary views are refreshed."""
    return settings.views.refresh_every_minutes
