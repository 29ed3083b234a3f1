"""A fake model server that returns scripted responses byte for byte and records requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Received:
    line: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        """Return a header's values joined by commas, or None if it is missing."""
        return ", ".join(value for own, value in self.headers if own.lower() == name) or None


@dataclass
class Answer:
    """A response. If `go` is set, the server waits for it before sending each piece.

    If `breaks` is set, the body is cut off after the last piece.
    """

    pieces: list[bytes]
    content_type: str = "application/json"
    status: str = "200 OK"
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    go: asyncio.Semaphore | None = None
    breaks: bool = False
    late: bool = False
    """The head waits for `go`, too."""


@dataclass
class Upstream:
    url: str = ""
    answers: list[Answer] = field(default_factory=list[Answer])
    """The next answers. By default, the server returns `chat()`."""
    received: list[Received] = field(default_factory=list[Received])
    left: int = 0
    """Number of callers that left before the end of their answer."""

    @property
    def last(self) -> Received:
        return self.received[-1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in head[1:] if line)]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        self.received.append(Received(head[0], headers, await reader.readexactly(length)))
        answer = self.answers.pop(0) if self.answers else chat("Understood.")
        if answer.late and answer.go is not None and not await self._released(answer.go, reader):
            return False
        lines = [f"HTTP/1.1 {answer.status}", f"Content-Type: {answer.content_type}", "Transfer-Encoding: chunked"]
        lines += [f"{name}: {value}" for name, value in answer.headers]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        for piece in answer.pieces:
            if answer.go is not None and not await self._released(answer.go, reader):
                return False
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        if answer.breaks:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _released(self, go: asyncio.Semaphore, reader: asyncio.StreamReader) -> bool:
        """Wait until the test releases the next piece. Return False if the caller disconnected."""
        released, left = asyncio.create_task(go.acquire()), asyncio.create_task(reader.read(1))
        await asyncio.wait((released, left), return_when=asyncio.FIRST_COMPLETED)
        is_left = left.done()
        self.left += is_left
        for task in (released, left):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        return not is_left


@asynccontextmanager
async def running_upstream() -> AsyncGenerator[Upstream]:
    upstream = Upstream()
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    upstream.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    yield upstream
    server.close()


def chat(text: Any, **more: Any) -> Answer:
    """Return a chat completion."""
    message = {"role": "assistant", "content": text, **more}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return Answer([json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}).encode()])


def chat_stream(*texts: str, go: asyncio.Semaphore | None = None, ends: bool = True) -> Answer:
    """Return a streamed chat completion with one event for each text."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": text} for text in texts]
    return chat_events(*deltas, go=go, ends=ends)


def chat_events(*deltas: dict[str, Any], go: asyncio.Semaphore | None = None, ends: bool = True) -> Answer:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    pieces = [event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for delta in deltas]
    if ends:
        pieces += [event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}), b"data: [DONE]\n\n"]
    return Answer(pieces, "text/event-stream", go=go, breaks=not ends)


def event(value: dict[str, Any]) -> bytes:
    name = f"event: {value['type']}\n" if "type" in value else ""
    return f"{name}data: {json.dumps(value)}\n\n".encode()
