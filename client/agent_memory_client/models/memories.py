"""Long-term memories, and the requests that create, change and forget them."""

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
    """A memory's type: a fact, an event with a time, a verbatim message, or a procedure."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    MESSAGE = "message"
    PROCEDURAL = "procedural"


MEMORY_TYPES_HEADER: Final = "X-Agent-Memory-Types"
"""The request header in which a client lists memory types that the archived server did not have: `procedural`."""
ACTING_USER_HEADER: Final = "X-Acting-User"
"""Limits a request to one user: the user id in percent-encoded UTF-8."""


class SearchScoreTypeEnum(StrEnum):
    """The type of search that produced a score."""

    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    HYBRID = "hybrid"


class MemoryStrategyConfig(BaseModel):
    """How the server creates long-term memories from a session's messages."""

    strategy: Literal["discrete", "summary", "preferences", "custom"] = "discrete"
    """Which memories to create: facts, events and procedures (`discrete`), a summary of the session (`summary`), only
    `preferences`, or the response to `config.custom_prompt` (`custom`)."""
    config: AnyObject = Field(default_factory=no_object)
    """The strategy's options, such as `custom_prompt`, `max_summary_length` (in words), and extraction rules for this
    session."""


SourceClass: TypeAlias = Literal["user", "assistant", "tool", "import", "inference", "client"]
"""A memory's source: the speaker of a message, or a program that stated, imported or inferred the memory."""


class Evidence(BaseModel):
    """A source of a memory: messages in a session, or a statement by a program."""

    session_id: OptionalIdentifier = None
    """The session that contains the messages. Null if a program stated the memory."""
    message_ids: list[Identifier] = Field(default_factory=list[str], max_length=1000)
    """The ids of the messages, at most 1,000."""
    role: FreeText | None = None
    """The role of the messages."""
    quote: Annotated[FreeText, Field(max_length=4000)] | None = None
    """The exact words of the messages, at most 4,000 characters. They remain after the messages are deleted."""
    source: SourceClass | None = None
    """The source: a message from the `user`, the `assistant` or a `tool`, a program's statement (`client`), an `import`
    or an `inference`."""
    memory_id: OptionalIdentifier = None
    """The id of a former memory that had the same content and became evidence for this one."""
    at: Instant | None = None
    """The time when the statement was made."""


class MemoryRecord(BaseModel):
    """A memory with its text, owner, source, and the period in which it is true.

    Empty strings in scope fields are ignored. The server sets `recorded_at`, `retired_at`,
    `supersedes` and `superseded_by`.
    """

    id: Identifier
    """The memory's id, at most 512 bytes. Storing a different text under an existing id replaces the old text."""
    text: MemoryText
    """The memory's text, at most 64 KiB. Write it so that readers understand it without context."""
    session_id: OptionalIdentifier = None
    """The session that the memory comes from. Null if it does not come from a session."""
    user_id: OptionalIdentifier = None
    """The user that the memory belongs to. Null if it does not belong to a user."""
    namespace: OptionalIdentifier = None
    """The memory's namespace, such as the name of a project or application. Null means no namespace."""
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
    """The topics, in a few words each: at most 64, without commas."""
    entities: Tags = None
    """The people, places and things in the text: at most 64, without commas."""
    memory_hash: FreeText | None = None
    """The SHA-256 hash of the text, scope and type. The server computes it."""
    discrete_memory_extracted: TrackingFlag = "f"
    """`t` if the server has extracted facts from the memory, or must not extract any. `f` if it may still extract
    facts."""
    memory_type: MemoryTypeEnum = MemoryTypeEnum.MESSAGE
    """The memory's type: a fact (`semantic`), an event (`episodic`), a verbatim message (`message`), or a procedure
    (`procedural`)."""
    persisted_at: Instant | None = None
    """The time when the memory was stored as a long-term memory. In a session's `memories`, this is null until then."""
    extracted_from: References = None
    """The ids of the messages from which the memory was made."""
    event_date: Instant | None = None
    """The time of the event in the text. Null if there is no single time."""
    extraction_strategy: Identifier = "discrete"
    """The extraction strategy that created the memory. `message` for a verbatim message."""
    extraction_strategy_config: AnyObject = Field(default_factory=no_object)
    """The options of the extraction strategy."""
    metadata: JsonObject = Field(default_factory=no_object)
    """Your own data, as a JSON object. Filters can use its first 64 keys."""
    agent_id: OptionalIdentifier = Absent
    """The memory's agent. An agent's facts never replace the facts of other agents."""
    slot: OptionalIdentifier = Absent
    """The subject of the fact, such as `home_city`. Each combination of user, namespace and agent has one current fact
    per slot. A new fact supersedes the old one."""
    category: OptionalIdentifier = Absent
    """The memory's category, from the extraction rules."""
    valid_from: Instant | None = Absent
    """The time from which the memory is true. Default: `created_at`."""
    valid_to: Instant | None = Absent
    """The time when the memory stops being true. After that, searches return it only with `as_of` or `history`. Omitted
    while it is true."""
    expires_at: Instant | None = Absent
    """The time when the memory expires. After that, no response contains the memory."""
    recorded_at: Instant | None = Absent
    """The time when the server stored this version. Set by the server."""
    retired_at: Instant | None = Absent
    """The time when this version stopped being current. Set by the server. Omitted for current versions."""
    supersedes: list[Identifier] | None = Absent
    """The ids of the memories that this one replaced. Set by the server."""
    superseded_by: OptionalIdentifier = Absent
    """The id of the memory that replaced this one. Set by the server."""
    evidence: Annotated[list[Evidence], Field(max_length=200)] | None = Absent
    """The memory's sources, at most 200: messages or program statements."""
    source_class: SourceClass | None = Absent
    """The memory's source: a message from the `user`, the `assistant` or a `tool`, a program's statement (`client`), an
    `import` or an `inference`."""
    trust: Annotated[float, Field(ge=0.0, le=1.0)] | None = Absent
    """The trust in the source, from 0 to 1. It is 1 for the words of a user or program, and 0.3 for tool output."""
    quarantine: OptionalIdentifier = Absent
    """Why the memory awaits review. Until the memory is approved, prompts and ordinary searches omit it. Not set for
    other memories."""
    approved: OptionalIdentifier = Absent
    """A digest of the text that an administrator approved in quarantine. Set by the server."""
    confidence: Annotated[float, Field(ge=0.0, le=1.0)] | None = Absent
    """The language model's confidence, from 0 to 1."""
    model: OptionalIdentifier = Absent
    """The language model that extracted the memory."""
    prompt_version: OptionalIdentifier = Absent
    """The version of the prompt given to the language model."""
    written_by: OptionalIdentifier = Absent
    """The API key (`token:` and its id) or the token's subject that wrote the text, or the messages it comes from:
    `anonymous` without credentials. Set by the server; null means unknown."""


class ClientMemoryRecord(MemoryRecord):
    """A memory whose id is optional. The default is a new ULID."""

    id: Identifier = Field(default_factory=new_id)
    """The memory's id, at most 512 bytes. If it is missing, a new id is generated."""


class ExtractedMemoryRecord(MemoryRecord):
    """A memory stated by a program, by default a fact. The server extracts nothing from it."""

    discrete_memory_extracted: TrackingFlag = "t"
    """Always stored as `t`: the server does not extract anything from a program's statement."""
    memory_type: MemoryTypeEnum = MemoryTypeEnum.SEMANTIC
    """The memory's type: a fact (`semantic`, the default), an event (`episodic`), a verbatim message (`message`), or a
    procedure (`procedural`)."""


class HitExplanation(BaseModel):
    """How a search scored and ranked a memory."""

    rank: int
    """The rank in the whole response, starting at 1."""
    score: float | None = None
    """The score that determined the rank. Higher is better."""
    similarity: float | None = None
    """The cosine similarity between the query and the memory. 1 means the same meaning."""
    similarity_rank: int | None = None
    """The rank by meaning, starting at 1. Null if the memory was not ranked by meaning."""
    words: float | None = None
    """The memory's BM25 score for the query's words. Words in the query that state a time do not count."""
    words_rank: int | None = None
    """The rank by keywords, starting at 1. Null if the memory was not ranked by keywords."""
    in_time: bool = False
    """True if the memory is from the time that the query mentions."""
    recency: float | None = None
    """The recency, from 0 to 1. It changes the rank but not the score."""
    reranked: float | None = None
    """The score from a reranking model. It changes the rank but not the score."""


class Passage(BaseModel):
    """A part of a memory's text: `text[start:end]`, counted in Unicode characters."""

    text: str
    """The text of the passage."""
    start: int
    """The position of the first character, starting at 0."""
    end: int
    """The position after the last character."""


class MemoryRecordResult(MemoryRecord):
    """A memory that a search returned."""

    dist: float
    """The cosine distance from the query, from 0 (same meaning) to 2. It is 0 in listings, which have no query."""
    score: float | None = None
    """How well the memory matches. Higher is better. Compare scores only within one response."""
    score_type: SearchScoreTypeEnum | None = None
    """The kind of search that produced the score. Null in listings."""
    explanation: HitExplanation | None = None
    """How the search scored the memory, if `explain` was true."""
    relevance: Annotated[float, Field(ge=0.0, le=1.0)] | None = Absent
    """The probability that the query is asking for this memory, from 0 to 1. Omitted in listings."""
    passage: Passage | None = Absent
    """The part of a long text that best matches the query. Omitted for texts shorter than about 300 tokens."""


def _record_kind(value: Any) -> str:
    """Return the class for an entry in a session's `memories`, based on whether it has an id."""
    if isinstance(value, MemoryRecord):
        return "ClientMemoryRecord" if isinstance(value, ClientMemoryRecord) else "MemoryRecord"
    return "ClientMemoryRecord" if isinstance(value, dict) and "id" not in value else "MemoryRecord"


SessionMemory: TypeAlias = Annotated[
    Annotated[MemoryRecord, Tag("MemoryRecord")] | Annotated[ClientMemoryRecord, Tag("ClientMemoryRecord")], Discriminator(_record_kind)
]
"""A structured memory in a session. Its id is optional."""


class CreateMemoryRecordRequest(BaseModel):
    """Memories to store. `deduplicate` skips memories that repeat a stored memory."""

    memories: list[ExtractedMemoryRecord]
    """The memories to store."""
    deduplicate: bool = True
    """True to turn a memory that repeats a stored one into evidence for it."""


class EditMemoryRecordRequest(BaseModel):
    """The fields to change.

    Null, an empty list or an empty string clears a field. For `text`, `memory_type` and `pinned`,
    null changes nothing.
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
    """The subject of the fact, such as `home_city`. The fact supersedes the slot's current fact. An empty string
    removes the slot."""
    category: ClearableIdentifier | None = None
    """The new category. An empty string removes the category."""
    valid_from: Instant | None = None
    """The time from which the memory is true. Null means `created_at`."""
    valid_to: Instant | None = None
    """The time when the memory stops being true. Null means that it is still true."""
    expires_at: Instant | None = None
    """The time when the memory expires. Null means that it never expires."""
    metadata: JsonObject | None = None
    """The new metadata, which replaces all previous metadata. Null removes the metadata."""


class ForgetPolicy(BaseModel):
    """The conditions that select memories to forget. See `ForgetRequest.policy`."""

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
    default 12. If both ages are given, the server deletes a memory that exceeds both, or that is older than
    `max_age_days * hard_age_multiplier`. Other keys are ignored."""
    pinned_ids: list[FreeText] | None = None
    """The ids of memories to keep. Pinned memories are kept, too."""


class ForgetResponse(BaseModel):
    """The result of applying a policy. A dry run reports what would be deleted."""

    scanned: int
    """The number of memories that were checked against the policy."""
    deleted: int
    """The number of deleted memories. In a dry run, the number that would be deleted."""
    deleted_ids: list[str]
    """The ids of the deleted memories. In a dry run, the ids of the memories that would be deleted."""
    dry_run: bool
    """True for a dry run, which deletes nothing."""


class QuarantineListResponse(BaseModel):
    """A page of memories awaiting review."""

    memories: list[MemoryRecord]
    """The memories on this page. `quarantine` contains the reason for each memory."""
    total: int
    next_offset: int | None = None


class AckResponse(BaseModel):
    """Confirmation that the server accepted a request.

    `status` starts with "ok" if the work is done, and is "pending" otherwise.
    """

    status: str
    """`ok`, which may include the result (`ok, deleted 2 memories`). `pending` if the work continues in the
    background."""
    notices: list[str] | None = Absent
