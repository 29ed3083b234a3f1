"""What must be known of an embedding model to compare its vectors: one profile for each model.

Vectors of many models have much in common with each other, whatever their texts say, so that unrelated texts have a cosine of 0.8. Less
their mean, cosines of all models lie on about one scale (Mu, Viswanath, "All-but-the-Top", ICLR 2018). The mean of a known model ships with
the package; that of another one comes from the same probe sentences when the model is first used, and stays in the store.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from importlib import resources
from itertools import pairwise
from typing import Literal

import numpy as np

from agent_memory.foundation.llm.base import TextRole, Vectors

_PROBES = "probe_sentences.txt"
_MEANS = "means.npz"


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """A monotonic map from a similarity to a score: `noise` becomes 0.5, `match` becomes 0.6; 0 and 1 stay.

    Programs that were written for a hosted product bring thresholds along (0.6, say).
    """

    noise: float
    match: float

    def score(self, similarity: float) -> float:
        """Return the score of a similarity, from 0 to 1."""
        points = ((0.0, 0.0), (self.noise, 0.5), (self.match, 0.6), (1.0, 1.0))
        similarity = min(max(similarity, 0.0), 1.0)
        low, high = next((low, high) for low, high in pairwise(points) if similarity <= high[0])
        return low[1] + (high[1] - low[1]) * (similarity - low[0]) / (high[0] - low[0])


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """How texts go into a model, and what its vectors share."""

    prefixes: tuple[str, str] = ("", "")
    """What stands before a query and before a document."""
    mean: str = ""
    """Where the mean vector comes from: a name in `means.npz`, or `probes`; empty for a model whose vectors share next to nothing."""
    far: Literal["zero", "median"] = "median"
    """What counts as far when lists are fused: a cosine of 0, or the median of the list. docs/recall.md has the measurements."""
    least: float = 0.2
    """The cosine of a question and a memory below which they have nothing to do with each other, if they share no word."""
    scale: ScoreScale = ScoreScale(noise=0.3, match=0.35)

    def prepared(self, text: str, role: TextRole) -> str:
        """Return the text as the model wants it."""
        return self.prefixes[role == "document"] + text

    @property
    def digest(self) -> str:
        """What tells vectors of this profile from those of another one; empty where nothing is changed."""
        mean = blake2b("\n".join(probe_sentences()).encode(), digest_size=4).hexdigest() if self.mean else ""
        return "|".join((*self.prefixes, self.mean, mean)).strip("|")


# The scale was measured by scripts/score_scale.py on English chats and diaries.
PROFILES = {
    "multilingual-e5-small": ModelProfile(
        prefixes=("query: ", "passage: "), mean="multilingual-e5-small", least=0.17, scale=ScoreScale(noise=0.24, match=0.27)
    ),
    "all-MiniLM-L6-v2": ModelProfile(far="zero"),
    "use-multilingual-v3": ModelProfile(far="zero"),
}
UNKNOWN = ModelProfile(mean="probes")


def profile_of(model: str) -> ModelProfile:
    """Return the profile of a model by its name."""
    return PROFILES.get(model, UNKNOWN)


@lru_cache(maxsize=1)
def probe_sentences() -> tuple[str, ...]:
    """Return unrelated sentences in 16 languages."""
    return tuple(resources.files("agent_memory.foundation.llm").joinpath("data", _PROBES).read_text(encoding="utf-8").splitlines())


def shipped_mean(name: str) -> Vectors:
    """Return the mean vector of a known model."""
    with (
        resources.files("agent_memory.foundation.llm").joinpath("data", _MEANS).open("rb") as file,
        np.load(file, allow_pickle=False) as means,
    ):
        return means[name]


def centered(rows: Vectors, mean: Vectors) -> Vectors:
    """Return unit vectors less a mean, of length 1 again; one that is the mean stays as it is."""
    rest = rows - mean
    lengths = np.linalg.norm(rest, axis=1, keepdims=True)
    return np.where(lengths > 1e-6, rest / np.maximum(lengths, 1e-6), rows).astype(np.float32)


def raised(similarity: float, share: float) -> float:
    """Return a similarity of meanings, raised towards 1 by half of the `share` of the query's words that a text has."""
    return min(1.0, similarity + (1.0 - similarity) * share / 2)
