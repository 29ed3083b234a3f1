"""The long-term memories that fit a prompt's query, and before them what its user said a moment ago in other sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

from agent_memory.core.prompt_sections import PromptAsk, SectionText, SessionMessages
from agent_memory.core.scope import Scope
from agent_memory.core.settings import Settings
from agent_memory.llm.tokens import TokenCounter
from agent_memory.memories.records import message_memory_id
from agent_memory.memories.search.near_duplicates import DuplicateFilter
from agent_memory.memories.search.pages import PageReader, explain_answer
from agent_memory.memories.search.query import SearchQuery
from agent_memory.memories.search.ranking import Ranking
from agent_memory.memories.search.service import SearchService
from agent_memory.memories.shown_memories import ShownMemory
from agent_memory.memories.store import MemoryStore
from agent_memory.recall.frames import one_line, shown_id
from agent_memory.recall.prompt import PER_MESSAGE, text_message
from agent_memory.sessions.recent import RecentMessages, RecentQuery
from agent_memory.storage.connection import Pipe
from agent_memory.text.prompt_marks import DATA_NOTE, MEMORIES_HEAD, NO_MEMORIES
from agent_memory.text.retrieval_units import day
from agent_memory.text.time_expressions import ago, zone_of
from agent_memory_client.models import Condition, Cut, MemoryPromptRequest, Namespace, SearchRequest, UserId

# Tokens around each memory's text: its date, type and id.
_PER_MEMORY = 30


class MemoriesSection:
    """Searches in long-term memory for a prompt."""

    def __init__(
        self,
        settings: Settings,
        search: SearchService,
        pages: PageReader,
        store: MemoryStore,
        recent: RecentMessages,
        counter: TokenCounter,
    ) -> None:
        self._settings = settings.search
        self._search = search
        self._pages = pages
        self._store = store
        self._recent = recent
        self._counter = counter

    async def open_section(self, ask: PromptAsk) -> MemoryReads | None:
        """The search of a prompt, prepared for its round trip; None when it asks for none. Raises what the search raises."""
        request = self._search_request(ask)
        if request is None:
            return None
        query = await self._search.prepare_query(ask.scope, request, optimize_query=ask.optimize_query, paged=False)
        return MemoryReads(self, ask, query, self._recent.recent_query(ask.scope, query.request))

    def queue_memories(self, pipe: Pipe, ask: PromptAsk, query: SearchQuery, recent: RecentQuery | None) -> int:
        """Puts the search, and the read of what the user said in other sessions, on a pipeline; returns how many replies they give."""
        count = 0 if recent is None else self._recent.queue_recent(pipe, recent, but=ask.session)
        return count + (0 if query.empty else self._search.queue_query(pipe, query))

    async def load_memories(
        self, ask: PromptAsk, query: SearchQuery, recent: RecentQuery | None, replies: Sequence[Any], session: SessionMessages | None
    ) -> MemoriesContent:
        """The memories of these replies, best first, without those of the session's newest messages, which are shown in any case.

        What was said elsewhere and is no memory yet comes first: the index cannot rank it.
        """
        elsewhere: list[ShownMemory] = []
        if recent is not None:
            first, *replies = replies
            elsewhere = self._recent.find_recent(recent, first, None if session is None else session.ref)
        ranking = await self._search.rank_replies(ask.scope, query, replies)
        newest: set[str] = set()
        if session is not None:
            ids = session.ids[-query.request.limit :]
            newest = {self._store.mid(ask.scope, message_memory_id(session.ref, message)) for message in ids}
        cut = await self._passed_over(ask.scope, query, ranking, newest)
        page, _ = await self._pages.read_page(ask.scope, query, ranking, without=newest)
        count_reading = None if ask.explain else self._search.count_reading
        most = self._settings.prompt_memory_tokens
        return MemoriesContent(query, ranking, [*elsewhere, *page], cut, self._counter, most, count_reading)

    async def _passed_over(self, scope: Scope, query: SearchQuery, ranking: Ranking, newest: set[str]) -> list[Cut]:
        """Those of the first of the ranking that are passed over for the session's messages, which show them; only when it is asked for."""
        if not (query.request.explain and newest):
            return []
        hits = [scored for scored in ranking.scored[: query.request.limit + len(newest)] if scored[1] in newest]
        cards = await self._pages.read_ranked(scope, query, ranking, hits)
        return [Cut(memory_id=card.id, reason="already_shown") for card in cards]

    def _search_request(self, ask: PromptAsk) -> SearchRequest | None:
        """The search of a prompt: for the query, within the session's user and namespace unless the search names its own.

        In the prompt of a session without a user stands nobody's memory: only what has no user, either.
        """
        body, session = ask.body, ask.session
        wanted = body.long_term_search
        if wanted is None or wanted is False:
            return None
        request = SearchRequest(limit=self._settings.prompt_memories) if wanted is True else wanted
        # What is in quarantine is shown to no model, whoever asks.
        update: dict[str, Any] = {"text": body.query, "quarantined": False}
        if ask.explain:
            update["explain"] = True
        user, namespace = (body.user_id, body.namespace) if session is None else (session.user_id, session.namespace)
        if request.user_id is None and not (request.filter is not None and _names_user(request.filter)):
            if user:
                update["user_id"] = UserId(eq=user)
            elif session is not None and ask.scope.users is None and not self._settings.prompt_all_users:
                update["user_id"] = UserId(exists=False)
        if request.namespace is None and namespace:
            update["namespace"] = Namespace(eq=namespace)
        return request.model_copy(update=update)


def searches(body: MemoryPromptRequest) -> bool:
    """Whether a prompt asks for long-term memories."""
    return body.long_term_search is not None and body.long_term_search is not False


def _names_user(condition: Condition) -> bool:
    """Whether joined conditions say whose memories are meant."""
    joined = [*(condition.and_ or ()), *(condition.or_ or ()), *((condition.not_,) if condition.not_ else ())]
    return condition.user_id is not None or any(map(_names_user, joined))


@dataclass(frozen=True, slots=True)
class MemoryReads:
    """What the section reads for one prompt."""

    section: MemoriesSection
    ask: PromptAsk
    query: SearchQuery
    recent: RecentQuery | None

    def queue_section(self, pipe: Pipe) -> int:
        """Puts its reads on the prompt's pipeline; returns how many replies they give."""
        return self.section.queue_memories(pipe, self.ask, self.query, self.recent)

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> MemoriesContent:
        """The memories of these replies."""
        return await self.section.load_memories(self.ask, self.query, self.recent, replies, session)


@dataclass(frozen=True, slots=True)
class MemoriesContent:
    """The memories that fit the query, best first, and those that were passed over; `most` tokens of them are shown at most."""

    query: SearchQuery
    ranking: Ranking
    cards: Sequence[ShownMemory]
    cut: Sequence[Cut]
    counter: TokenCounter
    most: int
    count_reading: Callable[[SearchQuery, Sequence[ShownMemory]], None] | None

    def fit_section(self, tokens: int | None) -> FittedMemories:
        """The best memories that fit, without those that say the same as one before."""
        budget = left = self.most if tokens is None else min(tokens, self.most)
        taken: list[ShownMemory] = []
        cut, distinct, wanted = list(self.cut), DuplicateFilter(), 0
        # A token is at least a byte: when all of them fit by their bytes, nothing needs to be counted.
        bytes_fit = sum([len(card.text.encode()) + _PER_MEMORY for card in self.cards]) <= left
        for card in self.cards:
            cost = 0 if bytes_fit else self.counter.count(card.text) + _PER_MEMORY
            if cost > left:
                # With more room those before it would come in first.
                wanted += cost
                cut.append(Cut(memory_id=card.id, reason="over_budget", tokens_needed=wanted, tokens_available=budget))
            elif self.query.request.distinct is not False and (by := distinct.add_memory(card)) is not None:
                cut.append(Cut(memory_id=card.id, reason="collapsed", by=by))
            else:
                wanted += cost
                left -= cost
                taken.append(card)
        return FittedMemories(self, taken[: self.query.request.limit], cut, budget)


@dataclass(frozen=True, slots=True)
class FittedMemories:
    """The memories that a prompt may show, those that were cut, and the tokens that there were for them."""

    content: MemoriesContent
    cards: Sequence[ShownMemory]
    cut: Sequence[Cut]
    budget: int

    def count_tokens(self) -> int:
        """How many tokens the list takes, before it is known which of the memories the session's messages show."""
        return self.content.counter.count(memory_lines(self.cards, self.content.query.request)) + PER_MESSAGE

    def render_section(self, shown: SessionMessages | None) -> SectionText:
        """The list of memories, whose reading is counted, without what the session's messages say verbatim."""
        content, request = self.content, self.content.query.request
        cards = self.cards if shown is None else [card for card in self.cards if not _repeats_message(card, shown)]
        why = None
        if request.explain:
            listed = {card.id for card in cards}
            repeats = [Cut(memory_id=card.id, reason="already_shown") for card in self.cards if card.id not in listed]
            why = explain_answer(content.query, content.ranking, [*self.cut, *repeats])
            why.memory_tokens = self.budget
            why.messages_left_out = None if shown is None else shown.left_out
        if content.count_reading is not None:
            content.count_reading(content.query, cards)
        message = text_message("system", MEMORIES_HEAD + memory_lines(cards, request))
        return SectionText([message], cards, [*content.query.notices, *content.ranking.notices], why, request)


def _repeats_message(card: ShownMemory, shown: SessionMessages) -> bool:
    """Whether a memory is that of a message which the prompt shows."""
    ref, values = shown.ref, card.values
    if values["extraction_strategy"] != "message" or not set(shown.ids).issuperset(values["extracted_from"] or ("",)):
        return False
    return (values["session_id"], card.namespace, card.user_id) == (ref.session_id, ref.namespace, ref.user_id)


def memory_lines(cards: Sequence[ShownMemory], request: SearchRequest) -> str:
    """Memories as lines, oldest first: the order of a growing store, so that the prompts of following turns begin alike."""
    if not cards:
        return NO_MEMORIES
    zone = zone_of(request.timezone)
    now = (request.reference_time or datetime.now(UTC)).astimezone(zone)
    ordered = sorted([(card.when, card.id, card) for card in cards], key=itemgetter(0, 1))
    return "\n".join([memory_line(card, when.astimezone(zone), now) for when, _, card in ordered]) + DATA_NOTE


def memory_line(card: ShownMemory, when: datetime, now: datetime) -> str:
    """One memory: when it was (in the zone of `now`), what kind it is, its text on one line, and its id."""
    return f"- [{day(when)}, {ago(when, now)}; {card.memory_type}] {one_line(card.text)} (ID: {shown_id(card.id)})"
