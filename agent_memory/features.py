"""The features: the one list. Each stands on those before it."""

from __future__ import annotations

from agent_memory.access.feature import ACCESS
from agent_memory.archive.feature import ARCHIVE
from agent_memory.blocks.feature import BLOCKS
from agent_memory.core.feature import Feature
from agent_memory.extraction.feature import EXTRACTION
from agent_memory.items.feature import ITEMS
from agent_memory.jobs.feature import JOBS
from agent_memory.memories.feature import MEMORIES
from agent_memory.pinned.feature import PINNED
from agent_memory.privacy.feature import PRIVACY
from agent_memory.privacy.forget.feature import FORGET
from agent_memory.procedures.feature import PROCEDURES
from agent_memory.profile.feature import PROFILE
from agent_memory.recall.feature import RECALL
from agent_memory.sessions.feature import SESSIONS
from agent_memory.timeline.feature import TIMELINE
from agent_memory.transfer.feature import TRANSFER
from agent_memory.views.feature import VIEWS

FEATURES: tuple[Feature, ...] = (
    ACCESS,
    JOBS,
    ITEMS,
    MEMORIES,
    SESSIONS,
    EXTRACTION,
    BLOCKS,
    ARCHIVE,
    PINNED,
    VIEWS,
    PROFILE,
    TIMELINE,
    PROCEDURES,
    RECALL,
    PRIVACY,
    FORGET,
    TRANSFER,
)
