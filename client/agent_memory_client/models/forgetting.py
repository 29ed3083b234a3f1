"""Forgetting memories by description or by id."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent_memory_client.models._types import FreeText, Identifier, Instant, OptionalIdentifier
from agent_memory_client.models.changes import ChangeStateEnum


class ForgetMemoryRequest(BaseModel):
    """A request to forget memories and messages. Give either `text` or `ids`."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[FreeText, Field(min_length=1, max_length=2000)] | None = None
    """What to forget, in words: `I am allergic to peanuts`, `my address`, `everything about Anna`. At most 2,000
    characters."""
    ids: Annotated[list[Identifier], Field(min_length=1, max_length=100)] | None = None
    """At most 100 ids of memories or session messages. The messages behind these memories are deleted, too."""
    user_id: OptionalIdentifier = None
    """The owner of the memories. Required with `text`, unless the caller is limited to one user."""
    namespace: OptionalIdentifier = None
    """The namespace to search. Null means all of the user's namespaces."""
    session_id: OptionalIdentifier = None
    """Limit the request to this session. "Forget that" then refers to the user's last statement in the session."""
    dry_run: bool = False
    """True to show what would be deleted, without deleting it."""

    @model_validator(mode="after")
    def _says_what(self) -> Self:
        if (self.text is None) == (self.ids is None):
            raise ValueError("specify what to forget: send either text or ids")
        return self


class ForgetMatch(BaseModel):
    """A memory, message or summary that matches, or possibly matches, the request."""

    kind: Literal["fact", "message", "session_message", "summary"]
    """The kind of match: a `fact`, a `message` in long-term memory, a `session_message`, or a session's `summary`."""
    id: str
    """The id of the memory or message. For a summary, the id of the session."""
    text: str
    """The matching text."""
    why: str
    """Why the text matches."""
    clear: bool = True
    """True if the request clearly means this match. To delete a match that is not clear, send its id in `ids`."""
    session_id: str | None = None
    """The session that contains the match."""


class ForgetMemoryResponse(BaseModel):
    """The matches for a request to forget, and the number of deletions."""

    matches: list[ForgetMatch]
    """All matches, with clear matches first."""
    ambiguous: bool = False
    """True if the request could mean different things, or if no match is clear. In that case, nothing was deleted: ask
    the user, and send the `ids`."""
    dry_run: bool = False
    """True for a dry run, which deletes nothing."""
    forgotten: dict[str, int] = Field(default_factory=dict[str, int])
    """The number of deleted `facts`, `messages`, `session_messages` and `summaries`."""
    receipt_id: str | None = None
    """The id for undoing the request. Null if nothing was deleted."""
    undo_until: Instant | None = None
    """The deadline for an undo. Null if an undo is not possible."""


class ForgottenItem(BaseModel):
    """A memory, message or summary that was deleted by request."""

    kind: Literal["fact", "message", "session_message", "summary"]
    """As in `ForgetMatch`."""
    id: str
    """The id of the memory or message. For a summary, the id of the session."""
    text: str
    """The deleted or restored text."""
    user_id: str | None = None
    namespace: str | None = None
    session_id: str | None = None
    created_at: Instant | None = None
    """The time when it was said or noted. Null for a summary."""
    written_by: str | None = None
    """Who wrote it: the API key as `token:<id>`, or the subject of a token."""


class ForgettingResponse(BaseModel):
    """What a request to forget deleted. Available until it can no longer be undone."""

    receipt_id: str
    """The id to pass to `undo_forget_memory`."""
    user_id: str | None = None
    """The owner of the data. Null if the request covered data without a user."""
    at: Instant
    """The time of the request."""
    actor: str | None = None
    """Who made or approved the request: the caller, or `conversation` if no caller approved a user's request."""
    undo_until: Instant
    """The deadline for an undo."""
    state: Literal[ChangeStateEnum.APPLIED, ChangeStateEnum.UNDONE]
    """`undone` after an undo."""
    items: list[ForgottenItem]
    """The deleted data. After an undo, the restored data that is still stored."""
    kept_newer: int = 0
    """After an undo: the number of memories that were not restored because newer ones replaced them."""


class ForgetUndoResponse(BaseModel):
    """The result of undoing a request to forget."""

    receipt_id: str
    """The id of the receipt that was undone."""
    restored: dict[str, int]
    """The number of restored `memories` and session `messages`. `kept_newer` counts the memories that were not restored
    because newer ones replaced them."""
