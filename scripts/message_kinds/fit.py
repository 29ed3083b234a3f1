"""Fit the model that tells kinds of messages apart (`foundation/text/message_kinds.py`) to the labeled lines beside this script.

    .venv/bin/pip install scikit-learn
    .venv/bin/python scripts/message_kinds/fit.py [--write]

Each file of lines has one writer, who saw neither code nor tests. The report leaves one writer out at a time.
To add a language, or what was missed, add lines: {"lang": …, "text": …, "label": …}.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from agent_memory.foundation.text.message_kinds import BUCKETS, KINDS, buckets

LINES = Path(__file__).parent
WEIGHTS = Path(__file__).parents[2] / "agent_memory/foundation/text/data/kinds/weights.npz"
_STRENGTH = 50  # the inverse of the penalty
_LIMITS = (0.5, 0.7, 0.8, 0.85, 0.9)


def read_lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def features(texts: Sequence[str]) -> csr_matrix:
    """Return one row of n-gram buckets for each text, of length 1."""
    found = [buckets(text) for text in texts]
    values = np.concatenate([np.full(len(each), len(each) ** -0.5) for each in found])
    ends = np.cumsum([0, *map(len, found)])
    return csr_matrix((values, np.concatenate(found), ends), shape=(len(texts), BUCKETS))


def fit(lines: Sequence[dict[str, Any]]) -> LogisticRegression:
    model = LogisticRegression(C=_STRENGTH, max_iter=200)
    return model.fit(features([line["text"] for line in lines]), [line["label"] for line in lines])


def report(name: str, model: LogisticRegression, lines: Sequence[dict[str, Any]]) -> None:
    """Print, for each limit, how much of filler, questions and requests is found, and how many facts are taken for them."""
    given = np.array([line["label"] for line in lines])
    values = model.predict_proba(features([line["text"] for line in lines]))
    of = {kind: values[:, list(model.classes_).index(kind)] for kind in model.classes_}
    asks = of["question"] + of["task"]
    for limit in _LIMITS:
        found = {
            "filler": (of["filler"] >= limit)[given == "filler"],
            "facts as filler": (of["filler"] >= limit)[given == "fact"],
            "questions": (asks >= limit)[np.isin(given, ("question", "task"))],
            "facts as questions": (asks >= limit)[given == "fact"],
            "requests": (np.maximum(of["forget"], of["remember"]) >= limit)[np.isin(given, ("forget", "remember"))],
            "others as requests": (np.maximum(of["forget"], of["remember"]) >= limit)[~np.isin(given, ("forget", "remember"))],
        }
        print(f"{name} {limit}: " + ", ".join(f"{what} {share.mean():.1%}" for what, share in found.items() if len(share)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights into the server")
    files = {file.stem: read_lines(file) for file in sorted(LINES.glob("*.jsonl"))}
    if not parser.parse_args().write:
        for left_out, lines in files.items():
            report(left_out, fit([line for name, others in files.items() if name != left_out for line in others]), lines)
        return
    model = fit([line for lines in files.values() for line in lines])
    assert tuple(model.classes_) == KINDS
    weights = model.coef_.T
    scales = np.abs(weights).max(axis=0) / 127
    np.savez_compressed(WEIGHTS, weights=np.round(weights / scales).astype(np.int8), scales=scales, bias=model.intercept_)


if __name__ == "__main__":
    main()
