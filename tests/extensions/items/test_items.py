"""Test items over HTTP.

A new item can be read, listed and searched immediately, but only by its owner.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory.extensions.items.service import MOST_READ
from tests.support.waiting import wait_until

URL = "/v1/items"


@pytest.fixture
def owner() -> dict[str, str]:
    return {"user_id": f"u-{ULID()}"}


async def put(http: httpx.AsyncClient, owner: dict[str, str], path: list[str], key: str, value: dict[str, Any], **more: Any) -> None:
    answer = await http.put(URL, params=owner, json={"path": path, "key": key, "value": value, **more})
    assert answer.status_code == 200, answer.text


async def get(http: httpx.AsyncClient, owner: dict[str, str], path: list[str], key: str, **more: Any) -> Any:
    answer = await http.get(URL, params={**owner, "path": path, "key": key, **more})
    return answer.json() if answer.status_code == 200 else answer.status_code


async def search(http: httpx.AsyncClient, owner: dict[str, str], **wanted: Any) -> list[dict[str, Any]]:
    answer = await http.post(f"{URL}/search", params=owner, json=wanted)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


async def keys(http: httpx.AsyncClient, owner: dict[str, str], **wanted: Any) -> list[str]:
    return [item["key"] for item in await search(http, owner, **wanted)]


async def test_item_value_is_returned_unchanged(worked: httpx.AsyncClient, owner: dict[str, str]) -> None:
    value = {"z": 1, "a": [None, True, 1.5, 2**70, {"ü": "\u2028 </script>"}], "empty": {}, "1": ""}
    await put(worked, owner, ["a"], "k", value)
    first = await get(worked, owner, ["a"], "k")
    assert first == {"path": ["a"], "key": "k", "value": value, "created_at": first["created_at"], "updated_at": first["created_at"]}
    assert list(first["value"]) == list(value)
    await put(worked, owner, ["a"], "k", {"b": 2})
    second = await get(worked, owner, ["a"], "k")
    assert (second["value"], second["created_at"]) == ({"b": 2}, first["created_at"])
    assert second["updated_at"] >= first["updated_at"]
    for _ in range(2):
        assert (await worked.delete(URL, params={**owner, "path": ["a"], "key": "k"})).json() == {"status": "ok"}
    assert await get(worked, owner, ["a"], "k") == 404
    assert await search(worked, owner) == []


async def test_items_with_similar_paths_are_separate(worked: httpx.AsyncClient, owner: dict[str, str]) -> None:
    paths = [["a"], ["a", "b"], ["a.b"], ["a!b"], ["ab"], ["A"], ["a", "b", "c"], ["a/b"], ["*"], ["61"], ["\u00e9"], ["e\u0301"]]
    for number, path in enumerate(paths):
        await put(worked, owner, path, "k", {"n": number})
    for number, path in enumerate(paths):
        assert (await get(worked, owner, path, "k"))["value"] == {"n": number}
    assert sorted(item["value"]["n"] for item in await search(worked, owner, prefix=["a"])) == [0, 1, 6]
    assert [item["value"]["n"] for item in await search(worked, owner, prefix=["*"])] == [8]
    assert len(await search(worked, owner, limit=100)) == len(paths)


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        ({"kind": "book"}, ["k1", "k2"]),
        ({"kind": {"$eq": "book"}, "stars": {"$gt": 3}}, ["k2"]),
        ({"kind": {"$ne": "book"}}, ["k3", "k4"]),
        ({"stars": {"$gte": 3, "$lt": 5}}, ["k1", "k3"]),
        ({"stars": {"$lte": 3}}, ["k1"]),
        ({"author": {"name": "Ada"}}, ["k1"]),
        ({"author": {"born": {"$lt": 1900}}}, ["k1", "k2"]),
        ({"tags": ["x", "y"]}, ["k3"]),
        ({"stars": True}, []),
        ({"missing": None}, ["k1", "k2", "k3", "k4"]),
        ({"kind": {"$gt": "book"}}, ["k3"]),
    ],
)
async def test_search_filters_match_item_values(worked: httpx.AsyncClient, wanted: dict[str, Any], matches: list[str]) -> None:
    owner = {"user_id": "filters"}
    values: dict[str, dict[str, Any]] = {
        "k1": {"kind": "book", "stars": 3, "author": {"name": "Ada", "born": 1815}},
        "k2": {"kind": "book", "stars": 5, "author": {"name": "Bo", "born": 1850}},
        "k3": {"kind": "film", "stars": 4, "tags": ["x", "y"]},
        "k4": {"stars": "many"},
    }
    for key, value in values.items():
        await put(worked, owner, ["shelf"], key, value)
    assert await keys(worked, owner, prefix=["shelf"], filter=wanted) == matches
    assert await keys(worked, owner, prefix=["shelf"], filter=wanted, limit=1, offset=1) == matches[1:2]
    assert sorted(await keys(worked, owner, prefix=["shelf"], filter=wanted, query="a film")) == matches


async def test_new_item_is_found_at_once_and_later_by_meaning(worked: httpx.AsyncClient, owner: dict[str, str]) -> None:
    texts = {"pizza": "I love Italian food, pizza above all", "bike": "My bicycle has a flat tyre", "cat": "The cat sleeps on the sofa"}
    for key, text in texts.items():
        await put(worked, owner, ["memories"], key, {"text": text})
    await put(worked, owner, ["memories"], "hidden", {"text": "pizza pizza"}, index=False)
    await put(worked, owner, ["memories"], "part", {"title": "shelves", "body": "a velocipede"}, index=["title"])
    at_once = await keys(worked, owner, prefix=["memories"], query="bicycle")
    assert at_once[0] == "bike"
    assert sorted(at_once) == ["bike", "cat", "hidden", "part", "pizza"]
    assert at_once[-1] == "hidden"

    async def by_meaning() -> bool:
        return (await keys(worked, owner, query="spaghetti and lasagne", limit=1)) == ["pizza"]

    await wait_until(by_meaning, "the items' vectors")
    found = await search(worked, owner, query="spaghetti and lasagne", limit=2, offset=1)
    assert len(found) == 2
    assert all(0 <= item["score"] <= 1 for item in found)
    assert (await search(worked, owner, query="pizza"))[-1]["score"] is None
    # A search finds a replaced item by its new words only.
    await put(worked, owner, ["memories"], "pizza", {"text": "Mountains in the winter"})
    assert (await keys(worked, owner, query="winter mountains", limit=1)) == ["pizza"]


async def test_few_new_items_are_ranked_by_meaning_at_once(worked: httpx.AsyncClient, owner: dict[str, str]) -> None:
    """LangGraph programs search right after a put and expect the best match first."""
    texts = {"a": "The sky was grey", "b": "I am a plumber", "c": "I love pizza"}
    for number in range(5):
        for key, text in texts.items():
            await put(worked, owner, [f"m{number}"], key, {"text": text, "kind": "x"})
        assert (await keys(worked, owner, prefix=[f"m{number}"], query="which meal does the user enjoy?", limit=1)) == ["c"]
        found = await search(worked, owner, prefix=[f"m{number}"], query="which meal does the user enjoy?", filter={"kind": "x"})
        assert found[0]["key"] == "c"


async def test_namespaces_can_be_listed(worked: httpx.AsyncClient, owner: dict[str, str]) -> None:
    for path in (["docs", "v1", "draft"], ["docs", "v2", "final"], ["docs", "v2"], ["users", "ada", "draft"]):
        await put(worked, owner, path, "k", {})

    async def listed(**wanted: Any) -> list[list[str]]:
        answer = await worked.post(f"{URL}/namespaces", params=owner, json=wanted)
        assert answer.status_code == 200, answer.text
        return answer.json()["namespaces"]

    assert await listed() == [["docs", "v1", "draft"], ["docs", "v2"], ["docs", "v2", "final"], ["users", "ada", "draft"]]
    assert await listed(max_depth=2) == [["docs", "v1"], ["docs", "v2"], ["users", "ada"]]
    assert await listed(max_depth=2, limit=1, offset=1) == [["docs", "v2"]]
    condition = {"match_type": "prefix", "path": ["*", "v2"]}
    assert await listed(match_conditions=[condition]) == [["docs", "v2"], ["docs", "v2", "final"]]
    ending = {"match_type": "suffix", "path": ["*", "draft"]}
    assert await listed(match_conditions=[ending]) == [["docs", "v1", "draft"], ["users", "ada", "draft"]]
    assert await listed(match_conditions=[condition, ending]) == []
    await worked.delete(URL, params={**owner, "path": ["docs", "v2"], "key": "k"})
    assert ["docs", "v2"] not in await listed()


async def test_a_batch_reads_before_it_writes(worked: httpx.AsyncClient, owner: dict[str, str]) -> None:
    await put(worked, owner, ["a"], "old", {"n": 0})
    operations = [
        {"op": "put", "path": ["a"], "key": "new", "value": {"n": 1}},
        {"op": "get", "path": ["a"], "key": "new"},
        {"op": "put", "path": ["a"], "key": "new", "value": {"n": 2}},
        {"op": "delete", "path": ["a"], "key": "old"},
        {"op": "search", "prefix": ["a"]},
        {"op": "list_namespaces"},
    ]
    answer = await worked.post(f"{URL}/batch", params=owner, json={"operations": operations})
    results = answer.json()["results"]
    assert len(results) == len(operations)
    assert results[1]["item"] is None
    assert [item["key"] for item in results[4]["items"]] == ["old"]
    assert results[5]["namespaces"] == [["a"]]
    assert [item["value"] for item in await search(worked, owner)] == [{"n": 2}]


async def test_item_expires_after_its_ttl(worked: httpx.AsyncClient, owner: dict[str, str]) -> None:
    await put(worked, owner, ["a"], "short", {"n": 1}, ttl_minutes=0.001)
    await put(worked, owner, ["a"], "long", {"n": 2}, ttl_minutes=60)

    async def gone() -> bool:
        return await get(worked, owner, ["a"], "short", refresh_ttl=False) == 404

    await wait_until(gone, "the end of the item")
    assert await keys(worked, owner) == ["long"]
    await put(worked, owner, ["b"], "short", {"n": 1}, ttl_minutes=0.001)

    async def no_path() -> bool:
        return (await worked.post(f"{URL}/namespaces", params=owner, json={})).json()["namespaces"] == [["a"]]

    await wait_until(no_path, "the end of its path")
    await put(worked, owner, ["a"], "long", {"n": 3})
    assert await keys(worked, owner) == ["long"]


async def test_reading_an_item_refreshes_its_ttl(worked: httpx.AsyncClient, owner: dict[str, str]) -> None:
    async def end() -> str:
        lines = (await worked.post(f"/v1/users/{owner['user_id']}/export")).text.splitlines()
        return next(line["ends_at"] for line in map(json.loads, lines) if line["kind"] == "item")

    await put(worked, owner, ["a"], "k", {"n": 1}, ttl_minutes=60)
    first = await end()
    await get(worked, owner, ["a"], "k", refresh_ttl=False)
    await search(worked, owner, refresh_ttl=False)
    assert await end() == first
    await get(worked, owner, ["a"], "k")
    second = await end()
    assert second > first
    await search(worked, owner)
    assert await end() > second


async def test_items_are_separate_per_owner(worked: httpx.AsyncClient, owner: dict[str, str]) -> None:
    spaces = [owner, owner | {"namespace": "n"}, {"namespace": owner["user_id"]}]
    for number, other in enumerate(spaces):
        await put(worked, other, ["a"], "k", {"n": number})
    for number, other in enumerate(spaces):
        assert (await get(worked, other, ["a"], "k"))["value"] == {"n": number}
        assert [item["value"] for item in await search(worked, other, query="k")] == [{"n": number}]


async def test_export_contains_items_and_erasure_deletes_them(worked: httpx.AsyncClient, owner: dict[str, str]) -> None:
    await put(worked, owner, ["a"], "k", {"secret": 1}, ttl_minutes=60, index=["secret"])
    await put(worked, owner | {"namespace": "n"}, ["b"], "k", {"secret": 2})
    exported = (await worked.post(f"/v1/users/{owner['user_id']}/export")).text
    assert exported.count('"kind":"item"') == 2, exported
    imported = await worked.post(
        f"/v1/users/{owner['user_id']}-2/import", content=exported.encode(), headers={"content-type": "application/x-ndjson"}
    )
    assert imported.status_code == 200, imported.text
    other = {"user_id": f"{owner['user_id']}-2"}
    assert await get(worked, other, ["a"], "k") == await get(worked, owner, ["a"], "k"), "its times, too"
    assert (await get(worked, other | {"namespace": "n"}, ["b"], "k"))["value"] == {"secret": 2}
    assert (await worked.delete(f"/v1/users/{owner['user_id']}")).status_code in (200, 202)

    async def erased() -> bool:
        return [await get(worked, owner, ["a"], "k"), await get(worked, owner | {"namespace": "n"}, ["b"], "k")] == [404, 404]

    await wait_until(erased, "the erasure")
    assert await search(worked, owner) == []
    assert (await get(worked, other, ["a"], "k"))["value"] == {"secret": 1}


async def test_imported_item_keeps_its_expiry(worked: httpx.AsyncClient, owner: dict[str, str]) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    await put(worked, owner, ["a"], "k", {"n": 1}, ttl_minutes=60)
    await put(worked, owner, ["a"], "stays", {"n": 2})
    lines = [json.loads(line) for line in (await worked.post(f"/v1/users/{owner['user_id']}/export")).text.splitlines()]
    ends = {line["key"]: line["ends_at"] for line in lines if line["kind"] == "item"}
    assert ends["stays"] is None
    assert before + timedelta(minutes=59) < datetime.fromisoformat(ends["k"]) < datetime.now(UTC) + timedelta(minutes=61)
    for name, minutes, left in (("later", 30, ["k", "stays"]), ("over", -1, ["stays"])):
        moved = [
            line | {"ends_at": (before + timedelta(minutes=minutes)).isoformat()} if line.get("key") == "k" else line for line in lines
        ]
        other = {"user_id": f"{owner['user_id']}-{name}"}
        body = "".join(json.dumps(line) + "\n" for line in moved).encode()
        headers = {"content-type": "application/x-ndjson"}
        imported = await worked.post(f"/v1/users/{other['user_id']}/import", content=body, headers=headers)
        assert (imported.status_code, imported.json()["problems"]) == (200, [])
        assert await keys(worked, other, refresh_ttl=False) == left
        again = (await worked.post(f"/v1/users/{other['user_id']}/export")).text
        ends_again = [line["ends_at"][:23] for line in map(json.loads, again.splitlines()) if line.get("key") == "k"]
        assert ends_again == [line["ends_at"][:23] for line in moved if line.get("key") == "k" and "k" in left]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("search", {"filter": {"a": {"$in": [1]}}}),
        ("search", {"filter": {"a": {"$gt": 1, "b": 2}}}),
        ("search", {"limit": -1}),
        ("batch", {"operations": [{"op": "nonsense"}]}),
        ("batch", {"operations": [{"op": "put", "path": [], "key": "k", "value": {}}]}),
        ("namespaces", {"max_depth": 0}),
    ],
)
async def test_invalid_item_requests_are_rejected(live: httpx.AsyncClient, path: str, body: Any) -> None:
    assert (await live.post(f"{URL}/{path}", json=body)).status_code == 422


@pytest.mark.parametrize("body", [{"path": [""], "value": {}}, {"path": ["a"]}, {"path": ["a"], "value": 1}])
async def test_invalid_put_is_rejected(live: httpx.AsyncClient, body: Any) -> None:
    assert (await live.put(URL, json={"key": "k", **body})).status_code == 422


async def test_too_expensive_batch_is_refused_without_writing(worked: httpx.AsyncClient, owner: dict[str, str]) -> None:
    puts = [{"op": "put", "path": [f"path-{number}"], "key": "k", "value": {"n": number}} for number in range(400)]
    assert (await worked.post(f"{URL}/batch", params=owner, json={"operations": puts})).status_code == 200
    reads: list[dict[str, Any]] = [{"op": "search", "filter": {"n": -1}}, {"op": "list_namespaces"}] * 499
    written = {"op": "put", "path": ["new"], "key": "k", "value": {}}
    answer = await worked.post(f"{URL}/batch", params=owner, json={"operations": [written, *reads]})
    assert answer.status_code == 422, answer.text[:300]
    assert MOST_READ // 400 < int(answer.json()["detail"][0]["loc"][-1]) < MOST_READ // 400 + 3
    assert "another" in answer.json()["detail"][0]["msg"]
    assert (await worked.get(URL, params={**owner, "path": "new", "key": "k"})).status_code == 404
    few = await worked.post(f"{URL}/batch", params=owner, json={"operations": [written, *reads[:100]]})
    assert few.status_code == 200
