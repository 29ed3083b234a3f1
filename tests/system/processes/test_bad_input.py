"""Test that bad input causes a 4xx that identifies the field, and changes nothing."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory_client import MemoryAPIClient

APPEND = "/v1/working-memory/s/messages"
CREATE = "/v1/long-term-memory/"
SEARCH = "/v1/long-term-memory/search"
PROMPT = "/v1/memory/prompt"
LONG = "x" * 5000


def said(**more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "hello", **more}]}


def fact(**more: Any) -> dict[str, Any]:
    return {"memories": [{"id": "m", "text": "a fact", **more}]}


def raw(text: str) -> bytes:
    return text.encode()


REFUSED: list[tuple[str, str, str, Any, str]] = [
    ("blank content", "POST", APPEND, said(content="  \n "), "messages.0.content"),
    ("blank content in a PUT", "PUT", "/v1/working-memory/s", said(content=""), "messages.0.content"),
    ("content that is no text", "POST", APPEND, said(content=["hello"]), "messages.0.content"),
    ("blank role", "POST", APPEND, said(role=" "), "messages.0.role"),
    ("no message", "POST", APPEND, {"messages": []}, "messages"),
    ("a date that is none", "POST", APPEND, said(created_at="yesterday"), "messages.0.created_at"),
    ("a date in the future", "POST", APPEND, said(created_at="2999-01-01T00:00:00Z"), "messages.0.created_at"),
    ("a date out of range", "POST", APPEND, said(created_at=1e300), "messages.0.created_at"),
    ("NaN as a date", "POST", APPEND, raw('{"messages": [{"role": "user", "content": "x", "created_at": NaN}]}'), "created_at"),
    ("NaN in data", "PUT", "/v1/working-memory/s", raw('{"messages": [], "data": {"a": NaN}}'), "data"),
    ("Infinity in a search", "POST", SEARCH, raw('{"text": "x", "distance_threshold": Infinity}'), "distance_threshold"),
    ("broken JSON", "POST", APPEND, raw('{"messages": [{'), "body"),
    ("no JSON at all", "POST", APPEND, raw("hello"), "body"),
    ("an empty body", "POST", APPEND, b"", "body"),
    ("not UTF-8", "POST", APPEND, b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}', "body"),
    ("a lone surrogate", "POST", APPEND, raw('{"messages": [{"role": "user", "content": "a", "id": "\\ud800"}]}'), "id"),
    ("a list for a body", "POST", APPEND, raw("[]"), "body"),
    ("deep nesting", "PUT", "/v1/working-memory/s", raw('{"messages": [], "data": ' + '{"a":' * 5000 + "1" + "}" * 5000 + "}"), "body"),
    ("a 5 kB session id", "POST", f"/v1/working-memory/{LONG}/messages", said(), "session_id"),
    ("a session id with a slash", "POST", "/v1/working-memory/a%2Fb/messages", said(), "session_id"),
    ("a session id that is a place", "POST", "/v1/working-memory/%2e%2e/messages", said(), "session_id"),
    ("a session id of blanks", "POST", "/v1/working-memory/%20/messages", said(), "session_id"),
    ("a session id with a control character", "GET", "/v1/working-memory/a%00b", None, "session_id"),
    ("a 5 kB user", "POST", APPEND, {**said(), "user_id": LONG}, "user_id"),
    ("a 5 kB user in the query", "GET", f"/v1/working-memory/s?user_id={LONG}", None, "user_id"),
    ("a 5 kB message id", "POST", APPEND, said(id=LONG), "messages.0.id"),
    ("blank text", "POST", CREATE, fact(text=" "), "memories.0.text"),
    ("a memory without id", "POST", CREATE, {"memories": [{"text": "a fact"}]}, "memories.0.id"),
    ("a comma in a topic", "POST", CREATE, fact(topics=["a,b"]), "memories.0.topics"),
    ("a memory type that is none", "POST", CREATE, fact(memory_type="rumour"), "memories.0.memory_type"),
    ("an empty filter", "POST", SEARCH, {"text": "x", "user_id": {}}, "user_id"),
    ("an unknown operator", "POST", SEARCH, {"text": "x", "user_id": {"like": "a"}}, "user_id"),
    ("a filter on nothing", "POST", SEARCH, {"text": "x", "user_id": {"eq": ""}}, "user_id"),
    ("a filter that is redirected", "POST", SEARCH, {"text": "x", "user_id": {"eq": "a", "field": "text"}}, "user_id"),
    ("too many at once", "POST", SEARCH, {"text": "x", "limit": 1000}, "limit"),
    ("a prompt without a query", "POST", PROMPT, {"session": {"session_id": "s"}}, "query"),
    ("a prompt of nothing", "POST", PROMPT, {"query": "x"}, "session"),
]

ACCEPTED: list[tuple[str, Any]] = [
    ("a naive date", said(created_at="2024-03-01T09:00:00")),
    ("epoch seconds", said(created_at=1709283600)),
    ("epoch seconds with a fraction", said(created_at=1709283600.25)),
    ("a date with an offset", said(created_at="2024-03-01T09:00:00+05:30")),
    ("unknown fields", {**said(tool_calls=[{"a": 1}]), "mood": "fine"}),
    ("text of every kind", said(content="'\"\\ {}[]()|@*%~-: <b>日本語 😀 \u202e \t\n\r end")),
]

SESSION_IDS = ["with spaces in it", "ümläut", "日本語", "😀", "a:b", "*", "{a}|@b", "...", "a?b#c%d", "-", "'; DROP", "x" * 512]


@pytest.fixture
async def http(served: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=served, timeout=60)


async def send(http: httpx.AsyncClient, method: str, path: str, body: Any) -> httpx.Response:
    content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    return await http.request(method, path, content=content, headers={"content-type": "application/json"})


@pytest.mark.parametrize(("method", "path", "body", "field"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
async def test_bad_input_is_refused_with_the_field_name(http: httpx.AsyncClient, method: str, path: str, body: Any, field: str) -> None:
    answer = await send(http, method, path, body)

    assert 400 <= answer.status_code < 500, answer.text[:300]
    assert field in answer.text
    assert len(answer.text) < 5000, "what was sent is not sent back"


@pytest.mark.parametrize("body", [case[1] for case in ACCEPTED], ids=[case[0] for case in ACCEPTED])
async def test_unusual_valid_messages_are_accepted(http: httpx.AsyncClient, body: Any) -> None:
    session = f"/v1/working-memory/{ULID()}"

    answer = await send(http, "POST", f"{session}/messages", body)

    assert answer.status_code == 200, answer.text
    [stored] = (await http.get(session)).json()["messages"]
    assert stored["content"] == body["messages"][0]["content"]
    assert stored["created_at"].endswith("Z"), "times go out in UTC"


@pytest.mark.parametrize("session_id", SESSION_IDS, ids=range(len(SESSION_IDS)))
async def test_any_printable_id_is_accepted(memory: MemoryAPIClient, session_id: str) -> None:
    await memory.append_messages(session_id, [{"role": "user", "content": session_id}], user_id=session_id)

    session = await memory.get_working_memory(session_id, user_id=session_id)

    assert (session.session_id, session.user_id, session.messages[0].content) == (session_id, session_id, session_id)
    assert (await memory.list_sessions(user_id=session_id)).sessions == [session_id]


@pytest.mark.parametrize("declared", [True, False])
async def test_ten_megabyte_body_gets_413(http: httpx.AsyncClient, declared: bool) -> None:
    body = json.dumps(said(content="x" * 10_000_000)).encode()

    async def pieces() -> Any:
        for start in range(0, len(body), 1 << 16):
            yield body[start : start + (1 << 16)]

    try:
        answer = await http.post(APPEND, content=body if declared else pieces(), headers={"content-type": "application/json"})
    except httpx.WriteError:
        return  # refused before the client had sent all of it
    assert answer.status_code == 413
    assert "MAX_BODY_BYTES" in answer.text


async def test_body_without_json_content_type_gets_200_or_415(http: httpx.AsyncClient) -> None:
    answer = await http.post(APPEND, content=json.dumps(said()).encode(), headers={"content-type": "text/plain"})
    assert answer.status_code in (200, 415), "taken or refused, never a 500"


async def test_unknown_path_gets_404_and_wrong_method_405(http: httpx.AsyncClient) -> None:
    assert (await http.get("/v1/nothing")).status_code == 404
    assert (await http.patch("/v1/memory/prompt", json={})).status_code == 405


async def test_server_stays_ready_after_bad_input(memory: MemoryAPIClient) -> None:
    assert (await memory.ready())["ready"] is True
