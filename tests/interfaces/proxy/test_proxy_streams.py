"""Test that streams arrive in full and are stored once, even if Redis refuses writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.interfaces.proxy import call_memory
from tests.interfaces.proxy.conftest import Proxied
from tests.interfaces.proxy.upstream import Answer, chat, chat_stream, event
from tests.support.waiting import wait_until

STREAMS, USERS = 100, 20
NOT_STORED = b": x-memory-stored: failed\n"
NUTS = {"role": "user", "content": "Which nuts is Ada allergic to?"}


class Stream:
    """A caller's stream, which a background task reads."""

    def __init__(self, proxied: Proxied, http: httpx.AsyncClient, user: str, session: str, question: str = NUTS["content"]) -> None:
        self.question = question
        self.user = user
        self.session = session
        self.seen = b""
        self.headers = httpx.Headers()
        self._proxied = proxied
        self._http = http
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": self.question}]}
        headers = {"x-memory-user": self.user, "x-memory-session": self.session}
        async with self._http.stream("POST", "/proxy/v1/chat/completions", json=body, headers=headers) as answer:
            assert answer.status_code == 200
            self.headers = answer.headers
            async for piece in answer.aiter_raw():
                self.seen += piece

    async def said(self) -> list[tuple[str, str]]:
        return await self._proxied.said(self.session, self.user)


@asynccontextmanager
async def refusing_writes(redis_url: str) -> AsyncGenerator[None]:
    """Make Redis reject writes but serve reads."""
    async with Redis.from_url(redis_url) as operator:
        await operator.config_set("min-replicas-to-write", "1")
        try:
            yield
        finally:
            await operator.config_set("min-replicas-to-write", "0")


@pytest.fixture
async def callers(proxied: Proxied) -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=proxied.http.base_url, limits=httpx.Limits(max_connections=None), timeout=60) as http:
        yield http


async def test_streams_end_only_after_storage_if_redis_refuses_writes(
    proxied: Proxied, callers: httpx.AsyncClient, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, refusals = SessionService.append_messages, 0

    async def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal refusals
        try:
            return await append(*arguments, **options)
        except RedisUnavailable:
            refusals += 1
            raise

    monkeypatch.setattr(SessionService, "append_messages", counted)
    goes = [asyncio.Semaphore(1) for _ in range(STREAMS)]
    scripts = {
        f"Answer {number}, and its end.": chat_stream(f"Answer {number}", ", and its end.", go=goes[number]) for number in range(STREAMS)
    }
    texts = {b"".join(script.pieces): text for text, script in scripts.items()}
    proxied.upstream.answers += scripts.values()
    users = [f"{proxied.user}-{number % USERS}" for number in range(STREAMS)]
    streams = [Stream(proxied, callers, users[number], f"s{number}", f"Question {number}") for number in range(STREAMS)]

    async def all_begun() -> bool:
        return all(stream.seen for stream in streams)

    async def all_were_refused() -> bool:
        return refusals >= 3 * STREAMS

    await wait_until(all_begun, "the first events")
    async with refusing_writes(redis_url):
        for go in goes:
            for _ in range(9):
                go.release()
        await wait_until(all_were_refused, "several tries to store each answer")
        assert [stream.session for stream in streams if b"[DONE]" in stream.seen] == []
    await asyncio.gather(*(stream.task for stream in streams))
    for stream in streams:
        assert stream.headers["x-memory-stored"] == "yes"
        assert await stream.said() == [("user", stream.question), ("assistant", texts[stream.seen])]


async def test_caller_is_notified_if_an_answer_is_not_stored(
    proxied: Proxied, callers: httpx.AsyncClient, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_memory, "_STORE_SECONDS", 0.1)
    go = asyncio.Semaphore(1)
    script = chat_stream("Half", " an answer", go=go)
    proxied.upstream.answers.append(script)
    stream = Stream(proxied, callers, proxied.user, "s1")

    async def begun() -> bool:
        return bool(stream.seen)

    await wait_until(begun, "the first event")
    async with refusing_writes(redis_url):
        for _ in range(9):
            go.release()
        await stream.task
        whole = await proxied.chat([NUTS], {"x-memory-session": "s2"})
        assert (whole.status_code, whole.headers["x-memory-stored"]) == (200, "failed")
    *before, last = script.pieces
    assert stream.seen == b"".join(before) + NOT_STORED + last
    assert await stream.said() == [("user", NUTS["content"])]
    # A repeated call stores the missing messages.
    proxied.upstream.answers.append(chat_stream("Half", " an answer"))
    again = Stream(proxied, callers, proxied.user, "s1")
    await again.task
    assert NOT_STORED not in again.seen
    assert await again.said() == [("user", NUTS["content"]), ("assistant", "Half an answer")]


async def test_concurrent_session_writes_of_calls_are_limited(
    proxied: Proxied, callers: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More concurrent writes would only wait for Redis connections."""
    append, writing, most = SessionService.append_messages, 0, 0
    go = asyncio.Event()

    async def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal writing, most
        writing += 1
        most = max(most, writing)
        try:
            await go.wait()
            return await append(*arguments, **options)
        finally:
            writing -= 1

    async def all_arrived() -> bool:
        return len(proxied.upstream.received) == STREAMS and writing >= call_memory.WRITES_AT_ONCE

    monkeypatch.setattr(SessionService, "append_messages", counted)
    proxied.upstream.answers += [chat_stream("An answer.") for _ in range(STREAMS)]
    streams = [Stream(proxied, callers, proxied.user, f"s{number}") for number in range(STREAMS)]
    await wait_until(all_arrived, "the calls")
    go.set()
    await asyncio.gather(*(stream.task for stream in streams))
    assert most == call_memory.WRITES_AT_ONCE


async def test_upstream_error_in_mid_stream_is_forwarded_and_the_text_before_it_is_stored(
    proxied: Proxied, callers: httpx.AsyncClient
) -> None:
    failure = event({"error": {"message": "the server had an error", "type": "server_error"}})
    script = chat_stream("Half", " an answer")
    script.pieces[2:] = [failure]
    proxied.upstream.answers.append(script)
    stream = Stream(proxied, callers, proxied.user, "s1")
    await stream.task
    assert stream.seen == b"".join(script.pieces)
    assert await stream.said() == [("user", NUTS["content"]), ("assistant", "Half an answer")]


@pytest.mark.parametrize("questions", [("One?", "Two?"), ("One?", "One?")], ids=["different", "the same"])
async def test_two_streams_in_a_session_at_once_are_both_stored(
    proxied: Proxied, callers: httpx.AsyncClient, questions: tuple[str, str]
) -> None:
    goes = [asyncio.Semaphore(1), asyncio.Semaphore(1)]
    proxied.upstream.answers += [chat_stream("An ", "answer.", go=go) for go in goes]
    streams = [Stream(proxied, callers, proxied.user, "s1", question) for question in questions]

    async def both_begun() -> bool:
        return all(stream.seen for stream in streams)

    await wait_until(both_begun, "the first events")
    for go in (*goes[::-1],) * 9:
        go.release()
    await asyncio.gather(*(stream.task for stream in streams))
    pairs = {(role, text) for question in questions for role, text in (("user", question), ("assistant", "An answer."))}
    said = await streams[0].said()
    assert set(said) == pairs
    assert len(said) == 2 * len(set(questions)), "a repeated call stores nothing twice"


async def test_complete_answer_is_delayed_until_it_is_stored(proxied: Proxied, redis_url: str) -> None:
    go = asyncio.Semaphore(0)
    proxied.upstream.answers.append(Answer(chat("Peanuts.").pieces, go=go, late=True))
    call = asyncio.create_task(proxied.chat([NUTS], {"x-memory-session": "s1"}))

    async def arrived() -> bool:
        return bool(proxied.upstream.received)

    await wait_until(arrived, "the call")
    async with refusing_writes(redis_url):
        go.release()
        go.release()
        done, _ = await asyncio.wait({call}, timeout=0.3)
        assert not done
    answer = await call
    assert (answer.headers["x-memory-stored"], json.loads(answer.content)["choices"][0]["message"]["content"]) == ("yes", "Peanuts.")
    assert await proxied.said("s1") == [("user", NUTS["content"]), ("assistant", "Peanuts.")]
