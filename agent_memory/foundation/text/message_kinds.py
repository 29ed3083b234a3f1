"""Tell filler, questions, tasks and requests to the memory from facts, by a linear model over the character n-grams of a message.

`scripts/message_kinds/fit.py` fits the model to labeled lines in 27 languages. It needs no embedding, so it works beside any model server.
A text in an unknown language is likely a fact: nothing is lost.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Collection, Mapping
from functools import lru_cache
from importlib import resources
from typing import Literal

import numpy as np
from numpy.typing import NDArray

MessageKind = Literal["answer", "fact", "filler", "forget", "question", "remember", "task"]
KINDS: tuple[MessageKind, ...] = ("answer", "fact", "filler", "forget", "question", "remember", "task")

BUCKETS = 1 << 16
# Longer messages tell something.
_LONGEST = 400
_LONGEST_GRAM, _LONGEST_EDGE = 5, 8
_SURE = 0.9


def is_surely(text: str, kinds: Collection[MessageKind], *, least: float = _SURE) -> bool:
    """True if a text is of one of these kinds with at least this probability."""
    found = probabilities(text)
    return sum(found[kind] for kind in kinds) >= least


@lru_cache(maxsize=4096)
def probabilities(text: str) -> Mapping[MessageKind, float]:
    """Return how likely each kind is; the sum is 1."""
    if len(text) > _LONGEST:
        return {kind: float(kind == "fact") for kind in KINDS}
    weights, scales, bias = _model()
    found = buckets(text)
    values = bias + scales * weights[found].sum(axis=0, dtype=np.float64) / np.sqrt(max(len(found), 1))
    shares = np.exp(values - values.max())
    return dict(zip(KINDS, (shares / shares.sum()).tolist(), strict=True))


def buckets(text: str) -> NDArray[np.int64]:
    """Return the numbers, below `BUCKETS`, of the n-grams of a text's words, of its beginning, its end and its length."""
    normal = unicodedata.normalize("NFKC", text[:_LONGEST]).casefold()
    grams = {f"#{len(normal).bit_length()}"}
    grams |= {sign + part for n in range(2, _LONGEST_EDGE + 1) for sign, part in (("^", normal[:n]), ("$", normal[-n:]))}
    for word in normal.split():
        padded = f" {word} "
        grams |= {padded[start : start + n] for n in range(1, _LONGEST_GRAM + 1) for start in range(len(padded) - n + 1)}
    return np.unique([zlib.crc32(gram.encode("utf-8", "surrogatepass")) % BUCKETS for gram in grams])


@lru_cache(maxsize=1)
def _model() -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.float64]]:
    with (
        resources.files("agent_memory.foundation.text").joinpath("data", "kinds", "weights.npz").open("rb") as file,
        np.load(file) as stored,
    ):
        return stored["weights"], stored["scales"], stored["bias"]
