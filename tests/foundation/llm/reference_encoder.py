"""Compute a BERT encoder's forward pass in NumPy float64, independently of our implementation.

To write reference_vectors.json, run `python -m tests.foundation.llm.reference_encoder`.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from agent_memory.foundation.llm.local.weights import find_package

RECORDED = Path(__file__).with_name("reference_vectors.json")
TEXTS = [
    "When did Caroline go to the LGBTQ support group?",
    "The cat sat on the mat.",
    "Übung macht den Meister; 日本語 too!",
    "I've been thinking about adopting a dog, maybe next month, once the new flat is ready and the garden has a fence. " * 20,
]
Array = NDArray[np.float64]
_erf = np.vectorize(math.erf, otypes=[np.float64])


def tensors(path: Path) -> dict[str, Array]:
    """Read all float32 tensors from a safetensors file."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    return {
        name: np.frombuffer(raw[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]], dtype="<f4")
        .reshape(entry["shape"])
        .astype(np.float64)
        for name, entry in header.items()
        if name != "__metadata__" and entry["dtype"] == "F32"
    }


def forward(weights: dict[str, Array], ids: list[int], *, layers: int, heads: int, epsilon: float) -> Array:
    """Return the unit vector for a text, using mean pooling over its tokens."""

    def dense(value: Array, name: str) -> Array:
        return value @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(value: Array, name: str) -> Array:
        centred = value - value.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    count = len(ids)
    hidden = weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.position_embeddings.weight"][:count]
    hidden = norm(hidden + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(layers):
        at = f"encoder.layer.{layer}."
        query, key, value = (dense(hidden, f"{at}attention.self.{part}") for part in ("query", "key", "value"))
        width = hidden.shape[1] // heads
        mixed = np.empty_like(hidden)
        for head in range(heads):
            part = slice(head * width, (head + 1) * width)
            scores = query[:, part] @ key[:, part].T / math.sqrt(width)
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            mixed[:, part] = scores / scores.sum(axis=-1, keepdims=True) @ value[:, part]
        hidden = norm(dense(mixed, f"{at}attention.output.dense") + hidden, f"{at}attention.output.LayerNorm")
        inner = dense(hidden, f"{at}intermediate.dense")
        inner = 0.5 * inner * (1.0 + _erf(inner / math.sqrt(2.0)))
        hidden = norm(dense(inner, f"{at}output.dense") + hidden, f"{at}output.LayerNorm")
    pooled = hidden.mean(axis=0)
    return pooled / np.linalg.norm(pooled)


def main() -> None:
    directory = find_package("all-MiniLM-L6-v2")
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    weights = tensors(directory / "model.safetensors")
    vectors = [forward(weights, tokenizer.encode(text).ids, layers=6, heads=12, epsilon=1e-12) for text in TEXTS]
    RECORDED.write_text(
        "[\n"
        + ",\n".join(
            json.dumps({"text": t, "vector": [round(x, 6) for x in v.tolist()]}, ensure_ascii=False)
            for t, v in zip(TEXTS, vectors, strict=True)
        )
        + "\n]\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
