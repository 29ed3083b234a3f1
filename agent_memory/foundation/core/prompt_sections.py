"""Define the interface between `recall` and the sections of the memory prompt.

For each request, `recall` opens a section (`PromptSection`), which queues its reads on the prompt's
pipeline. `SectionReads` loads the content, `SectionContent` fits it into the token budget, and
`FittedSection` renders it.

If a method raises an exception, the entire request fails. For an example, see
`examples/extension/nickname.py`.
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
    """A section's position in the prompt.

    In a session's prompt, all sections of one kind share a tenth of the budget plus any tokens left
    over from earlier parts. Within a kind, sections from other packages come last.
    """

    ALWAYS = "always"
    """Before the session's summary, after blocks, pinned memories and the profile.

    For text that rarely changes, because model providers cache the beginning of a prompt.
    """
    RECALLED = "recalled"
    """After the memories, procedures and the timeline. For all other text."""


class Reader(NamedTuple):
    """The namespace, user, and agent that a prompt is for. None means unknown."""

    namespace: str | None = None
    user_id: str | None = None
    agent_id: str | None = None


NOBODY = Reader()


@dataclass(slots=True)
class PromptAsk:
    """A request for a prompt (`body`), which may continue a `session`.

    `scope` covers `reader`. `zone` is the request's or the reader's time zone, or UTC. It is final
    once sections load their content.
    """

    scope: Scope
    body: MemoryPromptRequest
    session: SessionRef | None = None
    optimize_query: bool = False
    explain: bool = False
    reader: Reader = NOBODY
    names_tokens: bool = False
    """True if the request limits the prompt's tokens."""
    zone: tzinfo = UTC
    shown_messages: SessionMessages | None = None
    """Messages that the caller shows separately. A prompt without a session omits them."""


@dataclass(slots=True)
class SessionMessages:
    """The session's messages in the prompt, oldest first, and how many were left out."""

    ref: SessionRef
    ids: Sequence[str]
    omitted_count: int = 0


@dataclass(slots=True)
class SectionText:
    """The content that a section adds to the prompt.

    `search` is the search request for its memories. `parts` contains the same text as `messages`,
    for requests that specify a format. A feature's section returns only `parts`.
    """

    messages: Sequence[dict[str, Any]] = ()
    parts: Sequence[str] = ()
    memories: Sequence[Any] = ()
    notices: Sequence[str] = ()
    explanation: AnswerExplanation | None = None
    search: SearchRequest | None = None


class FittedSection(Protocol):
    """The part of a section that fits into the budget. Usually a `FittedText`."""

    def count_tokens(self) -> int:
        """Return how many tokens of the budget the section uses."""
        ...

    def render_section(self, messages: SessionMessages | None) -> SectionText:
        """Return the section's text without memories that already appear in `messages`."""
        ...


@dataclass(frozen=True, slots=True)
class FittedText:
    """A fitted section with one text. If the text is empty, the section is omitted.

    The text must begin with `part_heading` (`foundation/text/prompt_marks.py`), which prevents it
    from being stored in long-term memory.
    """

    text: str
    count: Callable[[str], int]
    """Returns the number of tokens in a text, like `TokenCounter.count`."""
    notices: Sequence[str] = ()
    """Messages to the caller, such as about omitted lines."""
    extra: int = 0
    """Tokens that a non-empty section adds to its text, such as `PER_MESSAGE`."""

    def count_tokens(self) -> int:
        return self.count(self.text) + self.extra if self.text else 0

    def render_section(self, messages: SessionMessages | None) -> SectionText:
        return SectionText(parts=[self.text] if self.text else (), notices=self.notices)


class SectionContent(Protocol):
    """A section's full content, before `fit_section` limits it."""

    def fit_section(self, tokens: int | None) -> FittedSection:
        """Return the content that fits within `tokens` tokens, or all of it if None.

        This may run in a thread, so it must not use the event loop. For a list, use `fit_lines`.
        """
        ...


class SectionReads(Protocol):
    """The Redis reads that a section needs for one prompt."""

    def queue_section(self, pipe: Any) -> int:
        """Queue the section's reads, and return the number of replies to expect.

        May be called again after a failed attempt.
        """
        ...

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> SectionContent:
        """Build the section's content from the replies to the queued commands.

        `session` contains only messages that are certain to be in the prompt.
        """
        ...


class PromptSection(Protocol):
    """A section that every memory prompt can contain."""

    async def open_section(self, ask: PromptAsk) -> SectionReads | None:
        """Return the section's reads, or None to omit the section.

        Check that `ask.scope` covers the data of `ask.reader`. `recall` may call this again once
        the session's user is known.
        """
        ...


class AnnouncedSection(PromptSection, Protocol):
    """A section that a feature adds. `kind` can be a class attribute."""

    @property
    def kind(self) -> SectionKind: ...


def fit_lines(lines: Sequence[T], tokens: int, count: Callable[[T], int]) -> tuple[list[T], int]:
    """Return the lines that fit into `tokens`, in order, and the remaining tokens.

    Skip lines that do not fit. Each line break counts as one token.
    """
    fitting: list[T] = []
    for line in lines:
        cost = count(line) + 1
        if cost <= tokens:
            fitting.append(line)
            tokens -= cost
    return fitting, tokens
