"""Test the HTTP behavior that Mem0's documentation and types promise, without a model."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from tests.support.lookalike import Lookalike
from tests.support.stack import stack
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
async def api(redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    settings = load_settings(KEY_PREFIX="mem0-wire", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", COMPAT_APIS="mem0")
    async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        yield client


@pytest.fixture
def user() -> str:
    return f"user-{uuid4().hex[:8]}"


async def call(api: httpx.AsyncClient, method: str, path: str, body: Any = None, **params: str) -> Any:
    answer = await api.request(method, path, json=body, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def stored(api: httpx.AsyncClient, text: str, **fields: Any) -> str:
    """Store a memory verbatim and return its id."""
    body = {"messages": [{"role": "user", "content": text}], "infer": False, **fields}
    return (await call(api, "POST", "/v3/memories/add/", body))["results"][0]["id"]


async def listed(api: httpx.AsyncClient, filters: dict[str, Any]) -> list[str]:
    answer = await call(api, "POST", "/v3/memories/", {"filters": filters})
    return sorted(memory["memory"] for memory in answer["results"])


@pytest.mark.parametrize("filters", [None, {}, {"AND": []}])
async def test_request_without_an_owner_is_rejected(api: httpx.AsyncClient, user: str, filters: dict[str, Any] | None) -> None:
    """Otherwise, the request would return every user's memories."""
    await stored(api, "I keep bees", user_id=user)
    for path, body in (("/v3/memories/search/", {"query": "bees"}), ("/v3/memories/", {}), ("/v1/memories/search/", {"query": "bees"})):
        answer = await api.post(path, json={**body, **({} if filters is None else {"filters": filters})})
        assert answer.status_code == 400, path
    assert (await api.get("/v1/memories/")).status_code == 400


async def test_unknown_filter_fields_are_rejected(api: httpx.AsyncClient, user: str) -> None:
    async def status(condition: dict[str, Any]) -> int:
        return (await api.post("/v3/memories/", json={"filters": {"AND": [{"user_id": user}, condition]}})).status_code

    deep: dict[str, Any] = {"keywords": "x"}
    for _ in range(200):
        deep = {"NOT": [deep]}
    assert await status(deep) == 400
    for condition in ({"colour_of_hat": "red"}, {"OR": [{"keywords": {"icontains": "x"}}, {"colour_of_hat": "red"}]}):
        assert await status(condition) == 400
    for condition in ({"feedback": "good"}, {"updated_at": {"near": "2026-01-01"}}):
        assert await status(condition) == 501


async def test_metadata_can_be_filtered_by_dotted_name(api: httpx.AsyncClient, user: str) -> None:
    await stored(api, "I avoid shellfish", user_id=user, metadata={"trip": "japan"})
    await stored(api, "I like small hotels", user_id=user, metadata={"trip": "peru"})
    assert await listed(api, {"user_id": user, "metadata.trip": "japan"}) == ["I avoid shellfish"]


async def test_wildcard_matches_only_memories_with_the_field(api: httpx.AsyncClient, user: str) -> None:
    """`*` excludes memories that lack the user, agent or run."""
    await stored(api, "I keep bees", user_id=user, run_id=user)
    await stored(api, "Answers briefly", agent_id="coach", run_id=user)
    name = await stored(api, "I sleep badly", user_id=user)
    said = {"messages": [{"role": "user", "content": "I like hills"}], "user_id": user, "agent_id": f"coach-{user}"}
    await call(api, "POST", "/v3/memories/add/", said)
    await wait_until(lambda: listed(api, {"agent_id": f"coach-{user}"}), "what was said to the coach is listed")
    assert await listed(api, {"AND": [{"user_id": "*"}, {"run_id": user}]}) == ["I keep bees"]
    assert await listed(api, {"AND": [{"agent_id": "*"}, {"run_id": user}]}) == ["Answers briefly"]
    assert await listed(api, {"AND": [{"user_id": user}, {"run_id": "*"}]}) == ["I keep bees"]
    assert await listed(api, {"AND": [{"user_id": user}, {"agent_id": "*"}]}) == ["I like hills"]
    assert await listed(api, {"AND": [{"user_id": user}, {"NOT": [{"run_id": "*"}, {"agent_id": "*"}]}]}) == ["I sleep badly"]
    assert await listed(api, {"OR": [{"AND": [{"user_id": user}, {"agent_id": "*"}]}, {"AND": [{"user_id": user}, {"run_id": "*"}]}]}) == [
        "I keep bees",
        "I like hills",
    ]
    (bees,) = (await call(api, "POST", "/v3/memories/", {"filters": {"AND": [{"user_id": user}, {"run_id": "*"}]}}))["results"]
    assert bees["metadata"] is None
    await call(api, "PUT", f"/v1/memories/{bees['id']}/", {"metadata": {"kind": "hobby"}})
    await call(api, "PUT", f"/v1/memories/{name}/", {"metadata": {"kind": "health"}})
    (bees,) = (await call(api, "POST", "/v3/memories/", {"filters": {"AND": [{"user_id": user}, {"run_id": "*"}]}}))["results"]
    assert bees["metadata"] == {"kind": "hobby"}


async def test_contains_matches_part_of_a_category_name(api: httpx.AsyncClient, user: str) -> None:
    """`contains` and `icontains` match part of a category name, as Mem0 documents."""
    project = "/api/v1/orgs/organizations/default/projects/mem0/"
    described = [{"race_goals": "Goals for races and target times, such as a marathon"}, {"injuries": "Pain, such as a knee that hurts"}]
    await stored(api, "I want to run a marathon in under 4 hours", user_id=user, custom_categories=described)
    await call(api, "PATCH", project, {"custom_categories": described[1:]})
    await stored(api, "My knee hurts when I run downhill", user_id=user)
    goal, knee = ["I want to run a marathon in under 4 hours"], ["My knee hurts when I run downhill"]
    for asked, wanted in (
        ({"contains": "goal"}, goal),
        ({"contains": "Goal"}, []),
        ({"icontains": "GOAL"}, goal),
        ({"contains": "injuries"}, knee),
    ):
        assert await listed(api, {"AND": [{"user_id": user}, {"categories": asked}]}) == wanted
    assert await listed(api, {"AND": [{"user_id": user}, {"NOT": {"categories": {"contains": "goal"}}}]}) == knee
    assert await listed(api, {"OR": [{"AND": [{"user_id": user}, {"categories": {"contains": "goal"}}]}, {"user_id": "nobody"}]}) == goal
    await call(api, "PATCH", project, {"custom_categories": []})


async def test_listed_memory_is_found_by_meaning_at_once(api: httpx.AsyncClient, user: str) -> None:
    for number in range(10):
        mine = f"{user}-{number}"
        said = [{"role": "user", "content": "I want to run a marathon in under 4 hours"}]
        await call(api, "POST", "/v3/memories/add/", {"messages": said, "user_id": mine})
        while not await listed(api, {"user_id": mine}):
            pass
        found = (await call(api, "POST", "/v3/memories/search/", {"query": "which race?", "filters": {"user_id": mine}}))["results"]
        assert [memory["memory"] for memory in found] == [said[0]["content"]]


async def test_delete_with_run_wildcard_deletes_only_runs(api: httpx.AsyncClient, user: str) -> None:
    await stored(api, "Boston is on Monday", user_id=user, run_id=f"boston-{user}")
    await stored(api, "I keep bees", user_id=user)
    await stored(api, "I like hills", user_id=f"{user}-other", run_id="any")
    await call(api, "DELETE", "/v1/memories/", user_id=user, run_id="*")
    assert await listed(api, {"user_id": user}) == ["I keep bees"]
    assert await listed(api, {"user_id": f"{user}-other"}) == ["I like hills"]


async def test_assistant_messages_do_not_become_user_memories(api: httpx.AsyncClient, user: str) -> None:
    said = [{"role": "user", "content": "I want to run a marathon"}, {"role": "assistant", "content": "A great goal, let us plan it"}]
    await call(api, "POST", "/v3/memories/add/", {"messages": said, "user_id": user})
    await wait_until(lambda: listed(api, {"user_id": user}), "the goal is listed")
    style = [{"role": "assistant", "content": "I coach with tough love"}]
    await call(api, "POST", "/v3/memories/add/", {"messages": style, "agent_id": user})
    await wait_until(lambda: listed(api, {"agent_id": user}), "the style is listed")
    assert await listed(api, {"OR": [{"user_id": user}, {"agent_id": user}]}) == ["I coach with tough love", "I want to run a marathon"]


async def test_entities_show_update_time_and_unknown_ones_get_404(api: httpx.AsyncClient, user: str) -> None:
    name = await stored(api, "I keep bees", user_id=user)
    await call(api, "PUT", f"/v1/memories/{name}/", {"text": "I keep goats"})
    (entity,) = [each for each in (await call(api, "GET", "/v1/entities/"))["results"] if each["name"] == user]
    assert entity["created_at"] < entity["updated_at"]
    await call(api, "DELETE", f"/v2/entities/user/{user}/")
    assert (await api.delete(f"/v2/entities/user/{user}/")).status_code == 404


async def test_delete_all_requires_filters_that_name_an_owner(api: httpx.AsyncClient, user: str) -> None:
    """Version 2.x sends `DeleteAllMemoryOptions` filters in the query as a Python `str`."""
    await stored(api, "I keep bees", user_id=user, run_id="a")
    await stored(api, "I keep goats", user_id=user, run_id="b")
    unclear = ({"categories": "x", "user_id": user}, {"AND": [{"user_id": user}], "run_id": "a"}, {"OR": [{"user_id": user}]}, {})
    for filters in (*unclear, {"AND": [{"user_id": user}, {"user_id": "other"}]}, {"AND": [{"user_id": {"ne": user}}]}, "{[]: 1}"):
        assert (await api.request("DELETE", "/v1/memories/", params={"filters": str(filters)})).status_code == 501
    assert len(await listed(api, {"user_id": user})) == 2
    await call(api, "DELETE", "/v1/memories/", filters=str({"AND": [{"user_id": user}, {"run_id": "a"}]}))
    assert await listed(api, {"user_id": user}) == ["I keep goats"]
    await call(api, "DELETE", "/v1/memories/", filters=str({"user_id": user}))
    assert await listed(api, {"user_id": user}) == []


async def test_refusals_name_the_field_as_the_client_sent_it(api: httpx.AsyncClient, user: str) -> None:
    name = await stored(api, "I keep bees", user_id=user)
    answer = await api.put(f"/v1/memories/{name}/", json={"timestamp": "soon"})
    assert (answer.status_code, answer.json()["detail"].partition(":")[0]) == (400, "timestamp")
    headers = {"content-type": "application/json"}
    for infer in (True, False):
        body = {"messages": [{"role": "user", "content": "Hi"}], "user_id": "x", "infer": infer, "metadata": {"a": math.nan}}
        answer = await api.post("/v3/memories/add/", content=json.dumps(body), headers=headers)
        assert (answer.status_code, answer.json()["detail"].partition(":")[0]) == (400, "metadata")


async def test_expiration_date_can_be_removed(api: httpx.AsyncClient, user: str) -> None:
    today = datetime.now(UTC).date()
    name = await stored(api, "Ankle is sprained", user_id=user, expiration_date=str(today))
    assert (await call(api, "GET", f"/v1/memories/{name}/"))["expiration_date"] == str(today)
    changed = await call(api, "PUT", f"/v1/memories/{name}/", {"expiration_date": None})
    assert (changed["memory"], changed["expiration_date"]) == ("Ankle is sprained", None)
    assert (await call(api, "GET", f"/v1/memories/{name}/"))["expiration_date"] is None
    assert await listed(api, {"user_id": user}) == ["Ankle is sprained"]


async def test_app_id_is_an_owner(api: httpx.AsyncClient, user: str) -> None:
    app = f"app-{user}"
    name = await stored(api, "I avoid shellfish", user_id=user, app_id=app, metadata={"kind": "food"})
    await stored(api, "I like hills", user_id=user)
    await call(
        api, "POST", "/v3/memories/add/", {"messages": [{"role": "user", "content": "I sleep badly"}], "user_id": user, "app_id": app}
    )
    await wait_until(lambda: listed(api, {"AND": [{"app_id": app}, {"metadata": {"kind": {"ne": "food"}}}]}), "what was said is listed")
    await call(api, "PUT", f"/v1/memories/{name}/", {"metadata": {"kind": "diet"}})
    memory = await call(api, "GET", f"/v1/memories/{name}/")
    assert (memory["app_id"], memory["metadata"]) == (app, {"kind": "diet"})
    assert await listed(api, {"AND": [{"user_id": user}, {"app_id": app}]}) == ["I avoid shellfish", "I sleep badly"]
    assert await listed(api, {"AND": [{"user_id": user}, {"app_id": "*"}]}) == ["I avoid shellfish", "I sleep badly"]
    assert await listed(api, {"AND": [{"user_id": user}, {"app_id": {"ne": app}}]}) == ["I like hills"]
    (entity,) = [each for each in (await call(api, "GET", "/v1/entities/"))["results"] if each["type"] == "app" and each["name"] == app]
    assert entity["total_memories"] == 2
    await call(api, "DELETE", "/v1/memories/", user_id=user, app_id=app)
    assert await listed(api, {"user_id": user}) == ["I like hills"]
    await stored(api, "I avoid shellfish", app_id=app)
    await call(api, "DELETE", f"/v2/entities/app/{app}/")
    assert await listed(api, {"app_id": app}) == []


async def test_system_message_with_an_agent_becomes_the_agents_memory(api: httpx.AsyncClient, user: str) -> None:
    agent, style = f"agent-{user}", {"role": "system", "content": "You are a running coach who speaks of hills"}
    for fields in ({"infer": False}, {}, {"infer": True}):
        name = f"{agent}-{len(fields)}-{fields.get('infer')}"
        made = await call(api, "POST", "/v3/memories/add/", {"messages": [style], "agent_id": name, **fields})
        assert [result["memory"] for result in made["results"]] == [style["content"]]
        assert await listed(api, {"agent_id": name}) == [style["content"]]
    talk = [style, {"role": "user", "content": "I want to run a marathon"}]
    await call(api, "POST", "/v3/memories/add/", {"messages": talk, "agent_id": agent})
    await wait_until(lambda: has(api, {"agent_id": agent}, 2), "both are listed")
    for infer in (False, True):
        mine = f"{user}-{infer}"
        await call(api, "POST", "/v3/memories/add/", {"messages": talk, "agent_id": agent, "user_id": mine, "infer": infer})
        await wait_until(lambda name=mine: has(api, {"user_id": name}, 1), "the goal is listed")
        assert await listed(api, {"user_id": mine}) == ["I want to run a marathon"], "the prompt of a user's chat is no memory of the user"


async def has(api: httpx.AsyncClient, filters: dict[str, Any], count: int) -> bool:
    return len(await listed(api, filters)) == count


@pytest.mark.parametrize(
    "shape",
    [
        [{"name": "race_goals", "description": "Goals for races, such as a marathon"}, {"name": "pets", "description": "Animals at home"}],
        [{"race_goals": "Goals for races, such as a marathon"}, {"pets": "Animals at home"}],
        [{"race_goals": "Goals for races, such as a marathon", "pets": "Animals at home"}],
        {"race_goals": "Goals for races, such as a marathon", "pets": "Animals at home"},
    ],
)
async def test_custom_categories_are_accepted_in_every_shape(api: httpx.AsyncClient, user: str, shape: Any) -> None:
    goal = "I want to run a marathon in under 4 hours"
    await stored(api, goal, user_id=user, custom_categories=shape)
    said = {"messages": [{"role": "user", "content": "My cat Miso is an old animal"}], "user_id": user, "custom_categories": shape}
    await call(api, "POST", "/v3/memories/add/", said)
    assert await listed(api, {"user_id": user, "categories": {"in": ["race_goals"]}}) == [goal]
    await wait_until(lambda: listed(api, {"user_id": user, "categories": {"in": ["pets"]}}), "the cat has its category")
    project = "/api/v1/orgs/organizations/default/projects/mem0/"
    await call(api, "PATCH", project, {"custom_categories": shape})
    kept = (await call(api, "GET", project))["custom_categories"]
    assert kept == [{"race_goals": "Goals for races, such as a marathon"}, {"pets": "Animals at home"}]
    await call(api, "PATCH", project, {"custom_categories": []})


async def test_custom_categories_of_a_request_are_refused_beside_a_model(redis_url: str, lookalike: Lookalike) -> None:
    model = {"OPENAI_BASE_URL": lookalike.url, "OPENAI_API_KEY": "test", "EMBEDDING_PROVIDER": "local"}
    said = {"messages": [{"role": "user", "content": "I run"}], "user_id": "ann", "custom_categories": [{"sport": "Sports"}]}
    settings = load_settings(KEY_PREFIX="mem0-wire-model", COMPAT_APIS="mem0", **model)
    async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        for more in ({}, {"infer": False}):
            assert (await client.post("/v3/memories/add/", json=said | more)).status_code == 501
        assert await listed(client, {"user_id": "ann"}) == []


async def test_text_of_messages_with_images_is_stored_with_notices(api: httpx.AsyncClient, user: str) -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/x.jpg"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "I own a red bike"},
        {"role": "user", "content": picture},
        {"role": "user", "content": [{"type": "text", "text": "Here is my dog Bruno"}, picture, "on the beach"]},
        {"role": "user", "content": {"type": "text", "text": "I keep bees"}},
        {"role": "user", "content": [{"type": "pdf_url", "pdf_url": {"url": "https://example.com/x.pdf"}}]},
    ]
    wanted = ["Here is my dog Bruno\non the beach", "I keep bees", "I own a red bike"]
    for infer in (False, True):
        mine = f"{user}-{infer}"
        answer = await call(api, "POST", "/v3/memories/add/", {"messages": messages, "user_id": mine, "infer": infer})
        if infer:
            parts = [
                "messages.4: pdf_url is stored, but no model reads it",
                *(f"messages.{number}.content: its images" for number in (1, 2)),
            ]
        else:
            parts = ["messages.1: image_url", "messages.2: image_url", "messages.4: pdf_url"]
        assert [notice.split(" was not stored")[0].split(" are remembered")[0] for notice in answer["notices"]] == parts
        await wait_until(lambda name=mine: has(api, {"user_id": name}, 3), "all texts are listed")
        assert await listed(api, {"user_id": mine}) == wanted
    for content, status in ((picture, 501), ([picture], 501), ("  ", 400), (5, 400), ([5], 400)):
        body = {"messages": [{"role": "user", "content": content}], "user_id": user, "infer": False}
        assert (await api.post("/v3/memories/add/", json=body)).status_code == status, content


async def test_user_id_may_be_a_number(api: httpx.AsyncClient) -> None:
    number = uuid4().int % 10**9
    await stored(api, "I keep bees", user_id=number, run_id=7)
    for filters in ({"user_id": number}, {"user_id": str(number)}, {"AND": [{"user_id": {"in": [number]}}, {"run_id": 7}]}):
        assert await listed(api, filters) == ["I keep bees"]
    found = await call(api, "POST", "/v3/memories/search/", {"query": "bees", "filters": {"user_id": number}})
    assert found["results"][0]["user_id"] == str(number)
    await call(api, "DELETE", "/v1/memories/", filters=str({"user_id": number}))
    assert await listed(api, {"user_id": number}) == []
    assert (await api.post("/v3/memories/add/", json={"messages": "x", "user_id": True, "infer": False})).status_code == 400


async def test_an_update_merges_metadata(api: httpx.AsyncClient, user: str) -> None:
    name = await stored(api, "I keep bees", user_id=user, metadata={"category": "hobbies", "priority": "high"})
    changed = await call(api, "PUT", f"/v1/memories/{name}/", {"metadata": {"priority": "low", "place": "garden"}})
    assert changed["metadata"] == {"category": "hobbies", "priority": "low", "place": "garden"}
    await call(api, "PUT", "/v1/batch/", {"memories": [{"memory_id": name, "text": "I keep two hives", "metadata": {"place": None}}]})
    read = await call(api, "GET", f"/v1/memories/{name}/")
    assert (read["memory"], read["metadata"]) == ("I keep two hives", {"category": "hobbies", "priority": "low", "place": None})


async def test_matches_are_sorted_by_similarity(api: httpx.AsyncClient, user: str) -> None:
    texts = ("The marathon is in Berlin", "I run every morning", "My marathon goal is 4 hours", "Berlin is cold", "I keep bees")
    for text in texts:
        await stored(api, text, user_id=user)
    for query in ("marathon in Berlin", "Which race do I run?", "bees"):
        hits = (await call(api, "POST", "/v3/memories/search/", {"query": query, "filters": {"user_id": user}}))["results"]
        scores = [hit["score"] for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert len(scores) > 1


async def test_delete_with_user_wildcard_keeps_memories_without_a_user(api: httpx.AsyncClient, user: str) -> None:
    """`*` matches any user but not a missing one."""
    run, agent = f"run-{user}", f"agent-{user}"
    said = [{"role": "user", "content": "I keep bees"}]
    for names in ({"run_id": run}, {"run_id": run, "user_id": user}, {"run_id": run, "user_id": f"{user}-other"}, {"agent_id": agent}):
        await call(api, "POST", "/v3/memories/add/", {"messages": said, **names})
    everything = {"OR": [{"run_id": run}, {"agent_id": agent}]}
    await wait_until(lambda: has(api, everything, 4), "all are listed")
    await call(api, "DELETE", "/v1/memories/", user_id="*", run_id=run)
    assert len(await listed(api, everything)) == 2
    await call(api, "POST", "/v3/memories/add/", {"messages": [{"role": "user", "content": "I keep goats"}], "run_id": run})
    await wait_until(lambda: has(api, {"run_id": run}, 2), "the run of nobody goes on")
    ours = {"namespace": "mem0", "user_id": ""}
    assert len((await call(api, "GET", f"/v1/working-memory/{run}", **ours))["messages"]) == 2
    assert (await api.get(f"/v1/working-memory/{run}", params={"namespace": "mem0", "user_id": user})).status_code == 404


async def test_message_is_stored_without_system_reminder_blocks(api: httpx.AsyncClient, user: str) -> None:
    await stored(api, "<system-reminder>Use jazz words</system-reminder>I keep bees", user_id=user)
    body = {"messages": [{"role": "user", "content": "<system-reminder>x</system-reminder>"}], "infer": False, "user_id": user}
    assert (await call(api, "POST", "/v3/memories/add/", body))["results"] == []
    assert await listed(api, {"user_id": user}) == ["I keep bees"]


async def test_memory_added_right_after_delete_all_survives(api: httpx.AsyncClient) -> None:
    async def deleted_and_added(user: str) -> None:
        await stored(api, "I keep bees", user_id=user)
        await call(api, "DELETE", "/v1/memories/", user_id=user)
        await stored(api, "I keep hens", user_id=user)
        said = {"messages": [{"role": "user", "content": "I bake bread"}], "user_id": user}
        await call(api, "POST", "/v3/memories/add/", said)

        async def only_new() -> bool:
            return await listed(api, {"user_id": user}) == ["I bake bread", "I keep hens"]

        await wait_until(only_new, f"what {user} said after the deletion")

    await asyncio.gather(*(deleted_and_added(f"gone-{uuid4().hex[:8]}") for _ in range(5)))
