"""Change a store's embedding model in a test, using an OpenAI-compatible server for the vectors."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any, cast

import pytest

from agent_memory.features.reembed import switch
from agent_memory.features.reembed.service import ReembedService, start_in_all
from agent_memory.foundation.core.errors import Conflict
from agent_memory.foundation.core.settings import Settings
from agent_memory.runtime import Runtime, open_runtime
from agent_memory_client.models import ReembedAction, ReembedRequest
from agent_memory_worker import reembed
from tests.support.lookalike import Lookalike
from tests.support.rig import Rig
from tests.support.waiting import wait_until

FIRST = ReembedRequest(model="first", dimensions=64)
SECOND = ReembedRequest(model="second", dimensions=48)


class Store:
    """A store and the runtimes of multiple processes."""

    def __init__(self, stack: AsyncExitStack, make_settings: Callable[..., Settings], redis_url: str) -> None:
        self._stack = stack
        self._make_settings = make_settings
        self._redis_url = redis_url

    async def open(self, *, begin: bool = True, **variables: Any) -> Rig:
        settings = self._make_settings(**variables)
        runtime = await self._stack.enter_async_context(open_runtime(settings, self._redis_url, begin=begin))
        return Rig(runtime, settings, cast("Any", None))


@pytest.fixture
async def store(
    lookalike: Lookalike, make_settings: Callable[..., Any], redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Store]:
    monkeypatch.setattr(switch, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(reembed, "_IDLE_SECONDS", 0.02)
    monkeypatch.setattr(reembed, "_SETTLE_SECONDS", 0.0)
    openai = {"EMBEDDING_PROVIDER": "openai", "EMBEDDING_BASE_URL": lookalike.url, "EMBEDDING_MODEL": "first", "EMBEDDING_DIMENSIONS": 64}
    async with AsyncExitStack() as stack:
        yield Store(stack, partial(make_settings, **openai), redis_url)


@asynccontextmanager
async def filling(runtime: Runtime) -> AsyncGenerator[None]:
    """Run a worker's part of the re-embedding."""
    stop = asyncio.Event()
    task = asyncio.create_task(reembed.run_reembedding(runtime, stop))
    try:
        yield
    finally:
        stop.set()
        await task
        # Otherwise the next worker waits for 15 s.
        await runtime.client.delete(f"{runtime.keys.root}re:turn")


async def start(rig: Rig, request: ReembedRequest = SECOND) -> None:
    await start_in_all([bucket[ReembedService] for bucket in rig.rt.all], request)


async def reach(rig: Rig, phase: str, done: int = 0) -> None:
    async def is_there() -> bool:
        status = await rig.rt[ReembedService].read_status()
        return status.phase == phase and status.done >= done

    await wait_until(is_there, phase)


async def act(rig: Rig, action: ReembedAction) -> None:
    """Perform the action once all processes and vectors allow it."""

    async def is_done() -> bool:
        with suppress(Conflict):
            await rig.rt[ReembedService].act(action)
            return True
        return False

    await wait_until(is_done, action)


async def uses(rig: Rig, model: str) -> None:
    async def switched() -> bool:
        return rig.rt.current.spec.model == model

    await wait_until(switched, f"searches use {model}")


async def fields(rig: Rig) -> Counter[str]:
    """Count the vectors of each model, including those of items, passages and versions."""
    counts: Counter[str] = Counter()
    for name in await rig.raw_keys():
        if name.split(":")[0] in ("v", "h", "p", "it"):
            keys = cast("list[bytes]", await rig.rt.client.hkeys(rig.keys.root + name))
            counts.update(field.decode() for field in keys if field.startswith(b"v_"))
    return counts
