"""Test the HTTP behavior that Supermemory's documentation and types promise, without a model."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from tests.support.stack import stack
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
async def api(redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    settings = load_settings(KEY_PREFIX="sm-wire", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", COMPAT_APIS="supermemory")
    async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        yield client


@pytest.fixture
def tag() -> str:
    return f"tag-{uuid4().hex[:8]}"


async def call(api: httpx.AsyncClient, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    answer = await api.request(method, path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def taken_in(api: httpx.AsyncClient, tag: str, content: str, **fields: Any) -> str:
    """Add a document and return its id once it is done."""
    name = (await call(api, "POST", "/v3/documents", {"content": content, "containerTag": tag, **fields}))["id"]

    async def done() -> bool:
        return (await call(api, "GET", f"/v3/documents/{name}"))["status"] == "done"

    await wait_until(done, "the document is done")
    return name


async def found(api: httpx.AsyncClient, tag: str, q: str, **fields: Any) -> list[str]:
    body = {"q": q, "containerTag": tag, "threshold": 0, **fields}
    return [result["memory"] for result in (await call(api, "POST", "/v4/search", body))["results"]]


async def test_done_document_is_in_the_profile_at_once(api: httpx.AsyncClient, tag: str) -> None:
    for number in range(5):
        text = f"I keep {number + 2} beehives"
        await taken_in(api, tag, text)
        assert text in (await call(api, "POST", "/v4/profile", {"containerTag": tag}))["profile"]["dynamic"]


async def test_third_person_and_subjectless_notes_are_in_the_profile(api: httpx.AsyncClient, tag: str) -> None:
    """Handbooks and questions do not describe the container's user."""
    notes = ["Alex prefers morning meetings.", "Did a bodyweight workout again."]
    for text in (*notes, "What is the capital of Peru?", "# Handbook\n\nTrains go before planes.\n\nReceipts are kept."):
        await taken_in(api, tag, text)
    profile = (await call(api, "POST", "/v4/profile", {"containerTag": tag}))["profile"]
    assert sorted(profile["dynamic"]) == notes
    results = (await call(api, "POST", "/v4/search", {"q": "meetings", "containerTag": tag, "threshold": 0}))["results"]
    assert all(result["metadata"] in (None, {}) for result in results), "our own marks are not the caller's metadata"


async def test_metadata_with_internal_field_names_is_returned(api: httpx.AsyncClient, tag: str) -> None:
    await taken_in(api, tag, "The boiler was serviced.", metadata={"name": "report.pdf", "kind": "house"})
    results = (await call(api, "POST", "/v4/search", {"q": "boiler", "containerTag": tag, "threshold": 0}))["results"]
    assert [result["metadata"] for result in results] == [{"name": "report.pdf", "kind": "house"}]


async def test_known_custom_id_appends_only_new_text(api: httpx.AsyncClient, tag: str) -> None:
    first, second = "user: I live in Leeds\nassistant: Lovely", "user: I play the cello\nassistant: Great"
    name = await taken_in(api, tag, first, customId=f"{tag}-1", metadata={"turns": 2})
    assert await taken_in(api, tag, second, customId=f"{tag}-1", metadata={"turns": 4}) == name
    document = await call(api, "GET", f"/v3/documents/{name}")
    assert (document["content"], document["metadata"]) == (f"{first}\n{second}", {"turns": 4})
    assert first in await found(api, tag, "Leeds")
    third = f"{first}\n{second}\nuser: I bake bread"
    await taken_in(api, tag, third, customId=f"{tag}-1")
    document = await call(api, "GET", f"/v3/documents/{name}")
    assert (document["content"], document["metadata"]) == (third, {"turns": 4})
    assert sorted(await found(api, tag, "Leeds cello bread")) == sorted([first, second, "user: I bake bread"])
    whole = await call(api, "POST", "/v3/search", {"q": "bread", "containerTag": tag, "includeFullDocs": True})
    assert [result["content"] for result in whole["results"]] == [third]


async def test_new_version_replaces_the_document(api: httpx.AsyncClient, tag: str) -> None:
    await taken_in(api, tag, "Shop list\nmilk\nfigs", customId=f"{tag}-1")
    await taken_in(api, tag, "Shop list\nmilk\nbread", customId=f"{tag}-1")
    assert await found(api, tag, "Shop list") == ["Shop list\nmilk\nbread"]
    await call(api, "PATCH", f"/v3/documents/{tag}-1", {"content": "Nothing to buy"})
    assert (await call(api, "GET", f"/v3/documents/{tag}-1"))["content"] == "Nothing to buy"


async def test_threshold_zero_excludes_nothing(api: httpx.AsyncClient, tag: str) -> None:
    """A keyword match at the end of a long text can have a similarity of 0 or less."""
    text = "Today I walked in the park and saw a heron. " * 200 + "The safe code is heliotrope seven."
    await taken_in(api, tag, text)
    assert await found(api, tag, "What is the safe code heliotrope?") == [text]
    assert (await api.post("/v4/search", json={"q": "x", "containerTag": tag, "threshold": 7})).status_code == 400


async def test_documents_can_be_listed_by_metadata_and_tags(api: httpx.AsyncClient, tag: str) -> None:
    names = [
        await taken_in(api, tag, f"Note about {topic}", containerTags=[tag, side], metadata={"topic": topic, "year": 2020 + number})
        for number, (topic, side) in enumerate((("budget", "red"), ("hiring", "blue"), ("launch", "red")))
    ]

    async def listed(**fields: Any) -> list[str]:
        answer = await call(api, "POST", "/v3/documents/list", {"containerTags": [tag], **fields})
        assert answer["pagination"]["totalItems"] >= len(answer["memories"])
        return [document["id"] for document in answer["memories"]]

    assert await listed(filters={"AND": [{"key": "topic", "value": "hiring"}]}) == [names[1]]
    assert await listed(filters='{"AND": [{"key": "topic", "value": "hiring"}]}') == [names[1]]
    assert await listed(containerTags=[tag, "red"]) == [names[2], names[0]]
    assert await listed(containerTags=[tag, "red"], order="asc", limit=1, page=2) == [names[2]]
    assert (await call(api, "GET", f"/v3/documents/{names[0]}"))["metadata"] == {"topic": "budget", "year": 2020}
    await call(api, "PATCH", f"/v3/documents/{names[0]}", {"containerTags": [tag, "blue"]})
    assert (await call(api, "GET", f"/v3/documents/{names[0]}"))["containerTags"] == [tag, "blue"]


@pytest.mark.parametrize(
    ("condition", "topics"),
    [
        ({"field": "topic", "operator": "eq", "value": "budget"}, {"budget"}),
        ({"field": "topic", "operator": "neq", "value": "budget"}, {"hiring"}),
        ({"field": "people", "operator": "arrayContains", "value": "ada"}, {"budget"}),
        ({"field": "people", "operator": "arrayNotContains", "value": "ada"}, {"hiring"}),
        ({"operator": "and", "operands": [{"field": "year", "operator": "gt", "value": 2020}]}, {"hiring"}),
    ],
)
async def test_newest_client_line_filters_searches_and_lists(
    api: httpx.AsyncClient, tag: str, condition: dict[str, Any], topics: set[str]
) -> None:
    for topic, people, year in (("budget", ["ada", "bob"], 2020), ("hiring", ["bob"], 2021)):
        await taken_in(api, tag, f"Note about {topic}", metadata={"topic": topic, "people": people, "year": year})
    for path, key in (("search", "results"), ("list/documents", "documents"), ("list/memories", "memories"), ("list/chunks", "chunks")):
        answer = await call(api, "POST", f"/ns/{tag}/{path}", {"query": "Note", "filter": condition})
        assert {item["metadata"]["topic"] for item in answer[key]} == topics


async def test_newest_client_line_returns_included_fields(api: httpx.AsyncClient, tag: str) -> None:
    batch = await call(api, "POST", f"/ns/{tag}/document/batch", {"documents": [{"content": "I keep bees", "id": f"{tag}-1"}]})
    assert (batch["count"], batch["failed"]) == (1, 0)
    await taken_in(api, tag, "I keep bees", customId=f"{tag}-1")
    document = await call(api, "GET", f"/ns/{tag}/document/{tag}-1?include=chunks&include=memories")
    assert [chunk["content"] for chunk in document["chunks"]] == [memory["memory"] for memory in document["memories"]] == ["I keep bees"]
    body = {"query": "bees", "searchMode": "chunks", "include": {"documents": True}}
    (hit,) = (await call(api, "POST", f"/ns/{tag}/search", body))["results"]
    assert (hit["chunk"], hit["included"]["document"]["id"]) == ("I keep bees", f"{tag}-1")
    listed = await call(api, "POST", f"/ns/{tag}/list/documents", {"include": {"content": True}})
    assert [document["content"] for document in listed["documents"]] == ["I keep bees"]


async def test_list_accepts_a_chunked_body(api: httpx.AsyncClient, tag: str) -> None:
    for topic in ("budget", "hiring"):
        await taken_in(api, tag, f"Note about {topic}", metadata={"topic": topic})

    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"filter": {"field": "topic", "operator": "eq", '
        yield b'"value": "budget"}}'

    path, headers = f"/ns/{tag}/list/documents", {"content-type": "application/json"}
    answer = await api.post(path, content=chunks(), headers=headers)
    assert [document["metadata"]["topic"] for document in answer.json()["documents"]] == ["budget"]
    assert len((await api.post(path)).json()["documents"]) == 2


async def test_unsupported_container_move_changes_nothing(api: httpx.AsyncClient, tag: str) -> None:
    await taken_in(api, tag, "I keep bees")

    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"moveTo": '
        yield b'"another"}'

    headers = {"content-type": "application/json"}
    assert (await api.request("DELETE", f"/ns/{tag}", content=chunks(), headers=headers)).status_code == 501
    assert len((await call(api, "POST", f"/ns/{tag}/list/documents", {}))["documents"]) == 1


async def test_delete_with_a_parameter_without_effect_deletes_nothing(api: httpx.AsyncClient, tag: str) -> None:
    name = await taken_in(api, tag, "I keep bees")
    deletes: list[tuple[str, dict[str, Any] | None]] = [
        (f"/ns/{tag}?moveTo=another", None),
        (f"/ns/{tag}", {"moveTo": "another"}),
        (f"/ns/{tag}", {"olderThan": "2026-01-01"}),
        (f"/ns/{tag}?bogus=1", None),
        (f"/ns/{tag}/document", {"ids": [name], "filter": {"a": 1}}),
        (f"/ns/{tag}/document?moveTo=another", {"ids": [name]}),
        (f"/ns/{tag}/memories/semantic", {"query": "bees", "dry_run": True}),
        (f"/ns/{tag}/memories/semantic?dryRun=true", {"query": "bees"}),
        (f"/v3/documents/{name}?moveTo=another", None),
        ("/v3/documents/bulk", {"containerTags": [tag], "filters": {"a": 1}}),
        ("/v4/memories", {"content": "I keep bees", "containerTag": tag, "dryRun": True}),
    ]
    for path, body in deletes:
        answer = await api.request("DELETE", path, json=body)
        left = len((await call(api, "POST", f"/ns/{tag}/list/documents", {}))["documents"])
        assert (answer.status_code, left) == (501, 1), (path, body, answer.text)


async def test_memory_version_increases_with_each_change(api: httpx.AsyncClient, tag: str) -> None:
    made = await call(api, "POST", "/v4/memories", {"containerTag": tag, "memories": [{"content": "John prefers dark mode"}]})
    name = made["memories"][0]["id"]
    assert (await call(api, "POST", "/v4/profile", {"containerTag": tag}))["profile"]["dynamic"] == ["John prefers dark mode"]
    for number, mode in enumerate(("light", "sepia"), start=2):
        changed = await call(api, "PATCH", "/v4/memories", {"containerTag": tag, "id": name, "newContent": f"John prefers {mode} mode"})
        assert changed["version"] == number
    (hit,) = (await call(api, "POST", "/v4/search", {"q": "Which mode?", "containerTag": tag}))["results"]
    assert (hit["memory"], hit["version"]) == ("John prefers sepia mode", 3)
    assert (await call(api, "GET", f"/ns/{tag}/memories/{name}"))["version"] == 3


async def test_forget_reports_deleted_and_failed_memories(api: httpx.AsyncClient, tag: str) -> None:
    await taken_in(api, tag, "Ada's dentist is Dr. Fox")
    await taken_in(api, tag, "Ada's flight to Rome leaves on Friday")
    shown = await call(api, "DELETE", f"/ns/{tag}/memories/semantic", {"query": "dentist", "dryRun": True})
    assert [match["memory"] for match in shown["matches"]] == ["Ada's dentist is Dr. Fox"]
    gone = await call(api, "DELETE", f"/ns/{tag}/memories/semantic", {"query": "dentist", "dryRun": False})
    assert gone["count"] == 1
    (left,) = (await call(api, "POST", f"/ns/{tag}/list/memories", {}))["memories"]
    assert left["memory"] == "Ada's flight to Rome leaves on Friday"
    answer = await call(api, "DELETE", f"/ns/{tag}/memories", {"ids": [left["id"], "nobody"]})
    assert (answer["count"], [error["id"] for error in answer["errors"]]) == (1, ["nobody"])
    assert (await call(api, "POST", f"/ns/{tag}/list/memories", {}))["memories"] == []


async def test_settings_are_limited_in_size(api: httpx.AsyncClient) -> None:
    sizes = [(await api.patch("/v3/settings", json={f"setting{at}": "x" * 20_000})).status_code for at in range(4)]
    assert sizes == [200, 200, 200, 413]
    assert sorted(await call(api, "GET", "/v3/settings")) == ["setting0", "setting1", "setting2"]
    await call(api, "PATCH", "/v3/settings", {"setting0": None})
    await call(api, "PATCH", "/v3/settings", {"setting3": "x" * 10_000})


async def test_container_context_is_stored_and_deleted_with_its_container(api: httpx.AsyncClient, tag: str) -> None:
    """Any version of the client can set the context."""
    assert (await api.get(f"/ns/{tag}")).status_code == 404
    await taken_in(api, tag, "Met Lee about the roof.", entityContext="Dana's diary; Lee is her builder.")
    await taken_in(api, f"{tag}-other", "The roof is red.")
    assert (await call(api, "GET", f"/ns/{tag}"))["supportingContext"] == "Dana's diary; Lee is her builder."
    assert (await call(api, "GET", f"/ns/{tag}-other"))["supportingContext"] is None
    rules = await call(api, "GET", f"/v1/extraction-rules?namespace=supermemory&user_id={tag}")
    assert rules["instructions"] == "Dana's diary; Lee is her builder.", "the model that takes facts is told"
    await call(api, "POST", f"/ns/{tag}/document/batch", {"documents": [{"content": "Lee is ill.", "supportingContext": "A diary."}]})
    assert (await call(api, "GET", f"/ns/{tag}"))["supportingContext"] == "A diary."
    assert (await call(api, "PATCH", f"/ns/{tag}", {"supportingContext": None}))["supportingContext"] is None
    await call(api, "PATCH", f"/ns/{tag}", {"supportingContext": "A diary."})
    assert (await api.post("/v3/documents", json={"content": "x", "entityContext": "Whose?"})).status_code == 400
    assert (await api.patch(f"/ns/{tag}", json={"supportingContext": "x" * 1501})).status_code == 400
    assert (await api.request("DELETE", f"/ns/{tag}", json={"moveTo": f"{tag}-other"})).status_code == 501
    gone = await call(api, "DELETE", f"/ns/{tag}")
    assert (gone["status"], gone["deletedDocumentsCount"]) == ("deleted", 2)
    assert (await api.get(f"/ns/{tag}")).status_code == 404
    assert (await call(api, "GET", f"/v1/extraction-rules?namespace=supermemory&user_id={tag}"))["instructions"] is None
    assert (await call(api, "GET", f"/ns/{tag}-other"))["namespace"] == f"{tag}-other"


async def test_memory_read_can_include_its_document(api: httpx.AsyncClient, tag: str) -> None:
    document = await taken_in(api, tag, "Kim plays chess.")
    (listed,) = (await call(api, "POST", f"/ns/{tag}/list/memories", {}))["memories"]
    path = f"/ns/{tag}/memories/{listed['id']}"
    assert "included" not in await call(api, "GET", path)
    assert (await call(api, "GET", f"{path}?include=documents"))["included"]["document"]["id"] == document
    assert (await api.get(f"{path}?include=documents,related")).status_code == 501


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/ns"),
        ("GET", "/organization"),
        ("GET", "/connectors"),
        ("POST", "/feedback"),
        ("GET", "/ns/x/profile/buckets"),
        ("POST", "/v4/memories/list"),
        ("GET", "/v3/container-tags/list"),
        ("PUT", "/v3/settings"),
        ("POST", "/v3/settings/reset"),
    ],
)
async def test_unsupported_path_gets_501_and_names_the_path(api: httpx.AsyncClient, method: str, path: str) -> None:
    answer = await api.request(method, path, json={})
    assert answer.status_code == 501
    assert path in answer.json()["error"]


async def test_null_in_a_memory_change_clears_expiry_and_metadata(api: httpx.AsyncClient, tag: str) -> None:
    memory = {"content": "I keep bees", "metadata": {"kind": "hobby"}}
    made = (await call(api, "POST", "/v4/memories", {"memories": [memory], "containerTag": tag}))["memories"][0]
    change = {"id": made["id"], "containerTag": tag, "newContent": "I keep two hives of bees"}
    dated = await call(api, "PATCH", "/v4/memories", {**change, "forgetAfter": "2224-01-01T00:00:00Z"})
    assert dated["forgetAfter"] is not None
    kept = await call(api, "PATCH", "/v4/memories", {**change, "newContent": "I keep three hives of bees"})
    assert kept["forgetAfter"] == dated["forgetAfter"]
    cleared = {**change, "newContent": "I keep four hives of bees", "forgetAfter": None, "metadata": None}
    assert (await call(api, "PATCH", "/v4/memories", cleared))["forgetAfter"] is None
    (hit,) = (await call(api, "POST", "/v4/search", {"q": "bees", "containerTag": tag, "threshold": 0}))["results"]
    assert hit["metadata"] in (None, {})


async def test_refusals_name_the_field_as_the_client_sent_it(api: httpx.AsyncClient) -> None:
    headers = {"content-type": "application/json"}
    for value in ({"b": 1}, math.inf):
        answer = await api.post("/v3/documents", content=json.dumps({"content": "x", "metadata": {"a": value}}), headers=headers)
        assert (answer.status_code, answer.json()["error"].partition(":")[0]) == (400, "metadata.a")
    batch = await api.post("/v3/documents/batch", json={"documents": [{"content": "x", "customId": []}]})
    assert batch.json()["results"][0]["error"].startswith("customId: ")
