"""Classify messages in any language by their vectors.

The classifier is a multinomial logistic regression (`scripts/message_kinds/fit.py`). It works with
only one embedding model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["filler", "asks", "forget"]

LABELS = ("fact", "filler", "question", "task", "forget", "remember")
MODEL = "multilingual-e5-small"
# Each kind's labels, and the minimum sum of their probabilities. A proposal to forget may be wrong; dropping or hiding
# a message must not be.
KINDS: Mapping[Kind, tuple[tuple[str, ...], float]] = {
    "filler": (("filler",), 0.9),
    "asks": (("question", "task"), 0.95),
    "forget": (("forget",), 0.5),
}
# 99 of 100 lines that the weights were fitted on are shorter. The weights say nothing about longer texts.
MOST_BYTES = 105
MARKS = ("?", "？", "؟")
_MOST_CHARS, _MOST_WORDS = 200, 40


def message_kinds(texts: Sequence[str], vectors: NDArray[np.float32]) -> list[Kind | None]:
    """Return each text's kind, or None if it is not certain.

    `vectors` contains the document vectors of the texts.
    """
    probabilities = kind_probabilities(label_probabilities(message_features(texts, vectors), _weights()))
    certain = {kind: probability >= KINDS[kind][1] for kind, probability in probabilities.items()}
    short = [len(text.encode()) <= MOST_BYTES for text in texts]
    return [next((kind for kind in KINDS if short[row] and certain[kind][row]), None) for row in range(len(texts))]


def kind_probabilities(probabilities: NDArray[np.float32]) -> dict[Kind, NDArray[np.float32]]:
    """Return each kind's probability, which is the sum over its labels."""
    return {kind: probabilities[:, [LABELS.index(label) for label in labels]].sum(axis=1) for kind, (labels, _) in KINDS.items()}


def message_features(texts: Sequence[str], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the features for the regression: vectors, lengths, question marks and digits."""
    shapes = np.array([_shape(text) for text in texts], dtype=np.float32).reshape(len(texts), 6)
    return np.hstack([vectors * 4, shapes]).astype(np.float32)


def label_probabilities(rows: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the softmax label probabilities for each row."""
    scores = rows @ weights
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _shape(text: str) -> tuple[float, ...]:
    long = min(len(text), _MOST_CHARS) / 50, min(len(text.split()), _MOST_WORDS) / 10
    asks = any(mark in text for mark in MARKS), text.rstrip().endswith(MARKS)
    return (*(0.3 * float(each) for each in (*long, *asks, any(map(str.isdigit, text)))), 1.0)


@lru_cache(maxsize=1)
def _weights() -> NDArray[np.float32]:
    with resources.files("agent_memory.foundation.text").joinpath("data", "kinds", "weights.npy").open("rb") as file:
        return np.load(file, allow_pickle=False).astype(np.float32)
