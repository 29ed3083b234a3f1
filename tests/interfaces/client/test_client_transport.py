"""Test the transport's credentials, retries, and delays between attempts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from agent_memory_client._wire.attempts import MAX_WAIT_SECONDS, wait_before
from agent_memory_client._wire.requests import Call
from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.errors import (
    MemoryClientError,
    MemoryConflictError,
    MemoryProtocolError,
    MemoryRequestUnderWayError,
    MemoryTimeoutError,
    MemoryUnavailableError,
    MemoryValidationError,
)
from agent_memory_client.transport import Transport

READ = Call("GET", "/v1/health")
ONCE = Call("DELETE", "/v1/operations/o", json={}, idempotent=False)
KEYED = Call("POST", "/v1/summary-views", json={"source": "long_term"}, headers={"Idempotency-Key": "k"})
Step = int | Exception | httpx.Response


def under_way(seconds: int) -> httpx.Response:
    """Return the 409 response for an Idempotency-Key whose first request is still running."""
    body = {"detail": "a request with this Idempotency-Key is under way", "code": "request_under_way"}
    return httpx.Response(409, json=body, headers={"Retry-After": str(seconds)})


class Server:
    """A fake server that plays the given steps and records requests."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return httpx.Response(step, json={"status": "ok"}) if isinstance(step, int) else step


class Client:
    """A transport to a `Server` that records delays instead of sleeping."""

    def __init__(self, *steps: Step, **config: Any) -> None:
        self.server = Server(steps)
        self.waits: list[float] = []
        self.transport = Transport(
            MemoryClientConfig(base_url="http://memory/prefix", **config), httpx.MockTransport(self.server), self._note
        )

    async def _note(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def send(self, call: Call) -> httpx.Response:
        return await self.transport.send(call)


async def test_requests_send_credentials_and_use_the_base_url_path() -> None:
    client = Client(200, api_key="key", bearer_token="token")
    await client.send(Call("PUT", "/v1/working-memory/a%2Fb%20c", {"q": "ü &"}, {"text": "日本"}, {"If-Match": '"1"'}))
    request = client.server.requests[0]
    assert request.url.raw_path == b"/prefix/v1/working-memory/a%2Fb%20c?q=%C3%BC+%26"
    assert request.headers["X-API-Key"] == "key"
    assert request.headers["Authorization"] == "Bearer token"
    assert request.headers["If-Match"] == '"1"'
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["User-Agent"].startswith("agent-memory-api-client/")
    assert json.loads(request.content) == {"text": "日本"}


async def test_no_credential_headers_are_sent_without_credentials() -> None:
    client = Client(200)
    await client.send(READ)
    assert {"x-api-key", "authorization", "content-type"}.isdisjoint(client.server.requests[0].headers)
    assert client.server.requests[0].content == b""


def test_config_repr_hides_credentials() -> None:
    shown = repr(MemoryClientConfig(base_url="http://memory", api_key="hush", bearer_token="hush"))
    assert "hush" not in shown


async def test_lists_become_repeated_parameters() -> None:
    client = Client(200)
    await client.send(Call("DELETE", "/v1/long-term-memory", {"memory_ids": ["a", "b&c"]}))
    assert client.server.requests[0].url.query == b"memory_ids=a&memory_ids=b%26c"


@pytest.mark.parametrize("step", [429, 502, 503, 504, httpx.ConnectError("no"), httpx.ReadError("no"), httpx.RemoteProtocolError("no")])
async def test_safe_requests_are_retried(step: Step) -> None:
    client = Client(step, step, 200)
    assert (await client.send(READ)).status_code == 200
    assert len(client.waits) == 2
    assert 0 < client.waits[0] <= 0.1
    assert 0 < client.waits[1] <= 0.2


async def test_retried_request_has_identical_bytes() -> None:
    client = Client(503, 200)
    await client.send(Call("POST", "/v1/working-memory/s/messages", json={"messages": [{"id": "1"}]}))
    first, second = client.server.requests
    assert first.content == second.content


async def test_retry_waits_for_a_first_attempt_still_in_progress() -> None:
    client = Client(httpx.ReadError("cut"), under_way(6), under_way(5), 200, max_retries=3)
    assert (await client.send(KEYED)).status_code == 200
    assert {request.headers["Idempotency-Key"] for request in client.server.requests} == {"k"}
    assert client.waits[1] <= 0.2, "mostly it ends in a moment"
    assert client.waits[2] >= 5, "when its process died, its key is free then"


async def test_retry_waits_until_an_abandoned_idempotency_key_is_free() -> None:
    client = Client(httpx.ReadError("cut"), under_way(6), 200)
    assert (await client.send(KEYED)).status_code == 200
    assert client.waits[-1] >= 6, "the last attempt is made when the key is free"


async def test_in_progress_error_carries_code_and_retry_after() -> None:
    with pytest.raises(MemoryRequestUnderWayError) as refused:
        await Client(under_way(4), max_retries=0).send(KEYED)
    assert (refused.value.code, refused.value.retry_after) == ("request_under_way", 4.0)


@pytest.mark.parametrize("call", [KEYED, READ])
@pytest.mark.parametrize("steps", [[], [httpx.ReadError("cut")]])
async def test_other_conflicts_are_not_retried(call: Call, steps: list[Step]) -> None:
    client = Client(*steps, httpx.Response(409, json={"detail": "the id of a memory is taken", "code": "conflict"}))
    with pytest.raises(MemoryConflictError) as refused:
        await client.send(call)
    assert not isinstance(refused.value, MemoryRequestUnderWayError)
    assert client.server.steps == []


async def test_wait_extends_the_read_timeout() -> None:
    client = Client(200, 200, timeout=7)
    await client.send(READ)
    await client.send(Call("POST", "/v1/working-memory/s/flush", wait=10.0))
    assert [request.extensions["timeout"]["read"] for request in client.server.requests] == [7.0, 17.0]


@pytest.mark.parametrize("step", [400, 401, 404, 409, 412, 422, 500])
async def test_refused_requests_are_not_retried(step: int) -> None:
    client = Client(step)
    with pytest.raises(MemoryClientError):
        await client.send(READ)
    assert client.waits == []


async def test_response_timeout_is_not_retried() -> None:
    client = Client(httpx.ReadTimeout("slow"))
    with pytest.raises(MemoryTimeoutError):
        await client.send(READ)
    assert client.waits == []


@pytest.mark.parametrize("step", [429, 503, httpx.ReadError("no"), httpx.RemoteProtocolError("no"), httpx.WriteError("no")])
async def test_unsafe_requests_are_sent_once(step: Step) -> None:
    client = Client(step)
    with pytest.raises(MemoryUnavailableError):
        await client.send(ONCE)
    assert len(client.server.requests) == 1


@pytest.mark.parametrize("step", [httpx.ConnectError("no"), httpx.ConnectTimeout("slow")])
async def test_unsafe_request_is_retried_if_it_never_reached_the_server(step: Exception) -> None:
    client = Client(step, 200)
    assert (await client.send(ONCE)).status_code == 200


@pytest.mark.parametrize("call", ["READ", "ONCE", "KEYED"])
async def test_request_answered_408_is_always_retried(call: str) -> None:
    client = Client(408, 408, 200)
    assert (await client.send(globals()[call])).status_code == 200
    assert len(client.server.requests) == 3


async def test_retries_stop_after_max_retries() -> None:
    client = Client(*[503] * 4, max_retries=3)
    with pytest.raises(MemoryUnavailableError) as caught:
        await client.send(READ)
    assert caught.value.status_code == 503
    assert len(client.server.requests) == 4
    silent = Client(httpx.ConnectError("refused"), max_retries=0)
    with pytest.raises(MemoryUnavailableError) as away:
        await silent.send(READ)
    assert away.value.status_code is None


async def test_retry_waits_as_long_as_retry_after() -> None:
    client = Client(httpx.Response(503, headers={"Retry-After": "3"}), 200)
    await client.send(READ)
    assert client.waits == [3.0]


async def test_too_long_retry_after_is_raised_to_the_caller() -> None:
    client = Client(httpx.Response(429, headers={"Retry-After": "3600"}))
    with pytest.raises(MemoryUnavailableError) as caught:
        await client.send(READ)
    assert caught.value.retry_after == 3600.0
    assert client.waits == []


def test_backoff_never_exceeds_its_maximum() -> None:
    for attempt in range(1, 60):
        wait = wait_before(attempt, None)
        assert wait is not None
        assert 0 < wait <= MAX_WAIT_SECONDS


@pytest.mark.parametrize("body", [{"a": float("nan")}, {"a": object()}])
async def test_values_outside_json_are_rejected_before_sending(body: dict[str, Any]) -> None:
    client = Client()
    with pytest.raises(MemoryValidationError, match="JSON"):
        await client.send(Call("POST", "/v1/memory/prompt", json=body))
    assert client.server.requests == []


@pytest.mark.parametrize("params", [{"user_id": "\ud800"}])
async def test_invalid_query_values_are_rejected(params: dict[str, str]) -> None:
    with pytest.raises(MemoryClientError):
        await Client().send(Call("GET", "/v1/working-memory/", params))


@pytest.mark.parametrize("base_url", ["memory", "ftp://memory", "", "http://memory:port"])
async def test_invalid_base_url_raises_protocol_error(base_url: str) -> None:
    with pytest.raises(MemoryProtocolError, match="base URL"):
        await Transport(MemoryClientConfig(base_url=base_url)).send(READ)


@pytest.mark.parametrize("secret", ["", "a\nb", "ключ"])
def test_credentials_invalid_in_a_header_are_rejected(secret: str) -> None:
    with pytest.raises(MemoryValidationError, match="api_key"):
        Transport(MemoryClientConfig(base_url="http://memory", api_key=secret))
    with pytest.raises(MemoryValidationError, match="bearer_token"):
        Transport(MemoryClientConfig(base_url="http://memory", bearer_token=secret))


@pytest.mark.parametrize("status", [304, 307, 308])
async def test_redirects_are_not_followed(status: int) -> None:
    client = Client(httpx.Response(status, headers={"Location": "http://elsewhere/"}), api_key="key")
    with pytest.raises(MemoryProtocolError, match="base URL"):
        await client.send(READ)
    assert len(client.server.requests) == 1
