"""The one search path of REST and the memory prompt: by meaning, by words, or by both in one pipeline, fused by `ranking`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from agent_memory.scope import Scope
from agent_memory.services import ranking
from agent_memory.services.again import Again
from agent_memory.services.listing import Listing
from agent_memory.services.near_duplicates import Shown
from agent_memory.services.ordering import Ordering, by_age
from agent_memory.services.pages import Page
from agent_memory.services.plans import Places, Plan, Ranked, Ranking, filters_content
from agent_memory.services.queries import QueryReader
from agent_memory.services.usage import UsageLog
from agent_memory.settings import Settings
from agent_memory.storage import filters
from agent_memory.storage.cards import Card, CardReader
from agent_memory.storage.connection import Pipe, Reader
from agent_memory.storage.memories import Hits, MemoryStore, parse_hits
from agent_memory_client.models import (
    AnswerExplanation,
    Cut,
    HitExplanation,
    MemoryRecordResultsResponse,
    SearchModeEnum,
    SearchRequest,
)

# Repeats are looked for down to this place: every page costs all places before it.
_MOST_DISTINCT = 400
# For so many more than a page holds, reading their records to know their age is the shortest way.
_FEW_MORE = 10


class SearchService:
    """Searches in long-term memory."""

    def __init__(
        self,
        settings: Settings,
        reader: Reader,
        store: MemoryStore,
        cards: CardReader,
        queries: QueryReader,
        ordering: Ordering,
        usage: UsageLog,
    ) -> None:
        self._settings = settings
        self._read = reader
        self._store = store
        self._cards = cards
        self._queries = queries
        self._ordering = ordering
        self._usage = usage
        self._listing = Listing(reader, store)
        self._again = Again()

    async def search(self, scope: Scope, body: SearchRequest, *, optimize_query: bool = False) -> MemoryRecordResultsResponse:
        """As `answer`, as the wire model."""
        return (await self.answer(scope, body, optimize_query=optimize_query)).model()

    async def answer(self, scope: Scope, body: SearchRequest, *, optimize_query: bool = False) -> Page:
        """A page of memories. Raises Refused, BadInput, RedisUnavailable.

        When the embedding model is away, searches go by words alone. With `optimize_query` a language model puts the query into other
        words first; what of it could not be done is said in `notices`.
        """
        plan = await self.prepare(scope, body, optimize_query=optimize_query)
        plan, replies = await self.run(scope, plan, optimize_query=optimize_query)
        found = await self.ranking(scope, plan, replies)
        if not found.ranked and plan.rewritten and body.distance_threshold is not None:
            # As in the contract: nothing near enough to the model's words, so the caller's own are asked for.
            plan = await self.prepare(scope, body)
            notice = "optimize_query: nothing is near enough to the rewritten query; searched for the query as it is"
            plan, replies = await self.run(scope, plan)
            plan = replace(plan, notices=[notice, *plan.notices])
            found = await self.ranking(scope, plan, replies)
        cut: list[Cut] = []
        if body.distinct and plan.mode is not None:
            whole = found
            found, repeats = await self.without_repeats(scope, plan, whole)
            if body.explain:
                names = {hit.mid: hit for hit in whole.ranked}
                told = await self.results(scope, plan, [names[mid] for mid in repeats])
                cut = [Cut(memory_id=memory.id, reason="collapsed", by=repeats[self._store.mid(scope, memory.id)]) for memory in told]
        memories, whole = await self.shown(scope, plan, found)
        after = body.offset + body.limit
        more = after < found.total and whole
        self.count_reading(plan, memories)
        notices = [*plan.notices, *found.notices]
        why = answer_explanation(plan, found, cut) if body.explain else None
        return Page(memories, found.total, after if more else None, notices, why)

    async def without_repeats(self, scope: Scope, plan: Plan, found: Ranking) -> tuple[Ranking, dict[str, str]]:
        """The ranking without memories that only repeat a better one, and for each of these (by name in keys) the id of that one.

        It looks at as many as lie behind a page, from the top, so that pages agree; `total` then counts what is left of them.
        """
        looked = found.ranked[:_MOST_DISTINCT]
        shown, kept, repeats = Shown(), list[Ranked](), dict[str, str]()
        for hit, card in zip(looked, await self._cards(scope, [hit.mid for hit in looked]), strict=True):
            by = None if card is None else shown.add(card, card.notes)
            if by is None:
                kept.append(hit)
            else:
                repeats[hit.mid] = by
        return replace(found, total=found.total - len(repeats), ranked=[*kept, *found.ranked[_MOST_DISTINCT:]]), repeats

    def count_reading(self, plan: Plan, memories: Sequence[Card]) -> None:
        """Counts that these were found and shown: not in listings, and not for a caller who asked for an answer without recency."""
        if plan.mode is not None and plan.request.recency_boost is not False:
            self._usage.read((memory.mid, memory.values["access_count"]) for memory in memories if memory.mid)

    async def prepare(
        self, scope: Scope, request: SearchRequest, *, optimize_query: bool = False, anew: bool = False, paged: bool = True
    ) -> Plan:
        """The plan of a search; see `QueryReader.plan`."""
        return await self._queries.plan(scope, request, optimize=optimize_query, anew=anew, paged=paged)

    async def run(self, scope: Scope, plan: Plan, *, optimize_query: bool = False) -> tuple[Plan, list[Any]]:
        """A plan and its replies, in one round trip of its own; see `current`."""
        replies = [] if plan.empty else await self._read(lambda pipe: self.queue(pipe, plan))
        return await self.current(scope, plan, replies, optimize_query=optimize_query)

    async def current(self, scope: Scope, plan: Plan, replies: list[Any], *, optimize_query: bool = False) -> tuple[Plan, list[Any]]:
        """A plan and its replies; both anew, when its replies say that what was remembered of its memories does not hold any more."""
        if plan.expected:
            replies, along = replies[: -len(plan.expected) - 1], replies[-len(plan.expected) - 1 :]
            plan.rows = self._cards.parse(plan.expected, along)
        if not plan.checked:
            return plan, replies
        counted = replies[1] if plan.around is None else replies.pop()
        if not self._queries.outrun(plan, parse_hits(counted).total):
            return plan, replies
        new = await self.prepare(scope, plan.request, optimize_query=optimize_query, anew=True, paged=plan.paged)
        # What was said of the query as it came is not known of the one that was planned.
        return await self.run(scope, replace(new, notices=list(dict.fromkeys([*plan.notices, *new.notices]))))

    def queue(self, pipe: Pipe, plan: Plan) -> int:
        """Puts the plan's commands on a pipeline; returns how many replies they give, which `current` takes."""
        if plan.mode is None:
            return self._listing.queue(pipe, plan)
        count = self._queue(pipe, plan, plan.clause, past=False)
        if plan.past is not None:
            count += self._queue(pipe, plan, plan.past, past=True)
        if plan.around is not None and plan.checked:
            self._store.queue_count(pipe, filters.current(plan.around))
            count += 1
        if plan.asked is not None and self._late(plan):
            plan.expected = self._again.names(plan.asked)
            if plan.expected:
                count += self._cards.queue(pipe, plan.expected)
        return count

    def _queue(self, pipe: Pipe, plan: Plan, clause: str, *, past: bool) -> int:
        request, store = plan.request, self._store
        if plan.empty:
            return 0
        times = () if plan.weights is None or self._late(plan) else ("c",) if plan.weights is ranking.MILD else ("c", "la")
        phrase = filters.quoting(plan.phrases, plan.loose, every=plan.mode is SearchModeEnum.HYBRID)
        words = partial(store.queue_words, pipe, limit=plan.depth, scorer=plan.scorer)
        words = partial(words, fields=times, past=past, mute=plan.muted, phrase=phrase)
        if plan.vector is None or plan.mode is SearchModeEnum.KEYWORD:
            words(clause, terms=plan.terms)
            return 1
        if plan.mode is SearchModeEnum.SEMANTIC and request.distance_threshold is not None:
            store.queue_within(pipe, clause, plan.vector, request.distance_threshold, plan.depth, times, past=past)
            return 1
        store.queue_nearest(pipe, clause, plan.vector, plan.depth, times, past=past)
        store.queue_count(pipe, clause, past=past)
        if plan.mode is SearchModeEnum.SEMANTIC:
            return 2
        if plan.terms:
            words(clause, terms=plan.terms)
        lists = 1 + bool(plan.terms)
        if plan.span is None:
            return 1 + lists
        # What belongs to the time may be far down in the other lists, so it has lists of its own. Its date answers the words of time.
        within = filters.during(clause, plan.span.start, plan.span.end)
        store.queue_nearest(pipe, within, plan.vector, plan.depth, times, past=past)
        if plan.terms:
            words(within, terms=plan.subject or plan.terms)
        return 1 + 2 * lists

    async def ranking(self, scope: Scope, plan: Plan, replies: Sequence[Any]) -> Ranking:
        """The order of what the replies brought, with all that has a say in it."""
        if plan.mode is None and not plan.empty:
            return await self._listing.ranking(plan, replies)
        found = self._ranked(plan, replies)
        return found if self._late(plan) else await self._ordering.ordered(scope, plan, found)

    def _late(self, plan: Plan) -> bool:
        """Whether the age of memories has its say when their records are there, which it can where it only parts those that fit alike:
        the few that may be shown are asked for their age then, and not hundreds before."""
        request = plan.request
        plain = not (request.explain or request.distinct) and plan.past is None and plan.mode is not None
        return plain and plan.weights is ranking.MILD and not self._ordering.reranks

    def _ranked(self, plan: Plan, replies: Sequence[Any]) -> Ranking:
        """The order by scores."""
        if plan.empty:
            return Ranking(0, [])
        answers = [parse_hits(reply) for reply in replies]
        if plan.past is not None:
            # What is asked of history follows what is asked of the rest, in the same order.
            half = len(answers) // 2
            answers = [_joined(here, past) for here, past in zip(answers[:half], answers[half:], strict=True)]
        first = answers[0]
        created = {} if plan.weights is None or self._late(plan) else _times(answers, b"c")
        accessed = {} if plan.weights in (None, ranking.MILD) else _times(answers, b"la")
        if plan.vector is None or plan.mode is SearchModeEnum.KEYWORD:
            order = [(ranking.saturated(value), name) for value, name in _best_first(dict(zip(first.names, first.values, strict=True)))]
            return Ranking(first.total, Places(order, lambda score, name: Ranked(name, score, 1.0 - score), created, accessed))
        near = {name: 1.0 - distance for name, distance in zip(first.names, first.values, strict=True)}
        if plan.mode is SearchModeEnum.SEMANTIC:
            total = first.total if len(answers) == 1 else answers[1].total
            order = [(max(0.0, alike), name) for alike, name in _best_first(near)]
            return Ranking(total, Places(order, lambda score, name: Ranked(name, score, 1.0 - near[name]), created, accessed))
        more = [dict(zip(answer.names, answer.values, strict=True)) for answer in answers[2:]]
        # What has no words that could be found, as "*" and "what is it?", goes by meaning alone.
        words = more.pop(0) if plan.terms else {}
        last_word = min(words.values()) if len(words) >= plan.depth else 0.0
        in_time, also = frozenset[str](), frozenset[str]()
        if plan.span is not None:
            timely_near, timely_words = more[0], more[1] if plan.terms else {}
            in_time = frozenset(timely_near) | frozenset(timely_words)
            near |= {name: 1.0 - distance for name, distance in timely_near.items()}
            also = frozenset(words) if plan.subject else frozenset(words) | in_time
            # Only what is asked beside the time tells which memories of that time fit.
            words = {name: value for name, value in words.items() if name not in in_time} | timely_words
        total = answers[1].total
        if plan.phrases:
            # Only the index of words knows phrases, and a hybrid search must have them.
            near, total = {name: alike for name, alike in near.items() if name in words}, answers[2].total
        kept, dropped = self._fused(plan, near, words, last_word, in_time, also)
        parts = ranking.PartsOf(near, words, in_time)

        def place(score: float, name: str) -> Ranked:
            why = parts(score, name) if plan.request.explain else None
            return Ranked(name, score, 1.0 - near[name] if name in near else 1.0, why)

        # When the lists hold all that there is, what is not near enough does not count as a match either.
        whole = len(near) < plan.depth
        places, rest = (Places(some, place, created, accessed) for some in (kept, dropped))
        return Ranking(len(kept) if whole else total, places, rest)

    def _fused(
        self,
        plan: Plan,
        near: Mapping[str, float],
        words: Mapping[str, float],
        last_word: float,
        in_time: frozenset[str],
        also: frozenset[str],
    ) -> tuple[list[ranking.Scored], list[ranking.Scored]]:
        """What both lists make of the memories: those that are answers, and, in a prompt, those that are not near enough."""
        request = plan.request
        alpha = request.hybrid_alpha if "hybrid_alpha" in request.model_fields_set else ranking.ALPHA
        fused = ranking.fuse(near, words, alpha, last_word=last_word, known=in_time)
        if in_time:
            fused = ranking.timed(fused, in_time, ranking.FITS if plan.subject else 0.0)
        if not plan.floored:
            return fused, []
        kept, dropped = ranking.relevant(fused, near, words, self._settings.search.min_similarity, also)
        # What the caller's own filter has left belongs to the answer: all of it far away is no reason to show none.
        return (kept, dropped) if kept or not filters_content(request) else (dropped, [])

    def page(self, plan: Plan, found: Ranking, without: Collection[str] = ()) -> list[Ranked]:
        """The request's page of a ranking, some memories left out."""
        request = plan.request
        start = 0 if plan.mode is None and plan.past is None else request.offset
        if not without:
            return list(found.ranked[start : start + request.limit])
        # Places are put together when they are looked at: no more than the page needs.
        return list(islice((hit for hit in found.ranked if hit.mid not in without), start, start + request.limit))

    async def shown(self, scope: Scope, plan: Plan, found: Ranking, without: Collection[str] = ()) -> tuple[list[Card], bool]:
        """The memories of the request's page of a ranking, some left out, and whether there were enough for a whole page."""
        places, start, count = found.ranked, plan.request.offset, plan.request.limit
        end = start + count
        if not (isinstance(places, Places) and self._late(plan)):
            page = self.page(plan, found, without)
            return await self.results(scope, plan, page), len(page) == count
        order = [one for one in places.order if one[1] not in without] if without else places.order
        # Who names a time says by that which age is wanted.
        first = order[start:end] if plan.span is not None else ranking.head(order, end, ranking.MILD)
        many = len(first) > count + _FEW_MORE
        if many:
            many_names = [name for _, name in first]
            made = await self._read(lambda pipe: self._store.queue_created(pipe, many_names))
            first = by_age(plan, first, [float(at or 0) for at in made])[start:end]
        names = [name for _, name in first]
        rows = await self._cards.rows(names, plan.rows)
        if plan.asked is not None and names != plan.expected:
            self._again.keep(plan.asked, names)
        placed = [(score, row) for (score, _), row in zip(first, rows, strict=True) if row.fields[0] is not None]
        if plan.span is None and not many:
            placed = by_age(plan, placed, [row.created for _, row in placed])[start:end]
        hits = [places.at(score, row.name) for score, row in placed]
        return self._placed(plan, hits, self._cards.cards(scope, [row for _, row in placed])), len(order) >= end

    async def results(self, scope: Scope, plan: Plan, page: Sequence[Ranked]) -> list[Card]:
        """The memories of a page, read in one round trip; what was deleted meanwhile is left out."""
        return self._placed(plan, page, await self._cards(scope, [hit.mid for hit in page]))

    def _placed(self, plan: Plan, page: Sequence[Ranked], found: Sequence[Card | None]) -> list[Card]:
        """The memories that are there, each with its place."""
        kind = None if plan.mode is None else "keyword" if plan.degraded else plan.mode.value
        first = plan.request.offset + 1
        shown: list[Card] = []
        for place, (hit, card) in enumerate(zip(page, found, strict=True)):
            if card is not None:
                why = explanation(hit, first + place) if plan.request.explain else None
                card.place(max(hit.distance, 0.0), hit.score, kind, why)
                shown.append(card)
        return shown


def _best_first(scores: Mapping[str, float]) -> list[ranking.Scored]:
    """What scores alike stands in the order of its name: the engine's own order is that of the last writing."""
    return sorted(zip(scores.values(), scores, strict=True), reverse=True)


def _times(answers: Sequence[Hits], field: bytes) -> dict[str, float]:
    """When (epoch seconds) the hits of some answers were made or read, as far as that was asked for."""
    found: dict[str, float] = {}
    for answer in answers:
        found |= answer.numbers(field)
    return found


def _joined(here: Hits, past: Hits) -> Hits:
    """Two answers to one question as one, by distance or by score: each list has its own kind of value."""
    hits, distances = [*here.hits, *past.hits], here.distances or past.distances
    hits.sort(key=lambda hit: hit.value, reverse=not distances)
    return Hits.of(here.total + past.total, hits, distances=distances)


def answer_explanation(plan: Plan, found: Ranking, cut: list[Cut]) -> AnswerExplanation:
    """How a whole answer came about."""
    return AnswerExplanation(
        mode=None if plan.mode is None else "keyword" if plan.degraded else plan.mode.value,
        query=plan.spoken,
        left_out=list(plan.left_out),
        time_start=None if plan.span is None else plan.span.start,
        time_end=None if plan.span is None else plan.span.end,
        ranked=len(found.ranked),
        below_threshold=len(found.dropped),
        cut=cut,
    )


def explanation(hit: Ranked, rank: int) -> HitExplanation:
    """How a hit was scored."""
    parts = hit.parts
    if parts is None:
        similarity = None if hit.score is None else 1.0 - hit.distance
        return HitExplanation(rank=rank, score=hit.score, similarity=similarity, recency=hit.recency, reranked=hit.reranked)
    return HitExplanation(
        rank=rank,
        score=parts.score,
        similarity=parts.similarity,
        similarity_rank=parts.similarity_rank,
        words=parts.words,
        words_rank=parts.words_rank,
        in_time=parts.in_time,
        recency=hit.recency,
        reranked=hit.reranked,
    )
