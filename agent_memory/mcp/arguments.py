"""What the tools take, as their clients see it. The wire models that these become check the rest, so MCP and REST have one set of rules."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field

from agent_memory.core.mcp_tools import JSON_TEXT, parse_json_text
from agent_memory_client.models import (
    MAX_SEARCH_LIMIT,
    MAX_SEARCH_OFFSET,
    CreatedAt,
    EditMemoryRecordRequest,
    Entities,
    EventDate,
    ExtractedMemoryRecord,
    ExtractionStrategy,
    Identifier,
    Instant,
    LastAccessed,
    MemoryMessage,
    MemoryStrategyConfig,
    MemoryType,
    Namespace,
    OptionalIdentifier,
    PromptFormat,
    SearchModeEnum,
    SessionId,
    SessionIdentifier,
    TagFilter,
    Topics,
    UserId,
    WindowTokens,
    new_id,
)
from agent_memory_client.models.features.prompt_options import PromptOptions


def _as_filter(value: Any) -> Any:
    """A plain value where a filter is asked for means equality, a list any of its values."""
    value = parse_json_text(value)
    if isinstance(value, str):
        return {"eq": value}
    return {"any": value} if isinstance(value, list) else value


_JSON = JSON_TEXT
_FILTER = BeforeValidator(_as_filter)
_Names: TypeAlias = Annotated[list[str] | None, _JSON]
_Weight: TypeAlias = Annotated[float, Field(allow_inf_nan=False)] | None
_HalfLife: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)] | None

_SESSION_FILTER = 'Filter by session, e.g. {"eq": "monday"}; without it, memories of all sessions.'
_DATE = 'e.g. {"gte": "2026-01-01T00:00:00Z", "lt": "2026-02-01T00:00:00Z"}.'
_MODEL = "The model that reads this; its context window bounds the messages. Any name."
_WINDOW = "The context window in tokens; beats `model_name`."


class LenientMemoryRecord(ExtractedMemoryRecord):
    """A memory to store; its id may be left out."""

    id: Identifier = Field(default_factory=new_id)


class NoArguments(BaseModel):
    """Nothing."""


class CreateMemories(BaseModel):
    """What create_long_term_memories takes."""

    memories: Annotated[list[LenientMemoryRecord], _JSON] = Field(
        description="Each needs a `text` that can be understood alone; say `memory_type` (semantic: a fact, episodic: an event, with its "
        "`event_date`), `topics`, `entities`, and whose it is in `user_id` and `namespace`."
    )


class _Search(BaseModel):
    """What a search and a prompt share: filters, which must all hold, the page, and how much a memory's age counts."""

    namespace: Annotated[Namespace | None, _FILTER] = Field(None, description='Filter by namespace, e.g. {"eq": "work"}.')
    topics: Annotated[Topics | None, _FILTER] = Field(None, description='Filter by topics, e.g. {"any": ["food", "travel"]}.')
    entities: Annotated[Entities | None, _FILTER] = Field(None, description='Filter by entities, e.g. {"all": ["Ana", "Lisbon"]}.')
    created_at: Annotated[CreatedAt | None, _JSON] = Field(None, description=f"When the memory was made, {_DATE}")
    last_accessed: Annotated[LastAccessed | None, _JSON] = Field(None, description=f"When it was last read, {_DATE}")
    user_id: Annotated[UserId | None, _FILTER] = Field(None, description='Filter by user, e.g. {"eq": "ada"}.')
    memory_type: Annotated[MemoryType | None, _FILTER] = Field(None, description='Filter by kind, e.g. {"any": ["semantic", "episodic"]}.')
    event_date: Annotated[EventDate | None, _JSON] = Field(None, description=f"When what it tells happened, {_DATE}")
    min_trust: float | None = Field(None, ge=0, le=1, description="Leave out what is trusted less: 1 a user's own words, 0.3 a tool's.")
    distance_threshold: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Largest cosine distance (0 to 2), semantic mode."
    )
    search_mode: SearchModeEnum = Field(SearchModeEnum.SEMANTIC, description="By meaning, by words, or by both.")
    limit: int = Field(10, ge=1, le=MAX_SEARCH_LIMIT, description="At most so many memories.")
    offset: int = Field(0, ge=0, le=MAX_SEARCH_OFFSET, description="Skip so many: `next_offset` of the page before.")
    optimize_query: bool = Field(False, description="Let the server's model rewrite the query first; takes longer.")
    recency_boost: bool | None = Field(None, description="Whether newer memories rank higher.")
    recency_semantic_weight: _Weight = None
    recency_recency_weight: _Weight = None
    recency_freshness_weight: _Weight = None
    recency_novelty_weight: _Weight = None
    recency_half_life_last_access_days: _HalfLife = None
    recency_half_life_created_days: _HalfLife = None
    server_side_recency: bool | None = None


class SearchMemories(_Search):
    """What search_long_term_memory takes."""

    text: str | None = Field(description="What to look for, as a question or in words; null lists what the filters let through.")
    session_id: Annotated[SessionId | None, _FILTER] = Field(None, description=_SESSION_FILTER)
    agent_id: Annotated[TagFilter | None, _FILTER] = Field(None, description="Filter by agent.")
    extraction_strategy: Annotated[ExtractionStrategy | None, _FILTER] = Field(None, description="Filter by the strategy that made them.")


class PromptArguments(_Search):
    """What memory_prompt takes."""

    query: str = Field(description="The user's message; it becomes the last message of the prompt and is what memory is searched for.")
    session_id: Annotated[SessionId | None, _FILTER] = Field(
        None, description='The conversation to continue, as {"eq": "its id"}. Memories of all sessions are searched all the same.'
    )
    model_name: str | None = Field(None, description=_MODEL)
    context_window_max: WindowTokens | None = Field(None, description=_WINDOW)
    agent_id: OptionalIdentifier = Field(None, description="The agent whose memory blocks the prompt shows.")
    include_long_term_search: bool = Field(True, description="Whether long-term memory is searched.")
    format: PromptFormat | None = Field(None, description="For which API the prompt is written: openai, anthropic or text.")
    include_ids: bool = Field(True, description="Whether each memory's line ends with its id.")
    sections: Annotated[PromptOptions | None, _JSON] = Field(
        None, description='What the prompt shows beside the session and the memories, e.g. {"timeline": {"tokens": 300}}.'
    )


class _Place(BaseModel):
    """Which session, and for which model."""

    session_id: SessionIdentifier = Field(description="The session's id.")
    namespace: OptionalIdentifier = Field(None, description="The session's namespace.")
    user_id: OptionalIdentifier = Field(None, description="The session's user.")
    model_name: str | None = Field(None, max_length=256, description=_MODEL)
    context_window_max: WindowTokens | None = Field(None, description=_WINDOW)


class SetWorkingMemory(_Place):
    """What set_working_memory takes."""

    memories: Annotated[list[LenientMemoryRecord] | None, _JSON] = Field(None, description="Facts to keep; they become long-term memories.")
    messages: Annotated[list[MemoryMessage] | None, _JSON] = Field(None, description="The conversation, oldest first, all of it.")
    context: str | None = Field(None, description="A summary of what came before the messages.")
    agent_id: OptionalIdentifier = Field(None, description="The session's agent.")
    data: Annotated[dict[str, Any] | None, _JSON] = Field(None, description="Any JSON object that belongs to the session.")
    ttl_seconds: int | None = Field(None, description="Seconds after which the session ends; null, as in the REST API, keeps it.")
    long_term_memory_strategy: Annotated[MemoryStrategyConfig | None, _JSON] = Field(None, description="How memories are made of it.")


class GetWorkingMemory(_Place):
    """What get_working_memory takes."""

    recent_messages_limit: int | None = Field(None, ge=-(2**31), le=2**31, description="Only the last N messages.")


class MemoryId(BaseModel):
    """Which memory."""

    memory_id: Identifier = Field(description="The memory's id, as a search gives it.")


class ReadMemory(MemoryId):
    """What get_long_term_memory takes."""

    as_of: Instant | None = Field(None, description="As it was true at this time (ISO 8601).")
    known_at: Instant | None = Field(None, description="As it was known at this time (ISO 8601).")


class EditMemory(MemoryId, EditMemoryRecordRequest):
    """What edit_long_term_memory takes."""

    topics: _Names = Field(None, description="In place of the topics it has; [] removes them.")
    entities: _Names = Field(None, description="In place of the entities it has; [] removes them.")


class MemoryIds(BaseModel):
    """Which memories."""

    memory_ids: Annotated[list[Identifier], _JSON] = Field(description="The memories' ids, as a search gives them.")


class ForgetArguments(BaseModel):
    """What forget_memory takes."""

    text: Annotated[str | None, Field(min_length=1, max_length=2000)] = Field(
        None, description="What is to be forgotten, in the user's words."
    )
    ids: Annotated[list[Identifier] | None, _JSON] = Field(None, description="Exactly these, as an answer of this tool named them.")
    user_id: OptionalIdentifier = Field(None, description="The user whose memories are meant.")
    namespace: OptionalIdentifier = Field(None, description="Only memories of this namespace.")
    session_id: OptionalIdentifier = Field(None, description="Only what was said in this session.")
    dry_run: bool = Field(True, description="Only show what would go.")


class CompactArguments(BaseModel):
    """What compact_long_term_memories takes."""

    namespace: OptionalIdentifier = Field(None, description="Only memories of this namespace.")
    user_id: OptionalIdentifier = Field(None, description="Only memories of this user.")
    session_id: OptionalIdentifier = Field(None, description="Only memories of this session.")
