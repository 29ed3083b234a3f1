"""Build agent_memory/foundation/llm/data/*.onnx, the graphs of the local models without weights. Needs the `onnx` package."""

from __future__ import annotations

from pathlib import Path

from agent_memory.foundation.llm.local import e5
from agent_memory.foundation.llm.local.graph import EncoderShape, Precision, build_graph

FOLDER = Path(__file__).resolve().parent.parent / "agent_memory" / "foundation" / "llm" / "data"
GRAPHS: dict[str, tuple[EncoderShape, Precision]] = {
    "minilm": (EncoderShape(), "fp32"),
    "minilm-int8": (EncoderShape(), "int8"),
    e5.NAME: (e5.SHAPE, "int8"),
}


def main() -> None:
    """Write the graphs."""
    for name, (shape, precision) in GRAPHS.items():
        target = FOLDER / f"{name}.onnx"
        target.write_bytes(build_graph(shape, precision))
        print(f"{target.name}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
