"""Test Mem0's profiles over HTTP without a model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from tests.support.stack import stack
from tests.support.waiting import wait_until

SETTINGS, JOBS = "/v2/profiles/settings/", "/v2/profiles/jobs/"


@pytest.fixture(scope="module")
async def api(redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    settings = load_settings(KEY_PREFIX="mem0-profiles", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", COMPAT_APIS="mem0")
    async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        yield client


async def call(api: httpx.AsyncClient, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    answer = await api.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_profile_can_be_read_and_regenerated(api: httpx.AsyncClient) -> None:
    user = f"user/{uuid4().hex[:8]}"
    path = f"/v2/entities/user/{user}/profile/"
    await call(api, "GET", path, status=404)
    await call(api, "POST", JOBS, {"operation": "trigger", "entity_type": "user", "entity_id": user}, status=404)
    await call(api, "POST", "/v3/memories/add/", {"messages": "My name is Ada and I keep bees.", "user_id": user})

    async def known() -> bool:
        return (await api.get(path)).status_code == 200 and (await call(api, "GET", path))["status"] == "succeeded"

    await wait_until(known, "the profile says something")
    profile = await call(api, "GET", path)
    assert (profile["entity_type"], profile["entity_id"]) == ("user", user)
    assert "My name is Ada and I keep bees." in [*profile["profile"]["static"], *profile["profile"]["dynamic"]]
    for request in ({"operation": "trigger", "entity_id": user}, {"operation": "sample", "limit": 2}):
        job = await call(api, "POST", JOBS, {"entity_type": "user", **request})
        assert user in job["entity_ids"]

        async def done(where: str = job["status_url"]) -> bool:
            return (await call(api, "GET", where))["job"]["status"] == "succeeded"

        await wait_until(done, "the profile is made anew")
    await call(api, "GET", f"{JOBS}nothing/", status=404)
    await call(api, "GET", "/v2/entities/agent/coach/profile/", status=501)


async def test_profile_schema_is_returned_as_sent(api: httpx.AsyncClient) -> None:
    usual = await call(api, "GET", SETTINGS)
    assert usual["enabled"] is True
    properties = {
        "job": {"type": "string", "description": "What they do for a living"},
        "home": {"type": "object", "description": "Where they live", "properties": {"city": {"type": "string", "description": "The city"}}},
    }
    schema = {"type": "object", "properties": properties}
    changed = await call(api, "POST", SETTINGS, {"enabled": True, "entities": {"user": {"schema": schema}}})
    assert changed["entities"]["user"]["schema"] == (await call(api, "GET", SETTINGS))["entities"]["user"]["schema"] == schema
    without = {"type": "object", "properties": {"job": {"type": "string"}}}
    await call(api, "POST", SETTINGS, {"entities": {"user": {"schema": without}}}, status=400)
    await call(api, "POST", SETTINGS, {"enabled": False}, status=501)
    assert await call(api, "POST", SETTINGS, {"entities": {"user": {"schema": None}}}) == usual
