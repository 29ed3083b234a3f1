"""Fit the weights that classify messages, and cross-validate them by writer.

    .venv/bin/python scripts/message_kinds/fit.py [--write]

Each file in `tests/data/lines_by_writer` contains labeled lines from one writer. For better
results, add a file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.local.embedder import LocalEmbedder
from agent_memory.foundation.llm.profiles import profile_of
from agent_memory.foundation.llm.wrappers.caching import CachingEmbedder
from agent_memory.foundation.llm.wrappers.profiled import ProfiledEmbedder
from agent_memory.foundation.text.languages.message_kinds import (
    KINDS,
    LABELS,
    MODEL,
    kind_probabilities,
    label_probabilities,
    message_features,
)

ROOT = Path(__file__).parents[2]
LINES = ROOT / "tests/data/lines_by_writer"
WEIGHTS = ROOT / "agent_memory/foundation/text/data/kinds/weights.npy"
_RIDGE, _STEPS = 1.0, 150
Rows = NDArray[np.float32]


async def read_writers() -> dict[str, tuple[Rows, NDArray[np.int64]]]:
    """Return the features and labels for each writer's lines."""
    settings = load_settings(LOCAL_MODEL=MODEL, EMBEDDING_PROVIDER="local")
    embedder = ProfiledEmbedder(CachingEmbedder(await LocalEmbedder.open(settings), entries=0), profile_of(MODEL))
    writers: dict[str, tuple[Rows, NDArray[np.int64]]] = {}
    for file in sorted(LINES.glob("*.jsonl")):
        lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        texts = [line["text"] for line in lines]
        labels = np.array([LABELS.index(line["label"]) for line in lines])
        writers[file.stem] = message_features(texts, await embedder.embed(texts)), labels
    await embedder.close()
    return writers


def fit(rows: Rows, labels: NDArray[np.int64]) -> Rows:
    """Minimize cross-entropy with an L2 penalty, using Nesterov's method.

    The last column is the intercept.
    """
    right = np.eye(len(LABELS), dtype=np.float32)[labels]
    penalty = np.full((rows.shape[1], 1), _RIDGE / len(rows), dtype=np.float32)
    penalty[-1] = 0
    rate = 1 / (0.5 * np.linalg.eigvalsh(rows.T @ rows / len(rows))[-1] + _RIDGE / len(rows))
    weights = ahead = np.zeros((rows.shape[1], len(LABELS)), dtype=np.float32)
    pace = 1.0
    for _ in range(_STEPS):
        slope = rows.T @ (label_probabilities(rows, ahead) - right) / len(rows) + penalty * ahead
        step = ahead - rate * slope
        faster = (1 + (1 + 4 * pace**2) ** 0.5) / 2
        weights, ahead, pace = step, step + (pace - 1) / faster * (step - weights), faster
    return weights.astype(np.float32)


def joined(writers: dict[str, tuple[Rows, NDArray[np.int64]]], without: str = "") -> tuple[Rows, NDArray[np.int64]]:
    """Combine the lines from all writers except `without`."""
    others = [lines for name, lines in writers.items() if name != without]
    return np.vstack([rows for rows, _ in others]), np.concatenate([labels for _, labels in others])


def report(writers: dict[str, tuple[Rows, NDArray[np.int64]]]) -> None:
    """Print, for each kind, how many of its lines match and how many other lines do not."""
    judged = np.vstack([label_probabilities(rows, fit(*joined(writers, name))) for name, (rows, _) in writers.items()])
    labels = np.array(LABELS)[joined(writers)[1]]
    for kind, probability in kind_probabilities(judged).items():
        own = np.isin(labels, KINDS[kind][0])
        for least in sorted({0.5, 0.7, 0.8, 0.9, 0.95, KINDS[kind][1]}):
            matches = probability >= least
            recall, facts, others = matches[own].mean(), 1 - matches[labels == "fact"].mean(), 1 - matches[~own].mean()
            print(f"{kind} at {least}: matches {recall:.1%}, and does not match {facts:.2%} of facts and {others:.2%} of all others")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights fitted on all writers")
    write = parser.parse_args().write
    writers = asyncio.run(read_writers())
    report(writers)
    if write:
        WEIGHTS.parent.mkdir(exist_ok=True)
        np.save(WEIGHTS, fit(*joined(writers)).astype(np.float16))


if __name__ == "__main__":
    main()
