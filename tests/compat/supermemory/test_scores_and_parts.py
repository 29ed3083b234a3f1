"""Test thresholds on the hosted product's scale and substring filters."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.profiles import ScoreScale, profile_of, raised
from tests.support.stack import stack
from tests.support.waiting import wait_until

# Matches with and without words of their question.
FACTS = {
    "We deploy with GitHub Actions to Cloudflare Workers.": "where do we deploy?",
    "I only train at home, no gym.": "Where do I train?",
    "Tests run with vitest in watch mode.": "how do I run the tests",
    "My daughter Mia was born in May 2019.": "How old is my daughter?",
    "The staging database is Postgres 16 on Neon.": "what database does staging use",
    "Our standup is at 9:30 on weekdays.": "when is the daily standup?",
    "I take lisinopril for blood pressure.": "What medication am I on?",
    "My dog is called Biscuit.": "what's the name of my pet?",
    "Anna is my manager since June.": "who is my boss?",
    "My favourite band is Radiohead.": "what music do I like?",
}
STRANGE = (
    "What is the capital of Mongolia?",
    "explain quantum entanglement",
    "best way to boil an egg",
    "how do volcanoes form?",
    "latest news on the stock market",
)


@pytest.fixture(scope="module")
async def api(redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    settings = load_settings(KEY_PREFIX="sm-scores", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", COMPAT_APIS="supermemory")
    async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        yield client


async def call(api: httpx.AsyncClient, path: str, **body: Any) -> Any:
    answer = await api.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def add_all(api: httpx.AsyncClient, tag: str, documents: list[dict[str, Any]]) -> None:
    """Add documents and wait until they are done."""
    await call(api, "/v3/documents/batch", containerTag=tag, documents=documents)

    async def done() -> bool:
        listed = (await call(api, "/v3/documents/list", containerTags=[tag], limit=100))["memories"]
        return len(listed) == len(documents) and all(document["status"] == "done" for document in listed)

    await wait_until(done, "the documents are done")


async def test_hosted_product_threshold_passes_matches_and_rejects_noise(api: httpx.AsyncClient) -> None:
    tag = f"tag-{uuid4().hex[:8]}"
    await add_all(api, tag, [{"content": fact} for fact in FACTS])
    for fact, question in FACTS.items():
        results = (await call(api, "/v4/search", q=question, containerTag=tag, threshold=0.6))["results"]
        assert fact in [result["memory"] for result in results], question
        assert all(0.6 <= result["similarity"] <= 1 for result in results)
        shown = (await call(api, "/v4/profile", containerTag=tag, q=question, threshold=0.6))["searchResults"]["results"]
        assert fact in [result["memory"] for result in shown]
        chunks = (await call(api, "/v3/search", q=question, containerTags=[tag], chunkThreshold=0.6))["results"]
        assert fact in [result["title"] for result in chunks]
    for question in STRANGE:
        assert (await call(api, "/v4/search", q=question, containerTag=tag, threshold=0.5))["results"] == [], question


async def test_nearest_hit_is_first(api: httpx.AsyncClient) -> None:
    tag, wanted = f"tag-{uuid4().hex[:8]}", "I can't stand coriander."
    await add_all(api, tag, [{"content": wanted}, {"content": "I had my appendix out in 2011."}])
    found = await call(api, "/v4/search", q="Which herb should I leave out of the curry?", containerTag=tag, threshold=0)
    assert found["results"][0]["memory"] == wanted
    assert found["results"][0]["similarity"] > found["results"][1]["similarity"]


def test_score_scale_is_monotonic_from_zero_to_one() -> None:
    for scale in (ScoreScale(noise=0.28, match=0.33), ScoreScale(noise=0.72, match=0.8), profile_of("all-MiniLM-L6-v2").scale):
        scores = [scale.score(step / 1000) for step in range(-100, 1101)]
        assert scores == sorted(scores)
        assert (scores[0], scores[-1]) == (0, 1)
        assert (round(scale.score(scale.noise), 9), round(scale.score(scale.match), 9)) == (0.5, 0.6)


def test_shared_words_raise_the_similarity() -> None:
    assert (raised(0.4, 0.0), raised(0.4, 1.0), raised(1.0, 1.0)) == (0.4, pytest.approx(0.7), 1.0)


@pytest.fixture(scope="module")
async def library(api: httpx.AsyncClient) -> str:
    """Create a container with three documents that have a title, labels and a year."""
    tag = f"tag-{uuid4().hex[:8]}"
    books = (("Annual Report", ["Finance", "public"], 2024), ("field report", ["bees"], 2025), ("Cookbook", ["BEES", "food"], 2025))
    documents = [
        {"content": f"Document {title}", "metadata": {"title": title, "labels": labels, "year": year}} for title, labels, year in books
    ]
    await add_all(api, tag, documents)
    return tag


def key(name: str, value: str, **more: Any) -> dict[str, Any]:
    return {"AND": [{"key": name, "value": value, **more}]}


def field(name: str, operator: str, value: str, **more: Any) -> dict[str, Any]:
    return {"field": name, "operator": operator, "value": value, **more}


PART = {"filterType": "string_contains"}


@pytest.mark.parametrize(
    ("filters", "titles"),
    [
        (key("title", "eport", **PART), {"Annual Report", "field report"}),
        (key("title", "Report", **PART), {"Annual Report"}),
        (key("title", "REPORT", ignoreCase=True, **PART), {"Annual Report", "field report"}),
        (key("title", "report", ignoreCase="true", negate=True, **PART), {"Cookbook"}),
        (key("title", "cookBOOK", ignoreCase=True), {"Cookbook"}),
        (key("title", "cookBOOK"), set[str]()),
        (key("labels", "bees", ignoreCase=True, filterType="array_contains"), {"field report", "Cookbook"}),
        (key("title", "nowhere", **PART), set[str]()),
        ({"AND": [*key("title", "report", ignoreCase=True, **PART)["AND"], {"key": "year", "value": "2025"}]}, {"field report"}),
        ({"OR": [*key("title", "Cook", **PART)["AND"], *key("labels", "inan", **PART)["AND"]]}, {"Annual Report", "Cookbook"}),
        (field("title", "contains", "eport"), {"Annual Report", "field report"}),
        (field("title", "contains", "REPORT", caseSensitive=False), {"Annual Report", "field report"}),
        (field("title", "notContains", "eport"), {"Cookbook"}),
        (field("title", "eq", "annual report", caseSensitive=False), {"Annual Report"}),
        (field("title", "neq", "annual report", caseSensitive=False), {"field report", "Cookbook"}),
        ({"operator": "and", "operands": [field("title", "contains", "book")]}, {"Cookbook"}),
    ],
)
async def test_string_contains_filters_work_in_searches_and_lists(
    api: httpx.AsyncClient, library: str, filters: dict[str, Any], titles: set[str]
) -> None:
    name = "filters" if "AND" in filters or "OR" in filters else "filter"
    found = await call(api, f"/ns/{library}/search", query="Document", **{name: filters})
    assert {result["metadata"]["title"] for result in found["results"]} == titles
    listed = await call(api, f"/ns/{library}/list/documents", filter=filters)
    assert {document["metadata"]["title"] for document in listed["documents"]} == titles
    assert listed["pagination"]["totalItems"] == len(titles)
