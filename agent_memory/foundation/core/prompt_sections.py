"""The interface between a section of the memory prompt and `recall`.

For each request, a section opens, queues its reads on the prompt's pipeline, and loads its content from the replies.
Then `recall` fits it into its share of the tokens and renders it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeVar

from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory_client.models import AnswerExplanation, MemoryPromptRequest, SearchRequest

T = TypeVar("T")

PER_MESSAGE = 4
"""Tokens around each message's text."""


class SectionKind(StrEnum):
    """The place of a section. All sections of a kind share a tenth of the tokens.

    `ALWAYS` sections come first, in messages before the session's summary; `RECALLED` ones follow the memories.
    """

    ALWAYS = "always"
    RECALLED = "recalled"


class Reader(NamedTuple):
    """The reader of a prompt, None for each missing name."""

    namespace: str | None = None
    user_id: str | None = None
    agent_id: str | None = None


NOBODY = Reader()


@dataclass(slots=True)
class PromptAsk:
    """The request for a prompt. `session` is the session that it continues.

    `reader` is within `scope`. `zone`, set before sections load, is the request's zone, else the reader's, else UTC.
    """

    scope: Scope
    body: MemoryPromptRequest
    session: SessionRef | None = None
    optimize_query: bool = False
    explain: bool = False
    reader: Reader = NOBODY
    names_tokens: bool = False
    """True if the request itself limits the prompt's tokens."""
    zone: tzinfo = UTC


@dataclass(slots=True)
class SessionMessages:
    """The ids of the session's messages in the prompt, oldest first, and the number of those left out."""

    ref: SessionRef
    ids: Sequence[str]
    omitted_count: int = 0


@dataclass(slots=True)
class SectionText:
    """A section's contribution: chat messages, the memories in them, and notices.

    `search` found the memories. `parts` has the same texts for requests with a format of another API. Sections of
    features return `parts` only; recall makes a system message of each.
    """

    messages: Sequence[dict[str, Any]] = ()
    parts: Sequence[str] = ()
    memories: Sequence[Any] = ()
    notices: Sequence[str] = ()
    explanation: AnswerExplanation | None = None
    search: SearchRequest | None = None


class FittedSection(Protocol):
    def count_tokens(self) -> int:
        """Return the tokens that it takes of the budget."""
        ...

    def render_section(self, messages: SessionMessages | None) -> SectionText:
        """Return its text without the memories that the session's messages already show."""
        ...


class SectionContent(Protocol):
    """Everything that a section could show."""

    def fit_section(self, tokens: int | None) -> FittedSection:
        """Return the part that fits into `tokens`; None means no limit."""
        ...


class SectionReads(Protocol):
    """The reads of a section for one prompt."""

    def queue_section(self, pipe: Any) -> int:
        """Queue its reads on the prompt's pipeline; return the number of replies."""
        ...

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> SectionContent:
        """Return its content from the replies; `session` has the messages read of the prompt's session."""
        ...


class PromptSection(Protocol):
    """A part of all memory prompts."""

    async def open_section(self, ask: PromptAsk) -> SectionReads | None:
        """Return its reads for a prompt, None if it has nothing to show."""
        ...


class AnnouncedSection(PromptSection, Protocol):
    """A section that a feature announces (`Feature.section`)."""

    @property
    def kind(self) -> SectionKind: ...


def fit_lines(lines: Sequence[T], tokens: int, count: Callable[[T], int]) -> tuple[list[T], int]:
    """Return the lines that fit into `tokens`, in order and uncut, and the tokens left. A line end takes one."""
    fitting: list[T] = []
    for line in lines:
        cost = count(line) + 1
        if cost <= tokens:
            fitting.append(line)
            tokens -= cost
    return fitting, tokens
