"""Test that explanations of search results are correct."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory.foundation.core.settings import load_settings
from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from tests.support.stack import stack
from tests.support.waiting import wait_until

SEARCH, EXPLAIN = "/v1/long-term-memory/search", "/v1/long-term-memory/explain"
USER, REPEATED = "explained", "repeated"
REPEATS = ("Jonas repairs 2 bicycles", "jonas repairs 2 bicycles!", "Oh, Jonas really repairs 2 bicycles", "Jonas repairs 3 bicycles")
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
        memories += [{"id": f"r{i}", "text": text, "user_id": REPEATED} for i, text in enumerate(REPEATS)]
        answer = await http.post("/v1/long-term-memory/", json={"memories": memories, "deduplicate": False}, params={"wait": 15})
        assert answer.headers["x-searchable"] == "true"
        yield http


async def search(client: httpx.AsyncClient, **body: Any) -> list[dict[str, Any]]:
    return (await client.post(SEARCH, json={"user_id": {"eq": USER}, **body})).json()["memories"]


async def why(client: httpx.AsyncClient, memory_id: str, **body: Any) -> dict[str, Any]:
    request = {"memory_id": memory_id, "search": {"user_id": {"eq": USER}, **body}}
    return (await client.post(EXPLAIN, json=request)).json()


async def ask(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    return (await client.post("/v1/memory/prompt", json=body)).json()


async def told(client: httpx.AsyncClient, **body: Any) -> list[str]:
    """Return the ids of the memories in a prompt, best first."""
    return [memory["id"] for memory in (await ask(client, **body))["long_term_memories"] or []]


async def why_not(client: httpx.AsyncClient, memory_id: str, **body: Any) -> dict[str, Any]:
    return (await client.post(EXPLAIN, json={"memory_id": memory_id, "prompt": body})).json()


async def test_hits_explain_their_rank_score_and_similarity(client: httpx.AsyncClient) -> None:
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


async def test_explanation_states_that_a_memory_is_not_current(client: httpx.AsyncClient) -> None:
    times = {"later": {"valid_from": "2999-01-01T00:00:00Z"}, "over": {"valid_to": "2020-01-01T00:00:00Z"}}
    memories = [{"id": name, "text": "Marta has an old parrot", "user_id": "clock", **when} for name, when in times.items()]
    answer = await client.post("/v1/long-term-memory/", json={"memories": memories, "deduplicate": False}, params={"wait": 15})
    assert answer.is_success, answer.text
    for name in times:
        body = {"user_id": {"eq": "clock"}, "text": "parrot"}
        now = await why(client, name, **body)
        assert (now["reason"], now["filters"]) == ("not_current", [])
    assert (await why(client, "later", **body, as_of="2999-01-02T00:00:00Z"))["reason"] == "returned"


async def test_dropping_the_named_filter_shows_the_memory(client: httpx.AsyncClient) -> None:
    body = {"text": "train to Porto", "topics": {"any": ["pets"]}, "memory_type": {"eq": "semantic"}}
    assert "m3" not in [hit["id"] for hit in await search(client, **body)]
    answer = await why(client, "m3", **body)
    assert (answer["reason"], answer["filters"]) == ("filtered", ["topics"])
    del body["topics"]
    assert "m3" in [hit["id"] for hit in await search(client, **body)]


async def test_larger_distance_threshold_shows_the_memory_cut_off_before(client: httpx.AsyncClient) -> None:
    body = {"text": "cats", "search_mode": "semantic"}
    answer = await why(client, "m3", **body, distance_threshold=0.5)
    assert answer["reason"] == "below_threshold"
    distance = 1 - answer["explanation"]["similarity"]
    assert "m3" in [hit["id"] for hit in await search(client, **body, distance_threshold=distance + 0.001)]
    assert "m3" not in [hit["id"] for hit in await search(client, **body, distance_threshold=distance - 0.001)]


async def test_memory_neither_near_nor_sharing_a_word_is_below_the_prompt_threshold(client: httpx.AsyncClient) -> None:
    prompt: dict[str, Any] = {"query": "quantum chromodynamics", "long_term_search": {"user_id": {"eq": USER}}}
    answer = await why_not(client, "m3", **prompt)
    assert (answer["returned"], answer["reason"]) == (False, "below_threshold")
    assert await told(client, **prompt) == []
    assert (await why(client, "m3", text="quantum chromodynamics"))["reason"] == "returned", "a search shows the nearest"


async def test_explanation_rank_includes_the_recency_boost(client: httpx.AsyncClient) -> None:
    """The recency boost changes the ranks, and the explanation must match."""
    body = {"text": "Marta and her cats", "recency_boost": True, "recency_recency_weight": 3.0, "recency_half_life_created_days": 0.00001}
    answer = await why(client, "m2", **body, limit=1)
    assert [hit["id"] for hit in await search(client, **body, limit=answer["rank"])][-1] == "m2"
    assert 0 <= answer["explanation"]["recency"] <= 1


async def test_collapsed_duplicate_names_the_memory_shown_instead(client: httpx.AsyncClient) -> None:
    body = {"text": "who repairs bicycles", "user_id": {"eq": REPEATED}}
    assert {hit["id"] for hit in await search(client, **body)} == {"r0", "r1", "r2", "r3"}
    found = (await client.post(SEARCH, json={**body, "distinct": True, "explain": True})).json()
    shown = [hit["id"] for hit in found["memories"]]
    assert (len(shown), found["total"], "r3" in shown) == (2, 2, True), "another number is another memory"
    cut = {one["memory_id"]: one["by"] for one in found["explanation"]["cut"]}
    assert set(cut) == {"r0", "r1", "r2"} - set(shown)
    assert set(cut.values()) == set(shown) - {"r3"}
    for name, by in cut.items():
        answer = await why(client, name, **body, distinct=True)
        assert (answer["returned"], answer["reason"], answer["by"]) == (False, "collapsed", by)
        assert (await why(client, name, **body))["reason"] == "returned"
    pages = [(await client.post(SEARCH, json={**body, "distinct": True, "limit": 1, "offset": n})).json() for n in (0, 1)]
    assert [[hit["id"] for hit in page["memories"]] for page in pages] == [[name] for name in shown]
    assert [page["next_offset"] for page in pages] == [1, None]


async def test_prompt_explanation_names_collapsed_duplicates(client: httpx.AsyncClient) -> None:
    body = {"query": "who repairs bicycles", "long_term_search": {"user_id": {"eq": REPEATED}}}
    shown = await told(client, **body)
    assert len(shown) == 2
    everything = {**body, "long_term_search": {**body["long_term_search"], "distinct": False}}  # pyright: ignore[reportGeneralTypeIssues]
    for name in {"r0", "r1", "r2"} - set(shown):
        answer = await why_not(client, name, **body)
        assert (answer["reason"], [answer["by"]]) == ("collapsed", [one for one in shown if one != "r3"])
        assert name in await told(client, **everything)


async def test_raising_max_tokens_by_the_reported_need_shows_the_memory(client: httpx.AsyncClient) -> None:
    body: dict[str, Any] = {"query": "Marta and her cats", "long_term_search": {"user_id": {"eq": USER}}, "max_tokens": 100}
    over = {"m0", "m1", "m2", "m4"} - set(await told(client, **body))
    assert over
    for name in over:
        answer = await why_not(client, name, **body)
        assert (answer["returned"], answer["reason"]) == (False, "over_budget")
        more = body["max_tokens"] + answer["tokens_needed"] - answer["tokens_available"]
        assert name in await told(client, **{**body, "max_tokens": more})
    whole = await ask(client, **{**body, "long_term_search": {"user_id": {"eq": USER}, "explain": True}})
    assert {cut["memory_id"] for cut in whole["explanation"]["cut"] if cut["reason"] == "over_budget"} >= over


async def test_prompt_explanation_reports_the_reasons_of_its_search(client: httpx.AsyncClient) -> None:
    body = {"query": "Marta and her cats", "long_term_search": {"user_id": {"eq": USER}, "limit": 1}}
    (first,) = await told(client, **body)
    answer = await why_not(client, first, **body)
    assert (answer["returned"], answer["reason"], answer["rank"]) == (True, "returned", 1)
    other = next(name for name in ("m0", "m1", "m2") if name != first)
    answer = await why_not(client, other, **body)
    assert answer["reason"] == "beyond_limit"
    wider = {**body, "long_term_search": {"user_id": {"eq": USER}, "limit": answer["rank"]}}
    assert (await told(client, **wider))[answer["rank"] - 1] == other
    assert (await why_not(client, "r0", **body))["filters"] == ["user_id"]
    assert (await client.post(EXPLAIN, json={"memory_id": "m0", "prompt": {"query": "x"}})).status_code == 400
    assert (await client.post(EXPLAIN, json={"memory_id": "m0"})).status_code == 422


async def test_memory_of_a_message_in_the_session_is_explained_as_already_shown(client: httpx.AsyncClient) -> None:
    session = {"session_id": f"shown-{ULID()}", "user_id": "talker"}
    messages = [{"id": "spoken", "role": "user", "content": "The lighthouse keeper paints seascapes"}]
    await client.post(f"/v1/working-memory/{session['session_id']}/messages", json={"messages": messages, "user_id": "talker"})

    async def promoted() -> list[dict[str, Any]]:
        return await search(client, text="lighthouse", user_id={"eq": "talker"})

    (memory,) = await wait_until(promoted, "the message became a memory")
    body = {"query": "What does the lighthouse keeper paint?", "session": session, "long_term_search": True}
    answer = await why_not(client, memory["id"], **body)
    assert (answer["returned"], answer["reason"]) == (False, "already_shown")
    prompt = await ask(client, **body)
    assert prompt["long_term_memories"] is None
    assert any("seascapes" in message["content"]["text"] for message in prompt["messages"])


async def test_explanation_reports_mode_and_time_range_of_the_query(client: httpx.AsyncClient) -> None:
    body = {"text": "What did Marta buy in May 2023?", "user_id": {"eq": USER}, "explain": True, "timezone": "Asia/Tokyo"}
    found = (await client.post(SEARCH, json=body)).json()["explanation"]
    assert (found["mode"], found["time_start"][:16], found["time_end"][:16]) == ("hybrid", "2023-04-30T15:00", "2023-05-31T15:00")
    assert found["ranked"] + found["below_threshold"] == len(TEXTS)


async def test_client_returns_the_same_explanation(client: httpx.AsyncClient) -> None:
    url = str(client.base_url)
    answer = await why(client, "m4", text="Marta and her cats", limit=1)
    async with MemoryAPIClient(MemoryClientConfig(base_url=url)) as api:
        same = await api.explain_long_term_memory("m4", {"text": "Marta and her cats", "limit": 1, "user_id": {"eq": USER}})
        assert (same.reason, same.rank) == (answer["reason"], answer["rank"])
        # The word part of a score varies a little with other documents in the index.
        assert same.explanation is not None
        assert same.explanation.score == pytest.approx(answer["explanation"]["score"], abs=0.1)
        assert (await api.explain_long_term_memory("m0", prompt={"query": "cats", "long_term_search": {"user_id": {"eq": USER}}})).returned


async def test_explanation_of_an_unknown_memory_is_not_found(client: httpx.AsyncClient) -> None:
    assert (await why(client, "nowhere", text="cats"))["reason"] == "not_found"


async def test_keyword_explanation_of_a_memory_without_the_words_is_not_ranked(client: httpx.AsyncClient) -> None:
    assert (await why(client, "m3", text="cats", search_mode="keyword"))["reason"] == "not_ranked"


async def test_message_that_the_token_budget_cuts_from_the_session_is_shown_as_a_memory(client: httpx.AsyncClient) -> None:
    user, session_id = "novelist", f"cut-{ULID()}"
    said = "The lighthouse keeper paints seascapes"
    chapter = "the harbor lay still, and gulls cried. " * 20
    messages = [{"role": "user", "content": said}, *({"role": "assistant", "content": f"{number}: {chapter}"} for number in range(4))]
    await client.post(f"/v1/working-memory/{session_id}/messages", json={"messages": messages, "user_id": user})
    places = ("boats in the harbor", "doors of the church", "walls of the school", "signs on the market square")
    text = "In summer, the lighthouse keeper paints the {} with his nephew"
    others = [{"id": place, "text": text.format(place), "user_id": user} for place in places]
    await client.post("/v1/long-term-memory/", json={"memories": others, "deduplicate": False}, params={"wait": 15})

    async def promoted() -> bool:
        return said in [memory["text"] for memory in await search(client, text=said, user_id={"eq": user})]

    await wait_until(promoted, "the message became a memory")
    body = {"query": "What does the lighthouse keeper paint?", "session": {"session_id": session_id, "user_id": user}}
    for max_tokens, shown_in in ((950, "memories"), (4_000, "session")):
        prompt = await ask(client, max_tokens=max_tokens, long_term_search=True, **body)
        memories = [memory["text"] for memory in prompt["long_term_memories"]]
        turns = [message["content"]["text"] for message in prompt["messages"] if message["role"] != "system"]
        assert [said in memories, said in turns] == [shown_in == "memories", shown_in == "session"]
