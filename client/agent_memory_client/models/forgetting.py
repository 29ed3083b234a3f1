"""Forgetting by request, in words or by ids."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent_memory_client.models._types import FreeText, Identifier, Instant, OptionalIdentifier


class ForgetMemoryRequest(BaseModel):
    """What is to be forgotten, and whose: `text` or `ids`."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[FreeText, Field(min_length=1, max_length=2000)] | None = None
    """What is meant, in words: `I am allergic to peanuts`, `my address`, `everything about Anna`."""
    ids: Annotated[list[Identifier], Field(min_length=1, max_length=100)] | None = None
    """Exactly these memories, or messages of sessions, with the messages that the memories rest on."""
    user_id: OptionalIdentifier = None
    """The user whose memories are meant. Needed with `text`, unless the caller is limited to one user."""
    namespace: OptionalIdentifier = None
    """The namespace that is meant; null for all of the user's."""
    session_id: OptionalIdentifier = None
    """Only what was said in this session; `that` then means what the user said there last."""
    dry_run: bool = False
    """Only show what would go."""

    @model_validator(mode="after")
    def _says_what(self) -> Self:
        if (self.text is None) == (self.ids is None):
            raise ValueError("say what is to be forgotten: either text or ids")
        return self


class ForgetMatch(BaseModel):
    """Something that is meant, or could be."""

    kind: Literal["fact", "message", "session_message", "summary"]
    """A `fact`, a `message` in long-term memory, a message of a session as the session shows it, or a session's summary."""
    id: str
    """The memory's or the message's id; of a summary, the session's."""
    text: str
    """What it says."""
    why: str
    """Why it is here."""
    clear: bool = True
    """Whether it is surely meant. What is not stays, unless it is asked for by its id."""
    session_id: str | None = None
    """The session that it is in."""
    left: str | None = None
    """What is left of a summary; null when all of it goes."""


class ForgetMemoryResponse(BaseModel):
    """What goes, went, or could be meant."""

    matches: list[ForgetMatch]
    """All that is meant or could be, the clear ones first."""
    ambiguous: bool = False
    """Several different things could be meant, or nothing surely is: nothing went. Ask which one, and send its `ids`."""
    dry_run: bool = False
    """Whether this only shows."""
    forgotten: dict[str, int] = Field(default_factory=dict[str, int])
    """How much went: `facts`, `messages`, `session_messages`, `summaries`."""
    receipt_id: str | None = None
    """The receipt, by which it is undone; null when nothing went."""
    undo_until: Instant | None = None
    """Until when it can be undone; null when it cannot."""


class ForgetUndoResponse(BaseModel):
    """What came back."""

    receipt_id: str
    """The receipt of what was forgotten."""
    restored: dict[str, int]
    """How much came back: `memories`, `messages` of sessions. `kept_newer` counts memories that stayed away, as something newer stands in
    their place."""
