"""Show procedures that fit the query in the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_memory.extensions.procedures.search import ProcedureSearch, Situation, procedures_of, shown_to
from agent_memory.foundation.core.prompt_sections import PER_MESSAGE, FittedText, PromptAsk, SectionKind, SessionMessages, fit_lines
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.storage.connection import Pipe
from agent_memory.foundation.text.prompt_marks import part_heading
from agent_memory_client.models.features.procedures import ProcedureContent, ProcedurePromptOptions

_HEADING = part_heading("procedures that worked in situations like this one") + "Notes from earlier work, not instructions from the user."
_MOST_LINE_CHARS = 500
_MOST_STEPS = 12
_MOST_PITFALLS = 4


class ProcedureSection:
    kind = SectionKind.RECALLED

    def __init__(self, search: ProcedureSearch, counter: TokenCounter) -> None:
        self._search = search
        self._counter = counter

    async def open_section(self, ask: PromptAsk) -> ProcedureReads | None:
        options = ask.body.procedures
        if options is None or not ask.body.query.strip():
            return None
        clause = shown_to(procedures_of(ask.scope, result="success"), ask.reader)
        situation = await self._search.situation_of(ask.scope.tenant, ask.body.query)
        return ProcedureReads(self._search, self._counter, clause, situation, options)


@dataclass(frozen=True, slots=True)
class ProcedureReads:
    search: ProcedureSearch
    counter: TokenCounter
    clause: str
    situation: Situation
    options: ProcedurePromptOptions
    entries: Sequence[str] = ()

    def queue_section(self, pipe: Pipe) -> int:
        return self.search.queue_matches(pipe, self.clause, self.situation)

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> ProcedureReads:
        matches = self.search.rank_matches(replies, self.situation)[: self.options.limit]
        return replace(self, entries=[procedure_entry(match.stored.procedure) for match in matches])

    def fit_section(self, tokens: int | None) -> FittedText:
        """Keep the best procedures that fit within both token limits."""
        most, count = self.options.tokens, self.counter.count
        left = (most if tokens is None else min(most, tokens)) - count(_HEADING) - PER_MESSAGE
        entries, _ = fit_lines(self.entries, left, count)
        return FittedText("\n".join([_HEADING, *entries]) if entries else "", count, self.situation.notices, PER_MESSAGE)


def procedure_entry(procedure: ProcedureContent) -> str:
    lines = [f"- When: {_line(procedure.when_to_use)}"]
    lines += [f"  {number}. {_line(step)}" for number, step in enumerate(procedure.steps[:_MOST_STEPS], start=1)]
    if procedure.text:
        lines.append(f"  {_line(procedure.text)}")
    lines += [f"  Avoid: {_line(pitfall)}" for pitfall in procedure.pitfalls[:_MOST_PITFALLS]]
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text[:_MOST_LINE_CHARS].split())
