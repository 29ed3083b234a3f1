"""Procedures, session results and tool statistics."""

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
"""The result: `success`, or `failure` if the procedure did not work."""
ProcedureState = Literal["active", "retired", "quarantined"]
"""The state: `active` procedures are searchable, `retired` ones no longer help, and `quarantined` ones look like
instructions to a model."""

Situation: TypeAlias = Annotated[Text, Field(max_length=MAX_SITUATION_CHARS)]
Comment: TypeAlias = Annotated[FreeText, Field(max_length=MAX_COMMENT_CHARS)]
Score: TypeAlias = Annotated[Number, Field(ge=0, le=1)]
Steps: TypeAlias = Annotated[list[Annotated[Text, Field(max_length=MAX_STEP_CHARS)]], Field(max_length=MAX_STEPS)]
ToolNames: TypeAlias = Annotated[list[Identifier], Field(max_length=MAX_STEPS)]
ProcedureText: TypeAlias = Annotated[FreeText, Field(max_length=MAX_PROCEDURE_CHARS)]


class ProcedureOwner(BaseModel):
    """The owner of a procedure. User, agent and namespace must match exactly."""

    user_id: OptionalIdentifier = None
    agent_id: OptionalIdentifier = None
    namespace: OptionalIdentifier = None


class CreateProcedureRequest(ProcedureOwner):
    """A procedure to store, with `steps`, `text`, or both."""

    when_to_use: Situation
    """The situation in which to use the procedure. Searches compare their situation with this text. At most 4,000
    characters."""
    steps: Steps = Field(default_factory=list[str])
    text: ProcedureText | None = None
    """Instructions as free text, in addition to the steps or instead of them. At most 16,000 characters."""
    result: ProcedureResult = "success"
    """The procedure's result. A `failure` is stored as a warning."""
    tools: ToolNames = Field(default_factory=list[str])
    pitfalls: Steps = Field(default_factory=list[str])

    @model_validator(mode="after")
    def _says_what_to_do(self) -> Self:
        if not self.steps and is_blank(self.text or ""):
            raise ValueError("give steps or a text")
        return self


class UpdateProcedureRequest(BaseModel):
    """The fields to change.

    Null clears `steps`, `text`, `tools` and `pitfalls`, and leaves other fields unchanged.
    """

    when_to_use: Situation | None = None
    steps: Steps | None = None
    """The new list of steps."""
    text: ProcedureText | None = None
    """The new instructions as free text. Null or an empty string removes them."""
    result: ProcedureResult | None = None
    tools: ToolNames | None = None
    """The new list of tools."""
    pitfalls: Steps | None = None
    """The new list of things that did not work."""
    state: Literal["active", "retired"] | None = None
    """`retired` removes the procedure from searches, `active` restores it."""


class ProcedureSource(BaseModel):
    """A session from which a procedure was learned."""

    session_id: str
    result: ProcedureResult
    """The session's result."""
    score: float | None = None
    learned_at: Instant
    """The time when the server learned the procedure from the session."""
    pitfalls: list[str] = Field(default_factory=list[str])
    """What did not work in the session."""


class ProcedureContent(ProcedureOwner):
    """A procedure's content. Edits change it, and an undo restores it."""

    id: str
    when_to_use: str
    steps: list[str] = Field(default_factory=list[str])
    text: str | None = None
    """Instructions as free text."""
    result: ProcedureResult = "success"
    tools: list[str] = Field(default_factory=list[str])
    pitfalls: list[str] = Field(default_factory=list[str])
    state: ProcedureState = "active"
    """The state: `active` (searchable), `retired` or `quarantined`."""
    origin: Literal["stated", "learned"] = "stated"
    """`stated` if a caller stored it, `learned` if it was learned from sessions."""
    learned_from: list[ProcedureSource] = Field(default_factory=list[ProcedureSource])
    """The sessions from which the server learned the procedure."""
    created_at: Instant
    updated_at: Instant
    """The time when the content last changed."""


class Procedure(ProcedureContent):
    """A procedure with its feedback counts."""

    version: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    """The version, for use with `If-Match`. Feedback does not change it."""
    helped: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    """The number of feedback entries that report success."""
    failed: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    """The number of feedback entries that report failure."""
    rate: float = 0.5
    """The smoothed success rate: (helped + 1) / (helped + failed + 2). It is 0.5 if there is no feedback."""
    score: float | None = None
    """The mean score in the feedback. Null if no feedback has a score."""
    last_feedback_at: Instant | None = None
    """The time of the latest feedback. Null if there is no feedback."""


class ProcedureMatch(Procedure):
    """A procedure that matches a situation."""

    fit: float
    """How well `when_to_use` matches the situation, by meaning and keywords, from 0 to 1."""
    rank_score: float
    """The sort key of the results: fit × (1 + rate) / 2."""


class ProcedureSearchRequest(ProcedureOwner):
    """A search for procedures by situation. A given user, agent or namespace must match exactly."""

    situation: Situation
    """The situation or task, in plain words. At most 4,000 characters."""
    limit: Annotated[int, Field(ge=1, le=50)] = 5
    """The maximum number of procedures to return, at most 50."""
    result: ProcedureResult | None = "success"
    """Return only procedures that worked (`success`), only procedures that failed (`failure`), or both (null)."""


class ProcedureSearchResponse(BaseModel):
    """The procedures that match a situation, best first."""

    procedures: list[ProcedureMatch]
    """The matching procedures, sorted by `rank_score`. At most `limit`."""
    notices: list[str] | None = None


class ProcedureListResponse(BaseModel):
    """A page of procedures, newest first."""

    procedures: list[Procedure]
    """The procedures on this page, newest first."""
    total: Annotated[int, Field(ge=0)]


class ProcedureFeedbackRequest(BaseModel):
    """Feedback on a procedure."""

    helped: bool
    """True if the procedure helped."""
    score: Score | None = None
    comment: Comment | None = None
    """A comment, at most 2,000 characters."""


class ProcedureFeedback(ProcedureFeedbackRequest):
    """Stored feedback on a procedure."""

    at: Instant
    """The time when the feedback was given."""


class ProcedureChange(BaseModel):
    """A change to a procedure's content."""

    version: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    """The version after the change."""
    kind: Literal["create", "edit", "learn", "merge", "retire", "restore", "undo"]
    """The kind of change. Workers make `learn`, `merge` and `retire`."""
    at: Instant
    """The time of the change."""
    by: str = ""
    """Who made the change: the caller's name in audit events, or `worker`."""
    reason: str = ""
    """Why a worker made the change."""
    before: ProcedureContent | None = None
    """The content before the change. Null for the first version."""


class ProcedureHistory(BaseModel):
    """A procedure's latest changes and feedback, oldest first."""

    changes: list[ProcedureChange]
    """The changes, at most 50."""
    feedback: list[ProcedureFeedback]
    """The latest feedback, at most 100 entries. The procedure's counts include all feedback."""


class SessionResultRequest(BaseModel):
    """The result of a session."""

    result: ProcedureResult
    """`success` if the session reached its goal, otherwise `failure`."""
    score: Score | None = None
    comment: Comment | None = None
    """A comment, at most 2,000 characters. The model that learns from the session reads it."""
    agent_id: OptionalIdentifier = None
    """The agent that did the work. The procedure that the server learns belongs to this agent."""


class SessionResult(SessionResultRequest):
    """The result of a session and the procedure learned from it."""

    session_id: str
    namespace: str | None = None
    user_id: str | None = None
    marked_at: Instant
    """The time when the result was recorded."""
    learned: Literal["waiting", "created", "merged", "nothing"] = "waiting"
    """`waiting` until a worker has read the session. After that, `created` or `merged` if there is a procedure, or
    `nothing` if there was nothing to learn."""
    procedure_id: str | None = None
    """The procedure that was created or merged."""


class ToolCallRequest(ProcedureOwner):
    """A tool call and its result."""

    tool: Identifier
    """The tool's name."""
    arguments: AnyObject = Field(default_factory=dict[str, Any])
    """The call's arguments, as a JSON object."""
    success: bool = True
    """True if the call succeeded."""
    duration_ms: Annotated[Number, Field(ge=0, le=MAX_COUNT)] | None = None
    """The duration of the call in milliseconds."""
    cost: Annotated[Number, Field(ge=0, le=MAX_COUNT)] | None = None
    """The cost of the call, in a unit of your choice."""
    error: Comment | None = None
    """The error message of a failed call, at most 2,000 characters."""


class ToolArguments(BaseModel):
    """Statistics for one combination of argument names and types."""

    shape: dict[str, str]
    """The arguments' names and JSON types."""
    succeeded: Annotated[int, Field(ge=0)] = 0
    """The number of successful calls with this combination."""
    failed: Annotated[int, Field(ge=0)] = 0
    """The number of failed calls with this combination."""
    example: dict[str, Any] | None = None
    """The arguments of the last successful call, without secrets and truncated to 1,000 characters. Null if no call has
    succeeded."""


class ToolMemory(ProcedureOwner):
    """Statistics for a tool."""

    tool: str
    """The tool's name."""
    succeeded: Annotated[int, Field(ge=0)] = 0
    """The number of successful calls."""
    failed: Annotated[int, Field(ge=0)] = 0
    """The number of failed calls."""
    rate: float = 0.5
    """The success rate, smoothed in the same way as for procedures."""
    mean_duration_ms: float | None = None
    """The mean duration of a call in milliseconds. Null if no call reported one."""
    mean_cost: float | None = None
    """The mean cost of a call. Null if no call reported one."""
    total_cost: float | None = None
    """The total cost of all calls that reported one."""
    arguments: list[ToolArguments] = Field(default_factory=list[ToolArguments])
    """At most 8 argument combinations, sorted by their number of successful calls, highest first."""
    errors: list[str] = Field(default_factory=list[str])
    """The errors from the latest failed calls, at most 3."""
    last_called_at: Instant | None = None
    """The time of the last call."""


class ToolMemoryListResponse(BaseModel):
    """A page of tool statistics, newest first."""

    tools: list[ToolMemory]
    """The tools on this page, newest first."""
    total: Annotated[int, Field(ge=0)]


class ProcedurePromptOptions(BaseModel):
    """The maximum number of procedures in a prompt and their maximum total size in tokens."""

    limit: Annotated[int, Field(ge=1, le=20)] = 3
    """The maximum number of procedures, at most 20."""
    tokens: Annotated[int, Field(ge=20, le=4000)] = 300
