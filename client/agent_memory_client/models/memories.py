"""Long-term memories: records, and requests that create, change and forget them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, Discriminator, Field, Tag

from agent_memory_client.models._types import (
    MAX_COUNT,
    Absent,
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


MEMORY_TYPES_HEADER: Final = "X-Agent-Memory-Types"
"""The request header with the memory types, beyond the archived server's, that a client knows: `procedural`."""


class SearchScoreTypeEnum(StrEnum):
    """Which kind of search made a score."""

    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    HYBRID = "hybrid"


class MemoryStrategyConfig(BaseModel):
    """How long-term memories are made from a session's messages."""

    strategy: Literal["discrete", "summary", "preferences", "custom"] = "discrete"
    """What is made: facts, events and ways of doing things (`discrete`), one summary of the session (`summary`),
    `preferences` only, or what `config.custom_prompt` asks for (`custom`)."""
    config: AnyObject = Field(default_factory=no_object)
    """Options of the strategy, such as `custom_prompt`, or `max_summary_length` in words, and extraction rules that
    hold for this session."""


SourceClass: TypeAlias = Literal["user", "assistant", "tool", "import", "inference", "client"]
"""Where a memory comes from: who said it, or that a program stated, imported or inferred it."""


class Evidence(BaseModel):
    """A source of a memory: messages of a session, or a program's own statement."""

    session_id: OptionalIdentifier = None
    """The session that it was said in; null when a program stated it."""
    message_ids: list[Identifier] = Field(default_factory=list[str], max_length=1000)
    """The messages of the session that say it."""
    role: FreeText | None = None
    """Who said it: the role of these messages."""
    quote: Annotated[FreeText, Field(max_length=4000)] | None = None
    """The words that say it; they stay when the messages are gone."""
    source: SourceClass | None = None
    """Where it comes from: said by the `user`, the `assistant` or a `tool`, or stated by a program (`client`), imported
    or inferred."""
    memory_id: OptionalIdentifier = None
    """The id under which it was stored before it was found to say the same as this memory."""
    at: Instant | None = None
    """When it was said or stated."""


class MemoryRecord(BaseModel):
    """A memory: who owns it, what it says, since when it is true, and where it comes from.

    Scope fields that are empty strings count as not given. The server writes `recorded_at`, `retired_at`, `supersedes`
    and `superseded_by`.
    """

    id: Identifier
    """The memory's id, at most 512 bytes; storing another text under a known id replaces what was there."""
    text: MemoryText
    """What is remembered, in words that can be understood alone; at most 64 KiB."""
    session_id: OptionalIdentifier = None
    """The session that it comes from; null when it comes from none."""
    user_id: OptionalIdentifier = None
    """The user whose memory it is; null when it is nobody's in particular."""
    namespace: OptionalIdentifier = None
    """The namespace that it is kept in, such as a project's or an application's name; null when it is in none."""
    last_accessed: Instant = Field(default_factory=now)
    """When a search or a read last gave it out."""
    created_at: Instant = Field(default_factory=now)
    """When it was made, now when not given."""
    updated_at: Instant = Field(default_factory=now)
    pinned: bool = False
    """Whether it is spared when memories are forgotten, and never merged with others."""
    access_count: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    """How often searches and reads gave it out."""
    topics: Tags = None
    """What it is about, in a few words; at most 64, without commas."""
    entities: Tags = None
    """The persons, places and things that it names; at most 64, without commas."""
    memory_hash: FreeText | None = None
    """A SHA-256 of text, scope and type, which the server computes."""
    discrete_memory_extracted: TrackingFlag = "f"
    """`t` when nothing more is to be extracted from it, `f` when facts may still be."""
    memory_type: MemoryTypeEnum = MemoryTypeEnum.MESSAGE
    """A fact (`semantic`), an event (`episodic`), a message word for word (`message`), or a way of doing something
    (`procedural`)."""
    persisted_at: Instant | None = None
    """When it was stored as a long-term memory; in a session's `memories`, null until then."""
    extracted_from: References = None
    """The ids of the messages that it was made of."""
    event_date: Instant | None = None
    """When what it tells happened; null when that is no one time."""
    extraction_strategy: Identifier = "discrete"
    """The strategy that made it; `message` for a message word for word."""
    extraction_strategy_config: AnyObject = Field(default_factory=no_object)
    """The options of that strategy."""
    metadata: JsonObject = Field(default_factory=no_object)
    """Any JSON object of the caller's own; its first 64 keys can be searched by."""
    agent_id: OptionalIdentifier = Absent
    """The agent that it belongs to; agents do not replace each other's facts."""
    slot: OptionalIdentifier = Absent
    """What the fact is about, such as `home_city`: of one slot of a user, namespace and agent one fact is current, and
    a new one ends it."""
    category: OptionalIdentifier = Absent
    """The category of the extraction rules that it was put in."""
    valid_from: Instant | None = Absent
    """Since when it is true; since it was made when not given."""
    valid_to: Instant | None = Absent
    """Until when it is true; it is not found afterwards unless history is asked for. Left out while it is true."""
    expires_at: Instant | None = Absent
    """From when on nobody is shown it any more."""
    recorded_at: Instant | None = Absent
    """When the server began to know this version; the server writes it."""
    retired_at: Instant | None = Absent
    """When the server knew better; the server writes it, and leaves it out for what is current."""
    supersedes: list[Identifier] | None = Absent
    """The ids of the memories that it took the place of; the server writes it."""
    superseded_by: OptionalIdentifier = Absent
    """The id of the memory that took its place; the server writes it."""
    evidence: Annotated[list[Evidence], Field(max_length=200)] | None = Absent
    """What it rests on: messages, or a program's own statement."""
    source_class: SourceClass | None = Absent
    """Where it comes from: said by the `user`, the `assistant` or a `tool`, or stated by a program (`client`), imported
    or inferred."""
    trust: Annotated[float, Field(ge=0.0, le=1.0)] | None = Absent
    """How far its source goes, from 0 to 1: 1 for a user's or a program's own words, 0.3 for what a tool fetched."""
    quarantine: OptionalIdentifier = Absent
    """Why it waits for a review and is neither found nor shown to a model; left out when it does not."""
    approved: OptionalIdentifier = Absent
    """A digest of the text that an administrator approved in quarantine; the server writes it."""
    confidence: Annotated[float, Field(ge=0.0, le=1.0)] | None = Absent
    """How sure the language model was of it, from 0 to 1."""
    model: OptionalIdentifier = Absent
    """The language model that extracted it."""
    prompt_version: OptionalIdentifier = Absent
    """The version of the server's prompt that it was extracted with."""


class ClientMemoryRecord(MemoryRecord):
    """A memory whose id may be left out: a ULID is made for it."""

    id: Identifier = Field(default_factory=new_id)
    """The memory's id, at most 512 bytes; one is made when it is left out."""


class ExtractedMemoryRecord(MemoryRecord):
    """A memory that its author states: a fact by default, and nothing is to be extracted from it."""

    discrete_memory_extracted: TrackingFlag = "t"
    """Stored as `t` whatever is sent: nothing is extracted from what its author states."""
    memory_type: MemoryTypeEnum = MemoryTypeEnum.SEMANTIC
    """A fact (`semantic`, the default), an event (`episodic`), a message word for word (`message`), or a way of doing
    something (`procedural`)."""


class HitExplanation(BaseModel):
    """How a search scored a memory: its place in the whole answer and in each list, and the parts of its score."""

    rank: int
    """Its place in the whole answer, from 1."""
    score: float | None = None
    """What it was ranked by; higher is better."""
    similarity: float | None = None
    """The cosine similarity of query and memory: 1 is the same."""
    similarity_rank: int | None = None
    """Its place among the memories by meaning, from 1; null when it is not among them."""
    words: float | None = None
    """How well its words fit the query's, as a BM25 score; words of a time that the query names do not count."""
    words_rank: int | None = None
    """Its place among the memories by words, from 1; null when it is not among them."""
    in_time: bool = False
    """Whether it belongs to the time that the query names."""
    recency: float | None = None
    """How recent it is, from 0 to 1; it moves places, not the score."""
    reranked: float | None = None
    """The score of a reranking model; it moves places, not the score."""


class Passage(BaseModel):
    """A part of a memory's text: `text[start:end]`, counted in Unicode characters."""

    text: str
    """The words themselves."""
    start: int
    """Its first character, from 0."""
    end: int
    """The character behind its last."""


class MemoryRecordResult(MemoryRecord):
    """A memory that a search found."""

    dist: float
    """The cosine distance from the query, from 0 (the same) to 2; 0 in listings, which have no query."""
    score: float | None = None
    """How well it fits; higher is better, comparable within one answer only."""
    score_type: SearchScoreTypeEnum | None = None
    """Which kind of search made the score; null in listings."""
    explanation: HitExplanation | None = None
    """How it was scored, when the search asked for that with `explain`."""
    relevance: Annotated[float, Field(ge=0.0, le=1.0)] | None = Absent
    """How probable it is that the query asks for it, from 0 to 1; left out in listings."""
    passage: Passage | None = Absent
    """The part of a long text that fits the query best; left out for a text that is shorter than about 300 tokens."""


def _record_kind(value: Any) -> str:
    """Name the class that reads an entry of a session's `memories`: the one that makes ids, if it has none."""
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
    """The memories to store."""
    deduplicate: bool = True
    """Whether one that says the same as a stored one becomes evidence of that instead of a second memory."""


class EditMemoryRecordRequest(BaseModel):
    """Fields to change. Null, an empty list or an empty string clears a field; null leaves `text`, `memory_type` and `pinned`."""

    text: MemoryText | None = None
    """What is remembered, instead of the former text."""
    topics: Tags = None
    """All topics that it is to have; an empty list removes them."""
    entities: Tags = None
    """All entities that it is to have; an empty list removes them."""
    memory_type: MemoryTypeEnum | None = None
    """The kind that it is to be of."""
    namespace: ClearableIdentifier | None = None
    """The namespace to move it to; an empty string takes it out of its namespace."""
    user_id: ClearableIdentifier | None = None
    """The user to give it to; an empty string makes it nobody's."""
    session_id: ClearableIdentifier | None = None
    """The session that it is to belong to; an empty string removes it from its session."""
    event_date: Instant | None = None
    """When what it tells happened; null removes the date."""
    pinned: bool | None = None
    """Whether it is spared when memories are forgotten or merged."""
    agent_id: ClearableIdentifier | None = None
    """The agent that it is to belong to; an empty string removes it."""
    slot: ClearableIdentifier | None = None
    """What the fact is about, such as `home_city`: it ends the slot's current fact. An empty string removes it."""
    category: ClearableIdentifier | None = None
    """The category that it is put in; an empty string removes it."""
    valid_from: Instant | None = None
    """Since when it is true; null: since it was made."""
    valid_to: Instant | None = None
    """Until when it is true; null: it still is."""
    expires_at: Instant | None = None
    """From when on nobody is shown it any more; null: it lasts."""
    metadata: JsonObject | None = None
    """The metadata that it is to have, in place of the former ones; null removes them."""


class ForgetPolicy(BaseModel):
    """Which memories may be forgotten: see `ForgetRequest.policy`."""

    max_age_days: float | None = None
    max_inactive_days: float | None = None
    budget: int | None = None
    memory_type_allowlist: list[FreeText] | None = None
    hard_age_multiplier: float | None = None


class ForgetRequest(BaseModel):
    """A policy, and the ids that it must spare."""

    policy: AnyObject
    """Which memories may go: `max_age_days` (since they were made), `max_inactive_days` (since they were last read),
    `budget` (how many stay), `memory_type_allowlist` (only these types may go) and `hard_age_multiplier` (12). With
    both ages a memory must be past both, or be older than `max_age_days * hard_age_multiplier`. Other keys are
    ignored."""
    pinned_ids: list[FreeText] | None = None
    """Ids of memories to spare, beside those that are pinned."""


class ForgetResponse(BaseModel):
    """What was forgotten, or in a dry run what would be."""

    scanned: int
    """How many memories were looked at."""
    deleted: int
    """How many were forgotten, or in a dry run would be."""
    deleted_ids: list[str]
    """Their ids."""
    dry_run: bool
    """Whether this was only a trial that deleted nothing."""


class QuarantineListResponse(BaseModel):
    """A page of the memories that wait for a review."""

    memories: list[MemoryRecord]
    """This page's memories; `quarantine` says why each of them waits."""
    total: int
    next_offset: int | None = None


class AckResponse(BaseModel):
    """The request was carried out; `status` begins with "ok"."""

    status: str
    """`ok`, possibly with what was done (`ok, deleted 2 memories`), or `pending` when the work goes on in the
    background."""
    notices: list[str] | None = Absent
