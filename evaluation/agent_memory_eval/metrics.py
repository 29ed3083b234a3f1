"""How well a ranking found what was to be found. Pure functions; every figure is in 0..1, more is better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

CUTS = (5, 10, 20, 50)
DEEPEST = max(CUTS)
NAMES = (*(f"{kind}@{cut}" for kind in ("R", "any", "all", "nDCG") for cut in CUTS), "MRR")
"""R: the share of the evidence among the first k. any, all: whether any (a hit) or all of it is. nDCG: binary gains. MRR: within 50."""

Scores = dict[str, float]


def measure(ranked: Sequence[str], evidence: frozenset[str]) -> Scores:
    """The figures of one ranking (best first; a repeated name counts once) for what should have been found, which is not empty.

    nDCG as in Järvelin, Kekäläinen, "Cumulated Gain-Based Evaluation of IR Techniques", TOIS 2002, with gain 1 for evidence.
    """
    relevant = [name in evidence for name in dict.fromkeys(ranked)][:DEEPEST]
    scores: Scores = {}
    for cut in CUTS:
        hits = sum(relevant[:cut])
        gain = sum(1 / math.log2(index + 2) for index, hit in enumerate(relevant[:cut]) if hit)
        best = sum(1 / math.log2(index + 2) for index in range(min(len(evidence), cut)))
        scores |= {
            f"R@{cut}": hits / len(evidence),
            f"any@{cut}": float(hits > 0),
            f"all@{cut}": float(hits == len(evidence)),
            f"nDCG@{cut}": gain / best,
        }
    scores["MRR"] = next((1 / rank for rank, hit in enumerate(relevant, start=1) if hit), 0.0)
    return scores


def mean(rows: Iterable[Scores]) -> Scores:
    """The mean of every figure; empty for no rows."""
    every = list(rows)
    return {name: sum(scores[name] for scores in every) / len(every) for name in NAMES} if every else {}


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share (0..1) of the values does not exceed; None for no values."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else None
