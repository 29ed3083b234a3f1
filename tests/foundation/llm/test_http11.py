"""The transport for model servers without TLS, against servers that follow HTTP and servers that do not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import pytest

from agent_memory.foundation.core.errors import ModelUnavailable
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.openai.embeddings import OpenAIEmbedder
from agent_memory.foundation.llm.openai.http11 import PlainTransport, suits
from tests.support.lookalike import Lookalike
from tests.support.waiting import wait_until

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@dataclass
class Server:
    """Answers each request with the next of `answers`, None for none at all, and closes the connection after those of `closing`."""

    answers: list[bytes | None] = field(default_factory=list[bytes | None])
    closing: frozenset[bytes | None] = frozenset()
    url: str = ""
    heard: list[bytes] = field(default_factory=list[bytes])
    connections: int = 0
    ended: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head.lower())
                self.heard.append(head + (await reader.readexactly(int(length[1])) if length else b""))
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


def new_client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=PlainTransport())


@asynccontextmanager
async def talking(*answers: bytes | None, closing: tuple[bytes | None, ...] = ()) -> AsyncGenerator[tuple[Server, httpx2.AsyncClient]]:
    server = Server(list(answers), frozenset(closing))
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1/x"
    async with new_client() as client:
        yield server, client
    await until(lambda: server.ended == server.connections, "every connection is closed with its client")
    listening.close()


async def until(holds: Callable[[], bool], what: str) -> None:
    async def check() -> bool:
        return holds()

    await wait_until(check, what)


async def test_connections_are_reused_and_requests_are_complete() -> None:
    async with talking() as (server, client):
        for number in range(3):
            answer = await client.post(server.url, json={"n": number, "text": "ä" * 100_000}, headers={"x-key": "k"})
            assert (answer.status_code, answer.json()) == (200, {})
        assert server.connections == 1
        await asyncio.gather(*(client.post(server.url, content=b"1") for _ in range(5)))
        assert server.connections == 5
        assert server.heard[0].startswith(b"POST /v1/x HTTP/1.1\r\n")
        assert b"x-key: k\r\n" in server.heard[0].lower()
        assert b"host: 127.0.0.1:" in server.heard[0].lower()
        assert server.heard[2].endswith(b'"' + "ä".encode() * 100_000 + b'"}')


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n4\r\n,2,3\r\n1\r\n]\r\n0\r\n\r\n", b"[1,2,3]"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\n[1,2,3]", b"[1,2,3]"),
        (b"HTTP/1.0 200 OK\r\n\r\n[1,2,3]", b"[1,2,3]"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n[1,2,3]", b"[1,2,3]"),
        (b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy", b"busy"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
    ids=["chunked", "close", "until the end", "early hints", "an error", "no content"],
)
async def test_responses_of_every_http_form_are_read(answer: bytes, body: bytes) -> None:
    async with talking(answer, closing=(answer,) if b"1.0" in answer else ()) as (server, client):
        first = await client.post(server.url, content=b"x")
        assert (first.content, first.headers.get("retry-after")) == (body, "7" if b"503" in answer else None)
        assert (await client.post(server.url, content=b"x")).json() == {}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n[1,", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1,", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Le", httpx2.RemoteProtocolError),
        (b"SSH-2.0-OpenSSH_9.9\r\n", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}", httpx2.RemoteProtocolError),
    ],
    ids=["nothing", "half a body", "half a chunk", "half a head", "no HTTP", "no length"],
)
async def test_broken_response_is_an_error_and_closes_the_connection(answer: bytes, error: type[Exception]) -> None:
    async with talking(answer, closing=(answer,)) as (server, client):
        with pytest.raises(error):
            await client.post(server.url, content=b"x")
        assert (await client.post(server.url, content=b"x")).json() == {}
        assert server.connections == 2


async def test_response_never_reaches_another_request() -> None:
    """Neither what a server says unasked, nor what comes after the caller has gone."""
    async with talking(WHOLE + WHOLE.replace(b"{}", b"[]"), None) as (server, client):
        assert (await client.post(server.url, content=b"1")).json() == {}
        late = asyncio.create_task(client.post(server.url, content=b"2"))
        await until(lambda: len(server.heard) == 2, "the second request is there")
        late.cancel()
        await asyncio.gather(late, return_exceptions=True)
        assert (await client.post(server.url, content=b"3")).json() == {}
        assert server.connections == 3


async def test_closed_connection_is_not_reused() -> None:
    transport = PlainTransport()
    async with talking(WHOLE, closing=(WHOLE,)) as (server, _), httpx2.AsyncClient(transport=transport) as client:
        for _ in range(2):
            assert (await client.post(server.url, content=b"x")).json() == {}
            await until(lambda: server.ended == server.connections, "the server has closed its side")
            await until(lambda: transport.waiting == 0, "the client knows")


async def test_header_injection_and_failed_connections_raise_errors() -> None:
    async with talking() as (server, client):
        with pytest.raises(httpx2.LocalProtocolError):
            await client.post(server.url, headers={"x-key": "a\r\nx-admin: yes"})
        assert server.heard == []
    async with new_client() as client:
        with pytest.raises(httpx2.ConnectError):
            await client.post(server.url, content=b"x")


async def test_server_that_hangs_up_is_unavailable_after_one_retry(lookalike: Lookalike, at: Callable[..., Settings]) -> None:
    """So that a background call is tried again, as it is with the SDK's own transport."""
    async with talking(None, None, closing=(None,)) as (server, _):
        embedder = await OpenAIEmbedder.open(at(EMBEDDING_BASE_URL=server.url, EMBEDDING_API_KEY="k"))
        with pytest.raises(ModelUnavailable) as caught:
            await embedder.embed(["x"])
        assert (caught.value.data["reason"], server.connections) == ("connection", 2)
        await embedder.close()


def test_tls_and_proxies_are_left_to_the_sdks_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert suits("http://127.0.0.1:8080/v1")
    assert not suits("https://api.openai.com/v1")
    for name in ("http_proxy", "all_proxy"):
        with monkeypatch.context() as patched:
            patched.setenv(name, "http://proxy:3128")
            assert not suits("http://models/v1")


async def test_redirect_is_returned_and_a_closed_client_sends_nothing() -> None:
    elsewhere = b"HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with talking(elsewhere) as (server, client):
        assert (await client.post(server.url, content=b"x")).status_code == 307
    with pytest.raises(RuntimeError, match="closed"):
        await client.post(server.url, content=b"x")


async def test_request_with_query_parameters_is_encoded() -> None:
    async with talking() as (server, client):
        await client.get(server.url, params={"a": "b c"})
        assert server.heard[0].startswith(b"GET /v1/x?a=b+c HTTP/1.1\r\n") or server.heard[0].startswith(b"GET /v1/x?a=b%20c HTTP/1.1\r\n")
