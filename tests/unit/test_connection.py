"""Answers go out in one write."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import uvicorn
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope
from uvicorn.server import ServerState

from agent_memory.api.connection import HttpProtocol


class _Wire(asyncio.Transport):
    """What was written, each call by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.writes.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


async def _answered(bodies: Sequence[bytes], *, pause: bool = False, head: bytes = b"", method: bytes = b"GET") -> _Wire:
    """The wire after an answer of these pieces to one request, whose application waits a turn of the loop before each if told."""

    async def app(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        length = b"%d" % sum(map(len, bodies))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)], "trailers": False})
        for place, body in enumerate(bodies):
            if pause:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            await send({"type": "http.response.body", "body": body, "more_body": place + 1 < len(bodies)})

    config = uvicorn.Config(app, lifespan="off", log_config=None)
    config.load()
    state, wire = ServerState(), _Wire()
    protocol = HttpProtocol(config, state, {})
    protocol.connection_made(wire)
    protocol.data_received(method + b" / HTTP/1.1\r\nhost: x\r\n" + head + b"\r\n")
    await asyncio.gather(*state.tasks)
    await asyncio.sleep(0)
    protocol.connection_lost(None)
    return wire


async def test_head_and_body_go_out_together() -> None:
    wire = await _answered([b"hello"])
    assert len(wire.writes) == 1
    assert wire.writes[0].startswith(b"HTTP/1.1 200 OK\r\n")
    assert wire.writes[0].endswith(b"\r\n\r\nhello")


async def test_a_head_does_not_wait_for_a_late_body() -> None:
    wire = await _answered([b"a", b"b"], pause=True)
    assert wire.writes[0].endswith(b"\r\n\r\n")
    assert wire.writes[1:] == [b"a", b"b"]


async def test_nothing_is_left_when_the_connection_ends() -> None:
    for method, bodies in ((b"GET", [b"a", b"b", b"c", b"d"]), (b"HEAD", [b""])):
        wire = await _answered(bodies, head=b"connection: close\r\n", method=method)
        assert wire.closed
        assert b"".join(wire.writes).endswith(b"\r\n\r\n" + b"".join(bodies))
