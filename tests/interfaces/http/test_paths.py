"""Test which operation and ids each path maps to."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.api import Recorded

MESSAGE = {"role": "user", "content": "hi"}
ROUTES: list[tuple[str, str, Any, str]] = [
    ("GET", "/v1/working-memory/", None, "working.list"),
    ("GET", "/v1/working-memory/s1", None, "working.get"),
    ("PUT", "/v1/working-memory/s1", {"messages": [MESSAGE]}, "working.put"),
    ("DELETE", "/v1/working-memory/s1", None, "working.delete"),
    ("POST", "/v1/working-memory/s1/messages", {"messages": [MESSAGE]}, "working.append_messages"),
    ("PATCH", "/v1/working-memory/s1/data", {"data": {"a": 1}}, "working.patch_data"),
    ("POST", "/v1/long-term-memory/", {"memories": [{"id": "m1", "text": "a fact"}]}, "longterm.create"),
    ("DELETE", "/v1/long-term-memory", None, "longterm.delete"),
    ("GET", "/v1/long-term-memory/m1", None, "longterm.get"),
    ("PATCH", "/v1/long-term-memory/m1", {"text": "another"}, "longterm.patch"),
    ("POST", "/v1/long-term-memory/search", {"text": "what"}, "search.search_page"),
    ("POST", "/v1/memory/prompt", {"query": "what", "session": {"session_id": "s1"}}, "recall.build_prompt"),
]


@pytest.mark.parametrize("slash", [False, True])
@pytest.mark.parametrize(("method", "path", "body", "call"), ROUTES)
async def test_both_slash_forms_reach_the_operation(
    api: httpx.AsyncClient, recorded: Recorded, method: str, path: str, body: Any, call: str, slash: bool
) -> None:
    url = path.rstrip("/") + "/" * slash
    answer = await api.request(method, url, json=body)
    assert (answer.status_code, recorded.last[0]) == (200, call), answer.text


@pytest.mark.parametrize(
    "path", ["/v1/health", "/v1/health/", "/v1/ready", "/v1/ready/", "/metrics", "/metrics/", "/docs", "/openapi.json"]
)
async def test_operator_pages_are_served(api: httpx.AsyncClient, path: str) -> None:
    assert (await api.get(path)).status_code == 200


@pytest.mark.parametrize(
    "given", ["a", "caf\u00e9 au lait", "\u65e5\u672c", "a:b", "a%2Fb?", "..x", "\ufffd", "#", "a+b", "x" * 512, "\U0001f600"]
)
async def test_ids_in_paths_are_decoded_exactly(api: httpx.AsyncClient, recorded: Recorded, given: str) -> None:
    quoted = _quote(given)
    assert (await api.get(f"/v1/working-memory/{quoted}", params={"user_id": given})).status_code == 200
    _, arguments, keywords = recorded.last
    assert (arguments[0], keywords["user_id"]) == (given, given)
    assert (await api.get(f"/v1/long-term-memory/{quoted}")).status_code == 200
    assert recorded.last[1] == (given,)


async def test_head_request_gets_headers_without_a_body(api: httpx.AsyncClient) -> None:
    for _ in range(2):
        answer = await api.head("/docs")
        assert (answer.status_code, answer.content, int(answer.headers["content-length"]) > 0) == (200, b"", True)


async def test_session_id_is_normalized_to_nfc(api: httpx.AsyncClient, recorded: Recorded) -> None:
    await api.get("/v1/working-memory/" + _quote("cafe\u0301"))
    assert recorded.last[1] == ("caf\u00e9",)


@pytest.mark.parametrize("given", ["a/b", "/", "a/", "/a", "a//"])
async def test_a_memory_id_may_contain_slashes(api: httpx.AsyncClient, recorded: Recorded, given: str) -> None:
    assert (await api.get("/v1/long-term-memory/" + _quote(given))).status_code == 200
    assert recorded.last[1] == (given,)


BAD_IDS = {
    "slash": "a/b",
    "encoded slash": "a%2Fb",
    "encoded slash at the end": "a%2F",
    "only a slash": "%2F",
    "blank": "%20%20",
    "line feed": "a%0Ab",
    "line feed at the end": "a%0A",
    "NUL": "a%00",
    "control": "%1B[2J",
    "delete": "a%7F",
    "next line": "a%C2%85",
    "5 kB": "x" * 5000,
    "513 bytes in UTF-8": "%C3%A9" * 257,
    "not UTF-8": "a%FF",
    "surrogate": "%ED%A0%80",
}


@pytest.mark.parametrize("name", BAD_IDS)
@pytest.mark.parametrize(("method", "suffix"), [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/messages"), ("PATCH", "/data")])
async def test_a_bad_session_id_is_refused_by_name(api: httpx.AsyncClient, recorded: Recorded, name: str, method: str, suffix: str) -> None:
    body = {"messages": [MESSAGE], "data": {}} if method in ("PUT", "POST", "PATCH") else None
    answer = await api.request(method, f"/v1/working-memory/{BAD_IDS[name]}{suffix}", json=body)
    assert answer.status_code == 422, answer.text
    [problem] = answer.json()["detail"]
    assert problem["loc"] == ["path", "session_id"]
    assert problem["msg"].startswith("session_id: ")
    assert not recorded.calls


@pytest.mark.parametrize("name", [name for name in BAD_IDS if "slash" not in name])
@pytest.mark.parametrize("field", ["user_id", "namespace"])
async def test_a_bad_scope_in_the_query_is_refused_by_name(api: httpx.AsyncClient, name: str, field: str) -> None:
    for method, path in (("GET", "/v1/working-memory/s1"), ("GET", "/v1/working-memory/"), ("DELETE", "/v1/working-memory/s1")):
        answer = await api.request(method, f"{path}?{field}={BAD_IDS[name]}")
        assert answer.status_code == 422, answer.text
        assert answer.json()["detail"][0]["loc"] == ["query", field]


async def test_an_empty_scope_in_the_query_counts_as_not_given(api: httpx.AsyncClient, recorded: Recorded) -> None:
    await api.get("/v1/working-memory/s1?user_id=&namespace=")
    assert (recorded.last[2]["user_id"], recorded.last[2]["namespace"]) == (None, None)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/working-memory/?limit=0", "limit"),
        ("/v1/working-memory/?limit=101", "limit"),
        ("/v1/working-memory/?limit=ten", "limit"),
        ("/v1/working-memory/?offset=-1", "offset"),
        ("/v1/working-memory/?offset=99999999999999999999", "offset"),
        ("/v1/working-memory/s1?recent_messages_limit=x", "recent_messages_limit"),
        ("/v1/working-memory/s1?recent_messages_limit=" + "9" * 5000, "recent_messages_limit"),
        ("/v1/working-memory/s1?context_window_max=-1", "context_window_max"),
        ("/v1/working-memory/s1?context_window_max=NaN", "context_window_max"),
        ("/v1/working-memory/s1?model_name=" + "x" * 257, "model_name"),
    ],
)
async def test_bad_parameters_are_refused_by_name(api: httpx.AsyncClient, path: str, field: str) -> None:
    answer = await api.get(path)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["query", field]


async def test_a_bad_wait_names_every_form_that_is_possible(api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/long-term-memory/?wait=later", json={"memories": []})
    assert answer.json()["detail"][0]["msg"] == "wait: must be true, false, or seconds from 0 to 20"


async def test_too_many_parameters_are_rejected(api: httpx.AsyncClient) -> None:
    answer = await api.delete("/v1/long-term-memory?" + "&".join(["memory_ids=a"] * 2001))
    assert answer.status_code == 422
    assert "2000" in answer.text


async def test_get_search_path_reads_the_memory_named_search(api: httpx.AsyncClient, recorded: Recorded) -> None:
    await api.get("/v1/long-term-memory/search")
    assert recorded.last[:2] == ("longterm.get", ("search",))


@pytest.mark.parametrize(("path", "status"), [("/v2", 404), ("/v1/health/x", 404), ("/v1/health%0A", 404), ("//v1/health", 404)])
async def test_unknown_path_gets_404(api: httpx.AsyncClient, path: str, status: int) -> None:
    answer = await api.get(httpx.URL("http://localhost" + path))
    expected = {"detail": "Not Found: there is no such path, /docs lists all", "code": "not_found"}
    assert (answer.status_code, answer.json()) == (status, expected)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/v1/health", "GET"),
        ("POST", "/v1/working-memory/s1", "DELETE, GET, PUT"),
        ("HEAD", "/v1/health", "GET"),
        ("PUT", "/v1/memory/prompt/", "POST"),
    ],
)
async def test_wrong_method_gets_405_that_names_every_method_of_the_path(
    api: httpx.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await api.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert method == "HEAD" or answer.json()["detail"] == f"Method Not Allowed: use {allowed}"


def _quote(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())
