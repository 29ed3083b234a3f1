"""Test Mem0 filters that the index cannot evaluate, over HTTP without a model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from tests.support.stack import stack

BIKE, TEA, BEES = "I own a red bike", "I drink green tea", "I keep bees in Rome"


class Store:
    """Three memories of one user and one memory of another user."""

    def __init__(self, api: httpx.AsyncClient) -> None:
        self.api = api
        self.user = f"user-{uuid4().hex[:8]}"
        self.ids: dict[str, str] = {}

    async def call(self, method: str, path: str, body: Any) -> Any:
        answer = await self.api.request(method, path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def fill(self) -> None:
        everything = {
            BIKE: {"nested": {"k": "v", "deep": {"n": 3}}, "color": "Dark Red", "tags": ["city", "sport"]},
            TEA: {"nested": {"k": "w"}, "color": "green"},
            BEES: {"note": "hives"},
        }
        for text, metadata in everything.items():
            body = {"messages": text, "infer": False, "user_id": self.user, "metadata": metadata}
            self.ids[text] = (await self.call("POST", "/v3/memories/add/", body))["results"][0]["id"]
        await self.call(
            "POST", "/v3/memories/add/", {"messages": BIKE, "infer": False, "user_id": f"{self.user}-other", "metadata": everything[BIKE]}
        )

    async def found(self, condition: dict[str, Any], query: str | None = None) -> list[str]:
        """Return the matching texts from a list, or from a search if there is a `query`."""
        filters = {"AND": [{"user_id": self.user}, condition]}
        path, body = ("/v3/memories/", {}) if query is None else ("/v3/memories/search/", {"query": query, "threshold": 0})
        return sorted(hit["memory"] for hit in (await self.call("POST", path, {"filters": filters, **body}))["results"])


@pytest.fixture(scope="module")
async def api(redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    settings = load_settings(KEY_PREFIX="mem0-match", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", COMPAT_APIS="mem0")
    async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        yield client


@pytest.fixture
async def store(api: httpx.AsyncClient) -> Store:
    store = Store(api)
    await store.fill()
    return store


async def test_unindexed_filters_work_in_lists_and_searches(store: Store) -> None:
    ids = store.ids
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"metadata": {"nested": {"k": "v"}}}, [BIKE]),
        ({"metadata": {"nested": {"k": {"in": ["v", "w"]}}}}, [TEA, BIKE]),
        ({"metadata": {"nested": {"deep": {"n": {"gte": 3}}}}}, [BIKE]),
        ({"metadata.nested": {"k": "w"}}, [TEA]),
        ({"metadata": {"color": {"icontains": "RED"}}}, [BIKE]),
        ({"metadata": {"color": {"contains": "RED"}}}, []),
        ({"metadata": {"tags": {"contains": "spo"}}}, [BIKE]),
        ({"keywords": {"icontains": "TEA"}}, [TEA]),
        ({"keywords": {"contains": "red bike"}}, [BIKE]),
        ({"memory_ids": [ids[BIKE], ids[BEES]]}, [BEES, BIKE]),
        ({"memory_ids": {"in": [ids[TEA], "unknown"]}}, [TEA]),
        ({"NOT": {"memory_ids": [ids[BIKE]]}}, [TEA, BEES]),
        ({"OR": [{"keywords": {"icontains": "rome"}}, {"metadata": {"color": "green"}}]}, [TEA, BEES]),
        ({"updated_at": {"gte": "2020-01-01"}}, [TEA, BEES, BIKE]),
        ({"updated_at": {"lt": "2020-01-01T00:00:00Z"}}, []),
    ]
    for condition, wanted in cases:
        assert await store.found(condition) == wanted, condition
        assert await store.found(condition, "What do I own or drink?") == wanted, condition


async def test_page_count_includes_unindexed_filters(store: Store) -> None:
    filters = {"user_id": store.user, "metadata": {"nested": {"k": {"in": ["v", "w"]}}}}
    pages = [await store.call("POST", f"/v3/memories/?page={page}&page_size=1", {"filters": filters}) for page in (1, 2, 3)]
    assert [[hit["memory"] for hit in page["results"]] for page in pages] == [[TEA], [BIKE], []]
    assert {page["count"] for page in pages} == {2}
    assert [page["next"] is not None for page in pages] == [True, False, False]


async def test_changed_memory_is_found_by_its_update_time(store: Store) -> None:
    changed = await store.call("PUT", f"/v1/memories/{store.ids[TEA]}/", {"text": "I drink black tea"})
    assert await store.found({"updated_at": {"gte": changed["updated_at"]}}) == ["I drink black tea"]
