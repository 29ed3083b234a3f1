"""Build foundation/llm/data/means.npz, the mean probe vectors for local models that need them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np

from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.local.embedder import LocalEmbedder
from agent_memory.foundation.llm.profiles import PROFILES, probe_sentences

TARGET = Path(__file__).resolve().parent.parent / "agent_memory" / "foundation" / "llm" / "data" / "means.npz"


async def mean_of(model: str) -> np.ndarray:
    """Return the mean vector of the probe sentences for a model."""
    settings = load_settings(LOCAL_MODEL=model)
    embedder = await LocalEmbedder.open(settings)
    try:
        rows = await embedder.embed([PROFILES[model].prepared(text, "document") for text in probe_sentences()])
    finally:
        await embedder.close()
    return rows.mean(axis=0, dtype=np.float32)


def main() -> None:
    means = {name: asyncio.run(mean_of(name)) for name, profile in PROFILES.items() if profile.mean == name}
    with TARGET.open("wb") as file:
        np.savez(file, allow_pickle=False, **means)
    print(", ".join(f"{name}: {float(mean @ mean):.2f}" for name, mean in means.items()))


if __name__ == "__main__":
    main()
