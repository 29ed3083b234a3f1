"""Test request bodies: size, content type, and content that is not valid JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

import httpx
import pytest

from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.interfaces.http.app import create_app
from tests.support.api import Recorded, serving

URL = "/v1/working-memory/s1"
JSON = {"Content-Type": "application/json"}
LIMIT = 64 * 1024


@pytest.fixture
async def served(api_settings: Settings, recorded: Recorded) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with serving(create_app(api_settings, recorded.runtime)) as url, httpx.AsyncClient(base_url=url) as client:
        yield client


async def _pieces(size: int) -> AsyncGenerator[bytes, None]:
    for _ in range(size // 8192):
        yield b" " * 8192


def _padded(size: int) -> bytes:
    return b'{"context":"' + b"x" * (size - 14) + b'"}'


async def test_body_at_the_size_limit_is_accepted(served: httpx.AsyncClient) -> None:
    assert (await served.put(URL, content=_padded(LIMIT), headers=JSON)).status_code == 200


@pytest.mark.parametrize("size", [LIMIT + 1, 10_000_000])
async def test_too_large_body_gets_413_and_keeps_the_connection(served: httpx.AsyncClient, recorded: Recorded, size: int) -> None:
    answer = await served.put(URL, content=_padded(size), headers=JSON)
    assert (answer.status_code, answer.json()["code"], answer.json()["limit"]) == (413, "too_large", LIMIT)
    assert str(LIMIT) in answer.json()["detail"]
    assert not recorded.calls
    assert (await served.get("/v1/health")).status_code == 200


@pytest.mark.parametrize("size", [LIMIT + 8192, 10_000_000])
async def test_too_large_chunked_body_gets_413(served: httpx.AsyncClient, recorded: Recorded, size: int) -> None:
    answer = await served.put(URL, content=_pieces(size), headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert not recorded.calls


async def test_chunked_body_within_the_limit_is_joined(served: httpx.AsyncClient, recorded: Recorded) -> None:
    async def chunks() -> AsyncGenerator[bytes, None]:
        yield b'{"context":'
        yield b'"split"'
        yield b"}"

    assert (await served.put(URL, content=chunks(), headers=JSON)).status_code == 200
    assert recorded.last[1][1].context == "split"


@pytest.mark.parametrize("declared", ["99999999999999999999", "9" * 5000, "70000"])
async def test_too_large_content_length_is_refused_before_the_body(served: httpx.AsyncClient, declared: str) -> None:
    place = urlsplit(str(served.base_url))
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    head = f"PUT {URL} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {declared}\r\n\r\n"
    writer.write(head.encode())
    status = await reader.readline()
    assert status.split()[1] in (b"413", b"400")
    writer.close()
    await writer.wait_closed()


async def test_missing_body_gets_408_at_the_deadline(recorded: Recorded) -> None:
    async with serving(create_app(load_settings(REQUEST_TIMEOUT_SECONDS=30, BODY_TIMEOUT_SECONDS=0.1), recorded.runtime)) as url:
        place = urlsplit(url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        writer.write(f"PUT {URL} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert (await reader.readline()).split()[1] == b"408"
        writer.close()
        await writer.wait_closed()


async def test_client_disconnect_during_body_logs_no_error(
    served: httpx.AsyncClient, recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    place = urlsplit(str(served.base_url))
    _, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(f"PUT {URL} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
    await writer.drain()
    writer.transport.abort()
    assert (await served.get("/v1/health")).status_code == 200
    assert not recorded.calls
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]


@pytest.mark.parametrize(
    "media", ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "application/merge-patch+json"]
)
async def test_json_content_types_are_accepted(api: httpx.AsyncClient, media: str) -> None:
    assert (await api.put(URL, content=b"{}", headers={"Content-Type": media})).status_code == 200


@pytest.mark.parametrize(
    "media", [None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json"]
)
async def test_other_content_types_get_415(api: httpx.AsyncClient, recorded: Recorded, media: str | None) -> None:
    answer = await api.put(URL, content=b"{}", headers={} if media is None else {"Content-Type": media})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert "application/json" in answer.json()["detail"]
    assert not recorded.calls


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (b"", "empty"),
        (b"{", "ends too early"),
        (b"{'a': 1}", "send one JSON object"),
        (b"{} {}", "trailing"),
        (b"\xff\xfe{}", "send one JSON object"),
        (b'{"context":"\xff"}', "UTF-8"),
        (b'{"context":"\xed\xa0\x80"}', "UTF-8"),
        (b'{"data":' + b"[" * 30_000 + b"]" * 30_000 + b"}", "too deeply"),
        (b'{"tokens":' + b"9" * 5000 + b"}", "too many digits"),
        (b"NaN", ""),
        (b"nul", ""),
    ],
)
async def test_invalid_json_gets_422_with_a_hint(api: httpx.AsyncClient, recorded: Recorded, body: bytes, hint: str) -> None:
    answer = await api.put(URL, content=body, headers=JSON)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["body"]
    assert hint in answer.json()["detail"][0]["msg"]
    assert not recorded.calls


@pytest.mark.parametrize("body", [b"null", b"[]", b'"x"', b"1", b"true"])
async def test_json_that_is_not_an_object_gets_422(api: httpx.AsyncClient, body: bytes) -> None:
    answer = await api.put(URL, content=body, headers=JSON)
    assert answer.status_code == 422
    assert "object" in answer.json()["detail"][0]["msg"]


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        (b'{"messages":[{"role":"user","content":"\\u0000"}]}', ["messages", 0, "content"]),
        (b'{"user_id":"\\udfff"}', ["user_id"]),
        (b'{"data":{"a":NaN}}', ["data"]),
        (b'{"data":{"a":-Infinity}}', ["data"]),
        (b'{"data":{"a":[1e999]}}', ["data"]),
        (b'{"tokens":1e999}', ["tokens"]),
        (b'{"tokens":NaN}', ["tokens"]),
        (b'{"ttl_seconds":99999999999999999999}', ["ttl_seconds"]),
    ],
)
async def test_invalid_json_value_gets_422_with_the_field_name(
    api: httpx.AsyncClient, recorded: Recorded, body: bytes, loc: list[str]
) -> None:
    answer = await api.put(URL, content=body, headers=JSON)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["body", *loc]
    assert not recorded.calls


async def test_unknown_fields_are_ignored(api: httpx.AsyncClient) -> None:
    message = {"role": "user", "content": "hi", "tool_calls": [], "metadata": {"deep": {}}}
    assert (await api.put(URL, content=json.dumps({"messages": [message], "session_id": "other", "x": 1}), headers=JSON)).status_code == 200


async def test_last_of_duplicate_keys_wins(api: httpx.AsyncClient, recorded: Recorded) -> None:
    await api.put(URL, content=b'{"context":"a","context":"b"}', headers=JSON)
    assert recorded.last[1][1].context == "b"


@pytest.fixture
async def large_api(recorded: Recorded) -> AsyncGenerator[httpx.AsyncClient, None]:
    transport = httpx.ASGITransport(create_app(load_settings(), recorded.runtime))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize("item", [b"1", b"{}", b'{"role":"user","content":"x"}'])
@pytest.mark.parametrize("where", ["messages", "memories", "memories.0.extracted_from"])
async def test_too_long_list_is_rejected_with_the_field_name(large_api: httpx.AsyncClient, item: bytes, where: str) -> None:
    outer, _, inner = where.partition(".0.")
    items = b"[" + b",".join([item] * 12_000) + b"]"
    body = b'{"%s":[{"%s":%s}]}' % (outer.encode(), inner.encode(), items) if inner else b'{"%s":%s}' % (outer.encode(), items)
    answer = await large_api.put(URL, content=body, headers=JSON)
    [problem] = answer.json()["detail"]
    assert (answer.status_code, problem["msg"]) == (422, f"{where}: must have at most 10000 items, got 12000: send several requests")


async def test_long_list_in_session_data_is_accepted(large_api: httpx.AsyncClient) -> None:
    answer = await large_api.put(URL, json={"data": {"numbers": list(range(90_000))}})
    assert answer.status_code == 200


async def test_json_punctuation_inside_strings_does_not_count_as_values(large_api: httpx.AsyncClient) -> None:
    answer = await large_api.put(URL, json={"context": ',[{:"\\' * 200_000})
    assert answer.status_code == 200


@pytest.mark.parametrize("values", [b"1," * 200_000 + b"1", b"{}," * 60_000 + b"{}", b'"",' * 500_000 + b'""', b"[" * 20 + b"1," * 200_000])
@pytest.mark.parametrize("path", [URL, "/v1/long-term-memory/", "/mcp"])
async def test_body_with_too_many_values_is_rejected(recorded: Recorded, path: str, values: bytes) -> None:
    app = create_app(load_settings(), recorded.runtime)
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        body = b'{"data":{"a":[%s]}}' % values
        answer = await client.request("PUT" if path == URL else "POST", path, content=body, headers={**JSON, "Accept": "application/json"})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body"])
    assert "at most 100000 values" in answer.text
    assert not recorded.calls
