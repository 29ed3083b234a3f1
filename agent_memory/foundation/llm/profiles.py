"""Define embedding model profiles that make cosine similarities comparable across models.

In many models, all vectors share a large component, which the server subtracts (Mu, Viswanath,
"All-but-the-Top", ICLR 2018).
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
    """Maps similarities to the score scale that hosted products use.

    `noise` becomes 0.5 and `match` becomes 0.6. 0 and 1 stay the same.
    """

    noise: float
    match: float

    def score(self, similarity: float) -> float:
        """Convert a similarity to a score from 0 to 1."""
        points = ((0.0, 0.0), (self.noise, 0.5), (self.match, 0.6), (1.0, 1.0))
        similarity = min(max(similarity, 0.0), 1.0)
        low, high = next((low, high) for low, high in pairwise(points) if similarity <= high[0])
        return low[1] + (high[1] - low[1]) * (similarity - low[0]) / (high[0] - low[0])


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """A model's text prefixes, and the component that its vectors share."""

    prefixes: tuple[str, str] = ("", "")
    """The prefix of a query and the prefix of a document."""
    mean: str = ""
    """A mean's name in `means.npz`, `probes` to estimate it, or empty for none."""
    far: Literal["zero", "median"] = "median"
    """The cosine that rank fusion treats as unrelated (docs/recall.md)."""
    least: float = 0.2
    """A question and a memory with a lower cosine are unrelated, unless they share words."""
    unit: float = 0.35
    """Divides a similarity to estimate relevance on the same scale for all models."""
    scale: ScoreScale = ScoreScale(noise=0.3, match=0.35)

    def prepared(self, text: str, role: TextRole) -> str:
        return self.prefixes[role == "document"] + text

    @property
    def digest(self) -> str:
        """A string that identifies the prefixes and the mean, or "" if there are none.

        Vectors with different digests cannot be compared.
        """
        mean = blake2b("\n".join(probe_sentences()).encode(), digest_size=4).hexdigest() if self.mean else ""
        return "|".join((*self.prefixes, self.mean, mean)).strip("|")


# Measured by scripts/score_scale.py on English chats and diaries.
PROFILES = {
    "multilingual-e5-small": ModelProfile(
        prefixes=("query: ", "passage: "), mean="multilingual-e5-small", least=0.17, unit=0.27, scale=ScoreScale(noise=0.24, match=0.27)
    ),
    "all-MiniLM-L6-v2": ModelProfile(far="zero", unit=0.31),
    "use-multilingual-v3": ModelProfile(far="zero"),
}
UNKNOWN = ModelProfile(mean="probes")


def profile_of(model: str) -> ModelProfile:
    return PROFILES.get(model, UNKNOWN)


@lru_cache(maxsize=1)
def probe_sentences() -> tuple[str, ...]:
    """Return unrelated sentences in 16 languages."""
    return tuple(resources.files("agent_memory.foundation.llm").joinpath("data", _PROBES).read_text(encoding="utf-8").splitlines())


def shipped_mean(name: str) -> Vectors:
    with (
        resources.files("agent_memory.foundation.llm").joinpath("data", _MEANS).open("rb") as file,
        np.load(file, allow_pickle=False) as means,
    ):
        return means[name]


def centered(rows: Vectors, mean: Vectors) -> Vectors:
    """Subtract a mean from unit vectors and normalize. Vectors equal to the mean do not change."""
    rest = rows - mean
    lengths = np.linalg.norm(rest, axis=1, keepdims=True)
    return np.where(lengths > 1e-6, rest / np.maximum(lengths, 1e-6), rows).astype(np.float32)


def raised(similarity: float, share: float) -> float:
    """Raise a similarity toward 1 by `share` / 2 of the remaining distance.

    `share` (0 to 1) is the fraction of query words found in the text.
    """
    return min(1.0, similarity + (1.0 - similarity) * share / 2)
