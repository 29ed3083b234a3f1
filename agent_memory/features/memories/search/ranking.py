"""Fuse candidate lists into a scored ranking. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from heapq import nlargest
from statistics import median

from agent_memory.features.memories.search.candidates import CandidateList, Candidates
from agent_memory.features.memories.search.list_scores import TERMS_FIELD, is_quoted, with_best_passages, with_nearest_passages
from agent_memory.features.memories.search.query import SearchQuery
from agent_memory.features.memories.search.relevance.estimate import Background, RelevanceEstimate, least_of
from agent_memory.features.memories.store import Hits
from agent_memory.foundation.llm.profiles import UNKNOWN
from agent_memory.foundation.storage.search.filters import FILTERS
from agent_memory.foundation.text.languages.speakers import is_by_speaker, terms_of_speakers
from agent_memory_client.models import Condition, HitExplanation, SearchModeEnum, SearchRequest

# The default weight of meaning; words get the rest.
ALPHA = 0.5
# The weight of meaning where words match by chance: the two lists contain different memories, or the query mentions a
# time, whose words also occur in memories from other years. Chosen on six sets, each left out in turn.
ALPHA_BY_CHANCE, _UNALIKE = 0.6, 1
_COMPARED = 10
# The weight of meaning for a query that quotes a memory or a passage.
ALPHA_QUOTED = 0.3
# The weight of meaning for a query in a script that the model does not know: the vector only breaks ties.
ALPHA_UNKNOWN_SCRIPT = 0.02
NEAR_SHARE = 0.5
"""In a prompt about a time, memories without query words need this share of the highest similarity."""
# The bonus for memories from the query's time, on scores from 0 to 1. R@10 of MiniLM, LoCoMo (116) and REALTALK (22):
# 0.2: 88.6, 68.2; 0.1: 87.9, 63.6; 0.3: 90.2, 61.4; without times 84.3, 61.4; that time first 87.1, 36.4.
TIME_BONUS = 0.2
# The bonus for statements by a speaker whom the query names. R@10 of LoCoMo and REALTALK (other sets name no speakers):
# 0: 83.7, 53.2; 0.1: 84.7, 54.4; 0.15: 84.3, 55.5; 0.2: 84.5, 55.6; 0.3: 83.4, 55.8.
SPEAKER_BONUS = 0.2
_LONGEST = timedelta(days=31)
_FIRST_DEPTH = 100
_HARDLY = 1e-6


Scored = tuple[float, str]
"""A score (0..1) and a key name."""
ScoreParts = Mapping[str, float | None]
"""The fields of a `HitExplanation` that the two lists determine."""


def fuse(
    similarities: Mapping[str, float],
    words: Mapping[str, float],
    alpha: float,
    *,
    last_word: float = 0.0,
    in_time: Collection[str] = (),
    least: float | None = None,
    far: float = 0.0,
) -> list[Scored]:
    """Fuse two lists by alpha * similarity + (1 - alpha) * words. Return scores (0..1), best first.

    Both values are divided by the best value in their list. The similarity scale starts at `far`.
    A missing similarity becomes `least`, by default the lowest one. A missing word score becomes
    `last_word`, or 0 for memories in `in_time`.

    Source: Bruch, Gai, Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", ACM TOIS
    2023.
    """
    nearest = max(similarities.values(), default=0.0)
    best = max(words.values(), default=0.0)
    least = min(similarities.values(), default=0.0) if least is None else least
    if nearest <= far:
        far = 0.0
    nearest, least = nearest - far, max(least - far, 0.0)
    rest = 1 - alpha
    # Dividing first makes the best value in a list exactly 1. An empty list adds nothing.
    near_unit, word_unit = nearest if nearest > 0 else math.inf, best if best > 0 else math.inf
    if in_time:
        words = {**{name: 0.0 for name in in_time if name in similarities}, **words}
    of_words = words.get
    fused = [
        (alpha * ((near - far if near > far else 0.0) / near_unit) + rest * (of_words(name, last_word) / word_unit), name)
        for name, near in similarities.items()
    ]
    beyond = alpha * (least / near_unit)
    fused += [(beyond + rest * (word / word_unit), name) for name, word in words.items() if name not in similarities]
    return _ordered(fused)


def weight_of_meaning(similarities: Mapping[str, float], words: Mapping[str, float], *, names_time: bool) -> float:
    """Return the weight for similarities, based on the overlap between the lists' top tens."""
    nearest, best = (set(nlargest(_COMPARED, scores, key=scores.__getitem__)) for scores in (similarities, words))
    return ALPHA_BY_CHANCE if names_time or len(nearest & best) <= _UNALIKE else ALPHA


def with_bonus(fused: Iterable[Scored], favored: Collection[str], bonus: float = TIME_BONUS) -> list[Scored]:
    """Add a bonus to the `favored` memories, and scale the scores back to 0..1."""
    return _ordered(((score + (bonus if name in favored else 0.0)) / (1.0 + bonus), name) for score, name in fused)


def relevant(
    fused: Iterable[Scored],
    similarities: Mapping[str, float],
    words: Collection[str],
    least_similarity: float,
    also: Collection[str] = (),
) -> tuple[list[Scored], list[Scored]]:
    """Split a ranking into relevant memories and the rest.

    Relevant memories share a word, are similar enough, or are in `also`.
    """
    answers = {name for name, near in similarities.items() if near >= least_similarity}.union(words, also)
    order = list(fused)
    return [scored for scored in order if scored[1] in answers], [scored for scored in order if scored[1] not in answers]


def score_parts(similarities: Mapping[str, float], words: Mapping[str, float], in_time: Collection[str] = ()) -> dict[str, ScoreParts]:
    """Return each memory's score and rank by similarity and by words.

    Ranks start at 1, and missing values are None.
    """
    near, by_words = _ranks(similarities), _ranks(words)
    return {
        name: {
            "similarity": similarities.get(name),
            "similarity_rank": near.get(name),
            "words": words.get(name),
            "words_rank": by_words.get(name),
            "in_time": name in in_time,
        }
        for name in {*similarities, *words}
    }


def saturated(score: float) -> float:
    """Map a BM25 score x to 0..1 as x / (x + 10)."""
    return score / (score + 10.0) if score > 0 else 0.0


@dataclass(slots=True)
class Ranking:
    """A ranking, best first. The memories in `below_threshold` are not relevant enough.

    - `total`: the number of matches or, in an unpaged hybrid search, of ranked memories.
    - `similarities`: None in a keyword-only search.
    - `reranked`: scores on the reranker's own scale.
    """

    total: int
    scored: Sequence[Scored]
    below_threshold: Sequence[Scored] = ()
    similarities: Mapping[str, float] | None = None
    parts: Mapping[str, ScoreParts] | None = None
    facts: Collection[str] = ()
    sharing_words: Collection[str] = ()
    recencies: Mapping[str, float] = field(default_factory=dict[str, float])
    reranked: Mapping[str, float] = field(default_factory=dict[str, float])
    notices: Sequence[str] = ()
    listed: bool = False
    passages: Mapping[str, int] = field(default_factory=dict[str, int])
    """The 1-based number of each long memory's best passage."""
    relevance: RelevanceEstimate | None = None

    def explain(self, scored: Scored, rank: int) -> HitExplanation:
        """Return the parts of a memory's score. `rank` is its rank in the response."""
        score, name = scored
        if self.listed:
            return HitExplanation(rank=rank)
        parts = {"similarity": 1.0 - self.distance_of(scored)} if self.parts is None else self.parts[name]
        recency, reranked = self.recencies.get(name), self.reranked.get(name)
        return HitExplanation.model_validate({**parts, "rank": rank, "score": score, "recency": recency, "reranked": reranked})

    def distance_of(self, scored: Scored) -> float:
        """Return a memory's distance (0..2) from the query, or 0 in a listing."""
        if self.listed:
            return 0.0
        return 1.0 - (scored[0] if self.similarities is None else self.similarities.get(scored[1], 0.0))

    def rank_of(self, name: str) -> int | None:
        """Return a memory's rank, starting at 1, or None if it is not ranked."""
        return next((rank for rank, (_, ranked) in enumerate(self.scored, start=1) if ranked == name), None)


def rank_candidates(query: SearchQuery, candidates: Candidates, min_similarity: float) -> Ranking:
    """Rank candidates, and move irrelevant ones below the threshold.

    An unpaged search also requires a shared word or a similarity of at least `min_similarity`.
    """
    ranking = _rank(query, candidates, min_similarity)
    least = least_relevance(query)
    if least is None or (relevance := ranking.relevance) is None:
        return ranking
    # A prompt filters only messages: there are few facts, and extraction found them worth storing.
    facts = ranking.facts if query.request.min_relevance is None else ()
    enough = {name for _, name in ranking.scored if name in facts or relevance(name) >= least}
    scored = [each for each in ranking.scored if each[1] in enough]
    far = [*(each for each in ranking.scored if each[1] not in enough), *ranking.below_threshold]
    return replace(ranking, total=len(scored), scored=scored, below_threshold=far)


def least_relevance(query: SearchQuery) -> float | None:
    """Return the minimum relevance for hits, or None if there is no minimum."""
    request = query.request
    if request.min_relevance is not None:
        return request.min_relevance
    judged = not query.paged and query.mode is not None and request.distance_threshold is None and not filters_content(request)
    return least_of(query.words.memories, request.limit) if judged else None


def _rank(query: SearchQuery, candidates: Candidates, min_similarity: float) -> Ranking:
    if not candidates:
        return Ranking(0, [])
    narrowed = filters_content(query.request) or names_time_alone(query)
    profile = UNKNOWN if query.meaning is None else query.meaning.profile
    background = Background(query.words.memories, query.words.unknown, narrowed, profile.unit)
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
    near, passages = with_nearest_passages(_similarities(candidates[CandidateList.NEAREST]), candidates.get(CandidateList.NEAREST_PASSAGES))
    # A query without searchable words, such as "*", uses meaning alone.
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
        answers = frozenset(words) | in_time if _asks_for_events(query) else frozenset(words)
        words = {**words, **{name: max(value, words.get(name, 0.0)) for name, value in words_in_time.items()}}
    matched, least = len(near), min(near.values(), default=0.0)
    facts = frozenset[str]()
    if query.facts_apart:
        near_facts = _similarities(candidates[CandidateList.NEAREST_FACTS])
        facts = frozenset(near_facts)
        near = near_facts | near
    matching = candidates.get(CandidateList.MATCHING)
    if query.words.phrase:
        # Only the keyword index supports phrases, and every hit must contain them.
        near = {name: similarity for name, similarity in near.items() if name in words}
        matching = candidates[CandidateList.BEST_BY_WORDS]
    request = query.request
    far = _far(query, near)
    unknown = query.meaning is not None and query.meaning.unknown_script
    by_words = (candidates.get(CandidateList.BEST_BY_WORDS), candidates.get(CandidateList.BEST_PASSAGES_BY_WORDS))
    quoted = any(is_quoted(hits, query.words.weights) for hits in by_words)
    default = weight_of_meaning(near, words, names_time=query.span is not None)
    usual = ALPHA_UNKNOWN_SCRIPT if unknown else ALPHA_QUOTED if quoted else default
    alpha = request.hybrid_alpha if "hybrid_alpha" in request.model_fields_set else usual
    if query.depth > _FIRST_DEPTH:
        (near, least), (words, last_word) = _capped(near, least), _capped(words, last_word)
    fused = fuse(near, words, alpha, last_word=last_word, in_time=in_time, least=least, far=far)
    time_bonus = 1.0 if _asks_for_events(query) else TIME_BONUS
    if in_time:
        fused = with_bonus(fused, in_time, time_bonus)
    if speaker_matches := _memories_by_named_speakers(query, candidates):
        fused = with_bonus(fused, speaker_matches, SPEAKER_BONUS)
    near_all, listed = ({}, {}) if unknown else (near, nearest)
    relevance = RelevanceEstimate(listed, words, background, facts=near_all, in_time=in_time, time_bonus=time_bonus)
    below_threshold: list[Scored] = []
    if not query.paged:
        fused, below_threshold = relevant(fused, near, words, math.inf if unknown else min_similarity, answers)
        if not fused and filters_content(request):
            # The caller's filter defines the result: do not empty the result merely because all memories are far.
            fused, below_threshold = below_threshold, []
    # If the list by meaning contains every match, memories below the threshold do not count as matches.
    total = len(fused) if matching is None or matched < query.depth else matching.total
    parts = score_parts(near, words, in_time) if request.explain else None
    return Ranking(total, fused, below_threshold, near, parts, facts, words, passages=passages, relevance=relevance)


def _far(query: SearchQuery, near: Mapping[str, float]) -> float:
    """Return the similarity at which the scale starts.

    It is 0 or, for some models, the first page's median, with missing memories treated as 0.
    """
    if query.meaning is None or query.meaning.profile.far == "zero":
        return 0.0
    nearest = sorted(near.values(), reverse=True)[:_FIRST_DEPTH]
    return max(median([*nearest, *[0.0] * (_FIRST_DEPTH - len(nearest))]), 0.0)


def _memories_by_named_speakers(query: SearchQuery, candidates: Candidates) -> Collection[str]:
    """Return keyword hits from speakers mentioned in the query."""
    speakers = frozenset[bytes]() if query.meaning is None else terms_of_speakers(query.meaning.omitted_names)
    hits = candidates.get(CandidateList.BEST_BY_WORDS)
    if hits is None or not speakers:
        return ()
    # Hits beyond a first page's depth get no bonus: later pages must not contain memories that belong on earlier ones.
    first = zip(hits.names, hits.texts(TERMS_FIELD, _FIRST_DEPTH), strict=False)
    return {name for name, terms in first if is_by_speaker(terms, speakers)}


def _capped(scores: Mapping[str, float], least: float) -> tuple[Mapping[str, float], float]:
    """Flatten scores beyond the first page so that later pages do not repeat memories."""
    if len(scores) < _FIRST_DEPTH:
        return scores, least
    end = sorted(scores.values(), reverse=True)[_FIRST_DEPTH - 1]
    return {name: max(value, end + _HARDLY * (value - end)) for name, value in scores.items()}, end + _HARDLY * (least - end)


def names_days(query: SearchQuery) -> bool:
    """True if the query has a subject and mentions a time span of at most a month."""
    return _is_short(query) and bool(query.words.subject)


def _asks_for_events(query: SearchQuery) -> bool:
    """True if the query has no subject or asks for plans."""
    return query.span is not None and (query.span.is_ahead or not query.words.subject)


def names_time_alone(query: SearchQuery) -> bool:
    """True if the query mentions at most a month, and has no subject or asks for plans."""
    return _is_short(query) and bool(query.words.terms) and _asks_for_events(query)


def _is_short(query: SearchQuery) -> bool:
    return query.span is not None and query.span.end - query.span.start <= _LONGEST


def _similarities(hits: Hits) -> dict[str, float]:
    return {name: 1.0 - distance for name, distance in zip(hits.names, hits.values, strict=True)}


def _scores(candidates: Candidates, kind: CandidateList) -> dict[str, float]:
    hits = candidates.get(kind)
    return {} if hits is None else dict(zip(hits.names, hits.values, strict=True))


_OWNERS = frozenset({"user_id", "namespace", "session_id", "agent_id"})


def filters_content(request: SearchRequest | Condition) -> bool:
    """True if the request filters by anything besides user, namespace, session and agent."""
    if any(getattr(request, name) is not None for name in FILTERS if name != "filter" and name not in _OWNERS):
        return True
    if isinstance(request, SearchRequest):
        return request.filter is not None and filters_content(request.filter)
    inner = [*(request.and_ or ()), *(request.or_ or ()), *([] if request.not_ is None else [request.not_])]
    return any(map(filters_content, inner))


def _ordered(fused: Iterable[Scored]) -> list[Scored]:
    """Sort by score, best first, and then by name."""
    return sorted(fused, reverse=True)


def _ranks(scores: Mapping[str, float]) -> Mapping[str, int]:
    return {name: rank for rank, name in enumerate(sorted(scores, key=scores.__getitem__, reverse=True), start=1)}
