"""Show the user's profile in the prompt. The text stays byte-identical until it changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any

from agent_memory.extensions.profile.service import shown_lists
from agent_memory.extensions.profile.store import PAGE, ProfileOwner, ProfileStore, parse_pages
from agent_memory.foundation.core.clock import calendar_day
from agent_memory.foundation.core.prompt_sections import FittedText, PromptAsk, SectionKind, SessionMessages, fit_lines
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.storage.connection import Pipe
from agent_memory.foundation.text.prompt_marks import DATA_NOTE, part_heading

_HEADING = part_heading("the user's profile")
_STATIC, _DYNAMIC = "Lasting:", "Lately:"


@dataclass(frozen=True, slots=True)
class ProfileReads:
    ask: PromptAsk
    store: ProfileStore
    owner: ProfileOwner
    most: int
    count: Callable[[str], int]
    static: Sequence[str] = ()
    dynamic: Sequence[str] = ()

    def queue_section(self, pipe: Pipe) -> int:
        self.store.queue_pages(pipe, self.owner, PAGE, slots=False)
        return 1

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> ProfileReads:
        pages = parse_pages(replies[0], PAGE, slots=False)
        static, dynamic = shown_lists(pages, datetime.now(UTC), PAGE)
        zone = self.ask.zone
        return replace(self, static=[_line(entry, zone) for entry in static], dynamic=[_line(entry, zone) for entry in dynamic])

    def fit_section(self, tokens: int | None) -> FittedText:
        """Keep the lines that fit within both token limits, static lines first."""
        left = self.most if tokens is None else min(self.most, tokens)
        left -= self.count("\n".join([_HEADING, _STATIC, _DYNAMIC, DATA_NOTE]))
        static, left = fit_lines(self.static, left, self.count)
        dynamic, _ = fit_lines(self.dynamic, left, self.count)
        lines = [line for head, part in ((_STATIC, static), (_DYNAMIC, dynamic)) if part for line in (head, *part)]
        return FittedText(_HEADING + "\n".join(lines) + DATA_NOTE if lines else "", self.count)


def _line(entry: Mapping[str, Any], zone: tzinfo) -> str:
    """Format an entry with the day of its event, or else of its last mention."""
    moment = datetime.fromisoformat(entry.get("event_date") or entry["last_said"])
    return f"- {calendar_day(moment, zone).isoformat()}: {' '.join(entry['text'].split())}"


def owner_of_prompt(ask: PromptAsk) -> ProfileOwner | None:
    """Return the owner of the profile to show in a prompt, or None.

    Callers restricted to certain agents get no profile.
    """
    scope, reader = ask.scope, ask.reader
    if reader.user_id is None or scope.agents is not None or not scope.reaches(reader.namespace, reader.user_id):
        return None
    return ProfileOwner(scope.tenant, reader.namespace, reader.user_id)


class ProfileSection:
    kind = SectionKind.ALWAYS

    def __init__(self, store: ProfileStore, counter: TokenCounter) -> None:
        self._store = store
        # Most lines in a user's next prompt are the same, so cached counts save 0.1 ms of CPU.
        self._count = lru_cache(maxsize=4096)(counter.count)

    async def open_section(self, ask: PromptAsk) -> ProfileReads | None:
        options = ask.body.profile
        owner = None if options is None else owner_of_prompt(ask)
        if options is None or owner is None:
            return None
        return ProfileReads(ask, self._store, owner, options.tokens, self._count)
