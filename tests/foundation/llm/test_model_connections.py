"""Test that responses reach the right request and that closed connections cause one retry."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import openai
import pytest

from agent_memory.foundation.core.errors import ModelUnavailable
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.openai.embeddings import OpenAIEmbedder
from agent_memory.foundation.llm.openai.server import ModelServer
from tests.support.waiting import wait_until

At = Callable[..., Settings]
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@dataclass
class Server:
    """A server that plays back `answers` and closes the connection after those in `closing`.

    None means that a request gets no answer.
    """

    answers: list[bytes | None] = field(default_factory=list[bytes | None])
    closing: frozenset[bytes | None] = frozenset()
    url: str = ""
    heard: int = 0
    connections: int = 0
    ended: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head.lower())
                await reader.readexactly(int(length[1]) if length else 0)
                self.heard += 1
                answer = self.answers.pop(0) if self.answers else WHOLE
                if answer is not None:
                    writer.write(answer)
                    await writer.drain()
                if answer in self.closing:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.ended += 1
            writer.close()


@asynccontextmanager
async def talking(*answers: bytes | None, closing: tuple[bytes | None, ...] = ()) -> AsyncGenerator[Server]:
    server = Server(list(answers), frozenset(closing))
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    yield server
    await until(lambda: server.ended == server.connections, "every connection is closed with its client")
    listening.close()


async def until(holds: Callable[[], bool], what: str) -> None:
    async def check() -> bool:
        return holds()

    await wait_until(check, what)


async def test_connections_are_reused_and_a_response_never_reaches_another_request(at: At) -> None:
    """A response that arrives after its caller was canceled is discarded."""

    async def ask(client: openai.AsyncOpenAI) -> bytes:
        return (await client.get("/x", cast_to=httpx2.Response)).content

    async with talking(WHOLE, WHOLE, None) as server:
        model_server = ModelServer(server.url, None, at().models)
        for _ in range(2):
            assert await model_server.call("x", ask) == b"{}"
        assert server.connections == 1
        late = asyncio.create_task(model_server.call("x", ask))
        await until(lambda: server.heard == 3, "the request is there")
        late.cancel()
        await asyncio.gather(late, return_exceptions=True)
        assert await model_server.call("x", ask) == b"{}"
        await model_server.close()


async def test_server_that_hangs_up_is_unavailable_after_one_retry(at: At) -> None:
    async with talking(None, None, closing=(None,)) as server:
        embedder = await OpenAIEmbedder.open(at(EMBEDDING_BASE_URL=server.url, EMBEDDING_API_KEY="k"))
        with pytest.raises(ModelUnavailable) as caught:
            await embedder.embed(["x"])
        assert (caught.value.data["reason"], server.connections) == ("connection", 2)
        await embedder.close()
