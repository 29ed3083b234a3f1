"""Test that Supermemory's paths keep container tags, tokens and namespaces separate."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from agent_memory.foundation.core.scope import Principal
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.compat.callers import ANNA, BOB, ELSEWHERE, OWNER, READER, STRANGER, Callers

SECRET = "Anna keeps a zither in the cellar"


@pytest.fixture(scope="module")
async def callers(redis_url: str) -> AsyncGenerator[Callers]:
    settings = load_settings(KEY_PREFIX="sm-isolation", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", COMPAT_APIS="mem0, supermemory")
    async with open_runtime(settings, redis_url) as runtime:
        yield Callers(create_app(settings, runtime))


async def memory_of(client: httpx.AsyncClient, text: str, tag: str, **metadata: Any) -> str:
    body = {"containerTag": tag, "memories": [{"content": text, "metadata": metadata}]}
    answer = await client.post("/v4/memories", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["memories"][0]["id"]


async def document_of(client: httpx.AsyncClient, text: str, tag: str, **fields: Any) -> str:
    answer = await client.post("/v3/documents", json={"content": text, "containerTag": tag, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()["id"]


REQUESTS: tuple[tuple[str, str, dict[str, Any] | None], ...] = (
    ("GET", "/v3/documents/{document}", None),
    ("PATCH", "/v3/documents/{document}", {"content": "changed"}),
    ("DELETE", "/v3/documents/{document}", None),
    ("DELETE", "/v3/documents/bulk", {"ids": ["{document}"]}),
    ("DELETE", "/v3/documents/bulk", {"containerTags": ["anna"]}),
    ("POST", "/v3/documents", {"content": "changed", "customId": "{document}", "containerTag": "anna"}),
    ("POST", "/v3/documents/list", {"containerTags": ["anna"], "includeContent": True}),
    ("POST", "/v3/documents/list", {"includeContent": True}),
    ("POST", "/v3/documents/list", {"containerTags": ["anna"], "filters": {"AND": [{"key": "kind", "value": "secret"}]}}),
    ("POST", "/v3/documents/list", {"filters": {"AND": [{"key": "kind", "value": "x", "negate": True}]}, "includeContent": True}),
    ("GET", "/v3/documents/processing", None),
    ("POST", "/v3/search", {"q": "zither", "containerTags": ["anna"]}),
    ("POST", "/v3/search", {"q": "zither", "docId": "{document}", "includeFullDocs": True}),
    ("POST", "/v4/search", {"q": "zither"}),
    ("POST", "/v4/search", {"q": "zither", "containerTag": "anna", "searchMode": "hybrid"}),
    (
        "POST",
        "/v4/search",
        {"q": "zither", "filters": {"OR": [{"key": "kind", "value": "secret"}, {"key": "kind", "value": "x", "negate": True}]}},
    ),
    ("POST", "/v4/profile", {"containerTag": "anna", "q": "zither"}),
    ("PATCH", "/v4/memories", {"containerTag": "anna", "id": "{memory}", "newContent": "changed"}),
    ("DELETE", "/v4/memories", {"containerTag": "anna", "id": "{memory}"}),
    ("DELETE", "/v4/memories", {"containerTag": "anna", "content": SECRET}),
    ("GET", "/ns/anna/document/{document}", None),
    ("GET", "/ns/anna/document/{document}?include=chunks&include=memories", None),
    ("PATCH", "/ns/anna/document/{document}", {"content": "changed"}),
    ("DELETE", "/ns/anna/document", {"ids": ["{document}"]}),
    ("POST", "/ns/anna/search", {"query": "zither"}),
    ("POST", "/ns/anna/search", {"query": "zither", "searchMode": "chunks", "include": {"documents": True}}),
    ("POST", "/ns/anna/profile", {}),
    ("POST", "/ns/anna/list/memories", {}),
    ("POST", "/ns/anna/list/documents", {}),
    ("POST", "/ns/anna/list/chunks", {}),
    ("GET", "/ns/anna/memories/{memory}", None),
    ("GET", "/ns/anna/memories/{memory}?include=documents", None),
    ("GET", "/ns/anna", None),
    ("PATCH", "/ns/anna", {"supportingContext": "changed"}),
    ("DELETE", "/ns/anna", None),
    ("DELETE", "/ns/anna/memories", {"ids": ["{memory}"]}),
    ("DELETE", "/ns/anna/memories/semantic", {"query": "the zither"}),
    ("GET", "/ns/bob/memories/{memory}", None),
    ("GET", "/ns/bob/document/{document}", None),
)


@pytest.mark.parametrize("other", [BOB, STRANGER], ids=["another user's token", "another tenant's"])
async def test_data_of_another_caller_cannot_be_read_or_changed(callers: Callers, other: Principal) -> None:
    anna = callers(ANNA)
    names = {"document": await document_of(anna, SECRET, "anna"), "memory": await memory_of(anna, SECRET, "anna", kind="secret")}

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [filled(item) for item in value]
        return value.format(**names) if isinstance(value, str) else value

    for method, path, body in REQUESTS:
        answer = await callers(other).request(method, filled(path), json=filled(body))
        assert answer.status_code < 500 or answer.status_code == 501, (method, path, answer.text)
        assert "cellar" not in answer.text, (method, path, answer.text)
    assert (await anna.get(f"/v3/documents/{names['document']}")).json()["content"] == SECRET
    found = (await anna.post("/v4/search", json={"q": SECRET, "containerTag": "anna"})).json()["results"]
    assert names["memory"] in {result["id"] for result in found}


async def test_token_without_the_namespace_is_refused(callers: Callers) -> None:
    for path, body in (("/v4/search", {"q": "x"}), ("/v3/documents", {"content": "x"}), ("/ns/anna/profile", {})):
        assert (await callers(ELSEWHERE).post(path, json=body)).status_code == 403


async def test_read_only_token_cannot_change_anything(callers: Callers) -> None:
    memory = await memory_of(callers(OWNER), "Finn rows", "finn")
    for method, path, body in (
        ("POST", "/v3/documents", {"content": "x", "containerTag": "finn"}),
        ("POST", "/v4/memories", {"memories": [{"content": "x"}], "containerTag": "finn"}),
        ("PATCH", "/v4/memories", {"id": memory, "containerTag": "finn", "newContent": "x"}),
        ("DELETE", "/v4/memories", {"id": memory, "containerTag": "finn"}),
        ("DELETE", "/v3/documents/bulk", {"containerTags": ["finn"]}),
        ("DELETE", "/ns/finn/memories", {"ids": [memory]}),
    ):
        assert (await callers(READER).request(method, path, json=body)).status_code == 403, (method, path)
    assert (await callers(READER).post("/v4/search", json={"q": "Finn rows"})).json()["results"]


async def test_memories_outside_the_supermemory_namespace_are_invisible(callers: Callers) -> None:
    owner = callers(OWNER)
    memories = [{"id": "ours-1", "text": "Erik owns a zither", "user_id": "erik"}]
    assert (await owner.post("/v1/long-term-memory/", json={"memories": memories})).status_code == 200
    assert (await owner.post("/v4/search", json={"q": "zither", "containerTag": "erik"})).json()["results"] == []
    assert (await owner.request("DELETE", "/v4/memories", json={"id": "ours-1", "containerTag": "erik"})).status_code == 404
    assert (await owner.request("DELETE", "/v3/documents/bulk", json={"containerTags": ["erik"]})).status_code == 200
    assert (await owner.get("/v1/long-term-memory/ours-1")).status_code == 200


async def test_additional_container_tags_act_as_filters(callers: Callers) -> None:
    owner = callers(OWNER)
    for content, tag in (("Gina rows on Mondays", "water"), ("Gina climbs on Fridays", "rock")):
        body = {"containerTags": ["gina", tag], "memories": [{"content": content}]}
        assert (await owner.post("/v4/memories", json=body)).status_code == 200
    answer = await owner.post("/v4/search", json={"q": "Gina", "containerTags": ["gina", "rock"]})
    results = answer.json()["results"]
    assert ([result["memory"] for result in results], results[0]["metadata"]) == (["Gina climbs on Fridays"], None)


@pytest.mark.parametrize(
    ("filters", "status"),
    [
        ({"AND": [{"key": "sport", "value": "rowing"}]}, 200),
        ({"OR": [{"key": "km", "value": "4", "filterType": "numeric", "numericOperator": ">="}]}, 200),
        ({"AND": [{"key": "a}|{b", "value": "*) | (@u:*"}]}, 200),
        ({"AND": [{"key": "sport", "value": "row", "filterType": "string_contains"}]}, 200),
        ({"AND": [{"key": "sport", "value": 5, "filterType": "string_contains"}]}, 400),
        ({"AND": [{"key": f"k{number}", "value": "x", "ignoreCase": True} for number in range(9)]}, 400),
        ({"AND": [{"field": "sport", "operator": "arrayContains", "value": "x", "caseSensitive": False}]}, 501),
        ({"AND": [{"key": "km", "value": "x", "filterType": "numeric"}]}, 400),
        ({"operator": "and", "operands": [{"field": "sport", "operator": "~", "value": "x"}]}, 501),
        ({"AND": "x"}, 400),
        ({"unknown": 1}, 400),
        ({"AND": [{"AND": [{"AND": [{"AND": [{"AND": [{"AND": [{"AND": [{"AND": [{"AND": [{"AND": []}]}]}]}]}]}]}]}]}]}, 400),
        ("sport", 400),
    ],
)
async def test_filters_are_applied_or_rejected(callers: Callers, filters: Any, status: int) -> None:
    await memory_of(callers(OWNER), "Hanna rows", "hanna", sport="rowing", km=6)
    await memory_of(callers(OWNER), "Hanna reads", "hanna", sport="none", km=0)
    answer = await callers(OWNER).post("/v4/search", json={"q": "Hanna", "containerTag": "hanna", "filters": filters})
    assert answer.status_code == status, answer.text
    if status == 200:
        assert "Hanna reads" not in answer.text


async def test_errors_have_the_shape_of_supermemory_and_name_the_field(callers: Callers) -> None:
    owner = callers(OWNER)
    for answer, status, text in (
        (await owner.post("/v3/documents", content=b"{", headers={"content-type": "application/json"}), 400, "JSON"),
        (await owner.post("/v3/documents", json={"containerTag": "x"}), 400, "content"),
        (await owner.post("/v4/profile", json={}), 400, "containerTag"),
        (await owner.post("/v3/documents", json={"content": "x", "filepath": "/a"}), 501, "filepath"),
        (await owner.post("/v3/documents/file", json={}), 400, "multipart/form-data"),
        (await owner.get("/v3/connections/github"), 501, "/v3/connections/github"),
        (await owner.get("/v3/documents/nothing"), 404, "not found"),
    ):
        assert answer.status_code == status, answer.text
        assert text in answer.json()["error"]
