"""Searches of long-term memory."""

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
    """A search. Without text, all memories that the filters allow are listed.

    Only current memories are found, unless `as_of`, `known_at` or `history` says otherwise. Quarantined ones are only
    found with `quarantined`, and never by a prompt.
    """

    text: FreeText | None = None
    """What to look for, as a question or in words; without it, all memories that the filters allow are listed."""
    search_mode: SearchModeEnum = SearchModeEnum.SEMANTIC
    """By meaning (`semantic`), by words (`keyword`) or by both (`hybrid`); left out, `hybrid`, or `semantic` with a
    `distance_threshold`."""
    hybrid_alpha: Annotated[float, Field(ge=0.0, le=1.0)] = 0.7
    """In hybrid mode, the weight of meaning against words, from 0 to 1; left out, the two lists are fused by rank."""
    text_scorer: Annotated[str, AfterValidator(_check_scorer)] = "BM25STD"
    """How the engine scores words: `BM25STD` or another of its scorers."""
    session_id: SessionId | None = None
    namespace: Namespace | None = None
    topics: Topics | None = None
    entities: Entities | None = None
    created_at: CreatedAt | None = None
    last_accessed: LastAccessed | None = None
    user_id: UserId | None = None
    distance_threshold: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None = None
    """The largest cosine distance of a result, from 0 (the same) to 2; in semantic mode only."""
    memory_type: MemoryType | None = None
    extraction_strategy: ExtractionStrategy | None = None
    event_date: EventDate | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_SEARCH_LIMIT)] = 10
    """At most so many results."""
    offset: Annotated[int, Field(ge=0, le=MAX_SEARCH_OFFSET)] = 0
    """How many results to skip: `next_offset` of the page before."""
    recency_boost: bool | None = None
    """Whether newer memories rank higher; false switches that off whatever else is given."""
    recency_semantic_weight: Number | None = None
    """The weight of the fit to the query when age counts; 0.8 when not given."""
    recency_recency_weight: Number | None = None
    """The weight of recency when age counts; 0.2 when not given."""
    recency_freshness_weight: Number | None = None
    """Within recency, the weight of when a memory was last read; 0.6 when not given."""
    recency_novelty_weight: Number | None = None
    """Within recency, the weight of when it was made; 0.4 when not given."""
    recency_half_life_last_access_days: _HalfLife | None = None
    """After how many days without being read freshness is halved; 7 when not given."""
    recency_half_life_created_days: _HalfLife | None = None
    """After how many days since it was made novelty is halved; 30 when not given."""
    server_side_recency: bool | None = None
    """As `recency_boost`, with the similarity of a semantic search on the scale from 0 to 1."""
    timezone: Annotated[str, Field(max_length=64)] | None = None
    """The time zone, as an IANA name such as `Europe/Lisbon`, in which a time that the text names is read; UTC when not
    given."""
    reference_time: Instant | None = None
    """The time that "yesterday" and "last week" in the text are seen from; now when not given."""
    distinct: bool | None = None
    """Whether memories that only repeat one before them are left out; a search does not unless this is true, a prompt
    does unless it is false."""
    explain: bool = False
    """Whether the answer and each result say how they came about."""
    min_relevance: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    """Leaves out what is less relevant, from 0 to 1. A search shows the nearest however far they are when this is not
    given; a prompt shows what has 0.015 at least."""
    agent_id: TagFilter | None = None
    """The agent that they belong to."""
    slot: TagFilter | None = None
    """What the facts are about, such as `home_city`."""
    category: TagFilter | None = None
    """The category of the extraction rules that they were put in."""
    source_class: TagFilter | None = None
    """Where they come from: `user`, `assistant`, `tool`, `import`, `inference` or `client`."""
    min_trust: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    """The least trust of a result, from 0 to 1: 1 a user's own words, 0.3 what a tool fetched."""
    quarantined: bool = False
    """Whether memories that wait for a review are searched instead of the others; never in a prompt."""
    metadata: MetadataFilters | None = None
    """A filter for each key of the memories' own metadata: `{"tool": {"eq": "web"}}`."""
    filter: Condition | None = None
    """Conditions that are joined by `and`, `or` and `not`, beside the filters above."""
    as_of: Instant | None = None
    """What was true at this time, instead of now."""
    known_at: Instant | None = None
    """What this server knew at this time; with `as_of`, of what was true then."""
    history: bool = False
    """Whether every version is found, also what is no longer current."""


class Cut(BaseModel):
    """A memory that was ranked, but left out of the answer."""

    memory_id: str
    reason: str
    """Why it was left out: `collapsed` (another one says the same), `already_shown` (among the prompt's messages), or
    `over_budget`."""
    by: str | None = None
    """The id of the memory that says the same, when `reason` is `collapsed`."""
    tokens_needed: int | None = None
    """How many tokens the memories would need for it to be shown, when `reason` is `over_budget`."""
    tokens_available: int | None = None
    """How many tokens there were for memories, when `reason` is `over_budget`."""


class AnswerExplanation(BaseModel):
    """How an answer came about."""

    mode: str | None = None
    """How it was searched: `semantic`, `keyword` (also when there was no vector in time) or `hybrid`; null for a
    listing."""
    query: str | None = None
    """What was compared by meaning."""
    left_out: list[str] = []
    """Words of the text that most memories share, which were not compared."""
    time_start: Instant | None = None
    """The begin of the time that the text names, included; null when it names none."""
    time_end: Instant | None = None
    """The end of that time, not included."""
    ranked: int = 0
    """How many memories were near enough to be ranked."""
    below_threshold: int = 0
    """How many were looked at and were too far."""
    cut: list[Cut] = []
    """Memories that were ranked and left out for another reason than the limit."""
    memory_tokens: int | None = None
    """In a prompt, how many tokens memories may take."""
    messages_left_out: int | None = None
    """In a prompt, how many of the session's messages did not fit."""


class MemoryRecordResultsResponse(BaseModel):
    """A page of memories."""

    memories: list[MemoryRecordResult]
    """This page's memories, the best first."""
    total: int
    next_offset: int | None = None
    notices: list[str] | None = None
    explanation: AnswerExplanation | None = None
    """How the answer came about, when `explain` asked for that."""


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
