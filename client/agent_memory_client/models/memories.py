"""Long-term memories: the records, and the requests that create, change and forget them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Discriminator, Field, Tag

from agent_memory_client.models._types import (
    MAX_COUNT,
    AnyObject,
    ClearableIdentifier,
    FreeText,
    Identifier,
    Instant,
    JsonObject,
    MemoryText,
    OptionalIdentifier,
    References,
    Tags,
    new_id,
    no_object,
    now,
)
from agent_memory_client.models.messages import TrackingFlag


class MemoryTypeEnum(StrEnum):
    """What kind of thing a memory is: an event with a time, a fact, a message word for word, or a way of doing something."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    MESSAGE = "message"
    PROCEDURAL = "procedural"


class SearchScoreTypeEnum(StrEnum):
    """Which kind of search made a score."""

    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    HYBRID = "hybrid"


class MemoryStrategyConfig(BaseModel):
    """How long-term memories are made from a session's messages."""

    strategy: Literal["discrete", "summary", "preferences", "custom"] = "discrete"
    config: AnyObject = Field(default_factory=no_object)


SourceClass: TypeAlias = Literal["user", "assistant", "tool", "import", "inference", "client"]
"""Where a memory comes from: who said it, or that a program stated, imported or inferred it."""


class Evidence(BaseModel):
    """What a memory rests on: messages of a session, or a program's own statement. `quote` is kept when the messages are gone."""

    session_id: OptionalIdentifier = None
    message_ids: list[Identifier] = Field(default_factory=list[str], max_length=1000)
    role: FreeText | None = None
    quote: Annotated[FreeText, Field(max_length=4000)] | None = None
    source: SourceClass | None = None
    memory_id: OptionalIdentifier = None
    at: Instant | None = None


def _is_none(value: object) -> bool:
    return value is None


Absent = Field(default=None, exclude_if=_is_none)
"""A field that answers leave out when it has no value: programs that do not know it see what they always saw."""


class MemoryRecord(BaseModel):
    """A memory. Scope fields that are empty strings count as not given.

    A fact is true from `valid_from` (when it was made, if not given) until `valid_to`, and nobody is shown it after `expires_at`.
    `recorded_at` and `retired_at` say when the server knew it; they, `supersedes` and `superseded_by` are the server's to write.
    `source_class` and `trust` (0 to 1) say where it comes from and how far that goes; what is in `quarantine`, for the reason that stands
    there, is neither found nor shown to a model until it is approved.
    `slot` names what a fact is about ("home_city"): of one slot of a user, namespace and agent one fact is current.
    """

    id: Identifier
    text: MemoryText
    session_id: OptionalIdentifier = None
    user_id: OptionalIdentifier = None
    namespace: OptionalIdentifier = None
    last_accessed: Instant = Field(default_factory=now)
    created_at: Instant = Field(default_factory=now)
    updated_at: Instant = Field(default_factory=now)
    pinned: bool = False
    access_count: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    topics: Tags = None
    entities: Tags = None
    memory_hash: FreeText | None = None
    discrete_memory_extracted: TrackingFlag = "f"
    memory_type: MemoryTypeEnum = MemoryTypeEnum.MESSAGE
    persisted_at: Instant | None = None
    extracted_from: References = None
    event_date: Instant | None = None
    extraction_strategy: Identifier = "discrete"
    extraction_strategy_config: AnyObject = Field(default_factory=no_object)
    metadata: JsonObject = Field(default_factory=no_object)
    agent_id: OptionalIdentifier = Absent
    slot: OptionalIdentifier = Absent
    category: OptionalIdentifier = Absent
    valid_from: Instant | None = Absent
    valid_to: Instant | None = Absent
    expires_at: Instant | None = Absent
    recorded_at: Instant | None = Absent
    retired_at: Instant | None = Absent
    supersedes: list[Identifier] | None = Absent
    superseded_by: OptionalIdentifier = Absent
    evidence: Annotated[list[Evidence], Field(max_length=200)] | None = Absent
    source_class: SourceClass | None = Absent
    trust: Annotated[float, Field(ge=0.0, le=1.0)] | None = Absent
    quarantine: OptionalIdentifier = Absent
    approved: OptionalIdentifier = Absent
    confidence: Annotated[float, Field(ge=0.0, le=1.0)] | None = Absent
    model: OptionalIdentifier = Absent
    prompt_version: OptionalIdentifier = Absent


class ClientMemoryRecord(MemoryRecord):
    """A memory whose id may be left out: a ULID is made for it."""

    id: Identifier = Field(default_factory=new_id)


class ExtractedMemoryRecord(MemoryRecord):
    """A memory that its author states: a fact by default, and nothing is to be extracted from it."""

    discrete_memory_extracted: TrackingFlag = "t"
    memory_type: MemoryTypeEnum = MemoryTypeEnum.SEMANTIC


class HitExplanation(BaseModel):
    """How a search scored a memory: its rank in the whole answer and in each list (from 1; None: not in that list), and the parts.

    `similarity` is the cosine, `words` the BM25 score; `in_time`: it belongs to the time that the query names, and `words`
    leaves that time's words out. `recency` (0 to 1) is how recent it is, `reranked` a reranking model's score; both move places only, not
    the score.
    """

    rank: int
    score: float | None = None
    similarity: float | None = None
    similarity_rank: int | None = None
    words: float | None = None
    words_rank: int | None = None
    in_time: bool = False
    recency: float | None = None
    reranked: float | None = None


class MemoryRecordResult(MemoryRecord):
    """A memory that a search found. `dist` is the cosine distance (0 to 2, 0.0 in listings); `score` grows with relevance."""

    dist: float
    score: float | None = None
    score_type: SearchScoreTypeEnum | None = None
    explanation: HitExplanation | None = None


def _record_kind(value: Any) -> str:
    """Which class reads an entry of a session's `memories`: the one that makes ids, when there is none."""
    if isinstance(value, MemoryRecord):
        return "ClientMemoryRecord" if isinstance(value, ClientMemoryRecord) else "MemoryRecord"
    return "ClientMemoryRecord" if isinstance(value, dict) and "id" not in value else "MemoryRecord"


SessionMemory: TypeAlias = Annotated[
    Annotated[MemoryRecord, Tag("MemoryRecord")] | Annotated[ClientMemoryRecord, Tag("ClientMemoryRecord")],
    Discriminator(_record_kind),
]
"""A structured memory in a session; its id may be left out."""


class CreateMemoryRecordRequest(BaseModel):
    """Memories to store. With `deduplicate`, one that says the same as a stored one is not stored twice."""

    memories: list[ExtractedMemoryRecord]
    deduplicate: bool = True


class EditMemoryRecordRequest(BaseModel):
    """Fields to change. None means "not given"; an empty list clears tags, an empty string clears a scope field."""

    text: MemoryText | None = None
    topics: Tags = None
    entities: Tags = None
    memory_type: MemoryTypeEnum | None = None
    namespace: ClearableIdentifier | None = None
    user_id: ClearableIdentifier | None = None
    session_id: ClearableIdentifier | None = None
    event_date: Instant | None = None
    pinned: bool | None = None
    agent_id: ClearableIdentifier | None = None
    slot: ClearableIdentifier | None = None
    category: ClearableIdentifier | None = None
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    expires_at: Instant | None = None
    metadata: JsonObject | None = None


class ForgetPolicy(BaseModel):
    """Which memories may be forgotten: too old, not read for too long, or beyond a budget (the number to keep).

    With both ages given a memory must fail both, or be older than `max_age_days * hard_age_multiplier`.
    """

    max_age_days: float | None = None
    max_inactive_days: float | None = None
    budget: int | None = None
    memory_type_allowlist: list[FreeText] | None = None
    hard_age_multiplier: float | None = None


class ForgetRequest(BaseModel):
    """A policy (its unknown keys are ignored) and the ids that it must spare."""

    policy: AnyObject
    pinned_ids: list[FreeText] | None = None


class ForgetResponse(BaseModel):
    """What was forgotten, or in a dry run what would be."""

    scanned: int
    deleted: int
    deleted_ids: list[str]
    dry_run: bool


class QuarantineListResponse(BaseModel):
    """A page of the memories that wait for a review; `next_offset` is None on the last page."""

    memories: list[MemoryRecord]
    total: int
    next_offset: int | None = None


class AckResponse(BaseModel):
    """The request was carried out; `status` begins with "ok"."""

    status: str
