"""Estimate the probability that a memory answers a query. Pure functions.

`scripts/fit_relevance.py` fits the two logistic regressions (see docs/recall.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from statistics import median

MIN_RELEVANCE = 0.015
"""The default minimum relevance in a prompt. Lower if there are few memories."""
_LEAST_SCORE = 0.02
# If the probability of any answer is below `_LEAST_SHARE`, every relevance is 0; above `_FULL_SHARE`, it counts in full. With
# fewer than `_MANY` memories, `_LEAST_SHARE` is proportionally lower: an answer stands out less, and a prompt shows fewer
# irrelevant memories.
_LEAST_SHARE, _FULL_SHARE = 0.31, 0.33
_MANY = 130
# The nearest memory is compared with this many memories from the list by meaning, to measure how much it stands out.
_LIST = 50
# The weights in `weights.json` were fitted with this weight of meaning.
_ALPHA = 0.6

Features = Mapping[str, float]
"""The inputs of a regression, keyed by their names in `weights.json`."""


@dataclass(frozen=True, slots=True)
class Background:
    """The number of searched memories, and the weighted share of unknown query words.

    `narrowed` is true if the caller set a filter or the query asks only for a time. All similarities are divided by
    `unit`.
    """

    memories: int = 0
    unknown: float = 0.0
    narrowed: bool = False
    unit: float = 0.35


class RelevanceEstimate:
    """The relevance (0 to 1) of each memory found by meaning or by words."""

    def __init__(
        self,
        similarities: Mapping[str, float],
        words: Mapping[str, float],
        background: Background,
        *,
        facts: Mapping[str, float] | None = None,
        in_time: Collection[str] = (),
        time_bonus: float = 0.0,
    ) -> None:
        """Create an estimate. Memories in `in_time` get `time_bonus` added to their scores.

        `facts` contains similarities from a separate list.
        """
        listed = sorted(similarities.values(), reverse=True)[:_LIST]
        self._top = listed[0] if listed else 0.0
        self._near = similarities if not facts else {**facts, **similarities}
        self._farthest = min(self._near.values(), default=0.0)
        self._log_memories = math.log(max(background.memories, len(self._near), 1))
        self._words = words
        self.narrowed, self._background = background.narrowed, background
        self._in_time, self._time_bonus = in_time, time_bonus
        self._middle = median(listed or [0.0])
        self._spread = self._top - self._middle
        self._deviation = _deviation(listed)
        self._best = max(words.values(), default=0.0)
        self.known_factor = self._known_share()

    def __call__(self, name: str) -> float:
        """Return the relevance of the memory with this name."""
        return self.known_factor * probability(_weights()["memory"], self.memory_features(name)) if self.known_factor else 0.0

    def memory_features(self, name: str) -> Features:
        """Return the inputs for estimating whether a memory answers the query."""
        by_meaning, by_words = self._parts(name)
        score = _ALPHA * by_meaning + (1 - _ALPHA) * by_words if self._near and self._words else by_meaning or by_words
        if name in self._in_time:
            score = min(score + self._time_bonus, 1.0)
        score = max(score, _LEAST_SCORE)
        # A search by words alone has no similarities: treat the memory as if it were as near as an answer.
        near = self._near.get(name, self._farthest) / self._background.unit if self._near else 1.0
        return {"score": score, "log_score": math.log(score), "log_memories": self._log_memories, "near": near}

    def known_features(self) -> Features:
        """Return the inputs for estimating whether the store contains any answer."""
        unit, known_words = self._background.unit, 1 - self._background.unknown
        near_words = max((self._near.get(name, self._middle) * words for name, words in self._words.items()), default=0.0)
        return {
            "top": self._top / unit,
            # Languages and models differ in how similar unrelated texts are, but less in how much these similarities vary.
            "deviation": self._deviation / unit,
            "near_known_words": known_words * near_words / (unit * self._best) if self._best else 0.0,
        }

    def _parts(self, name: str) -> tuple[float, float]:
        """Return a memory's relative scores (0 to 1) by meaning and by words."""
        above, words = self._near.get(name, self._middle) - self._middle, self._words.get(name, 0.0)
        return (above / self._spread if above > 0 and self._spread > 0 else 0.0), (words / self._best if words else 0.0)

    def _known_share(self) -> float:
        if self.narrowed:
            return 1.0
        unknown, memories = self._background.unknown, self._background.memories
        return known_share(probability(_weights()["known"], self.known_features()) if self._near else 1.0 - unknown, memories)


def probability(weights: Features, features: Features) -> float:
    """Return a logistic regression's estimate. Ignore features that have no weight."""
    return 1 / (1 + math.exp(-weights["bias"] - sum(weights.get(name, 0.0) * value for name, value in features.items())))


def known_share(known_probability: float, memories: int) -> float:
    """Return the factor for all relevances, based on the probability that an answer exists."""
    least = _LEAST_SHARE * min(memories / _MANY, 1.0)
    return min(max((known_probability - least) / (_FULL_SHARE - least), 0.0), 1.0)


def least_of(memories: int, places: int) -> float:
    """Return the minimum relevance for a prompt with room for `places` memories."""
    return MIN_RELEVANCE * min(max(2 * memories / places - 1.0, 0.0), 1.0)


def _deviation(values: Sequence[float]) -> float:
    """Return the standard deviation, 40 times as fast as `statistics.pstdev`."""
    mean = sum(values) / max(len(values), 1)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / max(len(values), 1))


@lru_cache(maxsize=1)
def _weights() -> Mapping[str, Features]:
    return json.loads(
        resources.files("agent_memory.features.memories.search.relevance").joinpath("weights.json").read_text(encoding="utf-8")
    )
