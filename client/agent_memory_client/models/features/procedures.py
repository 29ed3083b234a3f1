"""Procedures, results of sessions, and statistics of tools."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, Field, model_validator

from agent_memory_client.models._types import (
    MAX_COUNT,
    AnyObject,
    FreeText,
    Identifier,
    Instant,
    Number,
    OptionalIdentifier,
    Text,
    is_blank,
)

MAX_STEPS = 64
MAX_STEP_CHARS = 2000
MAX_SITUATION_CHARS = 4000
MAX_PROCEDURE_CHARS = 16_000
MAX_COMMENT_CHARS = 2000

ProcedureResult = Literal["success", "failure"]
"""How it ended: `success`, or `failure` for what did not work."""
ProcedureState = Literal["active", "retired", "quarantined"]
"""`active` procedures are found; `retired` ones stopped helping; `quarantined` ones read like instructions to a model."""

Situation: TypeAlias = Annotated[Text, Field(max_length=MAX_SITUATION_CHARS)]
Comment: TypeAlias = Annotated[FreeText, Field(max_length=MAX_COMMENT_CHARS)]
Score: TypeAlias = Annotated[Number, Field(ge=0, le=1)]
Steps: TypeAlias = Annotated[list[Annotated[Text, Field(max_length=MAX_STEP_CHARS)]], Field(max_length=MAX_STEPS)]
ToolNames: TypeAlias = Annotated[list[Identifier], Field(max_length=MAX_STEPS)]
ProcedureText: TypeAlias = Annotated[FreeText, Field(max_length=MAX_PROCEDURE_CHARS)]


class ProcedureOwner(BaseModel):
    """Whose something is: exactly the set that is given."""

    user_id: OptionalIdentifier = None
    agent_id: OptionalIdentifier = None
    namespace: OptionalIdentifier = None


class CreateProcedureRequest(ProcedureOwner):
    """A procedure to keep: when to use it, and what to do, as `steps` or as `text`."""

    when_to_use: Situation
    """The situation in which it is to be used; it is found by this."""
    steps: Steps = Field(default_factory=list[str])
    text: ProcedureText | None = None
    """What to do in free words, beside the steps or instead of them."""
    result: ProcedureResult = "success"
    """Whether this worked; a `failure` is kept as a warning."""
    tools: ToolNames = Field(default_factory=list[str])
    pitfalls: Steps = Field(default_factory=list[str])

    @model_validator(mode="after")
    def _says_what_to_do(self) -> Self:
        if not self.steps and is_blank(self.text or ""):
            raise ValueError("give steps or a text")
        return self


class UpdateProcedureRequest(BaseModel):
    """Fields to change. Null clears `steps`, `text`, `tools` and `pitfalls`, and leaves the others."""

    when_to_use: Situation | None = None
    steps: Steps | None = None
    """All of its steps."""
    text: ProcedureText | None = None
    """What to do in free words; null or an empty text removes it."""
    result: ProcedureResult | None = None
    tools: ToolNames | None = None
    """All tools that it uses."""
    pitfalls: Steps | None = None
    """All that did not work."""
    state: Literal["active", "retired"] | None = None
    """`retired` takes it out of searches, `active` brings it back."""


class ProcedureSource(BaseModel):
    """A session that a procedure was learned from."""

    session_id: str
    result: ProcedureResult
    """How the session ended."""
    score: float | None = None
    learned_at: Instant
    """When it was learned."""
    pitfalls: list[str] = Field(default_factory=list[str])
    """What did not work in it."""


class ProcedureContent(ProcedureOwner):
    """A procedure without its counts: what an edit changes and an undo brings back."""

    id: str
    when_to_use: str
    steps: list[str] = Field(default_factory=list[str])
    text: str | None = None
    """What to do in free words."""
    result: ProcedureResult = "success"
    tools: list[str] = Field(default_factory=list[str])
    pitfalls: list[str] = Field(default_factory=list[str])
    state: ProcedureState = "active"
    """Whether it is found: `active`, `retired` or `quarantined`."""
    origin: Literal["stated", "learned"] = "stated"
    """`stated` by a caller, or `learned` from sessions."""
    learned_from: list[ProcedureSource] = Field(default_factory=list[ProcedureSource])
    """The sessions that it was learned from."""
    created_at: Instant
    updated_at: Instant
    """When its content changed last."""


class Procedure(ProcedureContent):
    """A stored procedure with what was said of it."""

    version: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    """Its version, for `If-Match`; feedback does not change it."""
    helped: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    """How often feedback said that it helped."""
    failed: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    """How often feedback said that it did not."""
    rate: float = 0.5
    """How often it helps, smoothed: (helped + 1) / (helped + failed + 2), which is 0.5 while nothing was said."""
    score: float | None = None
    """The mean of the scores in feedback; null without any."""
    last_feedback_at: Instant | None = None
    """When feedback came last."""


class ProcedureMatch(Procedure):
    """A procedure that fits a situation."""

    fit: float
    """How well its `when_to_use` fits the situation, by meaning and words, from 0 to 1."""
    rank_score: float
    """What the answer is ordered by: fit × (1 + rate) / 2."""


class ProcedureSearchRequest(ProcedureOwner):
    """A situation to find procedures for. Of user, agent and namespace, what is given must be the procedure's."""

    situation: Situation
    """What is to be done, in plain words."""
    limit: Annotated[int, Field(ge=1, le=50)] = 5
    """At most so many procedures."""
    result: ProcedureResult | None = "success"
    """Only procedures that worked (`success`), only those that did not (`failure`), or both (null)."""


class ProcedureSearchResponse(BaseModel):
    """The procedures that fit a situation, the best first."""

    procedures: list[ProcedureMatch]
    """Those that fit, by `rank_score`; at most `limit`."""
    notices: list[str] | None = None


class ProcedureListResponse(BaseModel):
    """A page of procedures, the newest first."""

    procedures: list[Procedure]
    """The procedures of this page, the newest first."""
    total: Annotated[int, Field(ge=0)]


class ProcedureFeedbackRequest(BaseModel):
    """Whether a procedure helped when it was used."""

    helped: bool
    """Whether it did."""
    score: Score | None = None
    comment: Comment | None = None
    """What there is to say about it."""


class ProcedureFeedback(ProcedureFeedbackRequest):
    """Feedback as it was given."""

    at: Instant
    """When it was given."""


class ProcedureChange(BaseModel):
    """A change of a procedure's content, which can be undone while it is the last."""

    version: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    """The version that it made."""
    kind: Literal["create", "edit", "learn", "merge", "retire", "restore", "undo"]
    """What was done; workers `learn`, `merge` and `retire`."""
    at: Instant
    """When."""
    by: str = ""
    """Who did it: the caller's name in audit events, or `worker`."""
    reason: str = ""
    """Why, where a worker did it."""
    before: ProcedureContent | None = None
    """What it was before; null for its beginning."""


class ProcedureHistory(BaseModel):
    """The last changes of a procedure and the last feedback on it, each the oldest first."""

    changes: list[ProcedureChange]
    """At most 50 changes."""
    feedback: list[ProcedureFeedback]
    """At most 100 pieces of feedback; the counts know of all."""


class SessionResultRequest(BaseModel):
    """How a session ended."""

    result: ProcedureResult
    """Whether it reached what it was for."""
    score: Score | None = None
    comment: Comment | None = None
    """What there is to say about it; a model that learns from the session reads it."""
    agent_id: OptionalIdentifier = None
    """The agent whose work it was; what is learned becomes this agent's."""


class SessionResult(SessionResultRequest):
    """How a session ended, and what was learned from it."""

    session_id: str
    namespace: str | None = None
    user_id: str | None = None
    marked_at: Instant
    """When it was marked."""
    learned: Literal["waiting", "created", "merged", "nothing"] = "waiting"
    """`waiting` for a worker; then a procedure was `created`, `merged` with an existing one, or there was `nothing` to learn."""
    procedure_id: str | None = None
    """The procedure that came of it."""


class ToolCallRequest(ProcedureOwner):
    """One call of a tool, as it went."""

    tool: Identifier
    """The tool's name."""
    arguments: AnyObject = Field(default_factory=dict[str, Any])
    """The arguments of the call."""
    success: bool = True
    """Whether it worked."""
    duration_ms: Annotated[Number, Field(ge=0, le=MAX_COUNT)] | None = None
    """How long it took, in milliseconds."""
    cost: Annotated[Number, Field(ge=0, le=MAX_COUNT)] | None = None
    """What it cost, in the caller's own unit."""
    error: Comment | None = None
    """What it said when it did not work."""


class ToolArguments(BaseModel):
    """A shape that the arguments of a tool had."""

    shape: dict[str, str]
    """The names of the arguments with their JSON types."""
    succeeded: Annotated[int, Field(ge=0)] = 0
    """How many calls of this shape worked."""
    failed: Annotated[int, Field(ge=0)] = 0
    """How many did not."""
    example: dict[str, Any] | None = None
    """Arguments of the last call of this shape that worked, without secrets and cut to 1,000 characters; null before any did."""


class ToolMemory(ProcedureOwner):
    """What is known of a tool from its calls."""

    tool: str
    """The tool's name."""
    succeeded: Annotated[int, Field(ge=0)] = 0
    """How many calls worked."""
    failed: Annotated[int, Field(ge=0)] = 0
    """How many did not."""
    rate: float = 0.5
    """How often it works, smoothed as a procedure's rate."""
    mean_duration_ms: float | None = None
    """How long a call takes on average; null when that was never known."""
    mean_cost: float | None = None
    """What a call costs on average; null when that was never known."""
    total_cost: float | None = None
    """What all calls cost whose cost is known."""
    arguments: list[ToolArguments] = Field(default_factory=list[ToolArguments])
    """The shapes of arguments, at most 8, those that worked most often first."""
    errors: list[str] = Field(default_factory=list[str])
    """What the last failures said, at most 3."""
    last_called_at: Instant | None = None
    """When it was called last."""


class ToolMemoryListResponse(BaseModel):
    """What is known of tools."""

    tools: list[ToolMemory]
    """The tools of this page, the newest first."""
    total: Annotated[int, Field(ge=0)]


class ProcedurePromptOptions(BaseModel):
    """How many procedures a prompt shows, and how many tokens they may take."""

    limit: Annotated[int, Field(ge=1, le=20)] = 3
    """At most so many procedures."""
    tokens: Annotated[int, Field(ge=20, le=4000)] = 300
