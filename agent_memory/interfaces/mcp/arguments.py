"""Define the tools' arguments as shown to clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

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

_Weight: TypeAlias = Annotated[float, Field(allow_inf_nan=False)] | None
_HalfLife: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)] | None

_SESSION_FILTER = 'Filter by session, e.g. {"eq": "monday"}; without it, memories of all sessions.'
_DATE = 'e.g. {"gte": "2026-01-01", "lte": "2026-01-31"}; a plain date covers the whole day.'
_MODEL = "The model that reads the prompt; its context window limits the messages."
_WINDOW = "The context window in tokens; overrides `model_name`."


def _listing(*names: str) -> Callable[[dict[str, Any]], None]:
    """Return a function that lists only the given fields in a JSON schema.

    The server still accepts other fields.
    """

    def keep(schema: dict[str, Any]) -> None:
        schema["properties"] = {name: schema["properties"][name] for name in names}

    return keep


def _as_strategy(value: Any) -> Any:
    return {"strategy": value} if isinstance(value, str) and not value.lstrip().startswith("{") else value


_Message: TypeAlias = Annotated[
    MemoryMessage,
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                "role": {"type": "string", "description": "user, assistant, system or tool."},
                "content": {"type": "string"},
                "id": {"type": "string"},
                "created_at": {"type": "string", "format": "date-time"},
            },
            "required": ["role", "content"],
        }
    ),
]


class LenientMemoryRecord(ExtractedMemoryRecord):
    """A memory to store, with an optional id."""

    model_config = ConfigDict(
        json_schema_extra=_listing(
            "text", "memory_type", "event_date", "topics", "entities", "user_id", "namespace", "session_id", "agent_id", "id"
        )
    )

    id: Identifier = Field(default_factory=new_id)


class NoArguments(BaseModel):
    pass


class CreateMemories(BaseModel):
    memories: list[LenientMemoryRecord] = Field(
        description="Each needs a `text` that can be understood alone; add `memory_type` (semantic: a fact, episodic: an event, with its "
        "`event_date`), `topics`, `entities`, and the owner's `user_id` and `namespace`."
    )


class _Search(BaseModel):
    """Arguments shared by searches and prompts."""

    namespace: Namespace | None = Field(None, description='Filter by namespace, e.g. {"eq": "work"}.')
    topics: Topics | None = Field(None, description='Filter by topics, e.g. {"any": ["food", "travel"]}.')
    entities: Entities | None = Field(None, description='Filter by entities, e.g. {"all": ["Ana", "Lisbon"]}.')
    created_at: CreatedAt | None = Field(None, description=f"Creation, {_DATE}")
    last_accessed: LastAccessed | None = Field(None, description=f"Last read, {_DATE}")
    user_id: UserId | None = Field(None, description='Filter by user, e.g. {"eq": "ada"}.')
    memory_type: MemoryType | None = Field(None, description='Filter by kind, e.g. {"any": ["semantic", "episodic"]}.')
    event_date: EventDate | None = Field(None, description=f"The time of the event, {_DATE}")
    timezone: str | None = Field(None, max_length=64, description="Time zone for days, e.g. Europe/Lisbon. Default: the user's.")
    min_trust: float | None = Field(None, ge=0, le=1, description="Minimum trust: 1 for a user's own words, 0.3 for a tool's.")
    min_relevance: float | None = Field(None, ge=0, le=1, description="Minimum relevance. Default in prompts: 0.015.")
    distance_threshold: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Maximum cosine distance (0 to 2), in semantic mode."
    )
    search_mode: SearchModeEnum = Field(SearchModeEnum.SEMANTIC, description="By meaning, by words, or by both.")
    limit: int = Field(10, ge=1, le=MAX_SEARCH_LIMIT, description="Maximum number of memories.")
    offset: int = Field(0, ge=0, le=MAX_SEARCH_OFFSET, description="The previous page's `next_offset`.")
    optimize_query: bool = Field(False, description="Let the server's model rewrite the query first (slower).")
    recency_boost: bool | None = Field(None, description="Whether newer memories rank higher.")
    recency_semantic_weight: _Weight = None
    recency_recency_weight: _Weight = None
    recency_freshness_weight: _Weight = None
    recency_novelty_weight: _Weight = None
    recency_half_life_last_access_days: _HalfLife = None
    recency_half_life_created_days: _HalfLife = None
    server_side_recency: bool | None = None


class SearchMemories(_Search):
    text: str | None = Field(description="A question or words to search for. If empty, lists all memories that match the filters.")
    session_id: SessionId | None = Field(None, description=_SESSION_FILTER)
    agent_id: TagFilter | None = Field(None, description="Filter by agent.")
    extraction_strategy: ExtractionStrategy | None = Field(None, description="The strategy that extracted the memories.")


COMMON_IN_SEARCH = ("text", "user_id", "namespace", "session_id", "topics", "memory_type", "event_date", "limit")


class PromptArguments(_Search):
    query: str = Field(description="The user's message: the prompt's last message, and the search query.")
    session_id: SessionId | None = Field(
        None, description='The conversation to continue, as {"eq": "its id"}. The search covers all sessions.'
    )
    model_name: str | None = Field(None, description=_MODEL)
    context_window_max: WindowTokens | None = Field(None, description=_WINDOW)
    agent_id: OptionalIdentifier = Field(None, description="The agent whose memory blocks the prompt shows.")
    include_long_term_search: bool = Field(True, description="Whether long-term memory is searched.")
    format: PromptFormat | None = Field(None, description="API format: openai, anthropic or text.")
    include_ids: bool = Field(True, description="Whether each memory's line ends with its id.")
    sections: PromptOptions | None = Field(None, description='What else the prompt shows, e.g. {"timeline": {"tokens": 300}}.')


COMMON_IN_PROMPT = ("query", "session_id", "user_id", "namespace", "agent_id", "format", "limit")


class _Place(BaseModel):
    """Identifies a session, and the model that reads it."""

    session_id: SessionIdentifier = Field(description="The session's id.")
    namespace: OptionalIdentifier = Field(None, description="The session's namespace.")
    user_id: OptionalIdentifier = Field(None, description="The session's user.")
    model_name: str | None = Field(None, max_length=256, description=_MODEL)
    context_window_max: WindowTokens | None = Field(None, description=_WINDOW)


class SetWorkingMemory(_Place):
    memories: list[LenientMemoryRecord] | None = Field(None, description="Facts to keep; they become long-term memories.")
    messages: list[_Message] | None = Field(None, description="The whole conversation, oldest message first.")
    context: str | None = Field(None, description="A summary of the conversation before the messages.")
    agent_id: OptionalIdentifier = Field(None, description="The session's agent.")
    data: dict[str, Any] | None = Field(None, description="Any JSON object that belongs to the session.")
    ttl_seconds: int | None = Field(None, description="Seconds until the session expires. Default: it never expires.")
    long_term_memory_strategy: Annotated[MemoryStrategyConfig | None, BeforeValidator(_as_strategy)] = Field(
        None, description="How memories are extracted from the session."
    )


class GetWorkingMemory(_Place):
    recent_messages_limit: int | None = Field(None, ge=-(2**31), le=2**31, description="Only the last N messages.")


class MemoryId(BaseModel):
    memory_id: Identifier = Field(description="The memory's id, as a search returns it.")


class ReadMemory(MemoryId):
    as_of: Instant | None = Field(None, description="As it was true at this time (ISO 8601).")
    known_at: Instant | None = Field(None, description="As it was known at this time (ISO 8601).")


class EditMemory(MemoryId, EditMemoryRecordRequest):
    topics: list[str] | None = Field(None, description="New topics; [] removes all.")
    entities: list[str] | None = Field(None, description="New entities; [] removes all.")


class MemoryIds(BaseModel):
    memory_ids: list[Identifier] = Field(description="The memories' ids, as a search returns them.")


class ForgetArguments(BaseModel):
    text: Annotated[str | None, Field(min_length=1, max_length=2000)] = Field(
        None, description="The statement or subject to forget, in the user's words."
    )
    ids: list[Identifier] | None = Field(None, description="Ids from an earlier answer of this tool.")
    user_id: OptionalIdentifier = Field(None, description="The user that owns the memories.")
    namespace: OptionalIdentifier = Field(None, description="Only memories of this namespace.")
    session_id: OptionalIdentifier = Field(None, description="Only messages of this session.")
    dry_run: bool = Field(True, description="Only show what would be deleted.")


class CompactArguments(BaseModel):
    namespace: OptionalIdentifier = Field(None, description="Only memories of this namespace.")
    user_id: OptionalIdentifier = Field(None, description="Only memories of this user.")
    session_id: OptionalIdentifier = Field(None, description="Only memories of this session.")
