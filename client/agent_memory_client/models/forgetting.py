"""Forget memories by a request in words, or by ids."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent_memory_client.models._types import FreeText, Identifier, Instant, OptionalIdentifier


class ForgetMemoryRequest(BaseModel):
    """A request to forget memories and messages. Give either `text` or `ids`."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[FreeText, Field(min_length=1, max_length=2000)] | None = None
    """What to forget, in words: `I am allergic to peanuts`, `my address`, `everything about Anna`. At most 2,000
    characters."""
    ids: Annotated[list[Identifier], Field(min_length=1, max_length=100)] | None = None
    """The ids of memories, or of messages in sessions, at most 100. The messages behind these memories are deleted,
    too."""
    user_id: OptionalIdentifier = None
    """The owner of the memories. Required with `text`, unless the caller is limited to one user."""
    namespace: OptionalIdentifier = None
    """The namespace to search; null for all namespaces of the user."""
    session_id: OptionalIdentifier = None
    """Limits the request to this session. "Forget that" then means the user's last statement in it."""
    dry_run: bool = False
    """Only show what would be deleted."""

    @model_validator(mode="after")
    def _says_what(self) -> Self:
        if (self.text is None) == (self.ids is None):
            raise ValueError("say what to forget: send either text or ids")
        return self


class ForgetMatch(BaseModel):
    """A memory, message or summary that matches the request, or could match."""

    kind: Literal["fact", "message", "session_message", "summary"]
    """The kind of match: a `fact`, a `message` in long-term memory, a `session_message`, or a session's `summary`."""
    id: str
    """The id of the memory or message; for a summary, the id of the session."""
    text: str
    """The text of the match."""
    why: str
    """The reason for the match, in words."""
    clear: bool = True
    """True if the request clearly means this match. To delete another match, send its id in `ids`."""
    session_id: str | None = None
    """The session of the match."""
    left: str | None = None
    """The part of a summary that remains; null if the whole summary is deleted."""


class ForgetMemoryResponse(BaseModel):
    """The matches of the request, and the deleted ones."""

    matches: list[ForgetMatch]
    """All matches, the clear ones first."""
    ambiguous: bool = False
    """True if the request could mean different things, or if no match is clear. Nothing was deleted. Ask the user, and
    send the `ids`."""
    dry_run: bool = False
    """True for a dry run, which deletes nothing."""
    forgotten: dict[str, int] = Field(default_factory=dict[str, int])
    """The number of deleted `facts`, `messages`, `session_messages` and `summaries`."""
    receipt_id: str | None = None
    """The id to undo the request with; null if nothing was deleted."""
    undo_until: Instant | None = None
    """The time until which an undo is possible; null if it is not possible."""


class ForgetUndoResponse(BaseModel):
    """The result of an undo."""

    receipt_id: str
    """The id of the receipt that was undone."""
    restored: dict[str, int]
    """The number of restored `memories` and `messages` of sessions. `kept_newer` counts memories that were not
    restored, because newer ones replaced them."""
