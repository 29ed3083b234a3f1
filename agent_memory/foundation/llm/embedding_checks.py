"""Clean texts before embedding, and check the resulting vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agent_memory.foundation.core.errors import ModelAnswerInvalid
from agent_memory.foundation.llm.base import Vectors
from agent_memory.foundation.text.cleaning.control_characters import plain_text

BLANK = "."
"""Replaces a blank text, which models reject or embed as NaN."""


def clean_text(text: str) -> str:
    """Remove control characters, and replace lone surrogates and blank text."""
    return plain_text(text).encode("utf-8", "replace").decode("utf-8").strip() or BLANK


def unit_rows(rows: ArrayLike, *, count: int, dimensions: int, model: str) -> Vectors:
    """Return float32 unit vectors of shape (count, dimensions). Raises ModelAnswerInvalid."""
    try:
        vectors = np.asarray(rows, dtype=np.float32)
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelAnswerInvalid(f"{model} returned embeddings that are not rows of numbers", reason="ragged") from error
    if vectors.ndim != 2:
        raise ModelAnswerInvalid(f"{model} returned embeddings that are not rows of numbers", reason="ragged")
    if len(vectors) != count:
        raise ModelAnswerInvalid(f"{model} returned {len(vectors)} embeddings for {count} texts", reason="count")
    if vectors.shape[1] != dimensions:
        raise ModelAnswerInvalid(
            f"{model} returned embeddings of {vectors.shape[1]} dimensions where {dimensions} are expected: "
            f"set EMBEDDING_DIMENSIONS={vectors.shape[1]} and rebuild the indexes",
            reason="dimension",
            dimensions=vectors.shape[1],
        )
    if not np.isfinite(vectors).all():
        raise ModelAnswerInvalid(f"{model} returned an embedding with NaN or infinity", reason="not_finite")
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if (lengths < 1e-9).any():
        raise ModelAnswerInvalid(f"{model} returned an embedding of zeros", reason="zero_vector")
    return (vectors / lengths).astype(np.float32)
