"""Pure functions that compute metrics and confidence intervals for rankings and prompts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

DEEPEST = 50
RECALL = ("R@10", "R@50", "all@10", "MRR")
"""R@k is the share of the evidence among the first k. all@10 is 1 if all evidence is among the first 10.

MRR is 1 / rank of the first evidence, or 0 beyond rank 50.
"""
_RESAMPLES = 2000
_AT_ONCE = 200  # resamples in memory at a time


class Estimate(NamedTuple):
    """A mean over `n` questions, with its 95% confidence interval."""

    mean: float
    low: float
    high: float
    n: int


def recall_scores(ranked: Sequence[str], evidence: Collection[str]) -> dict[str, float]:
    """Score a ranking, best first. Duplicate ids are ignored, and `evidence` must not be empty."""
    hits = [turn in evidence for turn in dict.fromkeys(ranked)][:DEEPEST]
    return {
        "R@10": sum(hits[:10]) / len(evidence),
        "R@50": sum(hits) / len(evidence),
        "all@10": float(sum(hits[:10]) == len(evidence)),
        "MRR": next((1 / rank for rank, hit in enumerate(hits, start=1) if hit), 0.0),
    }


def prompt_scores(prompt_ids: Collection[str], evidence: Collection[str]) -> dict[str, float]:
    """Score the memories in a prompt by evidence and precision.

    If there is no evidence, score whether the prompt is empty ("nothing shown").
    """
    hits = len(set(prompt_ids) & set(evidence))
    scores = {"lines": float(len(prompt_ids))}
    if not evidence:
        return scores | {"nothing shown": float(not prompt_ids)}
    # Precision is undefined for a prompt without memories.
    return scores | {"evidence": hits / len(evidence)} | ({"precision": hits / len(prompt_ids)} if prompt_ids else {})


def estimate(values: Sequence[float], seed: int = 0) -> Estimate:
    """Return the mean with a bootstrap confidence interval. `values` must not be empty."""
    sample = np.asarray(values, float)
    rng = np.random.default_rng(seed)
    draws = [sample[rng.integers(0, len(sample), (_AT_ONCE, len(sample)))].mean(axis=1) for _ in range(_RESAMPLES // _AT_ONCE)]
    low, high = np.percentile(np.concatenate(draws), (2.5, 97.5))
    return Estimate(float(sample.mean()), float(low), float(high), len(sample))
