"""Run a worker: docket's task loop, its relay, and graceful shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from docket import Docket, Worker
from ulid import ULID

from agent_memory.feature_list import FEATURES
from agent_memory.features.memories.upkeep.reindex import Reindexer
from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.feature import import_name
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.storage.connection import redis_errors
from agent_memory.foundation.storage.dead_messages import Carrier, CarrierGuard
from agent_memory.runtime import Runtime
from agent_memory_worker.plain_serializer import only_plain_data
from agent_memory_worker.relay import Relay, pause
from agent_memory_worker.task_handlers import Tasks

log = get_logger(__name__)

# After this many deliveries, an unacknowledged message is dead, because each delivery ended a task loop.
_DELIVERIES = 3
_RESTART_SECONDS = 1.0
# docket redelivers a task at most this many redelivery timeouts after the task's last heartbeat.
_REDELIVERY_LATE = 1.35


async def run_worker(runtime: Runtime, settings: Settings, stop: asyncio.Event) -> None:
    """Run tasks until `stop` is set, and then let running tasks finish.

    Other workers retry tasks that do not finish within the grace period.
    """
    only_plain_data()
    functions = {name: import_name(name) for feature in FEATURES for name in feature.background}
    background = [asyncio.create_task(_keep_running(name, run, bucket, stop)) for name, run in functions.items() for bucket in runtime.all]
    try:
        await asyncio.gather(*(_run(bucket, settings, stop) for bucket in runtime.all))
    finally:
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)


async def _keep_running(name: str, run: Callable[[Runtime, asyncio.Event], Awaitable[None]], bucket: Runtime, stop: asyncio.Event) -> None:
    while not stop.is_set():
        try:
            await run(bucket, stop)
            return
        except Exception:
            log.exception("background function failed; starting it again", function=name, bucket=bucket.keys.root)
            await pause(stop, _RESTART_SECONDS)


async def _run(runtime: Runtime, settings: Settings, stop: asyncio.Event) -> None:
    while not stop.is_set():
        moved = runtime.bucket_redis.moved
        try:
            # Check each time, because Redis may have returned with another store.
            await runtime[Reindexer].reindex_for_model()
            with redis_errors():
                async with runtime.docket() as docket:
                    await _run_docket(runtime, docket, settings, stop, moved)
        except RedisUnavailable as error:
            log.warning("task loop is waiting for Redis", error=error)
            await pause(stop, _RESTART_SECONDS)


async def _run_docket(runtime: Runtime, docket: Docket, settings: Settings, stop: asyncio.Event, moved: asyncio.Event) -> None:
    """Run tasks until `stop` is set or the bucket moves.

    Raises RedisUnavailable or redis-py's own errors.
    """
    tasks = Tasks(runtime)
    tasks.register(docket)
    relay = Relay(runtime, docket, stop, tasks.full_kinds)
    while not (stop.is_set() or moved.is_set()):
        try:
            async with _worker(docket, tasks, settings) as worker:
                await _work(worker, relay, (stop, moved), settings.server.shutdown_grace_seconds)
        except Exception:
            # An unreadable message ends docket's loop in every worker. Its work stays marked in the outbox.
            log.exception("task loop ended; restarting it", docket=docket.name)
            carrier = Carrier(docket.stream_key, docket.worker_group_name)
            if dead := await runtime[CarrierGuard].move_unread(carrier, _DELIVERIES, docket.cancel):
                log.error("moved unreadable queue messages to the dead messages", queue_messages=dead)
            await pause(stop, _RESTART_SECONDS)
    await tasks.close()


def _worker(docket: Docket, tasks: Tasks, settings: Settings) -> Worker:
    options = settings.worker
    return Worker(
        docket,
        # The default, host#pid, collides when two workers share a process.
        name=f"worker-{ULID()}",
        concurrency=options.concurrency,
        # If this worker dies, another one starts its tasks at most a lease later.
        redelivery_timeout=timedelta(seconds=min(options.redelivery_timeout_seconds, options.lease_seconds / _REDELIVERY_LATE)),
        minimum_check_interval=timedelta(milliseconds=10),
        scheduling_resolution=timedelta(milliseconds=100),
        reconnection_delay=timedelta(seconds=1),
        # docket's default drops an unknown task and counts it as done.
        fallback_task=tasks.unknown,
    )


async def _work(worker: Worker, relay: Relay, ends: Sequence[asyncio.Event], grace: float) -> None:
    running = asyncio.create_task(worker.run_forever())
    feeding = asyncio.create_task(relay.run())
    ending = [asyncio.create_task(event.wait()) for event in ends]
    log.info("worker ready", worker=worker.name)
    try:
        await asyncio.wait({running, feeding, *ending}, return_when=asyncio.FIRST_COMPLETED)
        for task in (running, feeding):
            if task.done() and not task.cancelled() and (error := task.exception()):
                raise error
    finally:
        for waiting in ending:
            waiting.cancel()
        feeding.cancel()
        # When cancelled, docket's loop takes no new task and waits for running ones.
        running.cancel()
        _, unfinished = await asyncio.wait({running, feeding}, timeout=grace)
        if unfinished:
            log.warning("some tasks did not finish in time; they stay queued", seconds=grace)
        log.info("worker stopped", worker=worker.name)
