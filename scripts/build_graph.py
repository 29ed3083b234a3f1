"""Builds agent_memory/llm/data/minilm*.onnx, the graphs of all-MiniLM-L6-v2 without weights. Needs the `onnx` package."""

from __future__ import annotations

from pathlib import Path

from agent_memory.llm.local.bert import GRAPH_FILES
from agent_memory.llm.local.graph import EncoderShape, build_graph

FOLDER = Path(__file__).resolve().parent.parent / "agent_memory" / "llm" / "data"


def main() -> None:
    """Writes the graphs."""
    for precision, name in GRAPH_FILES.items():
        target = FOLDER / name
        target.write_bytes(build_graph(EncoderShape(), precision))
        print(f"{name}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
