"""Test how the working memory routes parse headers and parameters."""

from __future__ import annotations

import httpx
import pytest

from tests.support.api import Recorded, session_answer

MESSAGES = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/working-memory/s1", None),
        ("PUT", "/v1/working-memory/s1", {}),
        ("POST", "/v1/working-memory/s1/messages", MESSAGES),
        ("PATCH", "/v1/working-memory/s1/data", {"data": {}}),
    ],
)
async def test_responses_carry_the_version_as_etag(api: httpx.AsyncClient, method: str, path: str, body: object) -> None:
    assert (await api.request(method, path, json=body)).headers["etag"] == '"7"'


@pytest.mark.parametrize(("header", "passed"), [(None, None), ('"7"', "7"), ('W/"7"', "7"), (' "07" ', "7"), ("*", "*"), ('"0"', "0")])
@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/v1/working-memory/s1"), ("POST", "/v1/working-memory/s1/messages"), ("PATCH", "/v1/working-memory/s1/data")],
)
async def test_if_match_is_passed_to_the_service(
    api: httpx.AsyncClient, recorded: Recorded, method: str, path: str, header: str | None, passed: str | None
) -> None:
    headers = {} if header is None else {"If-Match": header}
    answer = await api.request(method, path, json={**MESSAGES, "data": {}}, headers=headers)
    assert answer.status_code == 200
    assert recorded.last[2]["if_match"] == passed


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("7", 400),
        ("", 400),
        ('"1", "2"', 400),
        ('"x"', 412),
        ('""', 412),
        ('"-1"', 412),
        ('"\u00b2"', 412),
        ('"' + "9" * 40 + '"', 412),
        ("x" * 100, 422),
    ],
)
async def test_malformed_if_match_is_refused(api: httpx.AsyncClient, recorded: Recorded, header: str, status: int) -> None:
    answer = await api.put("/v1/working-memory/s1", json={}, headers=[(b"If-Match", header.encode("latin-1"))])
    assert answer.status_code == status
    assert not recorded.calls


async def test_missing_message_times_return_a_deprecation_warning(api: httpx.AsyncClient, recorded: Recorded) -> None:
    assert "x-deprecation-warning" not in (await api.put("/v1/working-memory/s1", json=MESSAGES)).headers
    recorded.answers["working.put"] = session_answer(missing_timestamps=True)
    assert "created_at" in (await api.put("/v1/working-memory/s1", json=MESSAGES)).headers["x-deprecation-warning"]


async def test_put_parameters_are_passed_to_the_service(api: httpx.AsyncClient, recorded: Recorded) -> None:
    await api.put(
        "/v1/working-memory/s1?user_id=u&namespace=n&model_name=my-litellm-model&context_window_max=4000&background=true",
        json={"user_id": "body"},
    )
    name, (session_id, body), keywords = recorded.last
    assert (name, session_id, body.user_id) == ("working.put", "s1", "body")
    window = {"model_name": "my-litellm-model", "context_window_max": 4000}
    assert keywords == {"user_id": "u", "namespace": "n", **window, "if_match": None, "shown_as_semantic": True}


@pytest.mark.parametrize(("given", "passed"), [("5", 5), ("0", None), ("-3", None)])
async def test_recent_messages_limit_below_one_means_no_limit(
    api: httpx.AsyncClient, recorded: Recorded, given: str, passed: int | None
) -> None:
    await api.get(f"/v1/working-memory/s1?recent_messages_limit={given}&context_window_max=0")
    assert recorded.last[2]["recent_messages_limit"] == passed
    assert recorded.last[2]["context_window_max"] is None


async def test_last_of_repeated_query_parameters_wins(api: httpx.AsyncClient, recorded: Recorded) -> None:
    await api.get("/v1/working-memory/s1?user_id=a&user_id=b")
    assert recorded.last[2]["user_id"] == "b"


async def test_patch_data_takes_user_from_body_and_namespace_from_query(api: httpx.AsyncClient, recorded: Recorded) -> None:
    await api.patch("/v1/working-memory/s1/data?user_id=q&namespace=n", json={"data": {"a": None}, "user_id": "b"})
    assert recorded.last == ("working.patch_data", ("s1", {"a": None}), {"namespace": "n", "user_id": "b", "if_match": None})


async def test_list_has_default_limit_and_offset(api: httpx.AsyncClient, recorded: Recorded) -> None:
    answer = await api.get("/v1/working-memory/")
    assert answer.json() == {"sessions": ["s1"], "total": 1}
    assert recorded.last[2] == {"namespace": None, "user_id": None, "limit": 20, "offset": 0, "identities": False}


async def test_memories_are_deleted_by_repeated_query_parameters(api: httpx.AsyncClient, recorded: Recorded) -> None:
    await api.delete("/v1/long-term-memory", params={"memory_ids": ["a", "b,c", "d/e"]})
    assert recorded.last == ("longterm.delete", (["a", "b,c", "d/e"],), {})
    await api.delete("/v1/long-term-memory")
    assert recorded.last == ("longterm.delete", ([],), {})


@pytest.mark.parametrize(("given", "passed"), [("true", True), ("false", False), ("1", True)])
async def test_optimize_query_is_passed_to_the_service(api: httpx.AsyncClient, recorded: Recorded, given: str, passed: bool) -> None:
    for path, body in (("/v1/long-term-memory/search", {"text": "x"}), ("/v1/memory/prompt", {"query": "x"})):
        await api.post(f"{path}?optimize_query={given}", json=body)
        assert recorded.last[2] == {"optimize_query": passed}


async def test_session_json_follows_the_contract(api: httpx.AsyncClient) -> None:
    body = (await api.get("/v1/working-memory/s1")).json()
    assert "new_session" not in body
    assert "unsaved" not in body
    assert body["created_at"].endswith("Z")
    assert body["context_percentage_total_used"] is None
