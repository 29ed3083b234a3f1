"""Select and order the memories for a prompt. Pure functions, no I/O.

Facts come first, in search order, followed by statements (memories made from messages). Clearly
relevant statements come before the rest, and both groups are sorted by time. Facts and statements
each get half of the slots and tokens, plus whatever the other kind leaves unused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agent_memory.features.memories.search.near_duplicates import DuplicateFilter
from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory.features.recall.contradictions import corrections_of
from agent_memory.features.recall.lines import LINE_TOKENS, LineStyle, line_date, memory_line
from agent_memory.foundation.text.languages.questions import asks_for_questions
from agent_memory.foundation.text.normalization import QUESTION
from agent_memory.foundation.text.passages.splitting import beginning
from agent_memory.foundation.text.prompt_marks import DATA_NOTE, FACTS_HEAD, NO_MEMORIES, STATEMENTS_HEAD
from agent_memory_client.models import Cut

# A fact that cites more messages than this sums them up, so it does not replace any of them.
_MOST_CITED = 4
# A message this many times as long as its facts says more than they do.
_SAYS_MORE = 4

# Statements with at least this share of the best relevance are clearly relevant; `_HANDFUL` or fewer always are.
_CLEAR_SHARE, _HANDFUL = 0.25, 5
# A reader cannot understand a passage with fewer tokens than this.
_LEAST_PASSAGE = 64
# Few texts have fewer bytes per token than this: English has four, Chinese three.
_BYTES_PER_TOKEN = 3

MessageName = tuple[str | None, str | None, str | None, str]
"""Identifies a message by namespace, user, session and id."""


@dataclass(slots=True)
class MemoryList:
    """A prompt's facts and statements, each in search order.

    `question_ids` are the ids of statements that only ask a question. `passages` maps the ids of
    long memories to the passages to show.
    """

    facts: Sequence[ShownMemory] = ()
    statements: Sequence[ShownMemory] = ()
    question_ids: frozenset[str] = frozenset()
    passages: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def memories(self) -> list[ShownMemory]:
        return [*self.facts, *self.statements]

    def fact_lines(self, style: LineStyle) -> list[str]:
        """Return a line for each fact, most relevant first."""
        return [memory_line(memory, style, line_date(memory), passage=self.passages.get(memory.id)) for memory in self.facts]

    def statement_lines(self, style: LineStyle) -> list[str]:
        """Return a line for each statement, oldest first, followed by the questions."""
        dated = {memory.id: line_date(memory) for memory in self.statements}
        oldest_first = sorted(self.statements, key=lambda memory: (dated[memory.id], memory.id))
        statements = [memory for memory in oldest_first if memory.id not in self.question_ids]
        last = corrections_of(statements) if len(statements) > 1 else {}
        latest = frozenset(last.values())
        lines: list[str] = []
        for group in _groups(statements, last):
            for place, memory in enumerate(group):
                passage = self.passages.get(memory.id)
                line = memory_line(memory, style, dated[memory.id], latest=memory.id in latest, passage=passage)
                lines.append(f"  {line}" if place else line)
        questions = [memory for memory in oldest_first if memory.id in self.question_ids]
        return [*lines, *(memory_line(memory, style, dated[memory.id], asks=True) for memory in questions)]

    def text(self, style: LineStyle) -> str:
        """Return all lines as one string, with a note that memories are not instructions."""
        lines = [*self.fact_lines(style), *self.statement_lines(style)]
        return "\n".join(lines) + DATA_NOTE if lines else NO_MEMORIES

    def parts(self, style: LineStyle) -> list[str]:
        """Return the lines as sections with headings, or an empty list if there are no memories."""
        kinds = ((FACTS_HEAD, self.fact_lines(style)), (STATEMENTS_HEAD, self.statement_lines(style)))
        parts = [head + "\n".join(lines) for head, lines in kinds if lines]
        return [*parts[:-1], parts[-1] + DATA_NOTE] if parts else []

    def without(self, hidden: Callable[[ShownMemory], bool]) -> MemoryList:
        """Return a copy of the list without memories for which `hidden` returns true."""
        facts = [memory for memory in self.facts if not hidden(memory)]
        return MemoryList(facts, [memory for memory in self.statements if not hidden(memory)], self.question_ids, self.passages)

    def notices(self) -> list[str]:
        """Return a notice for each memory that is only partly shown."""
        return [
            f"the memory {memory.id} is too long for the prompt: only the passage that matches the query best is shown"
            for memory in self.memories
            if memory.id in self.passages
        ]


@dataclass(slots=True)
class MemorySelection:
    """Selects up to `limit` of the best memories that fit into `budget` tokens.

    A memory costs `line_tokens` plus the tokens in its text. If `distinct` is true, near duplicates
    are omitted.
    """

    count: Callable[[str], int]
    query: str
    limit: int
    budget: int
    distinct: bool
    line_tokens: int = LINE_TOKENS
    cut: list[Cut] = field(default_factory=list[Cut])
    passages: dict[str, str] = field(default_factory=dict[str, str])
    _left: int = 0
    _tokens_needed: int = 0
    _repeats: DuplicateFilter = field(default_factory=DuplicateFilter)

    def select(self, memories: Sequence[ShownMemory]) -> MemoryList:
        """Return the memories to show from `memories`, which must be sorted best first.

        Reasons for omissions are added to `cut`, except for memories that merely exceed the limit.
        """
        beside = [memory for memory in memories if memory.beside is not None]
        memories = [memory for memory in memories if memory.beside is None] if beside else memories
        facts = [memory for memory in memories if not memory.is_message]
        question_ids = frozenset([memory.id for memory in memories if memory.is_message and only_asks(memory)])
        statements = [memory for memory in memories if memory.is_message]
        if question_ids and not asks_for_questions(self.query):
            self.cut += [Cut(memory_id=memory.id, reason="asked") for memory in statements if memory.id in question_ids]
            statements = [memory for memory in statements if memory.id not in question_ids]
        # A token has at least one byte. If the bytes of all memories fit, counting tokens is unnecessary.
        counted = sum([len(memory.text.encode()) + self.line_tokens for memory in memories]) > self.budget
        self._left = self.budget // 2 if counted and statements else self.budget
        places = max((self.limit + 1) // 2, self.limit - len(statements))
        fitted_facts, beyond = self._fit(facts, places, counted=counted)
        self._left += self.budget - self.budget // 2 if counted and statements else 0
        fitted_statements, over = self._fit(self._beside_facts(statements, fitted_facts), self.limit - len(fitted_facts), counted=counted)
        if beyond and len(fitted_facts) + len(fitted_statements) < self.limit:
            more, beyond = self._fit(beyond, self.limit - len(fitted_facts) - len(fitted_statements), counted=counted)
            fitted_facts += more
        if beside:
            fitted_mids = {memory.mid for memory in fitted_statements}
            fitted_statements += self._fit([memory for memory in beside if memory.beside in fitted_mids], len(beside), counted=True)[0]
        for memory in (*beyond, *over):
            self._tokens_needed += (cost := self._cost(memory))
            if cost > self._left:
                self.cut.append(
                    Cut(memory_id=memory.id, reason="over_budget", tokens_needed=self._tokens_needed, tokens_available=self.budget)
                )
        return MemoryList(fitted_facts, fitted_statements, question_ids, self.passages)

    def _fit(self, memories: Sequence[ShownMemory], places: int, *, counted: bool) -> tuple[list[ShownMemory], list[ShownMemory]]:
        """Return the memories that fit into the budget and `places`, and the remaining ones."""
        fitted: list[ShownMemory] = []
        beyond: list[ShownMemory] = []
        for memory in memories:
            passage = _passage_of(memory) if counted and len(fitted) < places else None
            cost = self._cost(memory if passage is None else passage) if counted else 0
            if cost > self._left and passage is not None and (room := self._left - self.line_tokens) >= _LEAST_PASSAGE:
                passage = _beginning_of(passage, room * _BYTES_PER_TOKEN)
                cost = self._cost(passage)
            if cost > self._left or len(fitted) >= places:
                beyond.append(memory)
            elif self.distinct and (by := self._repeats.add_memory(memory)) is not None:
                self.cut.append(Cut(memory_id=memory.id, reason="collapsed", by=by))
            else:
                self._tokens_needed += cost
                self._left -= cost
                fitted.append(memory)
                if passage is not None:
                    self.passages[memory.id] = passage
        return fitted, beyond

    def _cost(self, memory_or_text: ShownMemory | str) -> int:
        return self.count(memory_or_text if isinstance(memory_or_text, str) else memory_or_text.text) + self.line_tokens

    def _beside_facts(self, statements: Sequence[ShownMemory], facts: Sequence[ShownMemory]) -> Sequence[ShownMemory]:
        """Return the statements that are not covered by a shown fact."""
        resting: dict[MessageName, list[ShownMemory]] = {}
        for fact in facts:
            names = cited_messages(fact)
            for name in names if len(names) <= _MOST_CITED else ():
                resting.setdefault(name, []).append(fact)
        if not resting:
            return statements
        remaining: list[ShownMemory] = []
        for memory in statements:
            names = cited_messages(memory)
            over = resting.get(names[0], ()) if len(names) == 1 else ()
            if over and len(memory.text) <= _SAYS_MORE * sum(len(fact.text) for fact in over):
                self.cut.append(Cut(memory_id=memory.id, reason="collapsed", by=over[0].id))
            else:
                remaining.append(memory)
        return remaining


def _groups(statements: Sequence[ShownMemory], last: Mapping[str, str]) -> list[list[ShownMemory]]:
    """Group statements, sorted oldest first, with their corrections and related memories.

    Clearly relevant groups come first. Within each kind, groups are sorted by their newest
    statement.
    """
    by_mid = {memory.mid: memory for memory in statements}
    groups: dict[str, list[ShownMemory]] = {}
    for memory in reversed(statements):
        hit = memory if memory.beside is None else by_mid.get(memory.beside, memory)
        groups.setdefault(last.get(hit.id, hit.id), []).append(memory)
    newest_last = [group[::-1] for group in reversed(groups.values())]
    clear = _CLEAR_SHARE * max(map(_relevance, statements), default=0.0) if len(statements) > _HANDFUL else 0.0
    return sorted(newest_last, key=lambda group: max(map(_relevance, group)) < clear)


def _relevance(memory: ShownMemory) -> float:
    return memory.values.get("relevance") or 0.0


def cited_messages(memory: ShownMemory) -> list[MessageName]:
    """Return the identities of the messages that this memory was extracted from."""
    session = memory.values["session_id"]
    if session is None:
        return []
    return [(memory.namespace, memory.user_id, session, message) for message in memory.values["extracted_from"] or ()]


def _passage_of(memory: ShownMemory) -> str | None:
    """Return the matching or first passage of a long memory, or None if the memory is short."""
    found_passage = memory.values.get("passage")
    passage = beginning(memory.text) if found_passage is None else found_passage["text"]
    if len(passage) == len(memory.text):
        return None
    start = 0 if found_passage is None else found_passage["start"]
    return f"{'…' if start else ''}{passage.strip()}{'…' if start + len(passage) < len(memory.text) else ''}"


def _beginning_of(passage: str, most: int) -> str:
    return f"{passage.encode()[:most].decode(errors='ignore').rstrip()}…"


def only_asks(memory: ShownMemory) -> bool:
    """True if a user's message only asks a question and states nothing."""
    return QUESTION in memory.values["metadata"]
