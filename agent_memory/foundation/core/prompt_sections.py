"""A section of the memory prompt, as a feature offers it to `recall`, which knows it by this alone.

A prompt is made in steps, each of which hands the next one what it needs: a section is *opened* for what a caller asks, *queues* its reads
on the one pipeline of the prompt, *loads* its content from their replies, is *fitted* into its share of the tokens, and is *rendered*.
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
    """Where a section stands in a prompt, and which part of the tokens it may take.

    What is `always` true stands first, before the session's summary, in a message of its own; all such sections share a tenth of the
    tokens. What is `recalled` stands behind the memories; all such sections share a tenth, too.
    """

    ALWAYS = "always"
    RECALLED = "recalled"


class Reader(NamedTuple):
    """Whom a prompt is for: each None where nobody is named."""

    namespace: str | None = None
    user_id: str | None = None
    agent_id: str | None = None


NOBODY = Reader()


@dataclass(slots=True)
class PromptAsk:
    """What a memory prompt is asked for, and for whom. `session` is the session that it continues, None without one.

    `reader` is within the reach of `scope`: sections show what is the reader's. Days are those of `zone`, which is known once sections
    load: the request's, else the reader's, else UTC.
    """

    scope: Scope
    body: MemoryPromptRequest
    session: SessionRef | None = None
    optimize_query: bool = False
    explain: bool = False
    reader: Reader = NOBODY
    names_tokens: bool = False
    """Whether the request itself says how many tokens the prompt may have."""
    zone: tzinfo = UTC


@dataclass(slots=True)
class SessionMessages:
    """The messages (ids, oldest first) of the prompt's session that it shows, and how many of the session it does not show."""

    ref: SessionRef
    ids: Sequence[str]
    left_out: int = 0


@dataclass(slots=True)
class SectionText:
    """What a section adds to a prompt: messages for a chat model, and beside them the memories that they show and what is said of these.

    `search` is the search that brought the memories. `parts` say the same where a request names the format of an API: texts under headings
    of their own, none of them empty. A section that a feature announces says `parts` alone: recall makes a system message of each, and
    keeps what they say from looking like memories.
    """

    messages: Sequence[dict[str, Any]] = ()
    parts: Sequence[str] = ()
    memories: Sequence[Any] = ()
    notices: Sequence[str] = ()
    explanation: AnswerExplanation | None = None
    search: SearchRequest | None = None


class FittedSection(Protocol):
    """A section that is cut to its tokens."""

    def count_tokens(self) -> int:
        """How many tokens it takes of the budget."""
        ...

    def render_section(self, shown: SessionMessages | None) -> SectionText:
        """Its text, without what the session's messages show anyway."""
        ...


class SectionContent(Protocol):
    """All that a section could show."""

    def fit_section(self, tokens: int | None) -> FittedSection:
        """What of it fits into so many tokens; None is "as much as there is"."""
        ...


class SectionReads(Protocol):
    """What a section reads for one prompt."""

    def queue_section(self, pipe: Any) -> int:
        """Puts its reads on the prompt's pipeline; returns how many replies they give."""
        ...

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> SectionContent:
        """Its content, from these replies; `session` are the messages that were read of the prompt's session."""
        ...


class PromptSection(Protocol):
    """A part of all memory prompts, which one feature provides."""

    async def open_section(self, ask: PromptAsk) -> SectionReads | None:
        """What it reads for a prompt; None where it has nothing to say."""
        ...


class AnnouncedSection(PromptSection, Protocol):
    """A section that a feature announces (`Feature.section`); `recall` shows it without knowing the feature."""

    @property
    def kind(self) -> SectionKind:
        """Where it stands."""
        ...


def fit_lines(lines: Sequence[T], tokens: int, count: Callable[[T], int]) -> tuple[list[T], int]:
    """Those lines that fit into `tokens`, the first before the others and none cut, and the tokens that are left.

    `count` gives the tokens of a line; its end takes one more.
    """
    taken: list[T] = []
    for line in lines:
        cost = count(line) + 1
        if cost <= tokens:
            taken.append(line)
            tokens -= cost
    return taken, tokens
