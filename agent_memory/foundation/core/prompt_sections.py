"""Define the interface between `recall` and the sections of the memory prompt.

For each request, `recall` opens a section (`PromptSection`). The section queues its reads on the prompt's pipeline and
loads its content from the replies (`SectionReads`). Then `recall` fits the content into the section's share of the
token budget (`SectionContent`) and renders it (`FittedSection`).

One class can implement `SectionReads` and `SectionContent`. `examples/extension/nickname.py` shows a section with one
line, and `agent_memory/extensions/pinned/section.py` shows a section with a list. If a method of a section raises an
exception, the whole prompt request fails.
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

    Sections of the same kind share a number of tokens. In a prompt with a session, they get a tenth of the token budget
    plus the tokens that earlier parts did not use. Within a kind, sections from other packages come last and get the
    remaining tokens.
    """

    ALWAYS = "always"
    """Before the session's summary, after blocks, pinned memories and the profile.

    Use this kind for text that rarely changes, because model providers cache the beginning of a prompt.
    """
    RECALLED = "recalled"
    """After the memories, procedures and the timeline. Use this kind for all other text."""


class Reader(NamedTuple):
    """A prompt's namespace, user, and agent. Each one is None if the request and scope do not determine it."""

    namespace: str | None = None
    user_id: str | None = None
    agent_id: str | None = None


NOBODY = Reader()


@dataclass(slots=True)
class PromptAsk:
    """A request for a prompt. `session` is the session that the prompt continues. `body` is the request.

    `scope` covers `reader`. `zone` is the request's time zone, or else the reader's, or else UTC. It no longer changes
    once sections load their content.
    """

    scope: Scope
    body: MemoryPromptRequest
    session: SessionRef | None = None
    optimize_query: bool = False
    explain: bool = False
    reader: Reader = NOBODY
    names_tokens: bool = False
    """True if the request itself limits the number of tokens in the prompt."""
    zone: tzinfo = UTC
    shown_messages: SessionMessages | None = None
    """Messages that the caller shows next to a prompt without a session. The prompt does not repeat them."""


@dataclass(slots=True)
class SessionMessages:
    """The session's messages in the prompt: their `ids`, oldest first, and how many messages did not fit."""

    ref: SessionRef
    ids: Sequence[str]
    omitted_count: int = 0


@dataclass(slots=True)
class SectionText:
    """The content that a section adds to the prompt: chat messages, the memories in them, and notices.

    `search` is the search request for the memories. `parts` contains the same text as `messages`, for requests that set
    a format. A feature's section returns only `parts`, and `recall` turns each part into a system message.
    """

    messages: Sequence[dict[str, Any]] = ()
    parts: Sequence[str] = ()
    memories: Sequence[Any] = ()
    notices: Sequence[str] = ()
    explanation: AnswerExplanation | None = None
    search: SearchRequest | None = None


class FittedSection(Protocol):
    """The part of a section that fits into the budget. Most sections use `FittedText`."""

    def count_tokens(self) -> int:
        """Return how much of the token budget the section uses."""
        ...

    def render_section(self, messages: SessionMessages | None) -> SectionText:
        """Return the section's text, without memories that are already among the session's `messages`."""
        ...


@dataclass(frozen=True, slots=True)
class FittedText:
    """A fitted section that consists of a single string. An empty string omits the section from the prompt.

    The text must begin with `part_heading` (`foundation/text/prompt_marks.py`). If a program appends the prompt to a
    session, this heading keeps the section out of long-term memory.
    """

    text: str
    count: Callable[[str], int]
    """A function that returns the number of tokens in a text, such as `TokenCounter.count`."""
    notices: Sequence[str] = ()
    """Messages to the caller, for example about lines that did not fit. The response contains them in `notices`."""
    extra: int = 0
    """Tokens that a non-empty section needs in addition to its text, such as `PER_MESSAGE`."""

    def count_tokens(self) -> int:
        return self.count(self.text) + self.extra if self.text else 0

    def render_section(self, messages: SessionMessages | None) -> SectionText:
        return SectionText(parts=[self.text] if self.text else (), notices=self.notices)


class SectionContent(Protocol):
    """Everything that a section could show, before `fit_section` limits it to the budget."""

    def fit_section(self, tokens: int | None) -> FittedSection:
        """Return the part of the content that fits into `tokens` tokens. None means no limit.

        For long prompts, this method runs in a thread, so it must not use the event loop. For a list, use `fit_lines`.
        """
        ...


class SectionReads(Protocol):
    """A section's reads from Redis for one prompt."""

    def queue_section(self, pipe: Any) -> int:
        """Queue the section's reads on the prompt's pipeline. Return the number of replies to expect.

        All sections share one round trip to Redis. A retry calls this method again.
        """
        ...

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> SectionContent:
        """Build the section's content from the replies.

        `replies` contains the replies to the queued commands, in order. `session` contains the session's newest messages
        that fit into the prompt for certain, or the messages that the caller shows, or is None.
        """
        ...


class PromptSection(Protocol):
    """A section that every memory prompt can contain."""

    async def open_section(self, ask: PromptAsk) -> SectionReads | None:
        """Return the section's reads for a prompt, or None to omit the section.

        Check that `ask.scope` reaches the data of `ask.reader`. If a request gives only a session's id, `recall` calls this
        method again as soon as the session's user is known.
        """
        ...


class AnnouncedSection(PromptSection, Protocol):
    """A section that a feature adds (`Feature.section`). `kind` can be a class attribute."""

    @property
    def kind(self) -> SectionKind: ...


def fit_lines(lines: Sequence[T], tokens: int, count: Callable[[T], int]) -> tuple[list[T], int]:
    """Return the complete lines that fit into `tokens`, in order, and the number of tokens left.

    Each line break counts as one token. Skip a line that does not fit, because shorter lines after it may still fit.
    """
    fitting: list[T] = []
    for line in lines:
        cost = count(line) + 1
        if cost <= tokens:
            fitting.append(line)
            tokens -= cost
    return fitting, tokens
