"""What the similarities of an embedding model mean, on a scale that is the same for all models.

Programs that were written for a hosted product bring thresholds along (0.6, say). Cosine similarities of different models are not
comparable, so each model has a scale of its own. All numbers stand here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """A monotonic map from a similarity to a score: `noise` becomes 0.5, `match` becomes 0.6; 0 and 1 stay."""

    noise: float
    match: float

    def score(self, similarity: float) -> float:
        """Return the score of a similarity, from 0 to 1."""
        points = ((0.0, 0.0), (self.noise, 0.5), (self.match, 0.6), (1.0, 1.0))
        similarity = min(max(similarity, 0.0), 1.0)
        low, high = next((low, high) for low, high in pairwise(points) if similarity <= high[0])
        return low[1] + (high[1] - low[1]) * (similarity - low[0]) / (high[0] - low[0])


UNCHANGED = ScoreScale(noise=0.5, match=0.6)
"""For models that were not measured: the score is the similarity."""
# Measured by scripts/score_scale.py on English chats and diaries; this model hardly tells Chinese texts apart.
_SCALES = {"all-MiniLM-L6-v2": ScoreScale(noise=0.3, match=0.35)}


def scale_of(model: str) -> ScoreScale:
    """The scale of an embedding model by its name; `UNCHANGED` for one that was not measured."""
    return _SCALES.get(model, UNCHANGED)


def raised(similarity: float, share: float) -> float:
    """Raise a similarity of meanings towards 1 by half of the `share` of the query's words that a text has."""
    return min(1.0, similarity + (1.0 - similarity) * share / 2)
