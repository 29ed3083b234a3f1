"""Define the settings for sessions and memories."""

from __future__ import annotations

from typing import ClassVar, Literal

from agent_memory.foundation.core.settings.base import Group, archived, internal, setting


class LongTermSettings(Group):
    """Settings for long-term memory.

    `neighbours_after_seconds` is the delay before the index adds a new message's words to its
    neighbors. `forgotten_kept_days` limits how long forgotten memories can be restored.
    """

    enabled: bool = archived(True, "LONG_TERM_MEMORY")
    promote_messages: bool = setting(True, "INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY", meaning="store messages verbatim as memories")
    extract_facts: bool = setting(True, "ENABLE_DISCRETE_MEMORY_EXTRACTION", meaning="extract facts with a model server")
    extraction_debounce_seconds: float = archived(30.0, "EXTRACTION_DEBOUNCE_SECONDS", ge=0)
    extraction_batch_tokens: int = internal(2000, "EXTRACTION_BATCH_TOKENS", ge=100)
    usage_every_minutes: float = internal(15.0, "USAGE_EVERY_MINUTES", ge=0)
    neighbours_after_seconds: float = internal(2.0, "NEIGHBOURS_AFTER_SECONDS", ge=0, le=3600)
    redact_secrets: bool = setting(
        True, "REDACT_SECRETS", meaning="remove keys, tokens, passwords and card numbers from memories and from requests to a model server"
    )
    context_tags: str = setting(
        "system-reminder,relevant-memories,task-notification,user-memories,recalled-memories,memory-context,mem0-context,supermemory-context,"
        "environment-context,environment-details,environment-info,workspace-info,user-instructions,additional-data,project-layout,git-status,"
        "open-and-recently-viewed-files,attached-files,editor-context,reminder-instructions,ide-opened-file,ide-selection,ide-diagnostics,"
        "new-diagnostics,user-prompt-submit-hook,command-name,command-message,command-args,command-contents,local-command-caveat,"
        "local-command-stdout,local-command-stderr,bash-input,bash-stdout,bash-stderr,turn-aborted",
        "CONTEXT_TAGS",
        meaning="comma-separated tags. Text that an agent's harness puts between these tags in messages does not become a memory",
    )
    review_supersessions: bool = setting(
        False,
        "REVIEW_SUPERSESSIONS",
        meaning="if a fact from a conversation would supersede another, only propose the change",
    )
    forgotten_kept_days: ClassVar[float] = 30.0
    forget_undo_seconds: int = setting(
        86400, "FORGET_UNDO_SECONDS", meaning="seconds during which you can undo a request to forget; 0: no undo", ge=0, le=2592000
    )
    forget_in_conversation: Literal["propose", "auto", "off"] = setting(
        "propose",
        "FORGET_IN_CONVERSATION",
        meaning='if a user says "forget that …" in a session: ask for approval (`propose`), delete immediately (`auto`), ignore it (`off`)',
    )
    quarantine: bool = setting(
        True, "QUARANTINE", meaning="hide memories that read like instructions to a model, until an administrator approves them"
    )
    vector_algorithm: Literal["FLAT", "HNSW"] = archived("FLAT", "VECTOR_ALGORITHM", "REDISVL_INDEXING_ALGORITHM")
    vector_type: Literal["FLOAT16", "FLOAT32"] = internal("FLOAT16", "VECTOR_TYPE")


class ForgettingSettings(Group):
    """Settings for automatic forgetting, which requires at least one limit."""

    enabled: bool = setting(
        False,
        "FORGETTING_ENABLED",
        meaning="every hour, delete unpinned memories that exceed the limits below (undo: 30 days). If both `…_DAYS` limits are set, "
        "a memory must exceed both, or be older than 12 × `FORGETTING_MAX_AGE_DAYS`",
    )
    every_minutes: float = archived(60.0, "FORGETTING_EVERY_MINUTES", gt=0)
    max_age_days: float | None = setting(
        None, "FORGETTING_MAX_AGE_DAYS", meaning="delete memories created more than this many days ago (`created_at`)", ge=0
    )
    max_inactive_days: float | None = setting(
        None, "FORGETTING_MAX_INACTIVE_DAYS", meaning="delete memories that no search, prompt or read has returned for this many days", ge=0
    )
    budget_keep_top_n: int | None = setting(
        None,
        "FORGETTING_BUDGET_KEEP_TOP_N",
        meaning="after the deletions above, keep at most this many unpinned memories per tenant. Old, little-used memories are deleted "
        "first",
        ge=0,
    )


class CompactionSettings(Group):
    """Settings for merging duplicates. `COMPACTION_EVERY_MINUTES=0` merges only on request."""

    every_minutes: float = archived(10.0, "COMPACTION_EVERY_MINUTES", ge=0)
    semantic: bool = archived(True, "COMPACT_SEMANTIC_DUPLICATES")
    similarity: float = internal(0.92, "COMPACTION_SIMILARITY", gt=0.5, le=1.0)


class WorkingMemorySettings(Group):
    """Settings for sessions: summaries, and rules for message timestamps."""

    summarize: bool = archived(True, "ENABLE_WORKING_MEMORY_SUMMARIZATION")
    summarization_threshold: float = archived(0.7, "SUMMARIZATION_THRESHOLD", gt=0.0, le=1.0)
    summarization_keep: ClassVar[float] = 0.4
    require_timestamps: bool = archived(False, "REQUIRE_MESSAGE_TIMESTAMPS")
    max_future_seconds: int = archived(300, "MAX_FUTURE_TIMESTAMP_SECONDS", ge=0)


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


class ViewSettings(Group):
    refresh_every_minutes: float = archived(60.0, "SUMMARY_VIEW_REFRESH_EVERY_MINUTES", gt=0)
    run_seconds: float = internal(20.0, "SUMMARY_VIEW_RUN_SECONDS", gt=0)
