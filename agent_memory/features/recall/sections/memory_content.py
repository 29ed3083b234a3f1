"""Select the memories that fit into a prompt's token budget, and render the section."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from agent_memory.features.memories.search.pages import explain_answer
from agent_memory.features.memories.search.query import SearchQuery
from agent_memory.features.memories.search.ranking import Ranking
from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory.features.recall.formats import text_message
from agent_memory.features.recall.lines import ID_TOKENS, LINE_TOKENS, LineStyle
from agent_memory.features.recall.memory_list import MemoryList, MemorySelection
from agent_memory.foundation.core.prompt_sections import PER_MESSAGE, PromptAsk, SectionText, SessionMessages
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.text.prompt_marks import MEMORIES_HEAD
from agent_memory_client.models import Cut

_AROUND_TOKENS = 40

CountReading = Callable[[SearchQuery, Sequence[ShownMemory]], None]


@dataclass(slots=True)
class MemoriesContent:
    """Matching memories, best first.

    If `max_tokens` is not set, at most `most` tokens are shown.
    """

    ask: PromptAsk
    query: SearchQuery
    ranking: Ranking
    cards: Sequence[ShownMemory]
    cut: Sequence[Cut]
    counter: TokenCounter
    most: int
    count_reading: CountReading | None

    @property
    def is_formatted(self) -> bool:
        return self.ask.body.format is not None

    def fit_section(self, tokens: int | None) -> FittedMemories:
        """Return the best memories that fit, without near duplicates unless allowed."""
        around = _AROUND_TOKENS + PER_MESSAGE if self.ask.body.session is None and not self.is_formatted else 0
        budget, request = self.most if tokens is None else max(tokens - around, 0), self.query.request
        if not self.ask.names_tokens:
            budget = min(budget, self.most)
        # Counting stops at twice the budget: a text of that size does not fit anyway.
        count = partial(self.counter.count, enough=2 * budget)
        distinct, line = request.distinct is not False, LINE_TOKENS + (ID_TOKENS if self.ask.body.include_ids else 0)
        selection = MemorySelection(count, request.text or "", request.limit, budget, distinct, line)
        listed = selection.select(self.cards)
        return FittedMemories(self, listed, [*self.cut, *selection.cut], budget)


@dataclass(slots=True)
class FittedMemories:
    content: MemoriesContent
    listed: MemoryList
    cut: Sequence[Cut]
    budget: int

    def count_tokens(self) -> int:
        """Count the tokens in the list, including memories that messages repeat."""
        if self.content.is_formatted and not self.listed.memories:
            return 0
        return self.content.counter.count(self.listed.text(self._style())) + PER_MESSAGE

    def render_section(self, messages: SessionMessages | None) -> SectionText:
        """Render the memories that `messages` do not already show, and count them as read."""
        content, request = self.content, self.content.query.request
        listed = self.listed if messages is None else self.listed.without(lambda memory: _rests_on(memory, messages))
        cards = listed.memories
        why = None
        if request.explain:
            ids = {card.id for card in cards}
            repeats = [Cut(memory_id=card.id, reason="already_shown") for card in self.listed.memories if card.id not in ids]
            why = explain_answer(content.query, content.ranking, [*self.cut, *repeats])
            why.memory_tokens = self.budget
            why.messages_left_out = None if messages is None else messages.omitted_count
        if content.count_reading is not None:
            content.count_reading(content.query, cards)
        style, notices = self._style(), [*content.query.notices, *content.ranking.notices, *listed.notices()]
        if content.is_formatted:
            return SectionText((), listed.parts(style), cards, notices, why, request)
        return SectionText([text_message("system", MEMORIES_HEAD + listed.text(style))], (), cards, notices, why, request)

    def _style(self) -> LineStyle:
        ask = self.content.ask
        return LineStyle.of_search(self.content.query.request, ask.zone, ids=ask.body.include_ids)


def _rests_on(memory: ShownMemory, messages: SessionMessages) -> bool:
    """True if the prompt already shows every message that the memory was made from."""
    ref, cited = messages.ref, memory.values["extracted_from"]
    if not cited or (memory.values["session_id"], memory.namespace, memory.user_id) != (ref.session_id, ref.namespace, ref.user_id):
        return False
    return set(messages.ids).issuperset(cited)
