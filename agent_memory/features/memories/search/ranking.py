"""From candidates to a ranking: fusing and scoring lists, by pure functions, each with the source of its formula."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from statistics import median
from typing import NamedTuple

from agent_memory.features.memories.search.candidates import CandidateList, Candidates
from agent_memory.features.memories.search.list_scores import is_quoted, with_best_passages, with_nearest_passages
from agent_memory.features.memories.search.query import SearchQuery
from agent_memory.features.memories.search.relevance.estimate import FEW_MEMORIES, MIN_RELEVANCE, Background, RelevanceEstimate
from agent_memory.features.memories.store import Hits
from agent_memory.foundation.storage.search.filters import FILTERS
from agent_memory_client.models import Condition, SearchModeEnum, SearchRequest

# The weight of meaning against words when the caller gives none; docs/recall.md has the measurements.
ALPHA = 0.6
# The same where a memory, or a passage of one, has nearly all that the query's words tell: the query quotes it.
ALPHA_QUOTED = 0.3
# The same for a query in a script that the model does not know: its vector only decides between what the words leave alike.
ALPHA_UNKNOWN_SCRIPT = 0.02
NEAR_SHARE = 0.5
"""In a prompt for a query that asks about a time: what shares no word with the rest of it is about that rest when it is so near, as a share
of the nearest. To the time itself is near whatever was said then."""
# What belonging to the time that a query asks about adds to a score of 0..1. R@10 of such questions by MiniLM, LoCoMo (116) and
# REALTALK (22): 88.6 and 68.2; with 0.1 87.9 and 63.6, with 0.3 90.2 and 61.4; without times 84.3 and 61.4; with all of that time first
# 87.1 and 36.4.
TIME_BONUS = 0.2
_LONGEST = timedelta(days=31)
# How deep the lists of a first page go.
_FIRST_DEPTH = 100
_HARDLY = 1e-6


Scored = tuple[float, str]
"""A score (0..1) and the name of what has it."""


class ScoreParts(NamedTuple):
    """A fused score and what it is made of; ranks count from 1, None is "not in this list"."""

    name: str
    score: float
    similarity: float | None
    similarity_rank: int | None
    words: float | None
    words_rank: int | None
    in_time: bool = False


def fuse(
    similarities: Mapping[str, float],
    words: Mapping[str, float],
    alpha: float,
    *,
    last_word: float = 0.0,
    known: Collection[str] = (),
    least: float | None = None,
    far: float = 0.0,
) -> list[Scored]:
    """Fuses by alpha * similarity + (1 - alpha) * words, each divided by the best of its list; best first, 0..1.

    The convex combination of Bruch, Gai, Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", ACM TOIS 2023. The least of the
    words is 0, that of the similarities is `far`. What the list of similarities lacks is at most as near as the last in it, and counts as
    that; so does what a list of words lacks that was cut off at a score of `last_word` (0 when it holds all matches), but for those `known`
    to share no word. `least` is the similarity of the last in the list, where the similarities are those of several lists.
    """
    nearest = max(similarities.values(), default=0.0)
    best = max(words.values(), default=0.0)
    least = min(similarities.values(), default=0.0) if least is None else least
    if nearest <= far:
        far = 0.0
    nearest, least = nearest - far, max(least - far, 0.0)
    rest = 1 - alpha
    # Without a best there is nothing to divide by, and nothing to add. Hundreds of these are made for a search of ten.
    # The division comes first, so that the best of a list counts as exactly 1.
    near_unit, word_unit = nearest if nearest > 0 else math.inf, best if best > 0 else math.inf
    if known:
        words = {**{name: 0.0 for name in known if name in similarities}, **words}
    of_words = words.get
    fused = [
        (alpha * ((near - far if near > far else 0.0) / near_unit) + rest * (of_words(name, last_word) / word_unit), name)
        for name, near in similarities.items()
    ]
    beyond = alpha * (least / near_unit)
    fused += [(beyond + rest * (word / word_unit), name) for name, word in words.items() if name not in similarities]
    return _ordered(fused)


def timed(fused: Iterable[Scored], in_time: Collection[str], bonus: float = TIME_BONUS) -> list[Scored]:
    """Add a bonus to the scores of memories of the time that a query asks about, and bring all scores back to 0..1."""
    return _ordered(((score + (bonus if name in in_time else 0.0)) / (1.0 + bonus), name) for score, name in fused)


def relevant(
    fused: Iterable[Scored],
    similarities: Mapping[str, float],
    words: Collection[str],
    least_similarity: float,
    also: Collection[str] = (),
) -> tuple[list[Scored], list[Scored]]:
    """Those that share a word with the query or are near enough to it, and what else counts as an answer; then the rest, which would be
    answers for the answer's sake."""
    if similarities and min(similarities.values()) >= least_similarity:
        return list(fused), []
    answers = {name for name, near in similarities.items() if near >= least_similarity}.union(words, also)
    order = list(fused)
    return [scored for scored in order if scored[1] in answers], [scored for scored in order if scored[1] not in answers]


class ScoreExplainer:
    """Says what fused scores are made of, for those that somebody asks about."""

    def __init__(self, similarities: Mapping[str, float], words: Mapping[str, float], in_time: Collection[str] = ()) -> None:
        self._similarities = similarities
        self._words = words
        self._in_time = in_time
        self._ranks: tuple[Mapping[str, int], Mapping[str, int]] | None = None

    def __call__(self, score: float, name: str) -> ScoreParts:
        """The parts of one score."""
        if self._ranks is None:
            self._ranks = _ranks(self._similarities), _ranks(self._words)
        near, word = self._ranks
        return ScoreParts(
            name, score, self._similarities.get(name), near.get(name), self._words.get(name), word.get(name), name in self._in_time
        )


def saturated(score: float) -> float:
    """A BM25 score (0 and up) as 0..1, the same for the same match on every page: x / (x + 10), 10 being a middling score."""
    return score / (score + 10.0) if score > 0 else 0.0


class RankedMemory(NamedTuple):
    """A memory, by its name in keys, in an answer: its score (0..1, more is better), its distance (0..2), and where they come from.

    `recency` (0..1) and `reranked` (a reranker's own scale) say what else its rank is due to. Listings have no scores.
    """

    mid: str
    score: float | None
    distance: float
    parts: ScoreParts | None = None
    recency: float | None = None
    reranked: float | None = None


@dataclass(slots=True)
class Ranking:
    """All that was ranked, best first, and how many memories match; those of `below_threshold` were ranked, but are not near enough.

    Of a hybrid search that has no pages `total` is how many were ranked.

    `facts` are those that came from the lists of facts, `sharing_words` those that have a word in common with the query, or stand among
    words that have. `similarities` are None for what was found by words alone; the other maps hold what else is known of a memory, by its
    name.
    """

    total: int
    scored: Sequence[Scored]
    below_threshold: Sequence[Scored] = ()
    similarities: Mapping[str, float] | None = None
    parts: ScoreExplainer | None = None
    facts: Collection[str] = ()
    sharing_words: Collection[str] = ()
    recencies: Mapping[str, float] = field(default_factory=dict[str, float])
    reranked: Mapping[str, float] = field(default_factory=dict[str, float])
    notices: Sequence[str] = ()
    listed: bool = False
    passages: Mapping[str, int] = field(default_factory=dict[str, int])
    """The number of the best passage of each long memory that was found by one, from 1."""
    relevance: RelevanceEstimate | None = None

    def memory_of(self, scored: Scored) -> RankedMemory:
        """What is known of a scored memory. Ten of hundreds are asked about."""
        score, name = scored
        if self.listed:
            return RankedMemory(name, None, 0.0)
        parts = None if self.parts is None else self.parts(score, name)
        return RankedMemory(name, score, self.distance_of(scored), parts, self.recencies.get(name), self.reranked.get(name))

    def distance_of(self, scored: Scored) -> float:
        """The distance (0..2) of a scored memory from the query; 0 in a listing."""
        if self.listed:
            return 0.0
        return 1.0 - (scored[0] if self.similarities is None else self.similarities.get(scored[1], 0.0))

    def rank_of(self, name: str) -> int | None:
        """The rank of a memory, from 1; None when it was not ranked."""
        return next((rank for rank, (_, ranked) in enumerate(self.scored, start=1) if ranked == name), None)


def rank_candidates(query: SearchQuery, candidates: Candidates, min_similarity: float) -> Ranking:
    """The candidates in the order of their scores, those that are relevant enough: for a request that says how much that is, and for
    prompts. In an answer without further pages what shares no word with the query and is less similar than `min_similarity` is left out,
    too."""
    ranking = _rank(query, candidates, min_similarity)
    least = least_relevance(query)
    if least is None or (relevance := ranking.relevance) is None:
        return ranking
    # A prompt judges what was said: facts are few, and were found to be worth keeping.
    facts = ranking.facts if query.request.min_relevance is None else ()
    enough = {name for _, name in ranking.scored if name in facts or relevance(name) >= least}
    scored = [each for each in ranking.scored if each[1] in enough]
    far = [*(each for each in ranking.scored if each[1] not in enough), *ranking.below_threshold]
    return replace(ranking, total=len(scored), scored=scored, below_threshold=far)


def least_relevance(query: SearchQuery) -> float | None:
    """How relevant what a query finds must be at least; None where everything counts."""
    request = query.request
    if request.min_relevance is not None:
        return request.min_relevance
    few = query.mode is None or query.words.memories < FEW_MEMORIES
    return None if query.paged or few or request.distance_threshold is not None or filters_content(request) else MIN_RELEVANCE


def _rank(query: SearchQuery, candidates: Candidates, min_similarity: float) -> Ranking:
    if not candidates:
        return Ranking(0, [])
    background = Background(query.words.memories, query.words.unknown, filters_content(query.request) or names_time_alone(query))
    if query.meaning is None:
        hits = candidates[CandidateList.BEST_BY_WORDS]
        of_facts = _scores(candidates, CandidateList.BEST_FACTS_BY_WORDS)
        values = dict(zip(hits.names, hits.values, strict=True)) | of_facts
        scored = _ordered([(value, name) for name, value in values.items()])
        relevance = RelevanceEstimate({}, values, background)
        return Ranking(hits.total, [(saturated(value), name) for value, name in scored], facts=of_facts, relevance=relevance)
    if query.mode is SearchModeEnum.SEMANTIC:
        within = candidates.get(CandidateList.WITHIN_DISTANCE)
        total = candidates[CandidateList.MATCHING].total if within is None else within.total
        near = _similarities(candidates[CandidateList.NEAREST] if within is None else within)
        near, passages = with_nearest_passages(near, candidates.get(CandidateList.NEAREST_PASSAGES))
        ordered = _ordered([(similarity, name) for name, similarity in near.items()])
        scored = [(max(0.0, similarity), name) for similarity, name in ordered]
        return Ranking(total, scored, similarities=near, passages=passages, relevance=RelevanceEstimate(near, {}, background))
    return _rank_both(query, candidates, min_similarity, background)


def _rank_both(query: SearchQuery, candidates: Candidates, min_similarity: float, background: Background) -> Ranking:
    """The order by meaning and words together."""
    near, passages = with_nearest_passages(_similarities(candidates[CandidateList.NEAREST]), candidates.get(CandidateList.NEAREST_PASSAGES))
    # What has no words that could be found, as "*" and "what is it?", goes by meaning alone.
    words = _scores(candidates, CandidateList.BEST_BY_WORDS)
    last_word = min(words.values()) if len(words) >= query.depth else 0.0
    words, passages_by_words = with_best_passages(words, candidates.get(CandidateList.BEST_PASSAGES_BY_WORDS))
    passages |= passages_by_words
    nearest = dict(near)
    in_time, answers, words_in_time = frozenset[str](), frozenset[str](), dict[str, float]()
    if query.span is not None:
        near_in_time = _similarities(candidates[CandidateList.NEAREST_IN_TIME])
        words_in_time = _scores(candidates, CandidateList.BEST_BY_WORDS_IN_TIME)
        in_time = frozenset(near_in_time) | frozenset(words_in_time)
        near |= near_in_time
        answers = frozenset(words) if query.words.subject else frozenset(words) | in_time
        words = {**words, **{name: max(value, words.get(name, 0.0)) for name, value in words_in_time.items()}}
    matched, least = len(near), min(near.values(), default=0.0)
    facts = frozenset[str]()
    if query.facts_apart:
        near_facts = _similarities(candidates[CandidateList.NEAREST_FACTS])
        facts = frozenset(near_facts)
        near = near_facts | near
    matching = candidates.get(CandidateList.MATCHING)
    if query.words.phrase:
        # Only the index of words knows phrases, and a hybrid search must have them.
        near = {name: similarity for name, similarity in near.items() if name in words}
        matching = candidates[CandidateList.BEST_BY_WORDS]
    request = query.request
    far = _far(query, near)
    unknown = query.meaning is not None and query.meaning.unknown_script
    by_words = (candidates.get(CandidateList.BEST_BY_WORDS), candidates.get(CandidateList.BEST_PASSAGES_BY_WORDS))
    quoted = any(is_quoted(hits, query.words.weights) for hits in by_words)
    usual = ALPHA_UNKNOWN_SCRIPT if unknown else ALPHA_QUOTED if quoted else ALPHA
    alpha = request.hybrid_alpha if "hybrid_alpha" in request.model_fields_set else usual
    if query.depth > _FIRST_DEPTH:
        (near, least), (words, last_word) = _capped(near, least), _capped(words, last_word)
    fused = fuse(near, words, alpha, last_word=last_word, known=in_time, least=least, far=far)
    time_bonus = TIME_BONUS if query.words.subject else 1.0
    if in_time:
        # Where the time is all that is asked, all of it comes first.
        fused = timed(fused, in_time, time_bonus)
    near_all, listed = ({}, {}) if unknown else (near, nearest)
    relevance = RelevanceEstimate(listed, words, background, facts=near_all, in_time=in_time, time_bonus=time_bonus)
    left_out: list[Scored] = []
    if not query.paged:
        fused, left_out = relevant(fused, near, words, math.inf if unknown else min_similarity, answers)
        if not fused and filters_content(request):
            # What the caller's own filter has left belongs to the answer: all of it far away is no reason to show none.
            fused, left_out = left_out, []
    # When the lists hold all that there is, what is not near enough does not count as a match either.
    total = len(fused) if matching is None or matched < query.depth else matching.total
    parts = ScoreExplainer(near, words, in_time) if request.explain else None
    return Ranking(total, fused, left_out, near, parts, facts, words, passages=passages, relevance=relevance)


def _far(query: SearchQuery, near: Mapping[str, float]) -> float:
    """Return the similarity that counts as far: 0, or the median of those that a first page looks at, as the model's profile says.

    Of a few memories all may be near: what they lack to a full list counts as 0.
    """
    if query.meaning is None or query.meaning.far == "zero":
        return 0.0
    nearest = sorted(near.values(), reverse=True)[:_FIRST_DEPTH]
    return max(median([*nearest, *[0.0] * (_FIRST_DEPTH - len(nearest))]), 0.0)


def _capped(scores: Mapping[str, float], least: float) -> tuple[Mapping[str, float], float]:
    """Return a deep list, and what counts for a memory that it lacks, in which memories beyond the depth of a first page count hardly more
    or less than they did for that page: so a later page does not show what an earlier one has shown."""
    if len(scores) < _FIRST_DEPTH:
        return scores, least
    end = sorted(scores.values(), reverse=True)[_FIRST_DEPTH - 1]
    return {name: max(value, end + _HARDLY * (value - end)) for name, value in scores.items()}, end + _HARDLY * (least - end)


def names_days(query: SearchQuery) -> bool:
    """Whether a query asks for something beside a time of a month at most. Of a year most things are, which makes none of them near it."""
    return _is_short(query) and bool(query.words.subject)


def names_time_alone(query: SearchQuery) -> bool:
    """Whether a query asks for a time of a month at most and for nothing beside it."""
    return _is_short(query) and bool(query.words.terms) and not query.words.subject


def _is_short(query: SearchQuery) -> bool:
    return query.span is not None and query.span.end - query.span.start <= _LONGEST


def _similarities(hits: Hits) -> dict[str, float]:
    return {name: 1.0 - distance for name, distance in zip(hits.names, hits.values, strict=True)}


def _scores(candidates: Candidates, wanted: CandidateList) -> dict[str, float]:
    hits = candidates.get(wanted)
    return {} if hits is None else dict(zip(hits.names, hits.values, strict=True))


_OWNERS = frozenset({"user_id", "namespace", "session_id", "agent_id"})


def filters_content(wanted: SearchRequest | Condition) -> bool:
    """Whether a request narrows its search by more than whose memories are meant: by type, topics, dates, metadata and the like."""
    if any(getattr(wanted, name) is not None for name in FILTERS if name != "filter" and name not in _OWNERS):
        return True
    if isinstance(wanted, SearchRequest):
        return wanted.filter is not None and filters_content(wanted.filter)
    inner = [*(wanted.and_ or ()), *(wanted.or_ or ()), *([] if wanted.not_ is None else [wanted.not_])]
    return any(map(filters_content, inner))


def _ordered(fused: Iterable[Scored]) -> list[Scored]:
    """Best first, equal ones by their names backwards: the engine's own order is that of the last writing."""
    return sorted(fused, reverse=True)


def _ranks(scores: Mapping[str, float]) -> Mapping[str, int]:
    return {name: rank for rank, name in enumerate(sorted(scores, key=scores.__getitem__, reverse=True), start=1)}
