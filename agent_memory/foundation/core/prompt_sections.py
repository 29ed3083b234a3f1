"""Define the interface between `recall` and the sections of the memory prompt.

For each request, `recall` opens a section (`PromptSection`). The section queues its reads on the prompt's pipeline and
loads its content from the replies (`SectionReads`). Then `recall` fits the content into the section's share of the
tokens (`SectionContent`) and renders it (`FittedSection`).
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
"""Tokens that a chat format adds to each message's text."""


class SectionKind(StrEnum):
    """The place of a section in the prompt. All sections of one kind share a tenth of the tokens.

    `ALWAYS` sections come first, before the session's summary. `RECALLED` sections follow the memories.
    """

    ALWAYS = "always"
    RECALLED = "recalled"


class Reader(NamedTuple):
    """The namespace, user and agent that a prompt is for; None where the request names none."""

    namespace: str | None = None
    user_id: str | None = None
    agent_id: str | None = None


NOBODY = Reader()


@dataclass(slots=True)
class PromptAsk:
    """A request for a prompt. `session` is the session that the prompt continues.

    `reader` is within `scope`. `zone` is the time zone of the request, else of the reader, else UTC. It is final before
    sections load their content.
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
    """`ids` are the session's messages in the prompt, oldest first. `omitted_count` messages did not fit."""

    ref: SessionRef
    ids: Sequence[str]
    omitted_count: int = 0


@dataclass(slots=True)
class SectionText:
    """The content that a section adds to the prompt: chat messages, the memories in them, and notices.

    `search` is the request that found the memories. `parts` holds the same texts, for requests that set a format.
    Sections of features return only `parts`; recall turns each into a system message.
    """

    messages: Sequence[dict[str, Any]] = ()
    parts: Sequence[str] = ()
    memories: Sequence[Any] = ()
    notices: Sequence[str] = ()
    explanation: AnswerExplanation | None = None
    search: SearchRequest | None = None


class FittedSection(Protocol):
    def count_tokens(self) -> int:
        """Return how many tokens of the budget the section uses."""
        ...

    def render_section(self, messages: SessionMessages | None) -> SectionText:
        """Return the section's text, without memories that are already among the session's `messages`."""
        ...


class SectionContent(Protocol):
    """All content that a section could show, before it is fitted into the budget."""

    def fit_section(self, tokens: int | None) -> FittedSection:
        """Return the part of the content that fits into `tokens`. None means no limit."""
        ...


class SectionReads(Protocol):
    """The reads of a section for one prompt."""

    def queue_section(self, pipe: Any) -> int:
        """Queue the section's reads on the prompt's pipeline. Return the number of replies to expect."""
        ...

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> SectionContent:
        """Return the section's content from the replies. `session` holds the messages of the prompt's session."""
        ...


class PromptSection(Protocol):
    """A section of every memory prompt."""

    async def open_section(self, ask: PromptAsk) -> SectionReads | None:
        """Return the section's reads for a prompt, or None if the section has nothing to show."""
        ...


class AnnouncedSection(PromptSection, Protocol):
    """A section that a feature announces (`Feature.section`)."""

    @property
    def kind(self) -> SectionKind: ...


def fit_lines(lines: Sequence[T], tokens: int, count: Callable[[T], int]) -> tuple[list[T], int]:
    """Return the lines that fit into `tokens`, in order and uncut, and the number of tokens left.

    A line end counts as one token. A line that does not fit is skipped; shorter lines after it may still fit.
    """
    fitting: list[T] = []
    for line in lines:
        cost = count(line) + 1
        if cost <= tokens:
            fitting.append(line)
            tokens -= cost
    return fitting, tokens
