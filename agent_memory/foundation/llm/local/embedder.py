"""Embed sentences in this process. This requires no API key or network access."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from agent_memory.foundation.core.errors import ModelUnavailable, StartupError
from agent_memory.foundation.core.settings import ModelSettings, Settings
from agent_memory.foundation.llm.base import Vectors
from agent_memory.foundation.llm.embedding_checks import BLANK, clean_text, unit_rows
from agent_memory.foundation.llm.local.bert import BertEncoder, read_graph, read_shape
from agent_memory.foundation.llm.local.e5 import E5Encoder
from agent_memory.foundation.llm.local.use import UseEncoder
from agent_memory.foundation.llm.local.weights import PACKAGES, find_package
from agent_memory.foundation.llm.threads import giving_way

MAX_TOKENS = 256
RUN_TEXTS = 32  # texts in one run of the network
RUN_TOKENS = 512  # padded tokens in one run, which takes 25 to 60 ms of one core; more tokens were not faster
URGENT_CHARS = 2000  # a call up to this size is one run and does not queue behind larger calls
_CHARS = 8192  # characters to read from a text: eight times the usual length of 256 tokens

Result = TypeVar("Result")


class SentenceEncoder(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]: ...

    def forward(self, tokens: Sequence[Sequence[int]]) -> Vectors: ...


class LocalEmbedder:
    """An embedder with one thread for small calls (queries) and one for batches."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder
        self._urgent = ThreadPoolExecutor(1, thread_name_prefix="embed-urgent")
        self._batch = giving_way("embed-batch")
        self._closed = False

    @classmethod
    async def open(cls, settings: Settings) -> LocalEmbedder:
        """Load the model in a thread. Raises StartupError."""
        return cls(await asyncio.to_thread(_load, settings.models))

    @property
    def model(self) -> str:
        return self._encoder.name

    @property
    def dimensions(self) -> int:
        return self._encoder.dimensions

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        if self._closed:
            raise ModelUnavailable(f"{self._encoder.name} is closed")
        if not texts:
            return np.zeros((0, self._encoder.dimensions), dtype=np.float32)
        try:
            async with asyncio.timeout(timeout):
                rows = await self._rows([clean_text(text[:_CHARS]) for text in texts])
        except TimeoutError as error:
            raise ModelUnavailable(f"{self._encoder.name} took longer than {timeout:g} s", reason="timeout") from error
        return unit_rows(rows, count=len(texts), dimensions=self._encoder.dimensions, model=self._encoder.name)

    async def close(self) -> None:
        """Wait for running calls, and cancel queued ones. Safe to call twice."""
        self._closed = True
        for executor in (self._urgent, self._batch):
            await asyncio.to_thread(executor.shutdown, wait=True, cancel_futures=True)

    async def _rows(self, texts: list[str]) -> Vectors:
        if len(texts) <= RUN_TEXTS and sum(map(len, texts)) <= URGENT_CHARS:
            return await self._in(self._urgent, lambda: self._forward_all(texts))
        tokens = await self._in(self._batch, lambda: self._encoder.tokenize(texts))
        rows = np.empty((len(texts), self._encoder.dimensions), dtype=np.float32)
        for run in plan_runs([len(ids) for ids in tokens]):
            rows[run] = await self._in(self._batch, partial(self._encoder.forward, [tokens[index] for index in run]))
        return rows

    async def _in(self, executor: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
        if self._closed:  # between two runs of a batch
            raise ModelUnavailable(f"{self._encoder.name} was closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(executor, work)
        except asyncio.CancelledError:
            if self._closed:  # `close` dropped the queued work; the callers did not cancel it
                raise ModelUnavailable(f"{self._encoder.name} was closed") from None
            raise

    def _forward_all(self, texts: list[str]) -> Vectors:
        tokens = self._encoder.tokenize(texts)
        rows = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for run in plan_runs([len(ids) for ids in tokens]):
            rows[run] = self._encoder.forward([tokens[index] for index in run])
        return rows


def plan_runs(lengths: Sequence[int]) -> list[list[int]]:
    """Group texts of similar length into runs within RUN_TEXTS and RUN_TOKENS.

    `lengths` contains token counts. Each run is a list of text indices.
    """
    runs: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if runs and len(runs[-1]) < RUN_TEXTS and (len(runs[-1]) + 1) * lengths[index] <= RUN_TOKENS:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs


def _load(models: ModelSettings) -> SentenceEncoder:
    """Load the model and run it once to allocate memory."""
    encoder = _read(models)
    try:
        encoder.forward(encoder.tokenize([BLANK]))
    except Exception as error:  # the libraries also raise bare Exception; all errors mean "does not run"
        raise StartupError(f"the local model {encoder.name} does not run: {error}") from error
    return encoder


def find_model(local_model: str) -> tuple[str, Path]:
    """Return the model's name and directory. Raises StartupError if files are missing."""
    if local_model in PACKAGES:
        return local_model, find_package(local_model)
    directory = Path(local_model).resolve()
    if not directory.is_dir():
        raise StartupError(f"LOCAL_MODEL {local_model} is neither a directory nor one of {', '.join(PACKAGES)}")
    read_graph(directory, read_shape(directory))
    return directory.name, directory


def _read(models: ModelSettings) -> SentenceEncoder:
    name, directory = find_model(models.local_model)
    if models.local_model == E5Encoder.name:
        return E5Encoder.load(directory, threads=models.local_threads, max_tokens=MAX_TOKENS)
    if models.local_model == UseEncoder.name:
        return UseEncoder.load(directory, MAX_TOKENS)
    return BertEncoder.load(directory, name, threads=models.local_threads, precision=models.local_precision, max_tokens=MAX_TOKENS)
