"""Searches of long-term memory."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError

from agent_memory_client.models._types import FreeText, Instant, Number
from agent_memory_client.models.conditions import Condition, MemoryFilters
from agent_memory_client.models.memories import MemoryRecordResult

MAX_SEARCH_LIMIT = 100
MAX_SEARCH_OFFSET = 1_000_000
TEXT_SCORERS = ("BM25STD", "BM25", "BM25STD.NORM", "BM25STD.TANH", "TFIDF", "TFIDF.DOCNORM", "DISMAX", "DOCSCORE", "HAMMING")


class SearchModeEnum(StrEnum):
    """How a search compares texts: by meaning, by keywords, or both."""

    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    HYBRID = "hybrid"


def _check_scorer(value: str) -> str:
    if value not in TEXT_SCORERS:
        raise PydanticCustomError("unknown_scorer", "must be one of {scorers}", {"scorers": ", ".join(TEXT_SCORERS)})
    return value


_HalfLife = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class SearchRequest(MemoryFilters):
    """A search. If there is no `text`, all memories that match the filters are listed.

    Only current memories are included, unless `as_of`, `known_at` or `history` is given.
    Quarantined memories are included only if `quarantined` is set, and never appear in prompts.
    """

    text: FreeText | None = None
    """The question, or the words to find. Without it, the search lists all memories that match the filters."""
    search_mode: SearchModeEnum = SearchModeEnum.SEMANTIC
    """Search by meaning (`semantic`), by keywords (`keyword`) or by both (`hybrid`). Default: `hybrid`, or `semantic`
    with a `distance_threshold`."""
    hybrid_alpha: Annotated[float, Field(ge=0.0, le=1.0)] = 0.7
    """In hybrid mode, the balance from keywords only (0) to meaning only (1). Without it, the server chooses the
    balance for each search."""
    text_scorer: Annotated[str, AfterValidator(_check_scorer)] = "BM25STD"
    """The search engine's scorer for keywords: `BM25STD` or another scorer."""
    distance_threshold: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None = None
    """The maximum cosine distance of a result, from 0 (same meaning) to 2. Applies only in semantic mode."""
    limit: Annotated[int, Field(ge=1, le=MAX_SEARCH_LIMIT)] = 10
    """The maximum number of results, at most 100."""
    offset: Annotated[int, Field(ge=0, le=MAX_SEARCH_OFFSET)] = 0
    """The number of results to skip: the `next_offset` of the previous page. At most 1,000,000."""
    recency_boost: bool | None = None
    """True to rank newer memories higher. False turns this off, even if other recency fields are given."""
    recency_semantic_weight: Number | None = None
    """The weight of the match with the query if recency affects the ranking. Default: 0.8."""
    recency_recency_weight: Number | None = None
    """The weight of recency if it affects the ranking. Default: 0.2."""
    recency_freshness_weight: Number | None = None
    """Within recency, the weight of the last read time. Default: 0.6."""
    recency_novelty_weight: Number | None = None
    """Within recency, the weight of the time of creation or last mention. Default: 0.4."""
    recency_half_life_last_access_days: _HalfLife | None = None
    """The number of days without a read after which freshness is halved. Default: 7."""
    recency_half_life_created_days: _HalfLife | None = None
    """The number of days since creation or last mention after which novelty is halved. Default: 30."""
    server_side_recency: bool | None = None
    """Like `recency_boost`, but with the similarity of a semantic search scaled to 0 to 1."""
    timezone: Annotated[str, Field(max_length=64)] | None = None
    """The time zone for times in the text, as an IANA name such as `Europe/Lisbon`. Default: UTC."""
    reference_time: Instant | None = None
    """The time to which "yesterday" and "last week" in the text refer. Default: now."""
    distinct: bool | None = None
    """True to omit memories that repeat a better result. Default: false for a search, true for a prompt."""
    explain: bool = False
    """True to include an explanation of the response and of each result's score."""
    min_relevance: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    """The minimum relevance of a result, from 0 to 1. Without it, a search returns the nearest memories at any
    distance. A prompt omits messages below 0.015 (lower in small stores)."""
    min_trust: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    """The minimum trust of a result, from 0 to 1. It is 1 for a user's own words, and 0.3 for tool output."""
    quarantined: bool = False
    """True to also search memories that wait for review. Prompts never contain these memories."""
    filter: Condition | None = None
    """Conditions joined by `and`, `or` and `not`. They apply in addition to the filters above."""
    as_of: Instant | None = None
    """Return memories that were true at this time. Default: now."""
    known_at: Instant | None = None
    """Return memories as the server knew them at this time. Combine this with `as_of` to ask what was considered true
    then."""
    history: bool = False
    """True to return every version, including versions that are no longer current."""


class Cut(BaseModel):
    """A ranked memory that was left out of the response."""

    memory_id: str
    reason: str
    """The reason: `collapsed` (another memory has the same content), `already_shown` (among the session's messages) or
    `over_budget`."""
    by: str | None = None
    """The id of the memory with the same content, if `reason` is `collapsed`."""
    tokens_needed: int | None = None
    """The number of tokens that the memories would need if they included this one, if `reason` is `over_budget`."""
    tokens_available: int | None = None
    """The number of tokens that were available for memories, if `reason` is `over_budget`."""


class AnswerExplanation(BaseModel):
    """An explanation of a response."""

    mode: str | None = None
    """The search mode that was used: `semantic`, `hybrid` or `keyword` (also used if the query's vector was not ready
    in time). Null for a listing."""
    query: str | None = None
    """The text that was compared by meaning."""
    left_out: list[str] = []
    """Speakers' names in the text that the comparison by meaning ignored because most memories contain them."""
    time_start: Instant | None = None
    """The start of the time that the text mentions, inclusive. Null if the text does not mention a time."""
    time_end: Instant | None = None
    """The end of that time, exclusive. Null if the text does not mention a time."""
    ranked: int = 0
    """The number of memories that were close enough to be ranked."""
    below_threshold: int = 0
    """The number of memories that were compared but were not close enough."""
    cut: list[Cut] = []
    """Memories that were ranked but left out, except for memories beyond the limit."""
    memory_tokens: int | None = None
    """In a prompt, the number of tokens that memories may use."""
    messages_left_out: int | None = None
    """In a prompt, the number of session messages that did not fit."""


class MemoryRecordResultsResponse(BaseModel):
    """A page of memories."""

    memories: list[MemoryRecordResult]
    """The memories on this page, best first."""
    total: int
    next_offset: int | None = None
    notices: list[str] | None = None
    explanation: AnswerExplanation | None = None
    """An explanation of the response, if `explain` was true."""


class MemoryRecordResults(MemoryRecordResultsResponse):
    """An alias for `MemoryRecordResultsResponse`, for older clients."""


class RecencyConfig(BaseModel):
    """How a memory's age affects its rank. None means the default. Half-lives are in days."""

    recency_boost: bool | None = None
    semantic_weight: float | None = None
    recency_weight: float | None = None
    freshness_weight: float | None = None
    novelty_weight: float | None = None
    half_life_last_access_days: float | None = None
    half_life_created_days: float | None = None
    server_side_recency: bool | None = None
