"""Test that a slow or incomplete request gets a 408 and delays no other client (row S2)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import uvloop

from agent_memory.foundation.core.settings import ServerSettings, load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.interfaces.http.middleware import body_deadline
from agent_memory.interfaces.http.middleware.admission import AdmissionMiddleware
from agent_memory.interfaces.http.middleware.body_deadline import BODY_ARRIVING, BodyDeadlineMiddleware, TimedBody
from agent_memory.interfaces.http.protocol import MAX_HEAD_BYTES, Connection
from tests.support.api import Recorded, serving
from tests.support.waiting import wait_until

JSON = {"Content-Type": "application/json"}
SECRET = "what-nobody-else-may-read"
# Longer than the server waits for a body; shorter than what it refuses for its length.
LONG = 200_000
NEVER = 3600


class Line:
    """A raw connection that sends and receives bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, *parts: str | bytes) -> None:
        for part in parts:
            self._writer.write(part if isinstance(part, bytes) else part.encode())
        await self._writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Return the status, headers and body of the next response."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        return int(head[0].split()[1]), headers, await self._reader.readexactly(int(headers.get("content-length", 0)))

    async def rest(self) -> bytes:
        return await self._reader.read()

    async def until(self, text: bytes) -> None:
        await self._reader.readuntil(text)


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Line]:
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        yield Line(reader, writer)
    finally:
        writer.transport.abort()


@asynccontextmanager
async def served(recorded: Recorded, *, keep_alive: int = 75, **given: Any) -> AsyncGenerator[str]:
    async with serving(create_app(load_settings(**given), recorded.runtime), keep_alive=keep_alive) as url:
        yield url


@pytest.fixture(scope="module")
async def impatient() -> AsyncGenerator[tuple[str, Recorded]]:
    """Start a server with 0.2 s timeouts that barely grow as bytes arrive."""
    recorded = Recorded()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(body_deadline, "BYTES_PER_SECOND", 100 * LONG)
        async with served(recorded, HEAD_TIMEOUT_SECONDS=0.2, BODY_TIMEOUT_SECONDS=0.2) as url:
            yield url, recorded


async def until(condition: Callable[[], bool], what: str) -> None:
    async def met() -> bool:
        return condition()

    await wait_until(met, what)


def head(*more: str, method: str = "PUT", path: str = "/v1/working-memory/s1") -> str:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"X-Note: {SECRET}", *more]
    return "\r\n".join(lines) + "\r\n\r\n"


UNFINISHED: dict[str, tuple[str, str]] = {
    "no line": ("PU", "head"),
    "half a head": (f"PUT /v1/working-memory/s1 HTTP/1.1\r\nHost: localhost\r\nX-Note: {SECRET}", "head"),
    "no body": (head("Content-Length: 100"), "body"),
    "half a body": (head("Content-Length: 100") + f'{{"context":"{SECRET}', "body"),
    "half a long body": (head(f"Content-Length: {LONG}") + f'{{"context":"{SECRET}', "body"),
    "a long body but for its end": (head(f"Content-Length: {LONG}") + "x" * (LONG - 1), "body"),
    "half a chunk": (head("Transfer-Encoding: chunked") + f'50\r\n{{"context":"{SECRET}', "body"),
    "chunks without an end": (head("Transfer-Encoding: chunked") + "2\r\n{}\r\n", "body"),
    "headers behind the chunks": (head("Transfer-Encoding: chunked") + f"2\r\n{{}}\r\n0\r\nX-Note: {SECRET}\r\n", "body"),
    "half a chunk to nowhere": (head("Transfer-Encoding: chunked", path="/nowhere") + "50\r\n{", "body"),
    "a GET with half a body": (head("Content-Length: 9", method="GET") + "x", "body"),
}


@pytest.mark.parametrize("name", UNFINISHED)
async def test_incomplete_request_gets_408_with_the_reason(impatient: tuple[str, Recorded], name: str) -> None:
    url, recorded = impatient
    said, part = UNFINISHED[name]
    async with connected(url) as line:
        await line.send(said)
        status, headers, body = await line.answer()
        assert (status, headers["connection"], headers["content-type"]) == (408, "close", "application/json")
        problem = json.loads(body)
        assert problem["code"] == "request_timeout"
        assert f"the {part} " in problem["detail"]
        assert "within 0.2 s" in problem["detail"]
        assert SECRET not in str(headers) + body.decode()
        assert (await line.rest()) == b""
    assert not recorded.calls


async def test_body_missing_after_100_continue_gets_408(impatient: tuple[str, Recorded]) -> None:
    url, _ = impatient
    async with connected(url) as line:
        await line.send(head("Content-Length: 100", "Expect: 100-continue"))
        assert (await line.answer())[0] == 100
        assert (await line.answer())[0] == 408


async def test_connection_closes_after_413(impatient: tuple[str, Recorded]) -> None:
    url, _ = impatient
    async with connected(url) as line:
        await line.send(head("Content-Length: 99999999"), "x")
        assert (await line.answer())[0] == 413
        assert await line.rest() == b""


def test_body_timeout_is_ten_seconds_by_default() -> None:
    assert ServerSettings.model_fields["body_timeout_seconds"].default == 10


async def test_dripping_body_gets_408_when_its_time_is_over(recorded: Recorded) -> None:
    async with served(recorded, BODY_TIMEOUT_SECONDS=0.5) as url, connected(url) as line:
        await line.send(head("Content-Length: 100"))
        answer = asyncio.create_task(line.answer())
        with contextlib.suppress(ConnectionError):  # of a client that still sends after the response
            for _ in range(99):  # then one byte is missing, however long the server waits
                await line.send("x")
                if (await asyncio.wait({answer}, timeout=0.02))[0]:
                    break
        assert (await answer)[0] == 408
    assert not recorded.calls


async def has_passed(url: str) -> None:
    """Wait until a deadline that starts now has passed."""
    async with connected(url) as other:
        await other.send("GET /")
        assert (await other.answer())[0] == 408


async def test_received_bytes_extend_the_body_deadline(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_deadline, "BYTES_PER_SECOND", 1)
    async with served(recorded, HEAD_TIMEOUT_SECONDS=0.2, BODY_TIMEOUT_SECONDS=0.2) as url, connected(url) as line:
        await line.send(head("Content-Length: 17") + '{"context":')
        await has_passed(url)
        await line.send('"abc"}')
        assert (await line.answer())[0] == 200


@pytest.mark.parametrize(
    ("loop", "second_look"),
    [(asyncio.new_event_loop, 0.05), (uvloop.new_event_loop, 0.05), (uvloop.new_event_loop, -NEVER)],
    ids=["asyncio", "uvloop", "by turns of the loop alone"],
)
def test_blocked_server_does_not_time_out_a_body_received_in_time(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, loop: Callable[[], asyncio.AbstractEventLoop], second_look: float
) -> None:
    """The kernel has received the entire body, but the loop is blocked past the deadline."""
    monkeypatch.setattr(body_deadline, "_SECOND_LOOK_SECONDS", second_look)
    waiting: list[TimedBody] = []
    receive = TimedBody.receive

    async def noted(body: TimedBody) -> Any:
        waiting.append(body)
        return await receive(body)

    monkeypatch.setattr(TimedBody, "receive", noted)

    class StandsStill(asyncio.Protocol):
        """Simulates a blocked loop, in which timers fire before the next read."""

        def __init__(self, line: socket.socket) -> None:
            self._line = line

        def data_received(self, data: bytes) -> None:
            self._line.sendall(b'{"context":"abc"}')
            time.sleep(0.3)

    async def run() -> None:
        async with served(recorded, BODY_TIMEOUT_SECONDS=0.1) as url:
            place = urlsplit(url)
            with socket.create_connection((place.hostname or "", place.port or 0)) as line:
                line.sendall(head("Content-Length: 17").encode())
                await until(lambda: len(waiting) == 1, "the body to be waited for")
                loop = asyncio.get_running_loop()
                ours, theirs = socket.socketpair()
                with theirs:
                    transport, _ = await loop.create_connection(lambda: StandsStill(line), sock=ours)
                    theirs.sendall(b"x")
                    line.setblocking(False)
                    assert (await loop.sock_recv(line, 65536)).split()[1] == b"200"
                    transport.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


BEHIND_A_GATE: dict[str, tuple[str, bytes]] = {
    "told to go on late": (head("Expect: 100-continue", "Content-Length: 17"), b'{"context":"abc"}'),
    "read late": (head("Content-Length: 1000014"), b'{"context":"' + b"x" * 1_000_000 + b'"}'),
}


@pytest.mark.parametrize("name", BEHIND_A_GATE)
async def test_waiting_for_admission_does_not_count_as_a_slow_body(recorded: Recorded, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    said, body = BEHIND_A_GATE[name]
    gate, arrived, admits = asyncio.Event(), asyncio.Event(), AdmissionMiddleware.__call__

    async def late(self: AdmissionMiddleware, scope: Any, receive: Any, send: Any) -> None:
        if BODY_ARRIVING in scope:
            arrived.set()
            await gate.wait()
        await admits(self, scope, receive, send)

    monkeypatch.setattr(AdmissionMiddleware, "__call__", late)
    monkeypatch.setattr(body_deadline, "BYTES_PER_SECOND", 10**9)
    async with served(recorded, HEAD_TIMEOUT_SECONDS=0.2, BODY_TIMEOUT_SECONDS=0.2) as url, connected(url) as line:
        await line.send(said)
        if "Expect" in said:
            await arrived.wait()
            await has_passed(url)
            gate.set()
            assert (await line.answer())[0] == 100
            await line.send(body)
        else:
            sending = asyncio.create_task(line.send(body))
            await arrived.wait()
            await has_passed(url)
            gate.set()
            await sending
        assert (await line.answer())[0] == 200


async def test_pipelined_request_gets_100_continue_in_its_turn(recorded: Recorded) -> None:
    async with served(recorded) as url, connected(url) as line:
        await line.send(head(method="GET") + head("Expect: 100-continue", "Content-Length: 17"))
        assert [(await line.answer())[0] for _ in range(2)] == [200, 100]
        await line.send('{"context":"abc"}')
        assert (await line.answer())[0] == 200


async def test_running_request_is_answered_before_an_incomplete_pipelined_one_is_dropped(impatient: tuple[str, Recorded]) -> None:
    url, recorded = impatient
    gate = asyncio.Event()

    async def wait() -> Any:
        await gate.wait()
        return await Recorded().answer("working.get")

    recorded.answers["working.get"] = wait
    try:
        async with connected(url) as line:
            await line.send(head(method="GET") + "GET /v1/hea")
            await until(lambda: len(recorded.calls) == 1, "the first request to be worked on")
            async with connected(url) as other:  # which times out later than the half request above
                await other.send("GET /")
                assert (await other.answer())[0] == 408
            gate.set()
            status, headers, _ = await line.answer()
            assert (status, headers["connection"]) == (200, "close")
            assert await line.rest() == b""
    finally:
        recorded.answers.clear()
        recorded.calls.clear()


@pytest.mark.parametrize(
    ("begin", "piece"),
    [("GET /v1/health HTTP/1.1\r\nX-Note: ", b"x"), (head("Transfer-Encoding: chunked") + "2\r\n{}\r\n0\r\nX-Note: ", b"y")],
    ids=["a head", "headers behind the body"],
)
async def test_too_large_headers_are_refused(recorded: Recorded, begin: str, piece: bytes) -> None:
    async with served(recorded, HEAD_TIMEOUT_SECONDS=NEVER, BODY_TIMEOUT_SECONDS=NEVER) as url, connected(url) as line:
        try:
            await line.send(begin, piece * (MAX_HEAD_BYTES + 300_000))
            status, headers, body = await line.answer()
            assert (status, headers["connection"], json.loads(body)["code"]) == (431, "close", "too_large")
            assert await line.rest() == b""
        except ConnectionError:
            pass  # the connection was closed before all of it was sent, which may discard the answer
        async with httpx.AsyncClient(base_url=url) as http:
            assert (await http.get("/v1/health")).status_code == 200
    assert not recorded.calls


async def test_requests_sent_byte_by_byte_are_parsed(recorded: Recorded) -> None:
    async with served(recorded) as url, connected(url) as line:
        said = head("Content-Length: 17") + '{"context":"abc"}' + head(method="GET") + head("Content-Length: 2") + "{"
        for letter in said:
            await line.send(letter)
        assert [(await line.answer())[0] for _ in range(2)] == [200, 200]
        await line.send("}", head("Upgrade: h2c", "Connection: upgrade", method="GET"))
        assert [(await line.answer())[0] for _ in range(2)] == [200, 200]
    assert [name for name, *_ in recorded.calls] == ["working.put", "working.get", "working.put", "working.get"]
    assert recorded.calls[0][1][1].context == "abc"


async def test_request_received_at_once_starts_no_deadline_watch(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[Connection] = []

    def watch(connection: Connection) -> None:
        watched.append(connection)

    monkeypatch.setattr(Connection, "_watch", watch)
    async with served(recorded) as url, connected(url) as line:
        for _ in range(3):
            await line.send(head("Content-Length: 17") + '{"context":"abc"}')
            assert (await line.answer())[0] == 200
        assert watched == []
        await line.send("GET /")
        await until(lambda: len(watched) == 1, "the half to be watched")


async def test_trailers_are_not_request_headers(recorded: Recorded) -> None:
    async with served(recorded) as url, connected(url) as line:
        await line.send(head("Transfer-Encoding: chunked"), "2\r\n{}\r\n0\r\nOrigin: http://elsewhere.example\r\n\r\n")
        assert (await line.answer())[0] == 200


async def test_incomplete_bodies_occupy_no_request_slot(recorded: Recorded) -> None:
    """The server has one slot, and no deadline ends the incomplete bodies."""
    async with served(recorded, MAX_CONCURRENT_REQUESTS=1, BODY_TIMEOUT_SECONDS=NEVER) as url:
        lines = [connected(url) for _ in range(40)]
        opened = [await line.__aenter__() for line in lines]
        for number, line in enumerate(opened):
            await line.send(*([head("Content-Length: 100"), "{"] if number % 2 else [head("Transfer-Encoding: chunked"), "1\r\n{"]))
        async with httpx.AsyncClient(base_url=url) as http:
            for _ in range(3):
                assert (await http.put("/v1/working-memory/s1", json={})).status_code == 200
            assert (await http.get("/v1/ready")).status_code == 200
        for line in lines:
            await line.__aexit__(None, None, None)


async def test_incomplete_long_bodies_occupy_at_most_a_quarter_of_the_slots(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[BodyDeadlineMiddleware] = []
    make = BodyDeadlineMiddleware.__init__

    def noted(middleware: BodyDeadlineMiddleware, *arguments: Any, **options: Any) -> None:
        make(middleware, *arguments, **options)
        made.append(middleware)

    monkeypatch.setattr(BodyDeadlineMiddleware, "__init__", noted)
    async with served(recorded, MAX_CONCURRENT_REQUESTS=8, BODY_TIMEOUT_SECONDS=NEVER) as url:
        lines = [connected(url) for _ in range(8)]
        opened = [await line.__aenter__() for line in lines]
        for line in opened[:2]:  # a quarter of eight
            await line.send(head(f"Content-Length: {LONG}"), "{")
        async with httpx.AsyncClient(base_url=url) as http:
            assert (await http.put("/v1/working-memory/s1", json={})).status_code == 200
            for line in opened[2:7]:
                await line.send(head(f"Content-Length: {LONG}"), "{")
                status, headers, body = await line.answer()
                assert (status, headers["retry-after"], json.loads(body)["code"]) == (503, "1", "overloaded")
            assert (await http.put("/v1/working-memory/s1", json={})).status_code == 200
            await opened[7].send(head("Transfer-Encoding: chunked"), "1000\r\n", b"x" * 0x1000)
            await until(lambda: made[0].buffered_bytes == 0x1000, "the body to be held")
            # A slot is free as soon as one of them ends.
            await lines[0].__aexit__(None, None, None)

            async def sent() -> bool:
                answer = await http.put("/v1/working-memory/s1", content=b'{"context":"' + b"x" * LONG + b'"}', headers=JSON)
                return answer.status_code == 200

            await wait_until(sent, "a long body to be taken")
        for line in lines[1:]:
            await line.__aexit__(None, None, None)
        await until(lambda: made[0].buffered_bytes == 0, "what was held to be let go")


async def test_model_calls_with_long_histories_wait_for_slots() -> None:
    gate, running = asyncio.Event(), 0

    async def app(_: Any, receive: Any, send: Any) -> None:
        nonlocal running
        while (await receive())["more_body"]:
            pass
        running += 1
        await gate.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    calls = ("/calls/",)
    admission = AdmissionMiddleware(app, most=4, calls=calls, most_calls=100)
    server = BodyDeadlineMiddleware(admission, seconds=NEVER, request_timeout=NEVER, calls=calls)

    async def call() -> int:
        pieces, sent = [b"x" * (LONG // 4)] * 4, list[Any]()

        async def receive() -> Any:
            return {"type": "http.request", "body": pieces.pop(), "more_body": bool(pieces)}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"content-length", b"%d" % LONG)]
        await server({"type": "http", "method": "POST", "path": "/calls/chat", "headers": headers}, receive, send)
        return sent[0]["status"]

    tasks = [asyncio.create_task(call()) for _ in range(9)]
    await until(lambda: running == 4 or any(task.done() for task in tasks), "four calls")
    gate.set()
    assert await asyncio.gather(*tasks) == [200] * 9


async def test_silent_connection_is_closed(recorded: Recorded) -> None:
    async with served(recorded, keep_alive=0) as url, connected(url) as line:
        assert await line.rest() == b""
