"""Searching, and what a prompt may spend."""

from __future__ import annotations

from agent_memory.core.settings.base import Group, archived, ending


class SearchSettings(Group):
    """Searching: what is near enough to be an answer, and what a prompt may spend."""

    min_similarity: float = ending(0.2, "SEARCH_MIN_SIMILARITY", ge=-1.0, le=1.0)
    settle_seconds: float = ending(2.0, "SEARCH_SETTLE_SECONDS", ge=0)
    optimize_seconds: float = ending(2.0, "QUERY_OPTIMIZATION_SECONDS", gt=0)
    optimize_template: str | None = archived(None, "QUERY_OPTIMIZATION_PROMPT_TEMPLATE", pattern=r"\{query\}")
    optimize_least: int = archived(2, "MIN_OPTIMIZED_QUERY_LENGTH", ge=1)
    rerank_seconds: float = ending(0.5, "RERANK_SECONDS", gt=0)
    rerank_candidates: int = ending(50, "RERANK_CANDIDATES", ge=1, le=200)
    prompt_memories: int = ending(20, "PROMPT_MEMORIES", ge=1, le=100)
    prompt_memory_tokens: int = ending(2000, "PROMPT_MEMORY_TOKENS", ge=64)
    prompt_all_users: bool = ending(False, "PROMPT_WITHOUT_USER_SEES_ALL_USERS")
