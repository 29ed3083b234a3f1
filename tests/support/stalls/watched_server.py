"""Run the API and a worker in one process, and report how long the event loop was blocked.

`GET /held` returns the longest times since the previous such request, in CPU seconds. `loop` is the
event loop's thread, and `process` is all threads. The response includes the location, the tasks
that have run, and with `?work` the pending work.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent_memory.foundation.core import garbage_collection
from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.logs import configure_logging
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.core.task_kinds import TaskName
from agent_memory.foundation.text.languages.preparation import compile_phrases
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from agent_memory_worker.task_handlers import Tasks
from tests.support.api import serving
from tests.support.stack import working

_BEAT_SECONDS = 0.001
_SAMPLE_SECONDS = 0.04


class LoopWatch:
    """Measures the event loop that runs `run`."""

    def __init__(self) -> None:
        self.loop = self.process = 0.0
        self.where = ""
        self._beat_at = time.monotonic()
        self._seen = ""
        self._thread = threading.get_ident()
        threading.Thread(target=self._sample, daemon=True).start()

    async def run(self) -> None:
        """Measure turns until canceled."""
        thread, process = time.thread_time(), time.process_time()
        while True:
            self._beat_at, self._seen = time.monotonic(), ""
            await asyncio.sleep(_BEAT_SECONDS)
            held, self.process = time.thread_time() - thread, max(self.process, time.process_time() - process)
            if held > self.loop:
                self.loop, self.where = held, self._seen
            thread, process = time.thread_time(), time.process_time()

    def forget(self) -> None:
        self.loop = self.process = 0.0
        self.where = ""

    def _sample(self) -> None:
        while True:
            time.sleep(_SAMPLE_SECONDS)
            if time.monotonic() - self._beat_at > _SAMPLE_SECONDS:
                frame = sys._current_frames()[self._thread]  # noqa: SLF001 - a documented function of sys, for this purpose
                self._seen = "".join(traceback.format_stack(frame)[-8:])


def counting_tasks() -> Counter[str]:
    """Start counting the tasks that workers run."""
    done: Counter[str] = Counter()
    for name in TaskName:
        setattr(Tasks, name.value, _counting(getattr(Tasks, name.value), name.value, done))
    return done


def _counting(task: Callable[..., Any], name: str, done: Counter[str]) -> Callable[..., Any]:
    @functools.wraps(task)  # docket reads the signature
    async def counted(*arguments: Any, **more: Any) -> None:
        done[name] += 1
        await task(*arguments, **more)

    return counted


async def main() -> None:
    settings = load_settings()
    configure_logging(settings.server)
    await asyncio.to_thread(compile_phrases)
    watch, tasks = LoopWatch(), counting_tasks()
    beating = asyncio.create_task(watch.run())
    worked = os.environ.get("WATCHED_WORKER") != "no"
    async with open_runtime(settings, os.environ["WATCHED_REDIS"]) as runtime, working(runtime) if worked else nullcontext():
        app = create_app(settings, runtime)
        garbage_collection.settle()  # as `agent-memory serve` does

        async def held(request: Request) -> Response:
            waiting: dict[str, int] = {}
            if "work" in request.query_params:
                try:
                    waiting = {kind.value: each.pending for kind, each in (await runtime.backlog()).items() if each.pending}
                except RedisUnavailable as error:
                    waiting = {str(error): 1}
            answer = {"loop": watch.loop, "process": watch.process, "where": watch.where}
            watch.forget()
            return JSONResponse({**answer, "waiting": waiting, "tasks": dict(tasks)})

        app.router.routes.insert(0, Route("/held", held))
        async with serving(app) as url:
            print(f"agent-memory listens on {url}", flush=True)
            await asyncio.to_thread(sys.stdin.read)
    beating.cancel()


if __name__ == "__main__":
    asyncio.run(main())
