"""Run a BERT sentence encoder with onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.llm.base import Vectors
from agent_memory.foundation.llm.local.shape import EncoderShape, Precision, weight_shapes
from agent_memory.foundation.llm.local.weights import import_extra, read_json, read_weights, round_weights

GRAPH_FILE = "graph.onnx"
_GRAPHS: dict[Precision, str] = {"int8": "minilm-int8", "fp32": "minilm"}


class BertEncoder:
    def __init__(self, name: str, shape: EncoderShape, tokenizer: Any, session: Any, weights: object) -> None:
        """Do not call this directly; use `load`. `weights` keeps the session's memory alive."""
        self.name = name
        self.dimensions = shape.width
        self._tokenizer = tokenizer
        self._session = session
        self._weights = weights

    @classmethod
    def load(cls, directory: Path, name: str, *, threads: int, precision: Precision, max_tokens: int) -> BertEncoder:
        """Load the encoder, which takes about 0.2 s. Raises StartupError."""
        runtime, tokenizers = import_extra("onnxruntime", "tokenizers")
        shape = read_shape(directory)
        weights: dict[str, Any] = dict(read_weights(directory / "model.safetensors", weight_shapes(shape)))
        if precision == "int8":
            weights = round_weights(weights)
        graph = read_graph(directory, shape, precision)
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
            tokenizer.enable_truncation(min(max_tokens, shape.positions))
            tokenizer.no_padding()
            return cls(name, shape, tokenizer, start_session(runtime, graph, weights, threads), weights)
        except Exception as error:  # both libraries raise their own errors and bare Exception; all mean "does not load"
            raise StartupError(f"the encoder in {directory} does not load: {error}") from error

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text, truncated to the input limit."""
        return [self._tokenizer.encode(text).ids for text in texts]

    def forward(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        ids, mask = padded(tokens, 0)
        return self._session.run(["embedding"], {"input_ids": ids, "attention_mask": mask})[0]


def padded(tokens: Sequence[Sequence[int]], pad: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pad token ids to equal length, and return them with their attention mask."""
    ids = np.full((len(tokens), max(map(len, tokens))), pad, dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(tokens):
        ids[row, : len(text)] = text
        mask[row, : len(text)] = 1
    return ids, mask


def packaged_graph(name: str) -> bytes:
    return resources.files("agent_memory.foundation.llm").joinpath("data", f"{name}.onnx").read_bytes()


def read_shape(directory: Path) -> EncoderShape:
    """Read an encoder's shape from its directory. Raises StartupError."""
    if not (directory / "config.json").is_file():
        raise StartupError(f"{directory} contains no sentence encoder: it needs config.json, tokenizer.json and model.safetensors")
    pooling = directory / "1_Pooling" / "config.json"
    try:
        return EncoderShape.of(read_json(directory / "config.json"), read_json(pooling) if pooling.is_file() else {})
    except ValueError as error:
        raise StartupError(f"the encoder in {directory} cannot be used: {error}") from error


def read_graph(directory: Path, shape: EncoderShape, precision: Precision = "int8") -> bytes:
    """Return the graph that matches a directory's weights. Raises StartupError."""
    if shape == EncoderShape():
        return packaged_graph(_GRAPHS[precision])
    try:
        return (directory / GRAPH_FILE).read_bytes()
    except OSError as error:
        advice = f"`.venv/bin/pip install onnx`, then `.venv/bin/python scripts/build_graph.py {directory}`"
        raise StartupError(f"the encoder in {directory} needs {GRAPH_FILE} ({error.strerror}). In a checkout, run {advice}") from error


def start_session(runtime: Any, graph: bytes, weights: dict[str, Any], threads: int) -> Any:
    """Create an inference session. `weights` must stay alive as long as the session."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # an idle server must not burn a core
    options.add_external_initializers(list(weights), [runtime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()])
    return runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
