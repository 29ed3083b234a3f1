"""Test that a shutdown never resets a connection while a request is in progress."""

from __future__ import annotations

import asyncio
import random
import select
import signal
import socket
from collections import Counter
from pathlib import Path

from tests.interfaces.cli.test_shutdown import Process

DRAIN_SECONDS = 0.3
IDLE, BUSY = 100, 12


class Line:
    """A client connection that can check whether the server has closed it."""

    def __init__(self) -> None:
        self.socket = socket.socket()
        self.socket.setblocking(False)

    async def open(self, port: int) -> Line:
        await asyncio.get_running_loop().sock_connect(self.socket, ("127.0.0.1", port))
        return self

    def is_ended(self) -> bool:
        return bool(select.select([self.socket], [], [], 0)[0])

    async def get(self) -> tuple[int, bool]:
        """Return the response status and whether the server will close the connection.

        Raise ConnectionError if there is no response.
        """
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.socket, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        got = b""
        while b"\r\n\r\n" not in got:
            piece = await loop.sock_recv(self.socket, 65536)
            if not piece:
                raise ConnectionAbortedError("ended without an answer")
            got += piece
        return int(got.split()[1]), b"connection: close" in got.lower()


async def _send_once(line: Line, at: float, seen: Counter[str]) -> None:
    """Send one request at the given time on an idle connection."""
    await asyncio.sleep(at - asyncio.get_running_loop().time())
    with line.socket:
        if line.is_ended():
            seen["ended before"] += 1
            return
        try:
            status, is_last = await line.get()
            seen[f"{status} {is_last}"] += 1
        except ConnectionError as error:
            seen[f"idle connection: {error!r}"] += 1


async def _send_all_the_time(port: int, seen: Counter[str]) -> None:
    """Send requests on new connections until the server stops accepting them."""
    while True:
        line = Line()
        with line.socket:
            try:
                await line.open(port)
                await asyncio.sleep(random.random() / 500)
                if not line.is_ended():
                    status, _ = await line.get()
                    seen[str(status)] += 1
            except ConnectionRefusedError:
                seen["refused"] += 1
                return
            except ConnectionError as error:
                seen[f"new connection: {error!r}"] += 1


async def test_no_request_is_reset_when_the_drain_ends(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for _ in range(3):
        serve = await asyncio.to_thread(Process, "works", tmp_path, SHUTDOWN_DRAIN_SECONDS=str(DRAIN_SECONDS))
        port = await asyncio.to_thread(lambda serve=serve: serve.port)
        idle = [await Line().open(port) for _ in range(IDLE)]
        for line in idle:
            assert await line.get() == (200, False)
        serve.process.send_signal(signal.SIGTERM)
        end = asyncio.get_running_loop().time() + DRAIN_SECONDS
        async with asyncio.TaskGroup() as group:
            for line in idle:
                group.create_task(_send_once(line, end + random.uniform(-0.05, 0.25), seen))
            for _ in range(BUSY):
                group.create_task(_send_all_the_time(port, seen))
        assert await asyncio.to_thread(serve.end) == 0
    assert set(seen) <= {"200 True", "503 True", "ended before", "200", "503", "refused"}, seen
    assert seen["refused"] == 3 * BUSY
