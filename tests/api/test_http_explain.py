"""Why a search is as it is: each explanation is shown to be true."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory.settings import load_settings
from tests.support.stack import stack

USER = "explained"
TEXTS = [
    "Marta keeps three cats",
    "The cats sleep on the sofa",
    "Marta bought cat food on Monday",
    "The train to Porto leaves at nine",
    "Marta is learning the violin",
]


@pytest.fixture(scope="module")
async def client(redis_url: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    settings = load_settings(KEY_PREFIX=f"why{ULID()}".lower(), MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
        memories = [
            {"id": f"m{i}", "text": text, "user_id": USER, "topics": ["pets"] if "cat" in text else ["other"]}
            for i, text in enumerate(TEXTS)
        ]
        answer = await http.post("/v1/long-term-memory/", json={"memories": memories}, params={"wait": 15})
        assert answer.headers["x-searchable"] == "true"
        yield http


async def search(client: httpx.AsyncClient, **body: Any) -> list[dict[str, Any]]:
    return (await client.post("/v1/long-term-memory/search", json={"user_id": {"eq": USER}, **body})).json()["memories"]


async def why(client: httpx.AsyncClient, memory_id: str, **body: Any) -> dict[str, Any]:
    request = {"memory_id": memory_id, "search": {"user_id": {"eq": USER}, **body}}
    return (await client.post("/v1/long-term-memory/explain", json=request)).json()


async def test_hits_explain_their_place(client: httpx.AsyncClient) -> None:
    hits = await search(client, text="cats", explain=True)
    assert [hit["explanation"]["rank"] for hit in hits] == list(range(1, len(hits) + 1))
    first = hits[0]["explanation"]
    assert first["score"] == pytest.approx(hits[0]["score"])
    assert first["similarity"] == pytest.approx(1 - hits[0]["dist"], abs=1e-6)
    assert all(hit["explanation"] is None for hit in await search(client, text="cats"))


async def test_raising_the_limit_to_the_reported_rank_shows_the_memory(client: httpx.AsyncClient) -> None:
    shown = [hit["id"] for hit in await search(client, text="Marta and her cats", limit=1)]
    for name in ("m0", "m1", "m2", "m4"):
        answer = await why(client, name, text="Marta and her cats", limit=1)
        if name in shown:
            assert (answer["returned"], answer["reason"], answer["rank"]) == (True, "returned", 1)
            continue
        assert (answer["returned"], answer["reason"]) == (False, "beyond_limit")
        wider = [hit["id"] for hit in await search(client, text="Marta and her cats", limit=answer["rank"])]
        assert wider[-1] == name
        assert name not in [hit["id"] for hit in await search(client, text="Marta and her cats", limit=answer["rank"] - 1)]


async def test_dropping_the_named_filter_shows_the_memory(client: httpx.AsyncClient) -> None:
    body = {"text": "train to Porto", "topics": {"any": ["pets"]}, "memory_type": {"eq": "semantic"}}
    assert "m3" not in [hit["id"] for hit in await search(client, **body)]
    answer = await why(client, "m3", **body)
    assert (answer["reason"], answer["filters"]) == ("filtered", ["topics"])
    del body["topics"]
    assert "m3" in [hit["id"] for hit in await search(client, **body)]


async def test_a_larger_distance_shows_what_was_below_the_threshold(client: httpx.AsyncClient) -> None:
    body = {"text": "cats", "search_mode": "semantic"}
    answer = await why(client, "m3", **body, distance_threshold=0.5)
    assert answer["reason"] == "below_threshold"
    distance = 1 - answer["explanation"]["similarity"]
    assert "m3" in [hit["id"] for hit in await search(client, **body, distance_threshold=distance + 0.001)]
    assert "m3" not in [hit["id"] for hit in await search(client, **body, distance_threshold=distance - 0.001)]


async def test_what_is_neither_near_nor_shares_a_word_is_below_the_threshold(client: httpx.AsyncClient) -> None:
    answer = await why(client, "m3", text="quantum chromodynamics")
    assert answer["reason"] == "below_threshold"
    assert await search(client, text="quantum chromodynamics") == []


async def test_what_does_not_exist_is_not_found(client: httpx.AsyncClient) -> None:
    assert (await why(client, "nowhere", text="cats"))["reason"] == "not_found"


async def test_words_that_a_memory_lacks_do_not_rank_it(client: httpx.AsyncClient) -> None:
    assert (await why(client, "m3", text="cats", search_mode="keyword"))["reason"] == "not_ranked"
