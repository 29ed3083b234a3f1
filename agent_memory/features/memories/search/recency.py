"""Order memories by age, using the archived server's formulas. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from operator import itemgetter
from typing import Any, TypeVar

from agent_memory_client.models import SearchRequest

Item = TypeVar("Item")


class Age(Enum):
    """How age affects a search result's order."""

    IGNORED = auto()
    """The request disables recency, or its query mentions a time."""
    BREAKS_TIES_ON_PAGE = auto()
    """The newer of two equal memories comes first, but only within the page."""
    BREAKS_TIES = auto()
    """Like BREAKS_TIES_ON_PAGE, but for the whole ranking."""
    WEIGHED = auto()

    @property
    def index_fields(self) -> Sequence[str]:
        """The times that the index returns with the scores."""
        return ("c", "ls", "la") if self is Age.WEIGHED else ("c", "ls") if self is Age.BREAKS_TIES else ()


@dataclass(frozen=True, slots=True)
class RecencyWeights:
    """The archived server's weights and half-lives (days)."""

    semantic: float = 0.8
    recency: float = 0.2
    freshness: float = 0.6
    novelty: float = 0.4
    half_life_accessed: float = 7.0
    half_life_created: float = 30.0


# The default: if memories are equal, the one that was said last comes first. Reads do not count: otherwise, a memory
# would rank higher because a search found it before.
TIEBREAK = RecencyWeights(semantic=1.0, recency=0.01, freshness=0.0, novelty=1.0)


def recency(idle: float, age: float, weights: RecencyWeights) -> float:
    """Return clamp01(freshness * 2^(-idle/half-life) + novelty * 2^(-age/half-life)).

    `idle` and `age` are the seconds since the memory was last read and last stated.
    """
    # A search calls this function hundreds of times.
    recent = weights.novelty * 0.5 ** (age / 86400 / weights.half_life_created) if age > 0 else weights.novelty
    if weights.freshness:
        recent += weights.freshness * 0.5 ** (max(idle, 0.0) / 86400 / weights.half_life_accessed)
    return 0.0 if recent < 0 else recent if recent < 1 else 1.0


def novelties(ages: Iterable[float], weights: RecencyWeights) -> list[float]:
    """Return the `recency` for each age, assuming that `freshness` is 0."""
    novelty, half_life = weights.novelty, weights.half_life_created * 86400
    if not 0 <= novelty <= 1:
        return [recency(age, age, weights) for age in ages]
    return [novelty * 0.5 ** (age / half_life) if age > 0 else novelty for age in ages]


def may_be_among(scored: Sequence[tuple[float, Item]], count: int) -> Sequence[tuple[float, Item]]:
    """Return the memories that may be among the first `count` after age breaks ties."""
    if len(scored) <= count:
        return scored
    least = scored[count - 1][0] - TIEBREAK.recency / TIEBREAK.semantic
    end = count
    while end < len(scored) and scored[end][0] >= least:
        end += 1
    return scored[:end]


def newer_first(scored: Sequence[tuple[float, Item]], stated_times: Iterable[float], now: float) -> list[tuple[float, Item]]:
    """Break ties by when memories were last stated (epoch seconds), newest first."""
    return weigh_age(scored, [score for score, _ in scored], novelties([now - moment for moment in stated_times], TIEBREAK), TIEBREAK)


def weigh_age(
    scored: Sequence[tuple[float, Item]], similarities: Iterable[float], recencies: Iterable[float], weights: RecencyWeights
) -> list[tuple[float, Item]]:
    """Sort memories by the weighted sum of similarity and recency (0..1)."""
    semantic, weight = weights.semantic, weights.recency
    aged = [(semantic * alike + weight * new, memory) for alike, new, memory in zip(similarities, recencies, scored, strict=True)]
    aged.sort(key=itemgetter(0), reverse=True)
    return [memory for _, memory in aged]


def now_of(request: SearchRequest) -> float:
    """Return the time (epoch seconds) from which ages are measured."""
    return (request.reference_time or datetime.now(UTC)).timestamp()


_WEIGHTS = {
    "recency_semantic_weight": "semantic",
    "recency_recency_weight": "recency",
    "recency_freshness_weight": "freshness",
    "recency_novelty_weight": "novelty",
    "recency_half_life_last_access_days": "half_life_accessed",
    "recency_half_life_created_days": "half_life_created",
}


def asks_for_recency(request: SearchRequest) -> bool:
    """True if the request uses any of the archived server's recency parameters."""
    if request.recency_boost is False:
        return False
    if request.recency_boost or request.server_side_recency:
        return True
    return any(getattr(request, name) is not None for name in request.model_fields_set.intersection(_WEIGHTS))


def weights_of(request: SearchRequest) -> RecencyWeights:
    """Return the request's weights.

    If there are no recency parameters, the weights only break ties.
    """
    if not asks_for_recency(request):
        return TIEBREAK
    changes: dict[str, Any] = {name: value for field, name in _WEIGHTS.items() if (value := getattr(request, field)) is not None}
    return RecencyWeights(**changes)


def age_of(request: SearchRequest, *, names_time: bool, whole: bool) -> Age:
    """Return how age affects a result.

    `whole` is True if the entire ranking needs its final order.
    """
    if request.recency_boost is False:
        return Age.IGNORED
    if asks_for_recency(request):
        return Age.WEIGHED
    if names_time:
        return Age.IGNORED
    return Age.BREAKS_TIES if whole else Age.BREAKS_TIES_ON_PAGE
