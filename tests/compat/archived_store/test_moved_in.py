"""Test a migration as a user would run it, with the command line, a server and a client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ulid import ULID

from agent_memory.foundation.core.settings import load_settings
from agent_memory_client import MemoryAPIClient, MemoryClientConfig, MemoryNotFoundError
from agent_memory_client.filters import Namespace, UserId
from tests.compat.archived_store.conftest import OldRedis
from tests.compat.archived_store.moves import UNDATED, content_of
from tests.compat.archived_store.old_server import memory
from tests.registrations import registrations
from tests.support.cli import agent_memory
from tests.support.processes import start
from tests.support.stack import stack
from tests.support.waiting import settled, wait_until

LOCAL = {"MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local", "LOCAL_MODEL": "all-MiniLM-L6-v2"}


@pytest.fixture(scope="module")
def prefix() -> str:
    return f"moved-{ULID()}"


@pytest.fixture(scope="module")
async def reports(old_redis: OldRedis, redis_url: str, prefix: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """Return the output of a dry run, and of a rerun after a killed migration."""
    folder = tmp_path_factory.mktemp("move")
    environment = {"KEY_PREFIX": prefix, "REDIS_URL": redis_url, **LOCAL}
    before = await content_of(old_redis.url)

    async def run(*more: str) -> str:
        done = await asyncio.to_thread(agent_memory, "migrate", "--from", old_redis.url, *more, cwd=folder, **environment)
        assert done.returncode == 0, done.stderr
        assert all(line.startswith(("agent-memory: store ", "    ")) for line in done.stderr.splitlines()), done.stderr
        return done.stdout

    dry = await run()
    await _killed(folder, old_redis.url, redis_url, prefix, environment)
    report = json.loads(await run("--yes", "--format", "json"))
    assert await content_of(old_redis.url) == before, "the source is never changed"
    return dry, report


async def _killed(folder: Path, source: str, redis_url: str, prefix: str, environment: dict[str, str]) -> None:
    """Start a migration and kill it once it has written data."""
    from redis.asyncio import Redis

    client = Redis.from_url(redis_url)
    process = start(folder, "migrate", "--from", source, "--yes", warm=True, **environment)
    try:

        async def begun() -> bool:
            _, found = await client.scan(match=f"{prefix}:*m:*", count=100_000)
            return bool(found) or process.process.poll() is not None

        await wait_until(begun, "the move's first memory", 60)
    finally:
        await process.kill()
        await client.aclose()


@pytest.fixture(scope="module")
async def client(redis_url: str, prefix: str, reports: object) -> AsyncGenerator[MemoryAPIClient]:
    """Provide a client for a server that runs on the migrated data."""
    async with stack(load_settings(KEY_PREFIX=prefix, **LOCAL), redis_url) as url, MemoryAPIClient(MemoryClientConfig(base_url=url)) as one:
        await settled(one)
        yield one


def test_dry_run_reports_planned_writes_and_skipped_records(old_redis: OldRedis, reports: tuple[str, dict[str, Any]]) -> None:
    dry = " ".join(reports[0].split())  # lines are wrapped
    assert f"to import, unless it is here: {len(old_redis.left.memories)} memories, {len(old_redis.left.sessions)} sessions" in dry
    assert "2 cannot be moved, as only hashes are stored" in dry
    assert "80 would be kept, 23 would be made by a worker" in dry
    assert "(session a/b): session_id: must not contain '/'" in dry
    assert "Run it again with --yes" in dry


def test_migration_rerun_after_kill_writes_everything_once(old_redis: OldRedis, reports: tuple[str, dict[str, Any]]) -> None:
    _, report = reports
    for kind, wanted in (("memory", old_redis.left.memories), ("session", old_redis.left.sessions)):
        assert report["imported"].get(kind, 0) + report["present"].get(kind, 0) == len(wanted)
    assert {(one["kind"], one["id"]) for one in report["problems"]} == old_redis.left.skipped


async def test_migrated_memories_read_back_unchanged(old_redis: OldRedis, client: MemoryAPIClient) -> None:
    for name, old in old_redis.left.memories.items():
        if "/" in name:
            continue
        found = (await client.get_long_term_memory(name)).model_dump(mode="json")
        for field, wanted in old.items():
            got = found[field]
            if field.endswith(("_at", "_accessed", "_date")) and wanted is not None:
                wanted, got = round(wanted, 3), round(datetime.fromisoformat(got).timestamp(), 3)
            if field in ("topics", "entities"):  # the response contains an empty list for no tags
                wanted, got = wanted or [], got or []
            assert got == wanted, (name, field)


async def test_migrated_memories_are_indexed(old_redis: OldRedis, client: MemoryAPIClient) -> None:
    listed = [one async for one in client.search_all_long_term_memories("", batch_size=100)]
    assert {one.id for one in listed} >= set(old_redis.left.memories)
    extra = {one.text for one in listed} - {one.get("text") for one in old_redis.left.memories.values()}
    assert any("talk 7" in text for text in extra), "messages that nothing was taken from are memories now"


async def test_migrated_memories_are_found_by_search(client: MemoryAPIClient) -> None:
    wanted = memory(13)
    found = await client.search_long_term_memory("Which friend in Perth keeps a vineyard? Number 13.", limit=10)
    assert wanted["id"] in {one.id for one in found.memories}
    scope = {"user_id": UserId(eq=wanted["user_id"])} if wanted["user_id"] else {}
    only = await client.search_long_term_memory("friend number 14", namespace=Namespace(eq="work"), limit=50, **scope)
    assert only.memories
    assert {one.namespace for one in only.memories} == {"work"}
    by_words = await client.search_long_term_memory("日本語", search_mode="keyword")
    assert by_words.memories[0].id == "{*} @user:(a|b) 'quoted' \"id\" 日本"


async def test_migrated_sessions_read_back_unchanged(old_redis: OldRedis, client: MemoryAPIClient) -> None:
    for (namespace, user, name), old in old_redis.left.sessions.items():
        found = (await client.get_working_memory(name, namespace=namespace, user_id=user)).model_dump(mode="json")
        assert (found["namespace"], found["user_id"]) == (namespace, user)
        for field in ("context", "data", "tokens", "ttl_seconds", "long_term_memory_strategy"):
            if field in old:
                assert found[field] == old[field], (name, field)
        for field in ("created_at", "updated_at", "last_accessed"):
            if field in old and name not in UNDATED and name != "lines":
                assert datetime.fromisoformat(found[field]).timestamp() == old[field], (name, field)
        if "messages" in old:
            shown = [(one["id"], one["role"], one["content"], _time(one["created_at"])) for one in found["messages"]]
            assert shown == [(one["id"], one["role"], one["content"], _time(one["created_at"])) for one in old["messages"]], name
        assert [one["text"] for one in found["memories"]] == [one["text"] for one in old.get("memories", ())]


async def test_odd_messages_are_migrated_as_far_as_possible(client: MemoryAPIClient) -> None:
    found = (await client.get_working_memory("lines")).messages
    assert [one.content for one in found] == ["no role", '[{"type": "text", "text": "parts"}]', "nul \ufffd byte"]
    assert found[0].role == "user"
    assert found[2].created_at == datetime(2025, 3, 1, 12, tzinfo=UTC)


async def test_migrated_session_keeps_its_remaining_ttl(redis_url: str, prefix: str, client: MemoryAPIClient) -> None:
    from redis.asyncio import Redis

    from agent_memory.foundation.core.scope import SessionRef
    from agent_memory.foundation.storage.keyspace import Keys

    keys = Keys(prefix)
    redis = Redis.from_url(redis_url)
    try:
        lives = await redis.ttl(keys.session(keys.sid("default", SessionRef("talk-6", "work"))).meta)
        stays = await redis.ttl(keys.session(keys.sid("default", SessionRef("talk-8", "work", "ada"))).meta)
    finally:
        await redis.aclose()
    assert 0 < lives <= 4000
    assert stays == -1


async def test_feature_data_is_migrated(client: MemoryAPIClient) -> None:
    for one in registrations():
        await one.check_moved(client)


async def test_skipped_records_are_not_found(client: MemoryAPIClient) -> None:
    with pytest.raises(MemoryNotFoundError):
        await client.get_long_term_memory("empty")
    with pytest.raises(MemoryNotFoundError):
        await client.get_working_memory("broken")


def _time(value: str) -> float:
    return datetime.fromisoformat(value).timestamp()


async def test_undo_deletes_migrated_data(
    old_redis: OldRedis, reports: tuple[str, dict[str, Any]], client: MemoryAPIClient, tmp_path: Path
) -> None:
    """This test must run last, because it empties the store."""
    words = ("import", "--undo", reports[1]["name"], "--url", client.config.base_url)
    done = await asyncio.to_thread(agent_memory, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    left = {one.id async for one in client.search_all_long_term_memories("", batch_size=100)} & set(old_redis.left.memories)
    assert left == set()
    for namespace, user, name in old_redis.left.sessions:
        with pytest.raises(MemoryNotFoundError):
            await client.get_working_memory(name, namespace=namespace, user_id=user)
