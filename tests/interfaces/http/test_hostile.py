"""Test that hostile input never causes a 5xx, and that errors identify the field."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory.foundation.api.operation import Operation
from agent_memory.interfaces.http.routes import ROUTERS
from tests.registrations import registrations

JSON = {"Content-Type": "application/json"}
MESSAGE = {"role": "user", "content": "hi"}

# Every route that accepts a body, with the smallest valid body.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("PUT", "/v1/working-memory/hostile"): {"messages": [MESSAGE]},
    ("POST", "/v1/working-memory/hostile/messages"): {"messages": [MESSAGE]},
    ("PATCH", "/v1/working-memory/hostile/data"): {"data": {}},
    ("POST", "/v1/long-term-memory/"): {"memories": [{"id": "m1", "text": "a fact"}]},
    ("PATCH", "/v1/long-term-memory/m1"): {"text": "another fact"},
    ("POST", "/v1/long-term-memory/search"): {"text": "what"},
    ("POST", "/v1/long-term-memory/explain"): {"memory_id": "m1", "search": {"text": "what"}},
    ("POST", "/v1/long-term-memory/forget"): {"policy": {"max_age_days": 1000}},
    ("POST", "/v1/long-term-memory/purge"): {"session_id": "nobody's"},
    **{route: body for one in registrations() for route, body in one.least_bodies.items()},
    ("POST", "/v1/procedures"): {"when_to_use": "what", "steps": ["do it"]},
    ("PATCH", "/v1/procedures/p1"): {"text": "do it"},
    ("POST", "/v1/procedures/search"): {"situation": "what"},
    ("POST", "/v1/procedures/p1/feedback"): {"helped": True},
    ("PATCH", "/v1/working-memory/hostile/result"): {"result": "success"},
    ("POST", "/v1/tools/memory"): {"tool": "grep"},
    ("PUT", "/v1/blocks/b1?user_id=hostile"): {"value": "what"},
    ("PATCH", "/v1/blocks/b1?user_id=hostile"): {"operation": "append", "content": "x"},
    ("POST", "/v1/blocks/b1/undo?user_id=hostile"): {},
    ("POST", "/v1/blocks/b1/attach?user_id=hostile"): {"agent_id": "a"},
    ("POST", "/v1/blocks/b1/detach?user_id=hostile"): {"agent_id": "a"},
    ("PUT", "/v1/items"): {"path": ["hostile"], "key": "k", "value": {}},
    ("POST", "/v1/items/search"): {"path": ["hostile"]},
    ("POST", "/v1/items/namespaces"): {},
    ("POST", "/v1/items/batch"): {"operations": []},
    ("PUT", "/v1/profile/schema?namespace=hostile"): {"topics": {"home": {"sub_topics": {"city": "Where they live."}}}},
    ("PUT", "/v1/extraction-rules"): {},
    ("POST", "/v1/auth/tokens"): {"description": "a bot"},
    ("POST", "/v1/auth/tokens/t1/rotate"): {},
    ("POST", "/v1/memory/forget"): {"text": "what", "user_id": "hostile", "dry_run": True},
    ("POST", "/v1/reembed"): {"model": "use-multilingual-v3", "dry_run": True},
    ("POST", "/v1/memory/prompt"): {"query": "what", "session": {"session_id": "hostile"}},
}
ROUTES = list(BODIES)
# A misspelled limit would mean no limit, and a misspelled source no source, so the server refuses both.
STRICT = frozenset(
    {
        ("POST", "/v1/auth/tokens"),
        ("POST", "/v1/auth/tokens/t1/rotate"),
        ("POST", "/v1/long-term-memory/purge"),
        ("POST", "/v1/memory/forget"),
    }
)


def test_hostile_cases_cover_every_route_with_a_body() -> None:
    taking = {
        (method, r.path_format)
        for router in ROUTERS
        for r in router.routes
        if isinstance(r, Operation) and r.body_field
        for method in r.methods
    }
    names = {"hostile": "{session_id}", "m1": "{memory_id}", "t1": "{token_id}", "p1": "{procedure_id}", "b1": "{label}"}
    names |= {part: parameter for one in registrations() for part, parameter in one.path_parts.items()}
    paths = {path: [names.get(part, part) for part in path.partition("?")[0].removeprefix("/v1/").split("/")] for _, path in ROUTES}
    listed = {(method, "/v1/" + "/".join(paths[path])) for method, path in ROUTES}
    assert taking == listed


# Bodies that are invalid on every route, and a part of the message that names the fix.
BROKEN: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "empty"),
    "half": (b'{"messages":[', "ends too early"),
    "no JSON": (b"hello", "JSON"),
    "HTML": (b"<html>", "JSON"),
    "NaN": (b"NaN", ""),
    "infinite": (b"-Infinity", ""),
    "1e999": (b"1e999", "object"),
    "null": (b"null", "object"),
    "a list": (b"[]", "object"),
    "a text": (b'"x"', "object"),
    "deep lists": (b"[" * 90_000 + b"]" * 90_000, "too deeply"),
    "deep objects": (b'{"a":' * 90_000 + b"1" + b"}" * 90_000, "too deeply"),
    "deep and unknown": (b'{"unknown":' + b"[" * 90_000 + b"]" * 90_000 + b"}", "too deeply"),
    "a long number": (b'{"unknown":' + b"9" * 5000 + b"}", "too many digits"),
    "lone surrogate and no JSON": (b'{"unknown":"\\ud800"', "surrogate"),
    "bad UTF-8": (b'{"unknown":"\xff\xfe"}', "UTF-8"),
    "UTF-16": ('{"query":"x"}'.encode("utf-16"), "JSON"),
    "raw control character": (b'{"unknown":"\x00"}', "JSON"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_broken_bodies_get_422_with_a_hint(live: httpx.AsyncClient, method: str, path: str, name: str) -> None:
    body, hint = BROKEN[name]
    answer = await live.request(method, path, content=body, headers=JSON)
    assert answer.status_code == 422, answer.text[:300]
    assert answer.json()["detail"][0]["loc"][0] == "body"
    assert hint in answer.json()["detail"][0]["msg"]
    assert len(answer.content) < 2000


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_ten_megabyte_body_gets_413(live: httpx.AsyncClient, method: str, path: str, chunked: bool) -> None:
    async def pieces() -> Any:
        for _ in range(160):
            yield b"x" * 65536

    content: Any = pieces() if chunked else b"x" * 10_485_760
    answer = await live.request(method, path, content=content, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert (await live.get("/v1/health")).status_code == 200


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_many_unknown_keys_are_ignored(live: httpx.AsyncClient, method: str, path: str) -> None:
    body = {**BODIES[method, path], **{f"k{i}": i for i in range(90_000)}}
    assert (await live.request(method, path, json=body)).status_code in ((422,) if (method, path) in STRICT else (200, 404))


def _put(base: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """Return a copy of `base` with `value` at `path`, creating missing levels."""
    if not path:
        return value
    if isinstance(path[0], int):
        return [_put(base[0] if base else None, path[1:], value)]
    return {**(base or {}), path[0]: _put((base or {}).get(path[0]), path[1:], value)}


def _named(answer: httpx.Response, path: tuple[str | int, ...]) -> bool:
    """True if an error message mentions the field at `path`."""
    last = next(part for part in reversed(path) if isinstance(part, str))
    return any(last in problem["msg"] for problem in answer.json()["detail"])


PUT, APPEND, PATCH, CREATE, EDIT, SEARCH = ROUTES[:6]
PROMPT = ROUTES[-1]
IDS: list[tuple[tuple[str, str], tuple[str | int, ...]]] = [
    (PUT, ("user_id",)),
    (PUT, ("namespace",)),
    (PUT, ("messages", 0, "id")),
    (APPEND, ("messages", 0, "id")),
    (APPEND, ("user_id",)),
    (APPEND, ("namespace",)),
    (PATCH, ("user_id",)),
    (PATCH, ("namespace",)),
    (CREATE, ("memories", 0, "id")),
    (CREATE, ("memories", 0, "user_id")),
    (CREATE, ("memories", 0, "namespace")),
    (CREATE, ("memories", 0, "session_id")),
    (EDIT, ("user_id",)),
    (SEARCH, ("user_id", "eq")),
    (SEARCH, ("namespace", "any", 0)),
    (SEARCH, ("session_id", "startswith")),
    (PROMPT, ("session", "session_id")),
    (PROMPT, ("session", "user_id")),
]
BAD_IDS: dict[str, Any] = {
    "5 kB": "x" * 5000,
    "257 umlauts": "ü" * 257,
    "blank": "  ",
    "NUL": "a\0b",
    "line break": "a\nb",
    "escape": "\x1b[31m",
    "a number": 5,
    "a list": ["a"],
    "an object": {"eq": "a"},
    "true": True,
}
GOOD_IDS = ["a b", "日本語", "😀", "é", "a:b", "*", "{x}", "@user_id:{x}", "a|b", "-(", '"', "\\", "a\u200db", "%", "x" * 512]


def _body(route: tuple[str, str], path: tuple[str | int, ...], value: Any) -> Any:
    return _put(BODIES[route], path, value)


@pytest.mark.parametrize("name", BAD_IDS)
@pytest.mark.parametrize(("route", "path"), IDS)
async def test_invalid_ids_in_bodies_are_rejected_by_name(
    live: httpx.AsyncClient, route: tuple[str, str], path: tuple[str | int, ...], name: str
) -> None:
    answer = await live.request(*route, json=_body(route, path, BAD_IDS[name]))
    assert answer.status_code == 422, answer.text[:300]
    assert _named(answer, path)


@pytest.mark.parametrize(("route", "path"), IDS)
async def test_lone_surrogates_in_ids_are_rejected(live: httpx.AsyncClient, route: tuple[str, str], path: tuple[str | int, ...]) -> None:
    body = json.dumps(_body(route, path, "\ud800")).encode()
    answer = await live.request(*route, content=body, headers=JSON)
    assert answer.status_code == 422
    assert _named(answer, path)
    assert "surrogate" in answer.text


@pytest.mark.parametrize("given", GOOD_IDS)
@pytest.mark.parametrize(("route", "path"), IDS)
async def test_unusual_valid_ids_in_bodies_are_accepted(
    live: httpx.AsyncClient, route: tuple[str, str], path: tuple[str | int, ...], given: str
) -> None:
    await live.request(*PUT, json=BODIES[PUT])
    body = _body(route, path, given)
    if route == CREATE and path[-1] != "id":
        # An id belongs to one owner, and each of these has another owner.
        body = _put(body, ("memories", 0, "id"), str(ULID()))
    answer = await live.request(*route, json=body)
    assert answer.status_code in (200, 404), answer.text[:300]


@pytest.mark.parametrize("given", [given for given in GOOD_IDS if "/" not in given])
async def test_unusual_valid_ids_in_paths_are_accepted(live: httpx.AsyncClient, given: str) -> None:
    quoted = "".join(f"%{byte:02X}" for byte in given.encode())
    url = f"/v1/working-memory/{quoted}"
    assert (await live.put(url, json={"messages": [MESSAGE], "user_id": given, "namespace": given})).status_code == 200
    found = (await live.get(url, params={"user_id": given, "namespace": given})).json()
    assert (found["session_id"], found["user_id"], found["namespace"]) == (given, given, given)
    assert (await live.get("/v1/working-memory/", params={"user_id": given, "namespace": given})).json()["sessions"] == [given]
    assert (await live.delete(url, params={"user_id": given, "namespace": given})).json() == {"status": "ok"}
    assert (await live.get(url, params={"user_id": given, "namespace": given})).status_code == 404


@pytest.mark.parametrize("content", [None, [], {}, 5, True, "", "  \n", "\0", "\u200b", "\x1b[0m", "\x1b]0;title\x07 \x1b[1;31m"])
@pytest.mark.parametrize("route", [PUT, APPEND])
async def test_invalid_message_content_is_rejected_by_name(live: httpx.AsyncClient, route: tuple[str, str], content: Any) -> None:
    answer = await live.request(*route, json={"messages": [{"role": "user", "content": content}]})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"][:4] == ["body", "messages", 0, "content"]


@pytest.mark.parametrize("text", [None, [], 5, "", "  ", "\0", "\u200b\ufeff", "\x1b[0m", "\x1b]0;title\x07 \x1b[1;31m", "x" * 70_000])
@pytest.mark.parametrize("route", [CREATE, EDIT])
async def test_invalid_memory_text_is_rejected_by_name(live: httpx.AsyncClient, route: tuple[str, str], text: Any) -> None:
    if route == EDIT and text is None:
        return
    path = ("memories", 0, "text") if route == CREATE else ("text",)
    answer = await live.request(*route, json=_body(route, path, text))
    assert answer.status_code == 422, answer.text[:300]
    assert _named(answer, path)


DATES: list[tuple[tuple[str, str], tuple[str | int, ...]]] = [
    (PUT, ("messages", 0, "created_at")),
    (PUT, ("created_at",)),
    (APPEND, ("messages", 0, "created_at")),
    (CREATE, ("memories", 0, "created_at")),
    (CREATE, ("memories", 0, "event_date")),
    (EDIT, ("event_date",)),
    (SEARCH, ("created_at", "gt")),
    (SEARCH, ("event_date", "between", 0)),
]


@pytest.mark.parametrize(
    "date", ["10000-01-01T00:00:00Z", "0000-01-01", -1e20, 1e20, "yesterday", "", [], {}, True, "9" * 5000, "0001-01-01T00:00:00+14:00"]
)
@pytest.mark.parametrize(("route", "path"), DATES)
async def test_absurd_dates_are_rejected_by_name(
    live: httpx.AsyncClient, route: tuple[str, str], path: tuple[str | int, ...], date: Any
) -> None:
    answer = await live.request(*route, json=_body(route, path, date))
    assert answer.status_code == 422, answer.text[:300]
    assert _named(answer, path)


@pytest.mark.parametrize("literal", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"9" * 5000])
@pytest.mark.parametrize(("route", "path"), DATES)
async def test_numbers_that_are_not_dates_are_rejected(
    live: httpx.AsyncClient, route: tuple[str, str], path: tuple[str | int, ...], literal: bytes
) -> None:
    body = json.dumps(_body(route, path, "@")).encode().replace(b'"@"', literal)
    answer = await live.request(*route, content=body, headers=JSON)
    assert answer.status_code == 422, answer.text[:300]
    assert "detail" in answer.json()


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("2024-02-29T12:00:00", "2024-02-29T12:00:00Z"),
        ("2024-02-29T12:00:00+02:00", "2024-02-29T10:00:00Z"),
        ("2024-02-29", "2024-02-29T00:00:00Z"),
        (1709208000, "2024-02-29T12:00:00Z"),
        (1709208000.25, "2024-02-29T12:00:00.250000Z"),
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
async def test_naive_and_epoch_dates_are_normalised(live: httpx.AsyncClient, given: Any, stored: str) -> None:
    url = "/v1/working-memory/dates"
    assert (await live.put(url, json={"messages": [{**MESSAGE, "created_at": given}]})).status_code == 200
    assert (await live.get(url)).json()["messages"][0]["created_at"] == stored
    memory = {"id": "dates", "text": f"a fact of {given}", "event_date": given, "created_at": given}
    assert (await live.post("/v1/long-term-memory/", json={"memories": [memory]})).status_code == 200
    found = (await live.get("/v1/long-term-memory/dates")).json()
    assert (found["event_date"], found["created_at"]) == (stored, stored)


@pytest.mark.parametrize(
    ("route", "path", "value"),
    [
        (PUT, ("messages",), None),
        (PUT, ("messages",), {}),
        (PUT, ("messages", 0), None),
        (PUT, ("messages", 0, "role"), "x" * 65),
        (PUT, ("messages", 0, "role"), ""),
        (PUT, ("tokens",), -1),
        (PUT, ("tokens",), 2**63),
        (PUT, ("ttl_seconds",), 2**63),
        (PUT, ("ttl_seconds",), "soon"),
        (PUT, ("data",), []),
        (PUT, ("context",), 5),
        (PUT, ("long_term_memory_strategy", "strategy"), "other"),
        (PUT, ("memories",), [{"id": "", "text": "x"}]),
        (PUT, ("memories",), [{"text": "x", "topics": ["a,b"]}]),
        (APPEND, ("messages",), []),
        (APPEND, ("messages",), [MESSAGE] * 1001),
        (APPEND, ("context_window_max",), -1),
        (PATCH, ("data",), None),
        (CREATE, ("memories",), None),
        (CREATE, ("memories",), [{"text": "x"}]),
        (CREATE, ("memories", 0, "topics"), ["a,b"]),
        (CREATE, ("memories", 0, "entities"), ["x"] * 65),
        (CREATE, ("memories", 0, "memory_type"), "other"),
        (CREATE, ("memories", 0, "access_count"), 2**63),
        (EDIT, ("topics",), ["a,b"]),
        (EDIT, ("memory_type",), "other"),
        (SEARCH, ("limit",), 0),
        (SEARCH, ("limit",), 101),
        (SEARCH, ("offset",), -1),
        (SEARCH, ("offset",), 2_000_000),
        (SEARCH, ("search_mode",), "other"),
        (SEARCH, ("distance_threshold",), -1),
        (SEARCH, ("hybrid_alpha",), 2),
        (SEARCH, ("text_scorer",), "other"),
        (SEARCH, ("user_id",), {}),
        (SEARCH, ("user_id",), {"eq": ""}),
        (SEARCH, ("user_id",), {"eq": "a", "field": "namespace"}),
        (SEARCH, ("user_id",), {"equals": "a"}),
        (SEARCH, ("namespace", "any"), []),
        (SEARCH, ("memory_type",), {"eq": "other"}),
        (SEARCH, ("metadata",), {"9" * 5000: {"gt": "soon"}}),
        (SEARCH, ("created_at",), {"between": ["2024-01-01"]}),
        (SEARCH, ("recency_half_life_created_days",), 0),
        (PROMPT, ("query",), None),
        (PROMPT, ("session", "session_id"), "a/b"),
        (PROMPT, ("session", "context_window_max"), "many"),
        (PROMPT, ("long_term_search",), "x"),
        (PROMPT, ("long_term_search",), {"limit": 0}),
    ],
)
async def test_invalid_values_are_rejected_by_name(
    live: httpx.AsyncClient, route: tuple[str, str], path: tuple[str | int, ...], value: Any
) -> None:
    answer = await live.request(*route, json=_body(route, path, value))
    assert answer.status_code == 422, answer.text[:300]
    named = next(part for part in path if isinstance(part, str))
    assert any(named in problem["loc"] and named in problem["msg"] for problem in answer.json()["detail"]), answer.text[:300]


@pytest.mark.parametrize(
    "text",
    ["", "   ", "the and of", "@user_id:{*}", "*", "(((", "'\"\\", "-x", "%%a%%", "a|b", "=>[KNN 5 @v $b]", "😀", "\u200b", "x" * 60_000],
)
@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
async def test_hostile_search_texts_never_cause_a_server_error(live: httpx.AsyncClient, text: str, mode: str) -> None:
    for body in ({"text": text, "search_mode": mode}, {"text": text, "search_mode": mode, "namespace": {"eq": "x} | @user_id:{*"}}):
        answer = await live.request(*SEARCH, json=body)
        assert answer.status_code in (200, 400), answer.text[:300]
    answer = await live.request(*PROMPT, json={"query": text, "session": {"session_id": "s"}, "long_term_search": {"search_mode": mode}})
    assert answer.status_code in (200, 400, 422), answer.text[:300]
