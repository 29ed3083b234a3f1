"""Build the memories section, including messages that have not become memories yet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_memory.features.memories.records import message_memory_id
from agent_memory.features.memories.search.pages import PageReader
from agent_memory.features.memories.search.query import SearchQuery
from agent_memory.features.memories.search.ranking import (
    NEAR_SHARE,
    Ranking,
    filters_content,
    names_days,
    names_time_alone,
)
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.recall.later_mentions import named_things, with_corrections, with_mentions, with_what_names_the_same
from agent_memory.features.recall.memory_list import cited_messages
from agent_memory.features.recall.sections.everything import EverythingReads
from agent_memory.features.recall.sections.memory_content import MemoriesContent
from agent_memory.features.sessions.recent import RecentMessages, RecentQuery
from agent_memory.foundation.core.clock import as_in_zone, local_time, zone_of
from agent_memory.foundation.core.prompt_sections import PromptAsk, SectionReads, SessionMessages
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.storage.connection import Pipe
from agent_memory.foundation.text.dates.named_times import mentions, moments
from agent_memory.foundation.text.languages.filler import has_content, holds_literal, literal_words
from agent_memory.foundation.text.languages.questions import is_about_everything
from agent_memory.foundation.text.normalization import normal_text
from agent_memory.foundation.text.stemming.foreign import language_of
from agent_memory.foundation.text.terms import content_of, terms
from agent_memory_client.models import Condition, Cut, MemoryPromptRequest, Namespace, SearchModeEnum, SearchRequest, UserId

# Two very short texts can be similar merely because both are short. Measured with MiniLM; the query was the word alone,
# "What is a …?" or "What is my …?". Shares of pairs with a similarity of at least 0.2, and of at least 0.3:
# - word ("quasar") and unrelated phrase ("A rusty saw."), 1,960 pairs: 34 to 57 %, 4 to 8 %
# - word and message of LoCoMo: 0.2 to 1.7 %, at most 0.1 %
# - word and phrase that answers it ("pets": "Two gray cats."), 108 pairs: 94 to 100 %, 79 to 93 %
_SHORT_PHRASE = 2
_PHRASE_FACTOR = 1.5
# With fewer memories than this, sharing a name is enough to link two of them.
_FEW_MEMORIES = 100


@dataclass(frozen=True, slots=True)
class MemoriesSection:
    """Searches long-term memory for a prompt."""

    settings: Settings
    search: SearchService
    pages: PageReader
    store: MemoryStore
    recent: RecentMessages
    counter: TokenCounter

    async def open_section(self, ask: PromptAsk) -> SectionReads | None:
        """Return the reads for a prompt's search, or None if the prompt does not search."""
        request = self._search_request(ask)
        if request is None:
            return None
        text = request.text or ""
        if is_about_everything(text):
            listing = await self.search.queries.build_query(ask.scope, request.model_copy(update={"text": ""}), paged=False)
            return EverythingReads(ask, listing, self.store, self.pages, self.counter, self.settings.search.prompt_memory_tokens)
        if text.strip() and not has_content(text) and not literal_words(text):
            # If the query is only thanks or a sigh, even the most similar memory is noise.
            return MemoryReads(self, ask, self.search.empty_query(ask.scope, request), None)
        query = await self.search.queries.build_query(ask.scope, request, optimize_query=ask.optimize_query, paged=False)
        return MemoryReads(self, ask, query, self.recent.recent_query(ask.scope, query.request))

    def _search_request(self, ask: PromptAsk) -> SearchRequest | None:
        """Return the prompt's search request, or None if the prompt does not search.

        By default, it covers the session's or prompt's user and namespace. If there is no user,
        unrestricted callers search only memories that have no user, unless `prompt_all_users` is
        set.
        """
        body, session = ask.body, ask.session
        search_option = body.long_term_search
        if search_option is None or search_option is False:
            return None
        request = SearchRequest(timezone=body.timezone) if search_option is True else search_option
        # Models never see quarantined memories, no matter who calls.
        update: dict[str, Any] = {"text": body.query, "quarantined": False}
        if "limit" not in request.model_fields_set:
            update["limit"] = self.settings.search.prompt_memories
        if ask.explain:
            update["explain"] = True
        user, namespace = (body.user_id, body.namespace) if session is None else (session.user_id, session.namespace)
        if request.user_id is None and not (request.filter is not None and _names_user(request.filter)):
            if user:
                update["user_id"] = UserId(eq=user)
            elif session is not None and ask.scope.users is None and not self.settings.search.prompt_all_users:
                update["user_id"] = UserId(exists=False)
        if request.namespace is None and namespace:
            update["namespace"] = Namespace(eq=namespace)
        return request.model_copy(update=update)


@dataclass(slots=True)
class MemoryReads:
    section: MemoriesSection
    ask: PromptAsk
    query: SearchQuery
    recent: RecentQuery | None

    def queue_section(self, pipe: Pipe) -> int:
        """Queue the search and a read of recent messages. Return the number of replies."""
        count = 0 if self.recent is None else self.section.recent.queue_recent(pipe, self.recent, but=self.ask.session)
        return count + (0 if self.query.empty else self.section.search.queue_query(pipe, self.query))

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> MemoriesContent:
        """Return the memories in these replies, best first.

        Memories made from `session` are omitted, because the prompt shows its messages. Unpromoted
        messages come first.
        """
        ask, query, section, settings = self.ask, self.query, self.section, self.section.settings
        elsewhere: list[ShownMemory] = []
        if self.recent is not None:
            first, *replies = replies
            elsewhere = section.recent.find_recent(self.recent, first, None if session is None else session.ref)
        ranking = await section.search.rank_replies(ask.scope, query, replies)
        newest: set[str] = set()
        if session is not None:
            ids = session.ids[-query.request.limit :]
            newest = {section.store.mid(ask.scope, message_memory_id(session.ref, message)) for message in ids}
        cut = await self._passed_over(ranking, newest) if query.request.explain and newest else []
        page, further = await section.pages.read_kinds(ask.scope, query, ranking, without=newest)
        characters = sum([len(memory.text) for memory in (*page, *further)])
        statements = [memory for memory in further if memory.is_message]
        has_room = len(page) < query.request.limit

        def choose() -> Sequence[ShownMemory]:
            least = _PHRASE_FACTOR * settings.search.min_similarity
            chosen = without_far_phrases(query, ranking, holding_literals(query, page), least)
            chosen = beside_the_time(query, ranking, chosen, english_only=settings.models.embeds_latin_only)
            return of_the_time(query, chosen, statements if has_room else ())

        chosen = await self._with_later_mentions(await run_in_thread(choose, characters), newest)

        def add_further() -> Sequence[ShownMemory]:
            few = has_room and query.words.memories < _FEW_MEMORIES and query.span is None
            whole = with_corrections(with_what_names_the_same(chosen, statements) if few else chosen, statements)
            return [*whole, *resting_on(whole, [memory for memory in further if not memory.is_message])]

        memories = await run_in_thread(add_further, characters) if further else chosen
        count_reading = None if ask.explain else section.search.count_reading
        most, shown_memories = settings.search.prompt_memory_tokens, without_the_query(ask.body.query, [*elsewhere, *memories])
        return MemoriesContent(ask, query, ranking, shown_memories, cut, section.counter, most, count_reading)

    async def _with_later_mentions(self, page: Sequence[ShownMemory], newest: set[str]) -> Sequence[ShownMemory]:
        """Add later statements about things on the page, unless the query mentions a time."""
        query = self.query
        page_things = named_things(page) if query.mode is SearchModeEnum.HYBRID and query.span is None else ()
        if not page_things:
            return page
        mention_queries = [(named_thing.referent.wording, named_thing.since) for named_thing in page_things]
        later_statements = await self.section.pages.read_later_statements(self.ask.scope, query, mention_queries)
        others = [[memory for memory in memories if memory.mid not in newest] for memories in later_statements]
        return with_mentions(page, zip(page_things, others, strict=True))

    async def _passed_over(self, ranking: Ranking, newest: set[str]) -> list[Cut]:
        """Return the memories omitted because the prompt already shows their messages."""
        hits = [scored for scored in ranking.scored[: self.query.request.limit + len(newest)] if scored[1] in newest]
        cards = await self.section.pages.read_ranked(self.ask.scope, self.query, ranking, hits)
        return [Cut(memory_id=card.id, reason="already_shown") for card in cards]


def without_the_query(query: str, memories: Sequence[ShownMemory]) -> Sequence[ShownMemory]:
    """Return the memories, except for messages that merely repeat the query."""
    words = normal_text(query)
    return [memory for memory in memories if not (memory.is_message and normal_text(memory.text) == words)]


def resting_on(page: Sequence[ShownMemory], facts: Sequence[ShownMemory]) -> list[ShownMemory]:
    """Return the facts that were extracted from messages on the page."""
    cited_ids = frozenset(name for memory in page if memory.is_message for name in cited_messages(memory))
    return [fact for fact in facts if not cited_ids.isdisjoint(cited_messages(fact))] if cited_ids else []


def holding_literals(query: SearchQuery, page: Sequence[ShownMemory]) -> Sequence[ShownMemory]:
    """Return the memories that contain a literal from the query, such as "C++".

    If the query has content words, return the page unchanged.
    """
    text = query.request.text or ""
    if has_content(text):
        return page
    literals = literal_words(text)
    return [memory for memory in page if any(holds_literal(memory.text, literal) for literal in literals)]


def without_far_phrases(query: SearchQuery, ranking: Ranking, page: Sequence[ShownMemory], least: float) -> Sequence[ShownMemory]:
    """Return the page without short messages that are unlikely to match a one-word query.

    Messages with at most two content words must contain the query word or have a similarity of at
    least `least`.
    """
    if ranking.similarities is None or query.mode is not SearchModeEnum.HYBRID or query.span is not None or len(query.words.terms) != 1:
        return page
    near = ranking.similarities.get
    near_enough = [
        memory
        for memory in page
        if memory.mid in ranking.sharing_words
        or near(memory.mid, 0.0) >= least
        or not memory.is_message
        or len(content_of(memory.text)) > _SHORT_PHRASE
    ]
    return near_enough if near_enough or not filters_content(query.request) else page


def beside_the_time(query: SearchQuery, ranking: Ranking, page: Sequence[ShownMemory], *, english_only: bool) -> Sequence[ShownMemory]:
    """Return the memories that match a query about a subject and a period.

    A memory must be about the subject, or its event or a day in its text must be in the period. If
    no memory is about the subject, or the query lacks a subject or a time, the page is unchanged.

    If `english_only` is true, similarities are ignored for queries in other languages.
    """
    if ranking.similarities is None or not names_days(query):
        return page
    subject = frozenset(query.words.subject)
    unknown = query.meaning is not None and query.meaning.unknown_script
    unknown = unknown or (english_only and language_of(query.request.text or "") is not None)
    least = math.inf if unknown else NEAR_SHARE * max(ranking.similarities.values(), default=0.0)
    near = ranking.similarities.get
    about = [memory for memory in page if near(memory.mid, 0.0) >= least or not subject.isdisjoint(terms(memory.text))]
    if not about:
        return page
    about_ids = {memory.mid for memory in about}
    return [memory for memory in page if memory.mid in about_ids or _happens_in(query, memory)]


def of_the_time(query: SearchQuery, page: Sequence[ShownMemory], further: Sequence[ShownMemory] = ()) -> Sequence[ShownMemory]:
    """If a query asks only about a period, return the memories from that period.

    A memory matches if its event or a day in its text is in the period. It also matches if it was
    stated then, unless the query is about the future. If nothing matches, the page is unchanged.
    """
    if not names_time_alone(query):
        return page
    return [memory for memory in (*page, *further) if _happens_in(query, memory) or _stated_in(query, memory)] or page


def _stated_in(query: SearchQuery, memory: ShownMemory) -> bool:
    if query.span is None or query.span.is_ahead:
        return False
    days = [memory.created_at, *([memory.last_said_at] if memory.last_said_at else [])]
    return any(query.span.start <= day < query.span.end for day in days)


def _happens_in(query: SearchQuery, memory: ShownMemory) -> bool:
    if query.span is None:
        return False
    start, end, zone = query.span.start, query.span.end, zone_of(query.request.timezone)
    date = memory.event_date
    # An event is stored as a time or as a day.
    if date is not None and start <= as_in_zone(date, zone) < end:
        return True
    stated_on = local_time(memory.last_said_at or memory.created_at, zone).date()
    # If a date is ambiguous, one possible meaning within the period is enough.
    possible = (moments(each, zone) for mention in mentions(memory.text, stated_on) for each in mention.possible)
    return any(start < until and begin < end for begin, until in possible)


def searches(body: MemoryPromptRequest) -> bool:
    """True if a prompt searches long-term memory."""
    return body.long_term_search is not None and body.long_term_search is not False


def _names_user(condition: Condition) -> bool:
    joined = [*(condition.and_ or ()), *(condition.or_ or ()), *((condition.not_,) if condition.not_ else ())]
    return condition.user_id is not None or any(map(_names_user, joined))
