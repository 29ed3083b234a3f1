"""Test the archive and conversation tools of a self-managing agent against a real server."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from ulid import ULID

from agent_memory.foundation.core.settings import load_settings
from agent_memory_client import MemoryClient, MemoryClientConfig
from tests.support.stack import stack
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
async def client(redis_url: str) -> AsyncGenerator[MemoryClient]:
    settings = load_settings(KEY_PREFIX=f"t{str(ULID()).lower()}", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with stack(settings, redis_url) as url, MemoryClient(MemoryClientConfig(base_url=url)) as client:
        yield client


async def call(client: MemoryClient, user: str, name: str, **arguments: Any) -> dict[str, Any]:
    done = await client.tools.resolve_tool_call({"name": name, "arguments": arguments}, "s1", user_id=user)
    assert done["success"], done
    return done["result"]


def texts(answer: dict[str, Any]) -> list[str]:
    return [memory["text"] for memory in answer["memories"]]


async def test_archive_can_be_written_searched_and_paged(client: MemoryClient) -> None:
    user = f"u{ULID()}"
    for number in range(7):
        stored = await call(client, user, "archival_memory_insert", content=f"The boat number {number} is blue", tags=["boats"])
        assert stored["id"]
    await call(client, user, "archival_memory_insert", content="Ada grows tomatoes", tags=["garden"])
    await call(client, "somebody else", "archival_memory_insert", content="The boat of another is red")
    assert texts(await call(client, user, "archival_memory_search", query="tomatoes"))[0] == "Ada grows tomatoes"

    async def found_by_meaning() -> bool:
        return texts(await call(client, user, "archival_memory_search", query="boat", tags=["garden"])) == ["Ada grows tomatoes"]

    await wait_until(found_by_meaning, "a worker has embedded it")
    pages = [await call(client, user, "archival_memory_search", query="", tags=["boats"], page=page) for page in (0, 1)]
    assert [len(page["memories"]) for page in pages] == [5, 2]
    assert len({text for page in pages for text in texts(page)}) == 7
    assert (pages[0]["has_more"], pages[1]["has_more"]) == (True, False)
    assert texts(await call(client, user, "archival_memory_search", query="tomatoes", end_date="2020-01-01")) == []
    assert texts(await call(client, user, "archival_memory_search", query="tomatoes", start_date="2020-01-01", end_date="2999-01-01"))


async def test_agent_without_a_user_has_its_own_archive(client: MemoryClient) -> None:
    agent, user = f"a{ULID()}", f"u{ULID()}"

    async def run(name: str, of: str | None = None, **arguments: Any) -> dict[str, Any]:
        done = await client.tools.resolve_tool_call({"name": name, "arguments": arguments}, "s1", agent_id=of or agent)
        assert done["success"], done
        return done["result"] or {}

    await call(client, user, "archival_memory_insert", content="Ada hides the zebra key")
    await client.sessions.append(f"s{user}", [{"role": "user", "content": "Where is the zebra key?"}], user_id=user, wait="promoted")
    await run("archival_memory_insert", content="Zebras are counted on Monday")
    assert texts(await run("archival_memory_search", query="zebra")) == ["Zebras are counted on Monday"]
    assert texts(await run("archival_memory_search", of="another", query="zebra")) == []
    assert texts(await run("conversation_search", query="zebra key")) == []
    found = await client.memories.search("zebra", agent_id={"eq": agent})
    assert [memory.text for memory in found.memories] == ["Zebras are counted on Monday"]
    kinds = [json.loads(line)["kind"] async for line in client.agents.export(agent)]
    assert kinds == ["header", "memory", "end"]


async def test_append_sets_the_agent_of_a_session(client: MemoryClient) -> None:
    agent = f"a{ULID()}"
    await client.sessions.append(f"of-{agent}", [{"role": "user", "content": "I play chess on Fridays"}], user_id="ada", agent_id=agent)
    assert (await client.sessions.get(f"of-{agent}", user_id="ada")).agent_id == agent
    assert "session" in [json.loads(line)["kind"] async for line in client.agents.export(agent)]


async def test_past_messages_are_found_by_words_and_date(client: MemoryClient) -> None:
    user = f"u{ULID()}"
    said = {
        "2026-03-01": "My violin needs new strings.",
        "2026-03-02": "I flew to Lisbon today.",
        "2026-03-03": "The concert is on Friday.",
    }
    messages = [{"role": "user", "content": text, "created_at": f"{day}T23:30:00Z"} for day, text in said.items()]
    await client.sessions.append("earlier", messages, user_id=user, wait="promoted")

    async def found() -> bool:
        return bool(texts(await call(client, user, "conversation_search", query="violin")))

    await wait_until(found, "what was said is found")
    assert texts(await call(client, user, "conversation_search", query="violin strings"))[0] == said["2026-03-01"]
    on_days = await call(client, user, "conversation_search_date", start_date="2026-03-02", end_date="2026-03-02")
    assert texts(on_days) == [said["2026-03-02"]]
    both = await call(client, user, "conversation_search_date", start_date="2026-03-02", end_date="2026-03-03")
    assert sorted(texts(both)) == sorted([said["2026-03-02"], said["2026-03-03"]])
    refused = await client.tools.resolve_tool_call({"name": "conversation_search_date", "arguments": {"start_date": "soon"}}, "s1")
    assert not refused["success"]
    assert "start_date" in str(refused["error"])
