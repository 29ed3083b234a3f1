"""Test that proxy callers reach only listed upstreams and their own memories, not secrets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest
from openai import APIStatusError, AsyncOpenAI
from redis.asyncio import Redis

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.interfaces.proxy import upstreams
from tests.features.access.conftest import ADMIN
from tests.features.access.test_no_fetching import ear
from tests.interfaces.proxy.conftest import KEY, Proxied
from tests.interfaces.proxy.upstream import Answer, chat, chat_stream
from tests.support.waiting import wait_until

MORE_SETTINGS = {"AUTH_MODE": "token", "AUTH_ADMIN_TOKEN": ADMIN, "MAX_BODY_BYTES": 64 * 1024}
CHAT, RESPONSES = "/proxy/v1/chat/completions", "/proxy/v1/responses"
NUTS = {"role": "user", "content": "Which nuts is Ada allergic to?"}
BODY = {"model": "m", "messages": [NUTS]}


@pytest.fixture
async def guarded(proxied: Proxied) -> AsyncGenerator[Proxied]:
    """Provide a client with the operator's key."""
    async with httpx.AsyncClient(base_url=proxied.http.base_url, headers={"x-api-key": ADMIN}, timeout=30) as http:
        yield Proxied(http, proxied.upstream)


@contextlib.asynccontextmanager
async def as_caller(guarded: Proxied, **rights: Any) -> AsyncGenerator[Proxied]:
    made = await guarded.http.post("/v1/auth/tokens", json={"tenant": "default", "role": "write", **rights})
    async with httpx.AsyncClient(base_url=guarded.http.base_url, headers={"x-api-key": made.json()["token"]}, timeout=30) as http:
        yield Proxied(http, guarded.upstream, guarded.user)


@pytest.mark.parametrize(
    "name", ["{ear}", "//127.0.0.1", "main@evil", "main/../x", "MAIN", "main,none", "https://api.openai.com/v1", "ma\tin", "main#", "é"]
)
async def test_callers_cannot_choose_an_upstream_address(guarded: Proxied, name: str) -> None:
    async with ear() as inside:
        answer = await guarded.chat([NUTS], {"x-memory-upstream": name.format(ear=inside.url)})
        assert answer.status_code == 422
        assert "x-memory-upstream" in answer.text
        elsewhere = {"x-forwarded-host": f"127.0.0.1:{inside.port}", "forwarded": f"host=127.0.0.1:{inside.port}"}
        fields = {"base_url": inside.url, "api_base": inside.url, "metadata": {"upstream": inside.url}}
        assert (await guarded.chat([NUTS], elsewhere, **fields)).status_code == 200
        assert inside.heard == []
    assert len(guarded.upstream.received) == 1


@pytest.mark.parametrize("path", ["/proxy/v1/files", "/proxy/v1/chat/completions/../../admin", "/proxy/v1//chat/completions", "/proxy/x"])
async def test_unlisted_paths_are_not_forwarded(guarded: Proxied, path: str) -> None:
    assert (await guarded.http.post(path, json=BODY)).status_code == 404
    assert guarded.upstream.received == []


async def test_redirects_of_the_upstream_are_not_followed(guarded: Proxied) -> None:
    async with ear() as inside:
        guarded.upstream.answers.append(Answer([b"x"], status="307 Elsewhere", headers=[("location", inside.url)]))
        answer = await guarded.chat([NUTS])
        assert (answer.status_code, answer.headers["location"], inside.heard) == (307, inside.url, [])


async def test_setting_accepts_only_plain_upstream_addresses() -> None:
    for text in ("x", "a=ftp://b", "a=http://user:pw@b/v1", "a=http://b/?q", "a=http://b#f", "=http://b", "a=http://b,c"):
        with pytest.raises(StartupError, match="PROXY_UPSTREAMS"):
            load_settings(PROXY_UPSTREAMS=text)
    assert load_settings(PROXY_UPSTREAMS="a=http://b/v1/, c=https://d").server.upstreams == {"a": "http://b/v1", "c": "https://d"}


async def test_proxy_is_off_without_upstreams() -> None:
    app = create_app(load_settings(MODEL_PROVIDER="local"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http:
        for path in (CHAT, RESPONSES):
            answer = await http.post(path, json=BODY)
            assert answer.status_code == 404
            assert "PROXY_UPSTREAMS" in answer.text


async def test_memory_server_key_has_its_own_header_and_is_never_forwarded(guarded: Proxied) -> None:
    attempts: list[dict[str, str]] = [{}, {"authorization": f"Bearer {ADMIN}"}, {"x-api-key": "wrong-key-of-nobody"}]
    attempts += [{"x-api-key": ADMIN, "authorization": f"Bearer {ADMIN}"}, {"x-api-key": ADMIN, "authorization": f"Basic x{ADMIN}"}]
    async with httpx.AsyncClient(base_url=guarded.http.base_url) as http:
        answers = [await http.post(CHAT, json=BODY, headers=headers) for headers in attempts]
    assert [answer.status_code for answer in answers] == [401, 401, 401, 422, 422]
    assert "X-API-Key" in answers[0].text
    assert guarded.upstream.received == []
    assert (await guarded.chat([NUTS])).status_code == 200
    assert ADMIN not in str(guarded.upstream.last)


async def test_callers_access_only_their_user_namespace_and_agent(guarded: Proxied) -> None:
    await guarded.remember("Ada is allergic to peanuts.")
    await guarded.chat([NUTS], {"x-memory-session": "s1"})
    before = await guarded.said("s1")
    guarded.upstream.received.clear()
    async with as_caller(guarded, users=["eve"], namespaces=["n"], agents=["a"]) as eve:
        own = {"x-memory-user": ""}
        for headers, body in (
            ({"x-memory-user": guarded.user}, {}),
            (own, {"user": guarded.user}),
            (own, {"user": "eve", "metadata": {"user_id": guarded.user}}),
            ({**own, "x-memory-namespace": "other"}, {}),
            ({**own, "x-memory-agent": "b"}, {}),
        ):
            answer = await eve.chat([NUTS], {**headers, "x-memory-session": "s1"}, **body)
            assert answer.status_code == 403, (headers, body)
        assert guarded.upstream.received == []
        answer = await eve.chat([NUTS], {**own, "x-memory-session": "s1"})
        assert (answer.status_code, answer.headers["x-memory-status"]) == (200, "nothing")
    async with as_caller(guarded, tenant="other-tenant") as stranger:
        answer = await stranger.chat([NUTS], {"x-memory-session": "s1"})
        assert (answer.status_code, answer.headers["x-memory-status"]) == (200, "nothing")
        assert len(await stranger.session("s1")) == 2
    assert await guarded.said("s1") == before


async def test_sdk_shows_why_a_call_is_refused(guarded: Proxied) -> None:
    """OpenAI's SDK shows only the text in `error.message`."""
    guarded.upstream.answers.append(Answer([b'{"detail": "of the upstream"}'], status="403 Forbidden"))
    forwarded = await guarded.chat([NUTS])
    assert (forwarded.status_code, forwarded.content) == (403, b'{"detail": "of the upstream"}')
    async with as_caller(guarded, role="read", users=["eve"]) as eve:
        for key, headers, reason in (
            ("", {}, "send the key of this server as X-API-Key"),
            ("wrong", {}, "API key"),
            (ADMIN, {}, "name the user here"),
            (ADMIN, {"X-Memory-User": "eve", "X-Memory": "of"}, "must be 'on', 'read' or 'off'"),
            (eve.http.headers["x-api-key"], {"X-Memory-User": "eve"}, "read"),
            (ADMIN, {"X-Memory-User": "eve", "X-Memory-Upstream": "none"}, "cannot be reached"),
        ):
            sent = {**headers, **({"X-API-Key": key} if key else {})}
            sdk = AsyncOpenAI(base_url=f"{guarded.http.base_url}/proxy/v1", api_key=KEY, default_headers=sent, max_retries=0)
            with pytest.raises(APIStatusError) as refused:
                await sdk.chat.completions.create(model="m", messages=[NUTS])  # type: ignore[list-item]
            assert reason in str(refused.value), refused.value


async def test_read_only_key_stores_nothing(guarded: Proxied) -> None:
    async with as_caller(guarded, role="read") as reader:
        assert (await reader.chat([NUTS], {"x-memory-session": "s1"})).status_code == 403
        answer = await reader.chat([NUTS], {"x-memory-session": "s1", "x-memory": "read"})
        assert (answer.status_code, answer.headers["x-memory-stored"]) == (200, "no")
    assert await guarded.session("s1") == []


async def test_hop_by_hop_and_internal_headers_are_not_forwarded(guarded: Proxied) -> None:
    ours = {"te": "trailers", "proxy-authorization": "Basic x", "cookie": "am=secret", "x-private": "hop", "keep-alive": "1"}
    theirs = [("connection", "x-inner"), ("x-inner", "1"), ("set-cookie", "console=evil"), ("keep-alive", "timeout=5")]
    theirs += [("x-memory-status", "added"), ("X-Memory-Ids", "forged"), ("x-outer", "1"), ("date", "long ago")]
    guarded.upstream.answers.append(Answer([b"{}"], headers=theirs))
    headers = {**ours, "connection": "keep-alive, X-Private", "x-public": "1", "x-memory-other": "1", "x-api-key": ADMIN}
    headers["x-acting-user"] = guarded.user
    answer = await guarded.chat([NUTS], headers)
    sent = guarded.upstream.last
    stopped = (*ours, "x-api-key", "x-acting-user", "x-memory-other", "x-memory-user")
    assert [name for name in stopped if sent.header(name) is not None] == []
    assert (sent.header("x-public"), sent.header("accept-encoding")) == ("1", "identity")
    assert [name for name in ("x-inner", "set-cookie", "keep-alive", "x-memory-ids") if name in answer.headers] == []
    assert (answer.headers["x-outer"], answer.headers["x-memory-status"]) == ("1", "nothing")
    assert len(answer.headers.get_list("date")) == 1
    await guarded.chat([NUTS])
    assert guarded.upstream.last.header("cookie") is None, "no caller's cookies reach the upstream with another call"


async def test_ids_cannot_inject_response_headers(guarded: Proxied) -> None:
    memory = {"id": "m,é: 1", "text": "Ada is allergic to peanuts.", "user_id": guarded.user}
    made = await guarded.http.post("/v1/long-term-memory/", json={"memories": [memory]}, params={"wait": 20})
    assert made.status_code == 200, made.text
    answer = await guarded.chat([NUTS], user="x\r\nx-evil: 2", metadata={"session_id": "s\r\nx-evil: 3"})
    assert answer.status_code == 422
    answer = await guarded.chat([NUTS], metadata={"session_id": "s,é"})
    assert "x-evil" not in answer.headers
    assert (answer.headers["x-memory-ids"], answer.headers["x-memory-session"]) == ("m%2C%C3%A9%3A%201", "s%2C%C3%A9")


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b'{"messages": "' + b"x" * 70_000 + b'"}', 413),
        (b"[" * 30_000, 422),
        (b'{"a":' * 9_000, 422),
        (b"{", 422),
        (b"[]", 422),
        (b"\xff", 422),
        (b"", 422),
    ],
)
async def test_bodies_that_are_not_json_calls_are_refused(guarded: Proxied, content: bytes, status: int) -> None:
    headers = {"content-type": "application/json", "x-memory-user": "u"}
    for path in (CHAT, RESPONSES):
        assert (await guarded.http.post(path, content=content, headers=headers)).status_code == status
        chunked = await guarded.http.post(path, content=_pieces(content), headers=headers)
        assert chunked.status_code == status
        plain = await guarded.http.post(path, content=content, headers={**headers, "content-type": "text/plain"})
        assert plain.status_code in (413, 415)
    assert guarded.upstream.received == []


async def _pieces(content: bytes) -> AsyncGenerator[bytes]:
    for start in range(0, len(content), 1000):
        yield content[start : start + 1000]


ODD: list[Any] = [None, 5, "x", [], {}, [None], [5], [[]], ["x"], [{}], [{"role": 5}], [{"role": "user"}], [{"role": "user", "content": 5}]]
ODD += [[{"role": "user", "content": [{"type": "text", "text": 5}, 7, {"type": 5}]}], [{"role": "assistant", "tool_calls": 5}]]
ODD += [[{"role": "x" * 99, "content": "hi"}], [{"role": "user", "content": "half \ud83d"}], [{"role": "user", "content": "\x00"}], True]
ODD += [[{"type": 5}], [{"type": "function_call"}], [{"type": "function_call_output", "output": 5}], [{"role": "system", "content": NUTS}]]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: json.dumps(odd)[:40])
async def test_odd_requests_and_answers_are_forwarded_unchanged(guarded: Proxied, odd: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The upstream decides what is invalid."""
    answers = [
        {"choices": odd},
        {"choices": [{"message": odd, "delta": odd}]},
        {"output": odd, "type": odd, "item": odd, "delta": odd},
        odd,
    ]
    for path, field in ((CHAT, "messages"), (RESPONSES, "input")):
        for answer in answers:
            raw = json.dumps(answer).encode()
            for reply in (Answer([raw]), Answer([b"data: " + raw + b"\n\n", b"data: x\n\n", b"data: [DONE]"], "text/event-stream")):
                guarded.upstream.answers.append(reply)
                sent = json.dumps({"model": "m", field: odd, "metadata": odd, "user": odd, "conversation": odd}).encode()
                headers = {"x-memory-user": guarded.user, "x-memory-session": "s", "content-type": "application/json"}
                response = await guarded.http.post(path, content=sent, headers=headers)
                assert (response.status_code, response.content) == (200, b"".join(reply.pieces))
    assert not [record for record in caplog.records if record.exc_info]


async def test_upstream_key_is_neither_stored_nor_logged(guarded: Proxied, redis_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for script in (chat("Hi."), chat_stream("Hi."), Answer([b"no"], status="401 No"), Answer([], breaks=True, status="nonsense")):
            guarded.upstream.answers.append(script)
            await guarded.chat([NUTS], {"x-memory-session": "s1", "idempotency-key": "once"})
            assert guarded.upstream.last.header("authorization") == f"Bearer {KEY}"
    assert KEY not in caplog.text + str([vars(entry) for entry in caplog.records])
    async with Redis.from_url(redis_url) as redis:
        assert [key async for key in redis.scan_iter() if KEY.encode() in (await redis.dump(key) or b"")] == []


async def test_calls_beyond_the_limit_are_refused_and_not_stored(guarded: Proxied, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstreams, "MOST_CALLS", 2)
    go = asyncio.Semaphore(0)
    guarded.upstream.answers.append(chat_stream("Slow.", go=go))
    slow = asyncio.create_task(guarded.chat([NUTS]))

    async def arrived() -> bool:
        return bool(guarded.upstream.received)

    await wait_until(arrived, "the first call")
    refused = await guarded.chat([NUTS], {"x-memory-session": "refused"})
    assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (503, "overloaded", "1")
    assert await guarded.session("refused") == []
    for _ in range(9):
        go.release()
    assert (await slow).status_code == 200
    assert (await guarded.chat([NUTS])).status_code == 200


@pytest.mark.parametrize("erases", ["user", "session"])
async def test_answer_that_ends_after_an_erasure_is_not_stored(guarded: Proxied, redis_url: str, erases: str) -> None:
    go, mark = asyncio.Semaphore(1), "zebraquartz"
    guarded.upstream.answers.append(chat_stream(f"The {mark}", " is blue.", go=go))
    asked = {"role": "user", "content": f"What color has the {mark}?"}
    headers = {"x-memory-user": guarded.user, "x-memory-session": "s1"}
    async with guarded.http.stream("POST", CHAT, json={**BODY, "messages": [asked], "stream": True}, headers=headers) as answer:
        pieces = answer.aiter_raw()
        assert mark.encode() in await anext(pieces)
        if erases == "user":
            erased = await guarded.http.delete(f"/v1/users/{guarded.user}", params={"wait": 20})
        else:
            where = {"user_id": guarded.user, "memories": "true", "wait": 20}
            erased = await guarded.http.delete("/v1/working-memory/s1", params=where)
        assert erased.status_code == 200, erased.text
        for _ in range(9):
            go.release()
        async for _ in pieces:
            pass
    assert await guarded.session("s1") == []
    async with Redis.from_url(redis_url) as redis:
        left = [
            key async for key in redis.scan_iter() if b"proxy-test_proxy_attacks" in key and mark.encode() in (await redis.dump(key) or b"")
        ]
    assert left == []
