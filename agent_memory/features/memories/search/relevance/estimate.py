"""How probable it is that a memory is what a query asks for (pure).

Two logistic regressions; docs/recall.md says what the numbers in `weights.json` were fitted on. One tells whether anything is known of what
is asked: how far the nearest memory stands out of its list, how much of the query's words no memory has, and whether meaning and words
agree. The other tells how likely a memory with its score is meant, by the number of memories. All of them compare a query with the
user's own memories, because what is near among the notes of a programmer is far among those of a family.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from statistics import median

MIN_RELEVANCE = 0.025
"""What a prompt shows at least, where its request names nothing else."""
_MEANING, _WORDS = 0.6, 0.4
_LEAST_SCORE = 0.02
# Below the one nothing of the query is known, above the other its memories count in full.
_UNKNOWN, _KNOWN = 0.2, 0.3
FEW_MEMORIES = 100
"""Fewer are no background that anything could stand out of: below, more evidence is lost than noise (docs/recall.md)."""
# The depth of the list by meaning that tells how much the nearest stands out.
_LIST = 50


@dataclass(frozen=True, slots=True)
class Background:
    """What is searched: how many memories, and the share of the query's words, by what they tell, that none of them has.

    Of a search that is `narrowed` by its caller's filter or asks for a time alone, whatever is left may be the answer.
    """

    memories: int = 0
    unknown: float = 0.0
    narrowed: bool = False


class RelevanceEstimate:
    """The relevance (0 to 1) of each memory that two lists found."""

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
        """`facts` are similarities of a list of its own. The score of what belongs to the time that is asked for gets a bonus."""
        listed = sorted(similarities.values(), reverse=True)[:_LIST] or [0.0]
        self._near = similarities if not facts else {**facts, **similarities}
        self._words = words
        self._in_time, self._time_bonus = in_time, time_bonus
        self._middle, self._spread = median(listed), listed[0] - median(listed)
        self._best = max(words.values(), default=0.0)
        self._log_memories = math.log(max(background.memories, len(self._near), 1))
        self.known = self._known_share(listed, background)

    def __call__(self, name: str) -> float:
        """The relevance of a memory by its name."""
        if not self.known:
            return 0.0
        by_meaning, by_words = self._parts(name)
        score = _MEANING * by_meaning + _WORDS * by_words if self._near and self._words else by_meaning or by_words
        if name in self._in_time:
            score = min(score + self._time_bonus, 1.0)
        weights, score = _weights()["memory"], max(score, _LEAST_SCORE)
        logit = weights["bias"] + weights["score"] * score + weights["log_score"] * math.log(score)
        return self.known * _logistic(logit + weights["log_memories"] * self._log_memories)

    def _parts(self, name: str) -> tuple[float, float]:
        """A memory's places in both lists, each from 0 to 1."""
        above, words = self._near.get(name, self._middle) - self._middle, self._words.get(name, 0.0)
        return (above / self._spread if above > 0 and self._spread > 0 else 0.0), (words / self._best if words else 0.0)

    def _known_share(self, listed: list[float], background: Background) -> float:
        """How sure it is that anything is known of what is asked, as a factor of what memories count."""
        if background.narrowed or background.memories < FEW_MEMORIES:
            return 1.0
        if not self._near:
            return 1.0 - background.unknown
        weights = _weights()["known"]
        agreement = max((meaning * words for meaning, words in map(self._parts, self._words)), default=0.0)
        logit = weights["bias"] + weights["top_above_middle"] * self._spread + weights["top_above_last"] * (listed[0] - listed[-1])
        logit += weights["unknown_words"] * background.unknown + weights["agreement"] * agreement
        known = _logistic(logit + weights["log_memories"] * math.log(1 + background.memories))
        return min(max((known - _UNKNOWN) / (_KNOWN - _UNKNOWN), 0.0), 1.0)


def _logistic(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


@lru_cache(maxsize=1)
def _weights() -> Mapping[str, Mapping[str, float]]:
    return json.loads(
        resources.files("agent_memory.features.memories.search.relevance").joinpath("weights.json").read_text(encoding="utf-8")
    )
