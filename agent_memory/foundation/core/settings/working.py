"""Sessions."""

from __future__ import annotations

from typing import ClassVar

from agent_memory.foundation.core.settings.base import Group, archived


class WorkingMemorySettings(Group):
    """Sessions: summaries and the rules for messages."""

    summarize: bool = archived(True, "ENABLE_WORKING_MEMORY_SUMMARIZATION")
    summarization_threshold: float = archived(0.7, "SUMMARIZATION_THRESHOLD", gt=0.0, le=1.0)
    summarization_keep: ClassVar[float] = 0.4
    require_timestamps: bool = archived(False, "REQUIRE_MESSAGE_TIMESTAMPS")
    max_future_seconds: int = archived(300, "MAX_FUTURE_TIMESTAMP_SECONDS", ge=0)
