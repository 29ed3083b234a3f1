"""Show the user's timeline in the prompt. The text stays byte-identical until it changes.

Show the time that the query mentions, or else the latest periods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

from agent_memory.extensions.profile.section import owner_of_prompt
from agent_memory.extensions.timeline.periods import day_number
from agent_memory.extensions.timeline.prompt_days import (
    NamedDays,
    days_of_span,
    in_zone,
    lines_of_days,
    lines_of_latest,
    periods_within,
)
from agent_memory.extensions.timeline.store import TimelineOwner, TimelineStore, parse_prompt_reply
from agent_memory.foundation.core.prompt_sections import FittedText, PromptAsk, SectionKind, SessionMessages, fit_lines
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.storage.connection import Pipe
from agent_memory.foundation.text.dates.question_time import question_time
from agent_memory.foundation.text.prompt_marks import DATA_NOTE, part_heading
from agent_memory_client.models import SearchRequest

TIMELINE_HEADING = part_heading("what happened to the user, by days")
# Search at most this many characters of a query for a time.
_MOST_READ = 8_192


class _Question(NamedTuple):
    """A query and the time at which it is asked."""

    text: str
    now: datetime

    def days(self, zone: tzinfo) -> NamedDays | None:
        """Return the days in `zone` that the query mentions, or None."""
        span = question_time(self.text, self.now, zone)
        return None if span is None else days_of_span(span, zone)


@dataclass(frozen=True, slots=True)
class TimelineReads:
    ask: PromptAsk
    store: TimelineStore
    owner: TimelineOwner
    most: int
    count: Callable[[str], int]
    question: _Question
    lines: Sequence[tuple[str, str]] = ()
    """The lines to show with their days, most important first."""

    def queue_section(self, pipe: Pipe) -> int:
        """Queue one read with a one-day margin, because the time zone is not known yet."""
        named = self.question.days(UTC)
        low = None if named is None or named.first is None else named.first - 1
        last = day_number(self.question.now.date()) if named is None else named.last
        periods = None if named is None else periods_within(named, margin=1)
        self.store.queue_prompt(pipe, self.owner, low, None if last is None else last + 1, periods)
        return 1

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> TimelineReads:
        events, summaries = parse_prompt_reply(replies[0], self.question.now.timestamp())
        named = self.question.days(self.ask.zone)
        if named is None:
            return replace(self, lines=lines_of_latest(summaries))
        return replace(self, lines=lines_of_days(named, [in_zone(event, self.ask.zone) for event in events], summaries))

    def fit_section(self, tokens: int | None) -> FittedText:
        """Keep the lines that fit within both token limits."""
        left = self.most if tokens is None else min(self.most, tokens)
        lines, _ = fit_lines(self.lines, left - self.count(TIMELINE_HEADING + DATA_NOTE), lambda line: self.count(line[1]))
        text = TIMELINE_HEADING + "\n".join(line for _, line in sorted(lines)) + DATA_NOTE if lines else ""
        return FittedText(text, self.count)


class TimelineSection:
    kind = SectionKind.RECALLED

    def __init__(self, store: TimelineStore, counter: TokenCounter) -> None:
        self._store = store
        self._counter = counter

    async def open_section(self, ask: PromptAsk) -> TimelineReads | None:
        options = ask.body.timeline
        owner = None if options is None else owner_of_prompt(ask)
        if options is None or owner is None:
            return None
        return TimelineReads(ask, self._store, owner, options.tokens, self._counter.count, _question(ask))


def _question(ask: PromptAsk) -> _Question:
    """Return the prompt's query and reference time."""
    search, text, now = ask.body.long_term_search, ask.body.query[:_MOST_READ], datetime.now(UTC)
    return _Question(text, (search.reference_time if isinstance(search, SearchRequest) else None) or now)
