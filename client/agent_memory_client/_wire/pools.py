"""Manage connection pools, one per event loop or per blocking client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

import httpx


@dataclass(frozen=True, slots=True)
class _LoopPool:
    """A pool for one event loop, and a generator that closes it with the loop."""

    client: httpx.AsyncClient
    closing: AsyncGenerator[None]


class AsyncPools:
    """One pool per event loop, because connections cannot be shared between loops.

    When `asyncio.run` ends a loop, it closes the loop's asynchronous generators, which close the
    pool.
    """

    def __init__(self, make: Callable[[], httpx.AsyncClient]) -> None:
        self._make = make
        self._unused: httpx.AsyncClient | None = make()  # Created now, so that an invalid setup raises here.
        self._pools: dict[asyncio.AbstractEventLoop, _LoopPool] = {}
        self._lock = threading.Lock()
        self.is_closed = False

    async def current(self) -> httpx.AsyncClient:
        """Return the pool for the running loop."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is not None and not pool.client.is_closed:
            return pool.client
        with self._lock:
            client, self._unused = self._unused or self._make(), None
            open_pools = {other_loop: open_pool for other_loop, open_pool in self._pools.items() if not other_loop.is_closed()}
            pool = _LoopPool(client, _close_at_the_end(client))
            self._pools = {**open_pools, loop: pool}
        await anext(pool.closing)
        return client

    async def close(self) -> None:
        """Close the pool for the running loop. Other loops close their own pools."""
        with self._lock:
            self.is_closed = True
            own = self._pools.pop(asyncio.get_running_loop(), None)
            unused, self._unused = self._unused, None
            self._pools = {}
        if own is not None:
            await own.closing.aclose()
        if unused is not None:
            await unused.aclose()


class Pools:
    """A blocking client's pool, shared by all threads."""

    def __init__(self, make: Callable[[], httpx.Client]) -> None:
        self._client = make()

    @property
    def is_closed(self) -> bool:
        return self._client.is_closed

    def current(self) -> httpx.Client:
        return self._client

    def close(self) -> None:
        self._client.close()


async def _close_at_the_end(client: httpx.AsyncClient) -> AsyncGenerator[None]:
    """Close `client` when this generator is closed or its event loop ends."""
    try:
        yield
    finally:
        await client.aclose()
