"""Test `wait` on appends.

The response arrives once the messages are promoted or searchable, and reports which.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from agent_memory_client import MemoryAPIClient, MemoryClientConfig, MemoryValidationError
from agent_memory_client.sync import SyncMemoryAPIClient
from tests.support.api import serving
from tests.support.commands import commands_under
from tests.support.stack import stack

SAID = "I am allergic to peanuts."
# The query shares no words with the message: only its vector is near.
ASKED = "What must I not eat?"


@asynccontextmanager
async def server(settings: Settings, redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
        yield http


@asynccontextmanager
async def without_worker(settings: Settings, redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    async with (
        open_runtime(settings, redis_url) as runtime,
        serving(create_app(settings, runtime)) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as http,
    ):
        yield http


async def append(http: httpx.AsyncClient, wait: str, *said: str, user: str = "ada", session: str = "monday") -> dict[str, Any]:
    body = {"user_id": user, "messages": [{"role": "user", "content": text} for text in said]}
    answer = await http.post(f"/v1/working-memory/{session}/messages", params={"wait": wait}, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def recalled(http: httpx.AsyncClient, user: str = "ada") -> list[str]:
    session = {"session_id": "tuesday", "user_id": user}
    answer = await http.post("/v1/memory/prompt", json={"query": ASKED, "session": session, "long_term_search": {"limit": 5}})
    return [memory["text"] for memory in answer.json()["long_term_memories"]]


@pytest.mark.parametrize("wait", ["searchable", "true", "10"])
async def test_append_with_wait_returns_after_the_messages_are_searchable(wait: str, settings: Settings, redis_url: str) -> None:
    async with server(settings, redis_url) as http:
        for number in range(5):
            user = f"user-{number}"
            assert (await append(http, wait, SAID, user=user))["reached"] == "searchable"
            assert await recalled(http, user) == [SAID]


async def test_append_without_wait_reports_no_stage(settings: Settings, redis_url: str) -> None:
    async with server(settings, redis_url) as http:
        assert (await append(http, "false", SAID))["reached"] is None
        assert (await append(http, "0", "More."))["reached"] is None


async def test_append_with_wait_promoted_returns_after_the_messages_are_memories(settings: Settings, redis_url: str) -> None:
    async with server(settings, redis_url) as http:
        answer = await append(http, "promoted", SAID, "I keep bees.")
        assert answer["reached"] in ("promoted", "searchable")
        listed = (await http.post("/v1/long-term-memory/search", json={"text": "", "user_id": {"eq": "ada"}})).json()
        assert {memory["text"] for memory in listed["memories"]} == {SAID, "I keep bees."}


async def test_messages_that_create_no_memory_do_not_delay_wait(settings: Settings, redis_url: str) -> None:
    async with server(settings, redis_url) as http:
        assert (await append(http, "searchable", "hi", "thanks!"))["reached"] == "searchable"
        await append(http, "searchable", SAID)
        assert (await append(http, "searchable", SAID, session="wednesday"))["reached"] == "searchable", "it is said already"


async def test_wait_without_a_worker_times_out_and_reports_stored(settings: Settings, redis_url: str) -> None:
    async with without_worker(settings, redis_url) as http:
        answer = await asyncio.wait_for(append(http, "0.2", SAID), 10)
    assert (answer["reached"], answer["appended"]) == ("stored", 1)


@pytest.mark.parametrize("off", ["LONG_TERM_MEMORY", "INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY"])
async def test_wait_returns_immediately_if_messages_never_become_memories(
    off: str, make_settings: Callable[..., Settings], redis_url: str
) -> None:
    async with without_worker(make_settings(**{off: "false"}), redis_url) as http:
        answer = await asyncio.wait_for(append(http, "20", SAID), 10)
    assert answer["reached"] == "stored"


async def test_wait_during_an_embedder_outage_reports_promoted(redis_url: str, settings: Settings) -> None:
    away = load_settings(KEY_PREFIX=settings.redis.key_prefix, EMBEDDING_BASE_URL="http://127.0.0.1:1/v1", EMBEDDING_DIMENSIONS=8)
    async with server(away, redis_url) as http:
        assert (await append(http, "promoted", SAID))["reached"] == "promoted"
        assert (await append(http, "0.3", "I keep bees."))["reached"] == "promoted"


async def test_append_repeated_under_its_idempotency_key_returns_the_same_stage(settings: Settings, redis_url: str) -> None:
    async with server(settings, redis_url) as http:
        asked: dict[str, Any] = {
            "params": {"wait": "searchable"},
            "json": {"user_id": "ada", "messages": [{"role": "user", "content": SAID}]},
            "headers": {"Idempotency-Key": "once"},
        }
        first, second = [await http.post("/v1/working-memory/monday/messages", **asked) for _ in range(2)]
        assert first.json()["reached"] == "searchable"
        assert second.json() == first.json()


@pytest.mark.parametrize("wait", ["soon", "-1", "21", "nan", ""])
async def test_invalid_wait_value_is_refused_by_name(wait: str, settings: Settings, redis_url: str) -> None:
    async with without_worker(settings, redis_url) as http:
        answer = await http.post(
            "/v1/working-memory/s/messages", params={"wait": wait}, json={"messages": [{"role": "user", "content": "x"}]}
        )
    assert answer.status_code == 422
    (problem,) = answer.json()["detail"]
    assert problem["loc"] == ["query", "wait"]
    assert "promoted, searchable" in problem["msg"]


async def test_wait_polls_less_and_less_often(settings: Settings, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with without_worker(settings, redis_url) as http:
        sent = commands_under(settings.redis.key_prefix, monkeypatch)
        await append(http, "2", SAID)
    looks = [one for one in sent if b"ZSCORE" in one]
    assert 2 <= len(looks) <= 25


async def test_both_clients_support_wait(settings: Settings, redis_url: str) -> None:
    message = {"role": "user", "content": SAID}
    async with stack(settings, redis_url) as url:
        config = MemoryClientConfig(base_url=url)
        async with MemoryAPIClient(config) as client:
            assert (await client.append_messages("s1", [message], user_id="ada", wait="searchable")).reached == "searchable"
            assert (await client.append_messages("s1", [message], user_id="ada")).reached is None
            with pytest.raises(MemoryValidationError, match="wait: must be promoted"):
                await client.append_messages("s1", [message], wait="soon")  # type: ignore[arg-type]

        def blocking() -> Any:
            with SyncMemoryAPIClient(config) as twin:
                return twin.append_messages("s2", [message], user_id="bob", wait=10).reached

        assert await asyncio.to_thread(blocking) == "searchable"
