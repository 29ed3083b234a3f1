"""Test defects 22 to 30 in the archived server's searches."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.compat.defects.conftest import Space, ago
from tests.registrations import registrations
from tests.support.api import serving
from tests.support.waiting import wait_until
from tests.system.conftest import through
from tests.system.faults.proxy import Proxy

THREE = {
    "a": {"user_id": "u1", "session_id": "s1", "topics": ["x", "y"], "entities": ["e1"], "memory_type": "semantic"},
    "b": {"user_id": "u2", "session_id": "s2", "topics": ["y"], "entities": ["e1", "e2"], "memory_type": "episodic"},
    "c": {"user_id": "u3", "topics": ["z"], "memory_type": "message", "extraction_strategy": "summary"},
}
OPERATORS: list[tuple[str, dict[str, Any], str]] = [
    ("user_id", {"in_": ["u1", "u3"]}, "ac"),
    ("user_id", {"not_in": ["u1", "u3"]}, "b"),
    ("user_id", {"not_eq": "u1"}, "bc"),
    ("user_id", {"ne": "u1"}, "bc"),
    ("user_id", {"in_": ["u1", "u2"], "not_in": ["u2"]}, "a"),
    ("session_id", {"in_": ["s1", "nobody"]}, "a"),
    ("session_id", {"not_eq": "s1"}, "bc"),
    ("session_id", {"not_in": ["s1", "s2"]}, "c"),
    ("topics", {"any": ["x", "z"]}, "ac"),
    ("topics", {"none": ["y"]}, "c"),
    ("topics", {"any": ["y"], "none": ["x"]}, "b"),
    ("entities", {"none": ["e2"]}, "ac"),
    ("entities", {"not_eq": "e1"}, "c"),
    ("memory_type", {"in_": ["semantic", "message"]}, "ac"),
    ("memory_type", {"not_in": ["semantic"]}, "bc"),
    ("memory_type", {"not_eq": "message"}, "ab"),
    ("extraction_strategy", {"in_": ["summary"]}, "c"),
    ("extraction_strategy", {"not_in": ["summary"]}, "ab"),
]


@pytest.mark.parametrize("how", [{}, {"text": "a b c", "search_mode": "semantic"}])
async def test_22_documented_filter_operators_select_the_expected_memories(space: Space, how: dict[str, Any]) -> None:
    await space.store(THREE)
    for field, given, wanted in OPERATORS:
        assert "".join(sorted(await space.names(**{field: given}, **how))) == wanted, (field, given)
    assert "".join(sorted(await space.names(namespace={"in_": ["nobody", space.name]}, **how))) == "abc"
    elsewhere = await space.search(namespace={"not_in": [space.name], "not_eq": "x"}, limit=100)
    assert not [memory for memory in elsewhere["memories"] if memory["namespace"] == space.name]


async def test_23_all_operator_matches_all_values_and_ranges_combine(space: Space) -> None:
    days = {f"d{day}": {"created_at": ago(day), "event_date": ago(day), "topics": ["t", f"t{day % 2}"]} for day in (1, 2, 3, 4)}
    await space.store(days)
    assert sorted(await space.names(topics={"all": ["t", "t1"]})) == ["d1", "d3"]
    assert await space.names(topics={"all": ["t0", "t1"]}) == []
    assert sorted(await space.names(topics={"any": ["t0", "t1"]})) == ["d1", "d2", "d3", "d4"]
    for field in ("created_at", "event_date"):
        assert sorted(await space.names(**{field: {"gte": ago(3), "lte": ago(2)}})) == ["d2", "d3"]
        assert sorted(await space.names(**{field: {"gt": ago(3), "lt": ago(1)}})) == ["d2"]
        assert sorted(await space.names(**{field: {"gt": ago(3), "lte": ago(1)}})) == ["d1", "d2"]
        assert sorted(await space.names(**{field: {"between": [ago(3), ago(2)], "inclusive": "left"}})) == ["d3"]
    assert await space.names(created_at={"gte": ago(1), "lte": ago(3)}) == []


@pytest.mark.parametrize("how", [{}, {"search_mode": "semantic"}, {"search_mode": "keyword"}, {"search_mode": "hybrid"}])
async def test_24_total_is_exact_and_pages_are_consecutive(space: Space, how: dict[str, Any]) -> None:
    await space.store({f"apple {number}": {} for number in range(7)} | {"pear": {"user_id": "other"}})
    wanted = {**how, **({"text": "apple"} if how else {}), "user_id": {"not_eq": "other"}}
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = await space.search(**wanted, offset=offset, limit=3)
        assert page["total"] == 7
        assert page["next_offset"] == (offset + 3 if offset + 3 < 7 else None)
        seen += space.short(page["memories"])
        offset = page["next_offset"]
    assert sorted(seen) == [f"apple {number}" for number in range(7)]
    again = [name for at in (0, 3, 6) for name in await space.names(**wanted, offset=at, limit=3)]
    assert again == seen
    assert (await space.search(**wanted, offset=100, limit=3))["memories"] == []


async def test_25_recency_ranks_before_paging_and_filters_still_apply(space: Space) -> None:
    old = {"created_at": ago(300), "last_accessed": ago(300), "user_id": "ada"}
    texts = {f"old {number}": {**old, "text": "Ada wants a window seat."} for number in range(4)}
    fresh = {"text": "Ada wants a window seat.", "user_id": "ada", "created_at": ago(0.1), "last_accessed": ago(0.1)}
    await space.store({**texts, "new": fresh, "foreign": {**fresh, "user_id": "bob"}})
    wanted = {"text": "Which seat does Ada want?", "search_mode": "semantic", "user_id": {"eq": "ada"}, "limit": 1}
    for recency in ({"recency_boost": True}, {"server_side_recency": True}, {"recency_boost": True, "server_side_recency": True}):
        answer = await space.search(**wanted, **recency)
        assert space.short(answer["memories"]) == ["new"], recency
        assert answer["total"] == 5
    listed = await space.names(user_id={"eq": "ada"}, recency_boost=False)
    assert await space.names(user_id={"eq": "ada"}, recency_boost=True, server_side_recency=True) == listed


async def test_26_stop_words_do_not_match_everything(space: Space) -> None:
    await space.store({"The cat sat on the mat.": {}, "Dogs bark.": {}, "Who are you?": {}})
    assert await space.names(text="the cat of the house", search_mode="keyword") == ["The cat sat on the mat."]
    for nothing in ("the", "who are you", "with by of", "?!"):
        assert await space.names(text=nothing, search_mode="keyword") == []


@pytest.mark.parametrize("mode", ["semantic", "keyword"])
async def test_26_scores_of_different_searches_are_comparable(space: Space, mode: str) -> None:
    await space.store({"The cat sat on the mat.": {}, "Dogs bark.": {}, "Who are you?": {}})
    good, poor = [(await space.search(text=text, search_mode=mode))["memories"] for text in ("Dogs bark.", "Do dogs in Peru pay taxes?")]
    assert space.short(good[:1]) == space.short(poor[:1]) == ["Dogs bark."]
    assert 1 >= good[0]["score"] > poor[0]["score"] > 0
    assert all(0 <= hit["score"] <= 1 and hit["dist"] >= 0 for hit in good + poor)


async def test_27_failure_is_an_error_and_never_an_empty_result(redis_url: str) -> None:
    settings = load_settings(KEY_PREFIX="defect-27", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", REDIS_COMMAND_TIMEOUT_SECONDS=1)
    port = urlsplit(redis_url).port
    assert port
    async with (
        Proxy(port).running() as proxy,
        open_runtime(settings, through(redis_url, proxy.port)) as runtime,
        serving(create_app(settings, runtime)) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        await client.put("/v1/working-memory/s", json={"messages": [{"role": "user", "content": "Hello"}]})
        proxy.answer = b"-ERR something is wrong\r\n"
        calls = [
            ("GET", "/v1/working-memory/s", None),
            ("GET", "/v1/working-memory/", None),
            ("DELETE", "/v1/working-memory/s", None),
            ("GET", "/v1/long-term-memory/m", None),
            ("POST", "/v1/long-term-memory/search", {}),
            ("POST", "/v1/long-term-memory/search", {"text": "hello"}),
            ("POST", "/v1/memory/prompt", {"query": "hello", "long_term_search": True}),
            ("POST", "/v1/long-term-memory/forget", {"policy": {"max_age_days": 1}}),
            *((method, path, body) for one in registrations() for method, path, _, body in one.searches),
        ]
        for method, path, body in calls:
            answer = await client.request(method, path, json=body)
            assert answer.status_code >= 500, (method, path, answer.text)
            assert answer.json()["detail"]
        proxy.heal()
        metrics = (await client.get("/metrics")).text
        assert [line for line in metrics.splitlines() if 'status="5' in line and "/v1/working-memory/" in line]

        async def back() -> bool:
            return (await client.get("/v1/working-memory/s")).status_code == 200

        await wait_until(back, "the session")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"memory_type": {"eq": "nonsense"}}, "memory_type"),
    ({"memory_type": {"any": ["semantic", "nonsense"]}}, "memory_type"),
    ({"user_id": {}}, "user_id"),
    ({"topics": {"unknown": ["x"]}}, "topics"),
    ({"created_at": {}}, "created_at"),
    ({"distance_threshold": -0.1}, "distance_threshold"),
    ({"text_scorer": "NONSENSE"}, "text_scorer"),
    ({"offset": 10**12}, "offset"),
    ({"user_id": {"eq": ""}}, "user_id"),
    ({"user_id": {"eq": "a", "field": "namespace"}}, "user_id"),
    ({"namespace": {"eq": "a", "ne": "b"}}, "namespace"),
    ({"topics": {"any": []}}, "topics"),
    ({"created_at": {"between": [ago(1)]}}, "created_at"),
]


@pytest.mark.parametrize(("body", "field"), REFUSED)
async def test_28_invalid_input_is_rejected_with_the_field_name(space: Space, body: dict[str, Any], field: str) -> None:
    for path, sent in (("long-term-memory/search", {"text": "x", **body}), ("memory/prompt", {"query": "x", "long_term_search": body})):
        answer = await space.client.post(f"/v1/{path}", json=sent)
        assert answer.status_code == 422, answer.text
        (problem, *_) = answer.json()["detail"]
        assert field in problem["loc"]
        assert problem["msg"].startswith(("long_term_search.", field))


async def test_29_reads_are_counted_but_lists_are_not(space: Space) -> None:
    await space.store({"Ada rows.": {"last_accessed": ago(9), "created_at": ago(9)}, "Bob runs.": {}})

    async def count() -> int:
        listed = await space.search(recency_boost=False)
        return {memory["text"]: memory["access_count"] for memory in listed["memories"]}["Ada rows."]

    for _ in range(3):
        await space.search()
    assert await count() == 0
    wanted = {"text": "Ada rows", "search_mode": "semantic", "distance_threshold": 0.5}
    found = await space.search(**wanted)
    assert space.short(found["memories"]) == ["Ada rows."]

    async def counted() -> bool:
        return await count() == 1

    await wait_until(counted, "the reading")
    await space.search(**wanted)
    await space.client.get(f"/v1/long-term-memory/{space.name}:Ada rows.")
    read = (await space.client.get(f"/v1/long-term-memory/{space.name}:Ada rows.")).json()
    assert read["access_count"] == 1
    assert read["last_accessed"] > ago(1)


@pytest.mark.parametrize("model", ["gpt-5", "gpt-4o", "qwen3:8b", "somebody/made-this-up", "Modell ü"])
async def test_30_any_model_name_is_accepted(space: Space, model: str) -> None:
    path, params = f"/v1/working-memory/{space.name}", {"namespace": space.name, "model_name": model}
    session = {"messages": [{"role": "user", "content": "Hello"}], "namespace": space.name}
    for answer in (await space.client.put(path, params=params, json=session), await space.client.get(path, params=params)):
        assert answer.status_code == 200, answer.text
        assert 0 < answer.json()["context_percentage_total_used"] < 1
    asked = {"query": "x", "session": {"session_id": space.name, "namespace": space.name, "model_name": model}}
    prompt = await space.client.post("/v1/memory/prompt", json=asked)
    assert [message["role"] for message in prompt.json()["messages"]] == ["user", "user"]


async def test_quoted_phrases_match_as_phrases(space: Space) -> None:
    await space.store({"Carol paints boats in blue": {}, "Boats paints and tea": {}, "Dan cooks the soup.": {}, "The boats sail.": {}})
    one, turned, soup, _ = names = ["Carol paints boats in blue", "Boats paints and tea", "Dan cooks the soup.", "The boats sail."]
    for query, found in (
        ('"paints boats"', {one}),
        ('"Boats paints"', {turned}),
        ('"paints boats" soup', {one, soup}),
        ('"cooks soup" "paints boats"', {one, soup}),
        ("paints boats", {one, turned, "The boats sail."}),
        ('"the" soup', {soup}),
        ('"boats', {one, turned, "The boats sail."}),
    ):
        assert set(await space.names(text=query, search_mode="keyword")) == found, query
    answer = await space.search(text='where does "paints boats" stand, tea?', search_mode="hybrid")
    assert (space.short(answer["memories"]), answer["total"]) == ([one], 1)
    # Quotes have no effect in semantic mode, nor without a mode.
    assert set(await space.names(text='"paints boats"', search_mode="semantic")) == set(names)
    assert {one, turned} <= set(await space.names(text='"paints boats"'))
