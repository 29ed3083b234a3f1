"""Cache vectors and coalesce calls."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agent_memory.foundation.core.errors import AgentMemoryError, ModelUnavailable
from agent_memory.foundation.llm.base import EmbeddingModel, Vectors
from agent_memory.foundation.llm.wrappers.base import EmbedderWrapper

SMALL = 16  # texts; calls up to this size share batches of at most this size, larger calls are sent alone


@dataclass(slots=True)
class _PendingText:
    key: bytes
    text: str
    timeout: float | None
    vector: asyncio.Future[Vectors]


class CachingEmbedder(EmbedderWrapper):
    """An embedder that caches vectors (LRU) and coalesces calls for the same text.

    If one caller times out or cancels, others are not affected. When `in_flight` small batches are
    running, further small calls wait and share a batch.
    """

    def __init__(self, inner: EmbeddingModel, *, entries: int, in_flight: int = 4) -> None:
        """Cache up to `entries` vectors. 0 disables caching but not coalescing."""
        super().__init__(inner)
        self._entries = entries
        self._slots = in_flight
        self._cache: OrderedDict[bytes, Vectors] = OrderedDict()
        self._in_flight: dict[bytes, _PendingText] = {}
        self._waiting: list[_PendingText] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._small_batches = 0
        self._closed = False

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        if self._closed:
            raise ModelUnavailable(f"{self.model} is closed")
        keys = [_key(text) for text in texts]
        if len(keys) == 1 and (remembered := self._remembered(keys[0])) is not None:
            return remembered[np.newaxis].copy()
        vectors = {key: vector for key in set(keys) if (vector := self._remembered(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if missing:
            awaited = self._ask(missing, timeout)
            try:
                async with asyncio.timeout(timeout):
                    for key, vector in awaited.items():
                        vectors[key] = await asyncio.shield(vector)
            except AgentMemoryError as error:
                raise _own(error) from error
            except TimeoutError as error:
                raise ModelUnavailable(f"{self.model}: no answer within {timeout:g} s", reason="timeout") from error
        if not keys:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        if len(keys) == 1:
            return vectors[keys[0]][np.newaxis].copy()
        return np.stack([vectors[key] for key in keys])

    def missing(self, texts: Sequence[str]) -> list[str]:
        """Return the distinct texts that are neither cached nor in flight."""
        return [text for text in dict.fromkeys(texts) if (key := _key(text)) not in self._cache and key not in self._in_flight]

    async def close(self) -> None:
        """Cancel pending calls, which then raise ModelUnavailable, and close the inner embedder."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._fail(list(self._in_flight.values()), ModelUnavailable(f"{self.model} was closed"))
        await self._inner.close()

    def _remembered(self, key: bytes) -> Vectors | None:
        vector = self._cache.get(key)
        if vector is not None:
            self._cache.move_to_end(key)
        return vector

    def _ask(self, missing: dict[bytes, str], timeout: float | None) -> dict[bytes, asyncio.Future[Vectors]]:
        loop = asyncio.get_running_loop()
        new = [_PendingText(key, text, timeout, loop.create_future()) for key, text in missing.items() if key not in self._in_flight]
        for pending in new:
            pending.vector.add_done_callback(_retrieve)
            self._in_flight[pending.key] = pending
        futures = {key: self._in_flight[key].vector for key in missing}
        if len(new) > SMALL:
            self._start(new, small=False)
        elif new:
            if not self._waiting:  # send at the end of this turn of the event loop, so that its calls share a batch
                loop.call_soon(self._send_waiting)
            self._waiting.extend(new)
        return futures

    def _send_waiting(self) -> None:
        while self._waiting and self._small_batches < self._slots and not self._closed:
            batch, self._waiting = self._waiting[:SMALL], self._waiting[SMALL:]
            self._start(batch, small=True)

    def _start(self, batch: list[_PendingText], *, small: bool) -> None:
        self._small_batches += small
        task = asyncio.create_task(self._run(batch))
        self._tasks.add(task)

        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._small_batches -= small
            self._send_waiting()

        task.add_done_callback(done)

    async def _run(self, batch: list[_PendingText]) -> None:
        """Embed a batch, using the longest timeout among its callers."""
        timeouts = [pending.timeout for pending in batch]
        patience = None if None in timeouts else max(timeout for timeout in timeouts if timeout is not None)
        try:
            rows = await self._inner.embed([pending.text for pending in batch], timeout=patience)
        except asyncio.CancelledError:
            self._fail(batch, ModelUnavailable(f"{self.model} was closed"))
            raise
        except Exception as error:  # noqa: BLE001 - every error must reach the callers, who would otherwise wait forever
            self._fail(batch, error)
            return
        for pending, row in zip(batch, rows, strict=True):
            self._remember(pending.key, row)
            if not pending.vector.done():
                pending.vector.set_result(row)

    def _remember(self, key: bytes, row: Vectors) -> None:
        self._in_flight.pop(key, None)
        if self._entries > 0:
            own_row = row.copy()  # a view would keep the whole batch in memory
            own_row.flags.writeable = False
            self._cache[key] = own_row
            while len(self._cache) > self._entries:
                self._cache.popitem(last=False)

    def _fail(self, batch: list[_PendingText], error: Exception) -> None:
        for pending in batch:
            self._in_flight.pop(pending.key, None)
            if not pending.vector.done():
                pending.vector.set_exception(error)


def _own(error: AgentMemoryError) -> AgentMemoryError:
    """Copy an error, because a shared one would collect every task's traceback."""
    copy = error.__class__.__new__(error.__class__)
    Exception.__init__(copy, error.message)
    copy.__dict__.update(error.__dict__)
    return copy


def _retrieve(future: asyncio.Future[Vectors]) -> None:
    """Retrieve a future's error, so that the event loop does not report it."""
    if not future.cancelled():
        future.exception()


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
