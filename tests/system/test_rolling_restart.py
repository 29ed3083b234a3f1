"""Test that no requests fail during a rolling restart of two API processes (F16)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.processes import Running, start
from tests.support.waiting import wait_until
from tests.system.faults.fleet import free_port

pytestmark = pytest.mark.slow

_CALLERS = 8
_HEALTH_SECONDS = 0.1


class Balancer:
    """Forwards each connection to the next ready backend that accepts it."""

    def __init__(self, ports: list[int]) -> None:
        self.ready = dict.fromkeys(ports, False)
        self._turn = itertools.cycle(ports)
        self.port = 0

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Balancer]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        watch = asyncio.create_task(self._watch())
        try:
            yield self
        finally:
            watch.cancel()
            server.close()

    async def all_ready(self) -> bool:
        return all(self.ready.values())

    async def _watch(self) -> None:
        async with httpx.AsyncClient(timeout=5) as http:
            while True:
                for port in self.ready:
                    try:
                        answer = await http.get(f"http://127.0.0.1:{port}/v1/ready", headers={"connection": "close"})
                        self.ready[port] = answer.status_code == 200
                    except httpx.HTTPError:
                        self.ready[port] = False
                await asyncio.sleep(_HEALTH_SECONDS)  # the interval of a balancer's health checks

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2 * len(self.ready)):
            port = next(self._turn)
            if not self.ready[port]:
                continue
            try:
                up_reader, up_writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            await asyncio.gather(_carry(reader, up_writer), _carry(up_reader, writer))
            return
        writer.transport.abort()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    if reader.exception() is not None:
        writer.transport.abort()
    else:
        writer.close()


async def _write(base_url: str, caller: int, stop: asyncio.Event, written: list[str]) -> None:
    async with httpx.AsyncClient(base_url=base_url, timeout=30, limits=httpx.Limits(max_connections=1)) as http:
        for number in itertools.count():
            if stop.is_set():
                return
            message = {"id": f"{caller}-{number}", "role": "user", "content": f"I paid {number} euros"}
            # No retry: any failure reaches the caller.
            answer = await http.post(f"/v1/working-memory/s{caller}/messages", json={"messages": [message]})
            assert answer.status_code == 200, answer.text
            written.append(message["id"])


@asynccontextmanager
async def _processes(folder: Path) -> AsyncIterator[tuple[dict[int, Running], dict[str, str]]]:
    """Start Redis and two API processes."""
    running: dict[int, Running] = {}
    redis = start(folder, "redis", "--data-dir", "data", "--port", "0", warm=True)
    try:
        settings = {"REDIS_URL": await redis.said(r"REDIS_URL=(\S+)"), "SHUTDOWN_DRAIN_SECONDS": "2"}
        for _ in range(2):
            port = free_port()
            running[port] = start(folder, "api", "--port", str(port), warm=True, **settings)
        yield running, settings
    finally:
        for each in (*running.values(), redis):
            if each.process.poll() is None:
                await each.kill()


async def test_rolling_restart_fails_no_request(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        running, settings = await stack.enter_async_context(_processes(tmp_path))
        balancer = await stack.enter_async_context(Balancer(list(running)).running())
        await wait_until(balancer.all_ready, "both processes", 60)
        stop, written = asyncio.Event(), list[str]()
        base_url = f"http://127.0.0.1:{balancer.port}"
        callers = [asyncio.create_task(_write(base_url, caller, stop, written)) for caller in range(_CALLERS)]

        async def more() -> None:
            enough = len(written) + 200

            async def there() -> bool:
                # A failed caller ends the test at once.
                for caller in callers:
                    if caller.done():
                        caller.result()
                return len(written) >= enough

            await wait_until(there, "more writes")

        for port in list(running):
            await more()
            assert await running[port].stop() == 0, running[port].output
            running[port] = start(tmp_path, "api", "--port", str(port), warm=True, **settings)
            await wait_until(balancer.all_ready, "the process that was started again", 60)
        await more()
        stop.set()
        await asyncio.gather(*callers)
        async with httpx.AsyncClient(base_url=base_url) as http:
            for caller in range(_CALLERS):
                session = (await http.get(f"/v1/working-memory/s{caller}", params={"context_window_max": 1_000_000})).json()
                wanted = [one for one in written if one.startswith(f"{caller}-")]
                assert [message["id"] for message in session["messages"]] == wanted


async def test_ready_fails_after_sigterm(tmp_path: Path) -> None:
    async with _processes(tmp_path) as (running, _):
        port, process = next(iter(running.items()))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:
            await process.base_url()
            assert (await http.get("/v1/ready")).status_code == 200
            process.process.send_signal(signal.SIGTERM)

            async def stopping() -> bool:
                answer = await http.get("/v1/ready")
                return (answer.status_code, answer.json().get("code")) == (503, "stopping")

            await wait_until(stopping, "the word that it stops")
            answer = await http.post("/v1/working-memory/s/messages", json={"messages": [{"role": "user", "content": "still here?"}]})
            assert (answer.status_code, answer.headers["connection"]) == (200, "close")
