"""Test that misspelled scope fields are errors, and that a header lists other unknown fields."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from tests.support.api import Recorded

MESSAGES = {"messages": [{"role": "user", "content": "hi"}]}
RECORD = {"id": "m", "text": "a fact"}


@pytest.fixture
async def strict(recorded: Recorded) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(load_settings(STRICT_FIELDS="true"), recorded.runtime))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


def refusals(answer: httpx.Response) -> dict[str, str]:
    assert answer.status_code == 422, answer.text
    return {".".join(map(str, problem["loc"])): problem["msg"] for problem in answer.json()["detail"]}


@pytest.mark.parametrize(
    ("method", "path", "body", "place", "meant"),
    [
        ("POST", "/v1/long-term-memory/search", {"text": "x", "userid": {"eq": "ada"}}, "body.userid", "user_id"),
        ("POST", "/v1/long-term-memory/search", {"text": "x", "filter": {"not": {"userId": "ada"}}}, "body.filter.not.userId", "user_id"),
        ("POST", "/v1/memory/prompt", {"query": "x", "user": "ada", "long_term_search": True}, "body.user", "user_id"),
        ("POST", "/v1/memory/prompt", {"query": "x", "session": {"session_id": "s", "usr_id": "ada"}}, "body.session.usr_id", "user_id"),
        ("POST", "/v1/memory/prompt", {"query": "x", "long_term_search": True, "session_id": "s"}, "body.session_id", "session"),
        ("POST", "/v1/long-term-memory/", {"memories": [{**RECORD, "name_space": "n"}]}, "body.memories.0.name_space", "namespace"),
        ("PUT", "/v1/working-memory/s", {**MESSAGES, "userId": "ada"}, "body.userId", "user_id"),
        ("POST", "/v1/working-memory/s/messages", {**MESSAGES, "user": "ada"}, "body.user", "user_id"),
        ("PATCH", "/v1/working-memory/s/data", {"data": {"user": 1}, "namespaces": "n"}, "body.namespaces", "namespace"),
        ("PATCH", "/v1/long-term-memory/m", {"text": "x", "sessionId": "s"}, "body.sessionId", "session_id"),
        ("GET", "/v1/working-memory/s?userid=ada", None, "query.userid", "user_id"),
        ("GET", "/v1/working-memory/?user=ada", None, "query.user", "user_id"),
        ("POST", "/v1/long-term-memory/search?user_id=ada", {"text": "x"}, "query.user_id", "user_id in the body"),
        ("POST", "/v1/memory/prompt?userId=ada", {"query": "x", "long_term_search": True}, "query.userId", "user_id in the body"),
        ("POST", "/v1/long-term-memory/forget?usr_id=ada", {"policy": {"max_age_days": 1}}, "query.usr_id", "user_id"),
        ("POST", "/v1/users/ada/export?name_space=n", None, "query.name_space", "namespace"),
        ("GET", "/v1/working-memory/?users=ada", None, "query.users", "user_id"),
        ("POST", "/v1/memory/prompt", {"query": "x", "agents": "a", "long_term_search": True}, "body.agents", "agent_id"),
        ("POST", "/v1/long-term-memory/search", {"text": "x", "entity": "tea"}, "body.entity", "entities"),
        ("POST", "/v1/long-term-memory/search", {"text": "x", "categories": "food"}, "body.categories", "category"),
        # Owner fields in a body in which they have no effect.
        ("POST", "/v1/long-term-memory/", {"memories": [RECORD], "user_id": "ada"}, "body.user_id", "user_id where the body takes it"),
        ("POST", "/v1/items/search", {"user_id": "ada"}, "body.user_id", "user_id in the query"),
        ("PUT", "/v1/items", {"path": ["a"], "key": "k", "value": {}, "name_space": "n"}, "body.name_space", "namespace in the query"),
        ("PUT", "/v1/blocks/human?user_id=u", {"value": "x", "agentId": "a"}, "body.agentId", "agent_id in the query"),
        ("PATCH", "/v1/working-memory/s/result", {"result": "success", "user_id": "ada"}, "body.user_id", "user_id in the query"),
        (
            "POST",
            "/v1/memory/prompt",
            {"query": "x", "long_term_search": True, "profile": {"user_id": "ada"}},
            "body.profile.user_id",
            "user_id where the body takes it",
        ),
    ],
)
async def test_misspelled_scope_field_is_refused_with_the_right_name(
    api: httpx.AsyncClient, recorded: Recorded, method: str, path: str, body: Any, place: str, meant: str
) -> None:
    assert f"use {meant}" in refusals(await api.request(method, path, json=body))[place]
    assert recorded.calls == []


async def test_misspelled_and_invalid_fields_are_reported_together(api: httpx.AsyncClient) -> None:
    found = refusals(await api.post("/v1/memory/prompt", json={"user": "ada", "session": {"session_id": ""}}))
    assert found.keys() == {"body.user", "body.query", "body.session.session_id"}


@pytest.mark.parametrize(
    ("method", "path", "body", "named"),
    [
        ("PUT", "/v1/working-memory/s", {**MESSAGES, "unsaved": True, "new_session": False, "session_id": "s"}, "new_session, unsaved"),
        ("POST", "/v1/memory/prompt?trace=1", {"query": "x", "long_term_search": {"sorted": 1}}, "long_term_search.sorted, trace"),
        ("POST", "/v1/long-term-memory/", {"memories": [{**RECORD, "a": 1}, {**RECORD, "a": 2, "b": 1}]}, "memories.a, memories.b"),
        ("GET", "/v1/working-memory/s?verbose=1", None, "verbose"),
        ("DELETE", "/v1/working-memory/s?verbose=1", None, "verbose"),
        # The archived server's npm client sends this field.
        ("DELETE", "/v1/long-term-memory?memory_ids=a&namespace=n", None, "namespace"),
    ],
)
async def test_other_unknown_fields_are_named_in_a_header(
    api: httpx.AsyncClient, strict: httpx.AsyncClient, recorded: Recorded, method: str, path: str, body: Any, named: str
) -> None:
    answer = await api.request(method, path, json=body)
    assert answer.status_code == 200
    assert sorted(answer.headers["x-ignored-fields"].split(", ")) == named.split(", ")
    calls = len(recorded.calls)
    assert all("STRICT_FIELDS" in why for why in refusals(await strict.request(method, path, json=body)).values())
    assert len(recorded.calls) == calls


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/v1/working-memory/s?user_id=ada", {**MESSAGES, "session_id": "s"}),
        ("PUT", "/v1/working-memory/s", {"messages": [{"role": "user", "content": "hi", "user": "a field of its own"}]}),
        ("PUT", "/v1/working-memory/s", {"data": {"user": 1}}),
        ("POST", "/v1/long-term-memory/", {"memories": [{**RECORD, "metadata": {"userId": 1}}]}),
        ("POST", "/v1/long-term-memory/search", {"text": "x", "metadata": {"user": {"eq": 1}}}),
    ],
)
async def test_known_fields_and_free_objects_are_not_reported(
    api: httpx.AsyncClient, strict: httpx.AsyncClient, method: str, path: str, body: Any
) -> None:
    for client in (api, strict):
        answer = await client.request(method, path, json=body)
        assert answer.status_code == 200, answer.text
        assert "x-ignored-fields" not in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "body", "place"),
    [
        ("DELETE", "/v1/long-term-memory?memory_ids=a&user_id=ada", None, "query.user_id"),
        ("DELETE", "/v1/long-term-memory?memory_ids=a&userId=", None, "query.userId"),
        ("DELETE", "/v1/working-memory/s?user_id=", None, "query.user_id"),
        ("DELETE", "/v1/working-memory/s?namespace=", None, "query.namespace"),
        ("DELETE", "/v1/working-memory/s?agent_id=a", None, "query.agent_id"),
        ("DELETE", "/v1/users/ada?namespace=", None, "query.namespace"),
        ("DELETE", "/v1/users/ada?session_id=s", None, "query.session_id"),
        ("POST", "/v1/long-term-memory/forget?user_id=", {"policy": {"max_age_days": 1}}, "query.user_id"),
        ("POST", "/v1/long-term-memory/forget?dry_run=false", {"policy": {"max_age_days": 1}, "user_id": "ada"}, "body.user_id"),
        ("POST", "/v1/long-term-memory/purge?agent_id=a", {"session_id": "s"}, "query.agent_id"),
    ],
)
async def test_delete_is_refused_if_a_scope_parameter_has_no_effect(
    api: httpx.AsyncClient, recorded: Recorded, method: str, path: str, body: Any, place: str
) -> None:
    assert place in refusals(await api.request(method, path, json=body))
    assert recorded.calls == []


async def test_a_plain_value_in_a_filter_means_equality(api: httpx.AsyncClient, recorded: Recorded) -> None:
    plain = {"user_id": "ada", "topics": "food", "memory_type": "episodic", "created_at": "2026-01-01T00:00:00Z", "event_date": 5}
    plain |= {"slot": "tea", "metadata": {"a": 1, "b": True, "c": "x"}, "filter": {"or": [{"namespace": "n"}, {"agent_id": "a"}]}}
    assert (await api.post("/v1/long-term-memory/search", json=plain)).status_code == 200
    request = recorded.last[1][0]
    assert (request.user_id.eq, request.topics.eq, request.slot.eq) == ("ada", "food", "tea")
    assert request.memory_type.any == ["episodic"]
    assert (request.created_at.eq.year, request.event_date.eq.second) == (2026, 5)
    assert [request.metadata[name].eq for name in "abc"] == [1, True, "x"]
    assert [one.namespace or one.agent_id for one in request.filter.or_] == [
        request.filter.or_[0].namespace,
        request.filter.or_[1].agent_id,
    ]
    assert request.user_id.model_fields_set == {"eq"}


@pytest.mark.parametrize("value", ["", "\ud800", 5, True])
async def test_invalid_plain_filter_value_is_rejected(api: httpx.AsyncClient, value: Any) -> None:
    body = json.dumps({"user_id": value}).encode()
    answer = await api.post("/v1/long-term-memory/search", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert "body.user_id" in next(iter(refusals(answer)))
