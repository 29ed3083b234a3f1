"""Sentence embeddings without a key or a network: all-MiniLM-L6-v2, or any BERT-shaped encoder in a directory, by onnxruntime."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from agent_memory.core.errors import ModelUnavailable, StartupError
from agent_memory.core.settings import Settings
from agent_memory.llm.base import Vectors
from agent_memory.llm.embedding_checks import BLANK, clean_text, unit_rows
from agent_memory.llm.local.graph import EncoderShape, Precision, build_graph, weight_shapes
from agent_memory.llm.local.weights import (
    HOW_TO_INSTALL,
    PACKAGED_NAME,
    check_digest,
    packaged_directory,
    read_json,
    read_weights,
    round_weights,
)
from agent_memory.llm.threads import giving_way

GRAPH_FILES: dict[Precision, str] = {"int8": "minilm-int8.onnx", "fp32": "minilm.onnx"}  # beside this module, in data/
MAX_TOKENS = 256
RUN_TEXTS = 32  # texts in one run of the network
RUN_TOKENS = 512  # padded tokens in one run: 25 to 60 ms of one core; more was not faster
URGENT_CHARS = 2000  # a call up to this size is one run, and does not queue behind the large ones
_CHARS = 8192  # what of a text is looked at: eight times what 256 tokens usually hold

Result = TypeVar("Result")


class LocalEmbedder:
    """An Embedder that runs in this process, in two threads: one for small calls (queries), one for batches.

    A batch gives its thread up after every run of at most `RUN_TOKENS` tokens, so batches interleave, and a query waits for none of them.
    """

    def __init__(self, name: str, shape: EncoderShape, tokenizer: Any, session: Any, weights: object) -> None:
        """Use `open`. `weights` is kept only so that the memory behind the session's weights lives as long as the session."""
        self._name = name
        self._dimensions = shape.width
        self._tokenizer = tokenizer
        self._session = session
        self._weights = weights
        self._urgent = ThreadPoolExecutor(1, thread_name_prefix="embed-urgent")
        self._batch = giving_way("embed-batch")
        self._closed = False

    @classmethod
    async def open(cls, settings: Settings) -> LocalEmbedder:
        """Loads the model in a thread. Raises StartupError with one line that says what is missing and how to get it."""
        models = settings.models
        own = models.local_model_dir
        if own is not None:
            return await asyncio.to_thread(_load, own, own.resolve().name, models.local_threads, models.local_precision)
        directory = await asyncio.to_thread(packaged_directory)
        loading = asyncio.to_thread(_load, directory, PACKAGED_NAME, models.local_threads, models.local_precision)
        embedder, _ = await asyncio.gather(loading, asyncio.to_thread(check_digest, directory))
        return embedder

    @property
    def model(self) -> str:
        """The model's name: all-MiniLM-L6-v2, or the name of its directory."""
        return self._name

    @property
    def dimensions(self) -> int:
        """The length of the vectors."""
        return self._dimensions

    def warm_up(self) -> None:
        """One run in the calling thread. Raises what the libraries raise."""
        self._forward_all([BLANK])

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        """See Embedder.embed."""
        if self._closed:
            raise ModelUnavailable(f"{self._name} is closed")
        if not texts:
            return np.zeros((0, self._dimensions), dtype=np.float32)
        try:
            async with asyncio.timeout(timeout):
                rows = await self._rows([clean_text(text[:_CHARS]) for text in texts])
        except TimeoutError as error:
            raise ModelUnavailable(f"{self._name} took longer than {timeout:g} s", reason="timeout") from error
        return unit_rows(rows, count=len(texts), dimensions=self._dimensions, model=self._name)

    async def close(self) -> None:
        """Waits for the runs under way and drops what is queued. May be called twice."""
        self._closed = True
        for executor in (self._urgent, self._batch):
            await asyncio.to_thread(executor.shutdown, wait=True, cancel_futures=True)

    async def _rows(self, texts: list[str]) -> Vectors:
        if len(texts) <= RUN_TEXTS and sum(map(len, texts)) <= URGENT_CHARS:
            return await self._in(self._urgent, lambda: self._forward_all(texts))
        tokens = await self._in(self._batch, lambda: self._tokenize(texts))
        rows = np.empty((len(texts), self._dimensions), dtype=np.float32)
        for run in plan_runs([len(ids) for ids in tokens]):
            rows[run] = await self._in(self._batch, _bound(self._forward, [tokens[index] for index in run]))
        return rows

    async def _in(self, executor: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
        if self._closed:  # between two runs of a batch
            raise ModelUnavailable(f"{self._name} was closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(executor, work)
        except asyncio.CancelledError:
            if self._closed:  # `close` drops queued work: its callers were not cancelled, their model went away
                raise ModelUnavailable(f"{self._name} was closed") from None
            raise

    def _tokenize(self, texts: list[str]) -> list[list[int]]:
        return [self._tokenizer.encode(text).ids for text in texts]

    def _forward_all(self, texts: list[str]) -> Vectors:
        tokens = self._tokenize(texts)
        rows = np.empty((len(texts), self._dimensions), dtype=np.float32)
        for run in plan_runs([len(ids) for ids in tokens]):
            rows[run] = self._forward([tokens[index] for index in run])
        return rows

    def _forward(self, tokens: list[list[int]]) -> Vectors:
        """One run of the network over texts of about the same length."""
        ids = np.zeros((len(tokens), max(map(len, tokens))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, text in enumerate(tokens):
            ids[row, : len(text)] = text
            mask[row, : len(text)] = 1
        return self._session.run(["embedding"], {"input_ids": ids, "attention_mask": mask})[0]


def plan_runs(lengths: Sequence[int]) -> list[list[int]]:
    """Groups the indices of texts with these token counts into runs: neighbours in length, within RUN_TEXTS and RUN_TOKENS (padded)."""
    runs: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if runs and len(runs[-1]) < RUN_TEXTS and (len(runs[-1]) + 1) * lengths[index] <= RUN_TOKENS:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs


def _bound(function: Callable[[list[list[int]]], Vectors], tokens: list[list[int]]) -> Callable[[], Vectors]:
    return lambda: function(tokens)


def _load(directory: Path, name: str, threads: int, precision: Precision) -> LocalEmbedder:
    """Reads everything and makes the session; takes about 0.2 s. Raises StartupError."""
    try:
        # An optional extra, and a quarter of a second of start-up that a process with a model server does not need.
        runtime, tokenizers = importlib.import_module("onnxruntime"), importlib.import_module("tokenizers")
    except ImportError as error:
        raise StartupError(f"local embeddings need onnxruntime and tokenizers ({error}): {HOW_TO_INSTALL}") from error
    if not (directory / "config.json").is_file():
        raise StartupError(f"{directory} holds no sentence encoder: config.json, tokenizer.json and model.safetensors are needed")
    pooling = directory / "1_Pooling" / "config.json"
    try:
        shape = EncoderShape.of(read_json(directory / "config.json"), read_json(pooling) if pooling.is_file() else {})
    except ValueError as error:
        raise StartupError(f"the encoder in {directory} cannot be used: {error}") from error
    weights: dict[str, Any] = dict(read_weights(directory / "model.safetensors", weight_shapes(shape)))
    if precision == "int8":
        weights = round_weights(weights)
    graph = _graph(shape, precision)
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
        tokenizer.enable_truncation(min(MAX_TOKENS, shape.positions))
        tokenizer.no_padding()
        session = _session(runtime, graph, weights, threads)
        # The runtime allocates at its first run; that one should not be a user's.
        embedder = LocalEmbedder(name, shape, tokenizer, session, weights)
        embedder.warm_up()
    except Exception as error:  # both libraries raise their own kinds, and bare Exception: any of them means "does not load"
        raise StartupError(f"the encoder in {directory} does not load: {error}") from error
    return embedder


def _graph(shape: EncoderShape, precision: Precision) -> bytes:
    if shape == EncoderShape():
        return resources.files("agent_memory.llm").joinpath("data", GRAPH_FILES[precision]).read_bytes()
    try:
        return build_graph(shape, precision)
    except ImportError as error:
        raise StartupError("an encoder of another shape than all-MiniLM-L6-v2 needs its graph built: `pip install onnx`") from error


def _session(runtime: Any, graph: bytes, weights: dict[str, Any], threads: int) -> Any:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # an idle server must not burn a core
    options.add_external_initializers(list(weights), [runtime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()])
    return runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
