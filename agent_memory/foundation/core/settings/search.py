"""Searches and prompts."""

from __future__ import annotations

from typing import ClassVar

from agent_memory.foundation.core.settings.base import Group, archived, internal


class SearchSettings(Group):
    min_similarity: float = internal(0.2, "SEARCH_MIN_SIMILARITY", ge=-1.0, le=1.0)
    settle_seconds: ClassVar[float] = 2.0
    optimize_seconds: float = internal(2.0, "QUERY_OPTIMIZATION_SECONDS", gt=0)
    optimize_template: str | None = archived(None, "QUERY_OPTIMIZATION_PROMPT_TEMPLATE", pattern=r"\{query\}")
    optimize_least: int = archived(2, "MIN_OPTIMIZED_QUERY_LENGTH", ge=1)
    rerank_seconds: float = internal(0.5, "RERANK_SECONDS", gt=0)
    rerank_candidates: int = internal(50, "RERANK_CANDIDATES", ge=1, le=200)
    prompt_memories: ClassVar[int] = 20
    prompt_memory_tokens: ClassVar[int] = 4000
    prompt_all_users: bool = internal(False, "PROMPT_WITHOUT_USER_SEES_ALL_USERS")
