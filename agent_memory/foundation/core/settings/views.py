"""Summary views."""

from __future__ import annotations

from agent_memory.foundation.core.settings.base import Group, archived, internal


class ViewSettings(Group):
    refresh_every_minutes: float = archived(60.0, "SUMMARY_VIEW_REFRESH_EVERY_MINUTES", gt=0)
    run_seconds: float = internal(20.0, "SUMMARY_VIEW_RUN_SECONDS", gt=0)
