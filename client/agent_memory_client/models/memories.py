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
    """The type of a memory: an event with a time, a fact, a message word for word, or a procedure."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    MESSAGE = "message"
    PROCEDURAL = "procedural"


MEMORY_TYPES_HEADER: Final = "X-Agent-Memory-Types"
"""The request header in which a client names the memory types it knows beyond the archived server's: `procedural`."""


class SearchScoreTypeEnum(StrEnum):
    """The kind of search that made a score."""

    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    HYBRID = "hybrid"


class MemoryStrategyConfig(BaseModel):
    """How the server makes long-term memories from a session's messages."""

    strategy: Literal["discrete", "summary", "preferences", "custom"] = "discrete"
    """The memories to make: facts, events and procedures (`discrete`), a summary of the session (`summary`), only
    `preferences`, or the answer to `config.custom_prompt` (`custom`)."""
    config: AnyObject = Field(default_factory=no_object)
    """Options of the strategy, such as `custom_prompt`, `max_summary_length` (in words), and extraction rules for this
    session."""


SourceClass: TypeAlias = Literal["user", "assistant", "tool", "import", "inference", "client"]
"""The source of a memory: the speaker of a message, or a program that stated, imported or inferred it."""


class Evidence(BaseModel):
    """A source of a memory: messages of a session, or a statement of a program."""

    session_id: OptionalIdentifier = None
    """The session of the messages; null if a program stated the memory."""
    message_ids: list[Identifier] = Field(default_factory=list[str], max_length=1000)
    """The ids of the messages, at most 1,000."""
    role: FreeText | None = None
    """The role of these messages."""
    quote: Annotated[FreeText, Field(max_length=4000)] | None = None
    """The exact words of the messages, at most 4,000 characters. They stay after the messages are deleted."""
    source: SourceClass | None = None
    """The source: a message of the `user`, the `assistant` or a `tool`, a program's statement (`client`), an `import`
    or an `inference`."""
    memory_id: OptionalIdentifier = None
    """The id of a former memory that had the same content, and became evidence of this one."""
    at: Instant | None = None
    """The time of the statement."""


class MemoryRecord(BaseModel):
    """A memory: its owner, its text, the time in which it is true, and its source.

    Empty strings in scope fields count as not given. The server sets `recorded_at`, `retired_at`, `supersedes` and
    `superseded_by`.
    """

    id: Identifier
    """The memory's id, at most 512 bytes. Storing another text under an existing id replaces the old text."""
    text: MemoryText
    """The memory's text, at most 64 KiB. Write it so that a reader understands it without context."""
    session_id: OptionalIdentifier = None
    """The session that the memory comes from; null if it comes from no session."""
    user_id: OptionalIdentifier = None
    """The user that the memory belongs to; null for no user."""
    namespace: OptionalIdentifier = None
    """The memory's namespace, such as a project's or an application's name; null for no namespace."""
    last_accessed: Instant = Field(default_factory=now)
    """The time when a search or a read last returned the memory."""
    created_at: Instant = Field(default_factory=now)
    """The time when the memory was created. Default: now."""
    updated_at: Instant = Field(default_factory=now)
    pinned: bool = False
    """True to keep the memory when a policy forgets memories and when duplicates are merged."""
    access_count: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    """The number of times that searches and reads returned the memory."""
    topics: Tags = None
    """The topics in a few words each: at most 64, without commas."""
    entities: Tags = None
    """The persons, places and things in the text: at most 64, without commas."""
    memory_hash: FreeText | None = None
    """A SHA-256 of text, scope and type. The server computes it."""
    discrete_memory_extracted: TrackingFlag = "f"
    """`t` if the server has extracted facts from the memory, or must not. `f` if it may still extract facts."""
    memory_type: MemoryTypeEnum = MemoryTypeEnum.MESSAGE
    """The memory's type: a fact (`semantic`), an event (`episodic`), a message word for word (`message`), or a
    procedure (`procedural`)."""
    persisted_at: Instant | None = None
    """The time when the memory was stored as a long-term memory. In a session's `memories`: null before that."""
    extracted_from: References = None
    """The ids of the messages that the memory was made from."""
    event_date: Instant | None = None
    """The time of the event in the text; null if there is no single time."""
    extraction_strategy: Identifier = "discrete"
    """The extraction strategy that made the memory; `message` for a message word for word."""
    extraction_strategy_config: AnyObject = Field(default_factory=no_object)
    """The options of that strategy."""
    metadata: JsonObject = Field(default_factory=no_object)
    """Your own data, as a JSON object. Filters can use its first 64 keys."""
    agent_id: OptionalIdentifier = Absent
    """The agent of the memory. An agent's facts never replace facts of other agents."""
    slot: OptionalIdentifier = Absent
    """The subject of the fact, such as `home_city`. Each user, namespace and agent has one current fact per slot. A new
    fact ends the old one."""
    category: OptionalIdentifier = Absent
    """The category of the memory, from the extraction rules."""
    valid_from: Instant | None = Absent
    """The time from which the memory is true. Default: `created_at`."""
    valid_to: Instant | None = Absent
    """The time when the memory stops being true. Later searches return it only with `as_of` or `history`. Left out
    while it is true."""
    expires_at: Instant | None = Absent
    """The time when the memory expires. After it, no answer contains the memory."""
    recorded_at: Instant | None = Absent
    """The time when the server stored this version. The server sets it."""
    retired_at: Instant | None = Absent
    """The time when this version stopped being current. The server sets it, and leaves it out for current versions."""
    supersedes: list[Identifier] | None = Absent
    """The ids of the memories that this one replaced. The server sets it."""
    superseded_by: OptionalIdentifier = Absent
    """The id of the memory that replaced this one. The server sets it."""
    evidence: Annotated[list[Evidence], Field(max_length=200)] | None = Absent
    """The sources of the memory, at most 200: messages, or a statement of a program."""
    source_class: SourceClass | None = Absent
    """The source of the memory: a message of the `user`, the `assistant` or a `tool`, a program's statement (`client`),
    an `import` or an `inference`."""
    trust: Annotated[float, Field(ge=0.0, le=1.0)] | None = Absent
    """The trust in the source, from 0 to 1. A user's or a program's own words have 1, tool output has 0.3."""
    quarantine: OptionalIdentifier = Absent
    """The reason why the memory waits for a review. Until then, no search or prompt returns it. Left out for other
    memories."""
    approved: OptionalIdentifier = Absent
    """A digest of the text that an administrator approved in quarantine. The server sets it."""
    confidence: Annotated[float, Field(ge=0.0, le=1.0)] | None = Absent
    """The confidence of the language model, from 0 to 1."""
    model: OptionalIdentifier = Absent
    """The language model that extracted the memory."""
    prompt_version: OptionalIdentifier = Absent
    """The version of the prompt for that model."""


class ClientMemoryRecord(MemoryRecord):
    """A memory whose id is optional. By default, the client makes a ULID."""

    id: Identifier = Field(default_factory=new_id)
    """The memory's id, at most 512 bytes. Without it, a new id is made."""


class ExtractedMemoryRecord(MemoryRecord):
    """A memory that a program states. Its default type is a fact, and the server extracts nothing from it."""

    discrete_memory_extracted: TrackingFlag = "t"
    """Always stored as `t`: the server extracts nothing from a program's statement."""
    memory_type: MemoryTypeEnum = MemoryTypeEnum.SEMANTIC
    """The memory's type: a fact (`semantic`, the default), an event (`episodic`), a message word for word (`message`),
    or a procedure (`procedural`)."""


class HitExplanation(BaseModel):
    """How a search scored a memory: its rank in the answer and in each list, and the parts of its score."""

    rank: int
    """The rank in the whole answer, from 1."""
    score: float | None = None
    """The score that decided the rank; higher is better."""
    similarity: float | None = None
    """The cosine similarity of query and memory. 1 is the same meaning."""
    similarity_rank: int | None = None
    """The rank by meaning, from 1; null if the memory is not in this list."""
    words: float | None = None
    """The BM25 score of the memory's words. Words that name a time in the query do not count."""
    words_rank: int | None = None
    """The rank by words, from 1; null if the memory is not in this list."""
    in_time: bool = False
    """True if the memory belongs to the time that the query names."""
    recency: float | None = None
    """The recency from 0 to 1. It changes the rank, not the score."""
    reranked: float | None = None
    """The score of a reranking model. It changes the rank, not the score."""


class Passage(BaseModel):
    """A part of a memory's text: `text[start:end]`, in Unicode characters."""

    text: str
    """The words of the part."""
    start: int
    """The position of the first character, from 0."""
    end: int
    """The position after the last character."""


class MemoryRecordResult(MemoryRecord):
    """A memory that a search found."""

    dist: float
    """The cosine distance from the query, from 0 (same meaning) to 2. Listings have no query, and distance 0."""
    score: float | None = None
    """How well the memory matches; higher is better. Compare scores only within one answer."""
    score_type: SearchScoreTypeEnum | None = None
    """The kind of search that made the score; null in listings."""
    explanation: HitExplanation | None = None
    """How the memory was scored, if `explain` was true."""
    relevance: Annotated[float, Field(ge=0.0, le=1.0)] | None = Absent
    """The probability that the query asks for this memory, from 0 to 1; left out in listings."""
    passage: Passage | None = Absent
    """The part of a long text that matches the query best; left out for texts shorter than about 300 tokens."""


def _record_kind(value: Any) -> str:
    """Return the name of the class for an entry of a session's `memories`: without an id, the class that makes ids."""
    if isinstance(value, MemoryRecord):
        return "ClientMemoryRecord" if isinstance(value, ClientMemoryRecord) else "MemoryRecord"
    return "ClientMemoryRecord" if isinstance(value, dict) and "id" not in value else "MemoryRecord"


SessionMemory: TypeAlias = Annotated[
    Annotated[MemoryRecord, Tag("MemoryRecord")] | Annotated[ClientMemoryRecord, Tag("ClientMemoryRecord")],
    Discriminator(_record_kind),
]
"""A structured memory in a session. Its id is optional."""


class CreateMemoryRecordRequest(BaseModel):
    """Memories to store. With `deduplicate`, a memory that repeats a stored one is not stored twice."""

    memories: list[ExtractedMemoryRecord]
    """The memories to store."""
    deduplicate: bool = True
    """True to turn a memory that repeats a stored one into evidence of the stored one."""


class EditMemoryRecordRequest(BaseModel):
    """The fields to change.

    Null, an empty list or an empty string clears a field. Null keeps `text`, `memory_type` and `pinned`.
    """

    text: MemoryText | None = None
    """The new text, at most 64 KiB."""
    topics: Tags = None
    """The new list of topics. An empty list removes all topics."""
    entities: Tags = None
    """The new list of entities. An empty list removes all entities."""
    memory_type: MemoryTypeEnum | None = None
    """The new type."""
    namespace: ClearableIdentifier | None = None
    """The new namespace. An empty string removes the memory from its namespace."""
    user_id: ClearableIdentifier | None = None
    """The new owner. An empty string removes the owner."""
    session_id: ClearableIdentifier | None = None
    """The new session. An empty string removes the memory from its session."""
    event_date: Instant | None = None
    """The time of the event in the text. Null removes the time."""
    pinned: bool | None = None
    """True to keep the memory when a policy forgets memories and when duplicates are merged."""
    agent_id: ClearableIdentifier | None = None
    """The new agent. An empty string removes the agent."""
    slot: ClearableIdentifier | None = None
    """The subject of the fact, such as `home_city`. The fact ends the slot's current fact. An empty string removes the
    slot."""
    category: ClearableIdentifier | None = None
    """The new category. An empty string removes the category."""
    valid_from: Instant | None = None
    """The time from which the memory is true. Null means `created_at`."""
    valid_to: Instant | None = None
    """The time when the memory stops being true. Null means that it is still true."""
    expires_at: Instant | None = None
    """The time when the memory expires. Null means that it never expires."""
    metadata: JsonObject | None = None
    """The new metadata, which replaces all former metadata. Null removes the metadata."""


class ForgetPolicy(BaseModel):
    """Conditions for memories that may be forgotten: see `ForgetRequest.policy`."""

    max_age_days: float | None = None
    max_inactive_days: float | None = None
    budget: int | None = None
    memory_type_allowlist: list[FreeText] | None = None
    hard_age_multiplier: float | None = None


class ForgetRequest(BaseModel):
    """A policy, and the ids of memories to keep."""

    policy: AnyObject
    """The conditions for deletion. `max_age_days`: days since creation. `max_inactive_days`: days since the last read.
    `budget`: the number of memories to keep. `memory_type_allowlist`: delete only these types. `hard_age_multiplier`:
    default 12. With both ages, the server deletes a memory that is past both, or older than `max_age_days *
    hard_age_multiplier`. Other keys are ignored."""
    pinned_ids: list[FreeText] | None = None
    """The ids of memories to keep. Pinned memories are kept, too."""


class ForgetResponse(BaseModel):
    """The result of a policy; of a dry run, the result that it would have."""

    scanned: int
    """The number of memories that were compared with the policy."""
    deleted: int
    """The number of deleted memories. In a dry run: the number to delete."""
    deleted_ids: list[str]
    """The ids of these memories."""
    dry_run: bool
    """True for a dry run, which deletes nothing."""


class QuarantineListResponse(BaseModel):
    """A page of memories that wait for a review."""

    memories: list[MemoryRecord]
    """The memories of this page. `quarantine` contains the reason for each."""
    total: int
    next_offset: int | None = None


class AckResponse(BaseModel):
    """The request was carried out. `status` begins with "ok", or is "pending"."""

    status: str
    """`ok`, which may have the result (`ok, deleted 2 memories`). `pending` if the work continues in the background."""
    notices: list[str] | None = Absent
