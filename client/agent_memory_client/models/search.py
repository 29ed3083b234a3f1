"""Searching long-term memory."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError

from agent_memory_client.models._types import FreeText, Instant, Number
from agent_memory_client.models.conditions import Condition, MetadataFilters
from agent_memory_client.models.filters import (
    CreatedAt,
    Entities,
    EventDate,
    ExtractionStrategy,
    LastAccessed,
    MemoryType,
    Namespace,
    SessionId,
    TagFilter,
    Topics,
    UserId,
)
from agent_memory_client.models.memories import MemoryRecordResult

MAX_SEARCH_LIMIT = 100
MAX_SEARCH_OFFSET = 1_000_000
TEXT_SCORERS = (
    "BM25STD",
    "BM25",
    "BM25STD.NORM",
    "BM25STD.TANH",
    "TFIDF",
    "TFIDF.DOCNORM",
    "DISMAX",
    "DOCSCORE",
    "HAMMING",
)


class SearchModeEnum(StrEnum):
    """By meaning, by words, or by both."""

    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    HYBRID = "hybrid"


def _check_scorer(value: str) -> str:
    if value not in TEXT_SCORERS:
        raise PydanticCustomError("unknown_scorer", "must be one of {scorers}", {"scorers": ", ".join(TEXT_SCORERS)})
    return value


_HalfLife = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class SearchRequest(BaseModel):
    """What to search for. Without text every memory that the filters allow is listed.

    `distance_threshold` is the largest cosine distance (0 to 2) of a semantic search; `hybrid_alpha` is the weight of meaning
    against words; half-lives are in days. A time that the text names ("last week") is read in `timezone` (an
    IANA name, UTC if not given) as seen from `reference_time` (now if not given). With `distinct`, memories that only repeat one before
    them are left out (prompts do so unless it is false). With `explain` the answer and each result say how they came about.

    Only what is current is found: `as_of` asks for what was true at a time, `known_at` for what the server answered then (with `as_of`: for
    what it then knew to be true at that time), and `history` for every version. What is less trusted than `min_trust`
    (0 to 1) is left out; what is in quarantine is only found when `quarantined` asks for it, and never by a prompt. `filter` joins
    conditions by and, or and not.
    """

    text: FreeText | None = None
    search_mode: SearchModeEnum = SearchModeEnum.SEMANTIC
    hybrid_alpha: Annotated[float, Field(ge=0.0, le=1.0)] = 0.7
    text_scorer: Annotated[str, AfterValidator(_check_scorer)] = "BM25STD"
    session_id: SessionId | None = None
    namespace: Namespace | None = None
    topics: Topics | None = None
    entities: Entities | None = None
    created_at: CreatedAt | None = None
    last_accessed: LastAccessed | None = None
    user_id: UserId | None = None
    distance_threshold: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None = None
    memory_type: MemoryType | None = None
    extraction_strategy: ExtractionStrategy | None = None
    event_date: EventDate | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_SEARCH_LIMIT)] = 10
    offset: Annotated[int, Field(ge=0, le=MAX_SEARCH_OFFSET)] = 0
    recency_boost: bool | None = None
    recency_semantic_weight: Number | None = None
    recency_recency_weight: Number | None = None
    recency_freshness_weight: Number | None = None
    recency_novelty_weight: Number | None = None
    recency_half_life_last_access_days: _HalfLife | None = None
    recency_half_life_created_days: _HalfLife | None = None
    server_side_recency: bool | None = None
    timezone: Annotated[str, Field(max_length=64)] | None = None
    reference_time: Instant | None = None
    distinct: bool | None = None
    explain: bool = False
    agent_id: TagFilter | None = None
    slot: TagFilter | None = None
    category: TagFilter | None = None
    source_class: TagFilter | None = None
    min_trust: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    quarantined: bool = False
    metadata: MetadataFilters | None = None
    filter: Condition | None = None
    as_of: Instant | None = None
    known_at: Instant | None = None
    history: bool = False


class Cut(BaseModel):
    """A memory that was ranked and is not in the answer: collapsed (`by` says the same), already_shown (among a prompt's messages), or
    over_budget (it needs `tokens_needed` in all for memories, `tokens_available` were there)."""

    memory_id: str
    reason: str
    by: str | None = None
    tokens_needed: int | None = None
    tokens_available: int | None = None


class AnswerExplanation(BaseModel):
    """How an answer came about: `query` is what was compared by meaning, without the words `left_out` that most memories share.

    `time_start` (included) and `time_end` (not) bound the time that the query names. `ranked` memories were near enough, `below_threshold`
    were looked at and were not; `cut` are those that the answer left out for another reason than its limit. In prompts `memory_tokens` is
    what memories may take, `messages_left_out` how many of the session's messages did not fit.
    """

    mode: str | None = None
    query: str | None = None
    left_out: list[str] = []
    time_start: Instant | None = None
    time_end: Instant | None = None
    ranked: int = 0
    below_threshold: int = 0
    cut: list[Cut] = []
    memory_tokens: int | None = None
    messages_left_out: int | None = None


class MemoryRecordResultsResponse(BaseModel):
    """A page of memories; `total` counts all that match, `next_offset` is None on the last page.

    `notices` says what was not done as asked, such as a rewritten query that a language model did not give in time.
    """

    memories: list[MemoryRecordResult]
    total: int
    next_offset: int | None = None
    notices: list[str] | None = None
    explanation: AnswerExplanation | None = None


class MemoryRecordResults(MemoryRecordResultsResponse):
    """The same page under the name that programs know."""


class RecencyConfig(BaseModel):
    """How much a memory's age counts in a search; a field that is None leaves the server's default. Half-lives are in days."""

    recency_boost: bool | None = None
    semantic_weight: float | None = None
    recency_weight: float | None = None
    freshness_weight: float | None = None
    novelty_weight: float | None = None
    half_life_last_access_days: float | None = None
    half_life_created_days: float | None = None
    server_side_recency: bool | None = None
