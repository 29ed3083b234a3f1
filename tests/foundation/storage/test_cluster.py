"""Test multiple buckets, both on a Redis Cluster with three nodes and in a single Redis.

Each tenant can read only its own data.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from redis.crc import key_slot
from typer.testing import CliRunner

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.cluster import ensure_buckets
from agent_memory.foundation.storage.keyspace import Keys, bucket_of
from agent_memory.foundation.storage.store_marker import StoreFile
from agent_memory.foundation.storage.store_watch import accept_store
from agent_memory.interfaces.cli.app import app
from agent_memory.runtime import open_runtime
from agent_memory_client.models import CreateMemoryRecordRequest, SearchRequest
from tests.support.cluster import SLOTS, Cluster, redis_cluster
from tests.support.mcp import over_http
from tests.support.rig import MakeRig, Rig
from tests.support.stack import stack
from tests.support.waiting import wait_until

OPERATOR = "the-operator-of-this-server"
BUCKETS = 4
MOVED = 3
"""The bucket that a test moves to the next node."""
TENANTS = [f"team-{number}" for number in range(40)]
FACTS = ("Ana keeps bees on the roof", "The boat leaves from pier nine", "Bo is allergic to walnuts")


def slot_of(bucket: int) -> int:
    return key_slot(Keys(bucket=bucket).root.encode())


def node_of_bucket(bucket: int) -> int:
    """Return the node where a bucket is initially stored."""
    return slot_of(bucket) * 3 // SLOTS


def node_of(tenant: str) -> int:
    return node_of_bucket(bucket_of(tenant, BUCKETS))


def chosen() -> list[str]:
    """Return one tenant per bucket, plus one that shares a bucket."""
    found: dict[int, list[str]] = {}
    for tenant in TENANTS:
        found.setdefault(bucket_of(tenant, BUCKETS), []).append(tenant)
    return [found[bucket][0] for bucket in range(BUCKETS)] + [found[1][1]]


@dataclass
class Clustered:
    """A server with multiple buckets that is configured with one node of a cluster."""

    cluster: Cluster
    settings: Settings
    url: str
    operator: httpx.AsyncClient
    callers: dict[str, httpx.AsyncClient]
    secrets: dict[str, str]

    async def search(self, tenant: str, text: str, mode: str = "hybrid") -> httpx.Response:
        return await self.callers[tenant].post("/v1/long-term-memory/search", json={"text": text, "search_mode": mode, "limit": 50})

    async def settled(self) -> None:
        """Wait until workers have finished all work in all buckets."""

        async def nothing_pending() -> bool:
            checks = (await self.operator.get("/v1/ready")).json()["checks"]
            assert not any(kind["dead"] for kind in checks["work"].values()), checks
            return "buckets_away" not in checks and not any(kind["pending"] for kind in checks["work"].values())

        await wait_until(nothing_pending, "the workers' rest")

    async def check(self, tenant: str, also: frozenset[str] = frozenset()) -> None:
        """Assert that a tenant can read all of its own data and nothing else."""
        own = {f"{tenant} {number}" for number in range(len(FACTS))} | also
        for number, (fact, mode) in enumerate(zip(FACTS, ("hybrid", "keyword", "semantic"), strict=True)):
            found = (await self.search(tenant, fact, mode)).json()["memories"]
            assert found[0]["id"] == f"{tenant} {number}", (mode, fact)
            assert {memory["id"] for memory in found} <= own
        listed = (await self.search(tenant, "")).json()["memories"]
        assert sorted(memory["id"] for memory in listed) == sorted(own)
        caller = self.callers[tenant]
        sessions = (await caller.get("/v1/working-memory/?limit=50")).json()
        assert sessions["sessions"] == ["talk"]
        messages = (await caller.get("/v1/working-memory/talk")).json()["messages"]
        assert [message["content"] for message in messages] == [f"{tenant} says {n}" for n in range(3)]


@pytest.fixture(scope="module")
async def clustered(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Clustered]:
    async with redis_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        settings = load_settings(
            REDIS_URL=cluster.urls[1],
            REDIS_BUCKETS=BUCKETS,
            MODEL_PROVIDER="local",
            EMBEDDING_PROVIDER="local",
            AUTH_MODE="token",
            AUTH_ADMIN_TOKEN=OPERATOR,
            INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY=False,
        )
        async with stack(settings, cluster.urls[1]) as url, httpx.AsyncClient(base_url=url, timeout=30) as operator:
            operator.headers["x-api-key"] = OPERATOR
            one = Clustered(cluster, settings, url, operator, {}, {})
            for tenant in chosen():
                await write(one, tenant)
            await one.settled()
            yield one
            for caller in one.callers.values():
                await caller.aclose()


async def write(one: Clustered, tenant: str) -> None:
    """Create an API key for a tenant and write the same facts as for the other tenants."""
    made = await one.operator.post("/v1/auth/tokens", json={"tenant": tenant, "role": "admin"})
    one.secrets[tenant] = made.json()["token"]
    caller = httpx.AsyncClient(base_url=one.url, timeout=30, headers={"x-api-key": one.secrets[tenant]})
    one.callers[tenant] = caller
    records = [{"id": f"{tenant} {number}", "text": fact} for number, fact in enumerate(FACTS)]
    for path, body in (
        ("/v1/long-term-memory/", {"memories": records}),
        ("/v1/working-memory/talk/messages", {"messages": [{"role": "user", "content": f"{tenant} says {n}"} for n in range(3)]}),
    ):
        answer = await caller.post(path, json=body)
        assert answer.status_code == 200, answer.text


def test_stored_key_names_and_bucket_numbers_do_not_change() -> None:
    """Changing them would hide the data in existing stores."""
    assert Keys().root == Keys("am", 0).root == "am:{0}:"
    assert Keys("own", 7).index("m:3") == "own:{7}:ix:m:3"
    assert [bucket_of(tenant, 64) for tenant in ("default", "acme", "école", "")] == [34, 1, 31, 52]
    assert {bucket_of(tenant, 1) for tenant in TENANTS} == {0}
    assert len({bucket_of(tenant, BUCKETS) for tenant in chosen()}) == BUCKETS < len(chosen())
    assert {node_of(tenant) for tenant in chosen()} == {0, 1, 2}


async def test_each_tenant_reads_all_of_its_data_on_every_node(clustered: Clustered) -> None:
    for tenant in chosen():
        await clustered.check(tenant)
    for number, node in enumerate(clustered.cluster.nodes):
        held = [key.decode() async for key in node.client.scan_iter(match="am:{*}:m:*", count=1000)]
        assert len(held) == len(FACTS) * sum(node_of(tenant) == number for tenant in chosen()) > 0
        outside = [key async for key in node.client.scan_iter(count=1000) if not key.startswith(b"am:{")]
        assert not outside, "every key has the tag of a bucket"


async def test_mcp_tools_search_the_bucket_of_their_caller(clustered: Clustered) -> None:
    tenant = chosen()[-1]
    async with over_http(f"{clustered.url}/mcp", headers={"x-api-key": clustered.secrets[tenant]}) as session:
        found = await session.call("search_long_term_memory", text=FACTS[0], search_mode="hybrid")
    assert found["memories"][0]["id"] == f"{tenant} 0"


async def test_cli_commands_cover_all_buckets(clustered: Clustered, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("REDIS_URL", clustered.cluster.urls[2]), ("REDIS_BUCKETS", str(BUCKETS)), ("AUTH_MODE", "token")):
        monkeypatch.setenv(name, value)
    listed = await asyncio.to_thread(CliRunner().invoke, app, ["token", "list", "--json"])
    assert {key["tenant"] for key in json.loads(listed.stdout)} == set(chosen())
    for name in ("MODEL_PROVIDER", "EMBEDDING_PROVIDER"):
        monkeypatch.setenv(name, "local")
    built = json.loads((await asyncio.to_thread(CliRunner().invoke, app, ["rebuild", "--json"])).stdout)
    assert built["memories"] == built["vectors"] == len(chosen()) * len(FACTS)
    await clustered.check(chosen()[0])


async def test_moving_bucket_returns_503_and_is_followed_afterwards(clustered: Clustered) -> None:
    tenant, other = chosen()[MOVED], chosen()[0]
    source, slot = node_of(tenant), slot_of(MOVED)
    await clustered.cluster.begin_move(slot, source=source, target=(source + 1) % 3)
    answer = await clustered.search(tenant, FACTS[0], "keyword")
    assert (answer.status_code, "retry-after" in answer.headers) == (503, True), answer.text
    await clustered.check(other)
    await clustered.cluster.move_slot(slot, source=source, target=(source + 1) % 3)

    async def answers() -> bool:
        answer = await clustered.search(tenant, FACTS[0], "keyword")
        assert answer.status_code in (200, 503), answer.text
        return answer.status_code == 200

    await wait_until(answers, "the server to follow the bucket")
    await clustered.check(tenant)
    added = await clustered.callers[tenant].post("/v1/long-term-memory/", json={"memories": [{"id": "new", "text": "Cy plays the oboe"}]})
    assert added.status_code == 200, added.text
    await clustered.settled()
    assert (await clustered.search(tenant, "Cy plays the oboe", "semantic")).json()["memories"][0]["id"] == "new"
    await clustered.check(tenant, also=frozenset({"new"}))


async def test_changed_number_of_buckets_is_refused_at_start(clustered: Clustered) -> None:
    fewer = clustered.settings.redis.model_copy(update={"buckets": BUCKETS - 1})
    with pytest.raises(StartupError, match=rf"REDIS_BUCKETS.*has {BUCKETS} buckets, not {BUCKETS - 1}"):
        async with open_runtime(clustered.settings.model_copy(update={"redis": fewer}), clustered.cluster.url):
            pass


def other_node_and_its_tenant() -> tuple[int, str]:
    """Return a node without bucket 0, and a tenant on it whose bucket does not move."""
    home = node_of_bucket(0)
    tenant = next(tenant for tenant in reversed(chosen()) if node_of(tenant) != home and bucket_of(tenant, BUCKETS) != MOVED)
    return node_of(tenant), tenant


async def test_processes_start_while_a_node_is_down_and_serve_its_tenants_once_it_answers(clustered: Clustered) -> None:
    number, gone = other_node_and_its_tenant()
    home = node_of_bucket(0)
    other = next(tenant for tenant in chosen() if node_of(tenant) == home and bucket_of(tenant, BUCKETS) != MOVED)
    quick = clustered.settings.redis.model_copy(update={"command_timeout_seconds": 0.5})
    settings = clustered.settings.model_copy(update={"redis": quick})
    stopped = clustered.cluster.nodes[number].process
    async with AsyncExitStack() as opened:
        stopped.send_signal(signal.SIGSTOP)
        opened.callback(stopped.send_signal, signal.SIGCONT)
        url = await opened.enter_async_context(stack(settings, clustered.cluster.urls[home]))
        callers = {
            tenant: await opened.enter_async_context(
                httpx.AsyncClient(base_url=url, timeout=30, headers={"x-api-key": clustered.secrets[tenant]})
            )
            for tenant in (gone, other)
        }
        late = Clustered(clustered.cluster, settings, url, clustered.operator, callers, clustered.secrets)
        await late.check(other)
        assert (await late.search(gone, FACTS[0], "keyword")).status_code == 503
        stopped.send_signal(signal.SIGCONT)

        async def answers() -> bool:
            return (await late.search(gone, FACTS[0], "keyword")).status_code == 200

        await wait_until(answers, "the node's tenants are served without a restart")
        await late.check(gone)


async def test_tenants_on_other_nodes_are_served_while_a_node_is_down(clustered: Clustered) -> None:
    """This must be the last cluster test because the node stays down."""
    home = node_of_bucket(0)
    number, gone = other_node_and_its_tenant()
    others = [tenant for tenant in chosen() if node_of(tenant) == home and bucket_of(tenant, BUCKETS) != MOVED]
    process = clustered.cluster.nodes[number].process
    process.kill()
    process.wait()
    answer = await clustered.search(gone, FACTS[0], "keyword")
    assert (answer.status_code, "retry-after" in answer.headers) == (503, True), answer.text
    ready = await clustered.operator.get("/v1/ready")
    assert (ready.status_code, str(bucket_of(gone, BUCKETS)) in ready.json()["checks"]["buckets_away"]) == (200, True), ready.text
    assert others
    for tenant in others:
        await clustered.check(tenant)
    added = {"memories": [{"id": "later", "text": "Di builds a sundial"}]}
    assert (await clustered.callers[others[0]].post("/v1/long-term-memory/", json=added)).status_code == 200

    async def embedded() -> bool:
        found = (await clustered.search(others[0], "Di builds a sundial", "semantic")).json()["memories"]
        return bool(found) and found[0]["id"] == "later"

    await wait_until(embedded, "the worker goes on for the others")


async def test_several_buckets_share_one_redis(make_rig: MakeRig) -> None:
    async with make_rig(REDIS_BUCKETS=2) as rig:
        names = {bucket: next(tenant for tenant in TENANTS if bucket_of(tenant, 2) == bucket) for bucket in (0, 1)}
        for bucket, tenant in names.items():
            runtime = rig.rt.of(tenant)
            assert runtime.keys == rig.rt.all[bucket].keys
            records = [{"id": f"{tenant} {number}", "text": fact} for number, fact in enumerate(FACTS)]
            await runtime[MemoryService].create(scope_of_work(tenant), CreateMemoryRecordRequest.model_validate({"memories": records}))
            assert {state.pending for kind, state in (await runtime.outbox.backlog()).items() if kind is DueKind.MEMORY} == {len(FACTS)}
        assert (await rig.rt.backlog())[DueKind.MEMORY].pending == 2 * len(FACTS)
        for bucket, tenant in names.items():
            found = await rig.rt.of(tenant)[SearchService].search(
                scope_of_work(tenant), SearchRequest(text=FACTS[0], search_mode="keyword")
            )
            assert [memory.id for memory in found.memories] == [f"{tenant} 0"]
            stored = [key async for key in rig.rt.client.scan_iter(match=Keys(rig.keys.prefix, bucket).memory_prefix + "*", count=1000)]
            assert len(stored) == len(FACTS)


@pytest.mark.parametrize("numbers", [(1, 4), (4, 1), (4, 2, 1, 2, 4, 1)], ids=str)
async def test_concurrent_first_starts_agree_on_one_number_of_buckets(rig: Rig, numbers: tuple[int, ...]) -> None:
    client, keys = rig.rt.client, Keys(f"{rig.keys.prefix}-{'-'.join(map(str, numbers))}")
    ends = await asyncio.gather(*(ensure_buckets(client, keys, number) for number in numbers), return_exceptions=True)
    [said] = {number for number, end in zip(numbers, ends, strict=True) if end is None}
    refused = [str(end) for end in ends if isinstance(end, StartupError) and re.search(rf"has {said} buckets?, not ", str(end))]
    assert len(refused) == len(numbers) - numbers.count(said)


async def test_accept_store_requires_the_number_of_buckets_of_the_lost_store(make_rig: MakeRig, redis_url: str) -> None:
    async with make_rig(REDIS_BUCKETS=2) as rig:
        await rig.rt.client.delete(*(bucket.keys.config for bucket in rig.rt.all))
        for bucket in rig.rt.all:
            assert [problem.code for problem in await bucket.watch.look(fresh=True)] == ["store_lost"]
        with pytest.raises(StartupError, match="has 2 buckets, not 1"):
            await accept_store(redis_url, [rig.keys], None, command_timeout=5)
        assert [problem.code for problem in await rig.rt.watch.look(fresh=True)] == ["store_lost"], "nothing was accepted"
        await accept_store(redis_url, [bucket.keys for bucket in rig.rt.all], None, command_timeout=5)
        for bucket in rig.rt.all:
            assert "store_lost" not in [problem.code for problem in await bucket.watch.look(fresh=True)]
            assert bucket.watch.intact


async def test_data_directory_of_a_lost_store_keeps_its_number_of_buckets(make_rig: MakeRig, redis_url: str, tmp_path: Path) -> None:
    async with make_rig() as rig:
        lost = Keys(f"{rig.keys.prefix}-lost")
        file = StoreFile(tmp_path)
        for number in range(2):
            file.note(Keys(lost.prefix, number), f"store{number}")
        with pytest.raises(StartupError, match="has 2 buckets, not 1"):
            await accept_store(redis_url, [lost], file, command_timeout=5)
        settings = rig.settings.model_copy(update={"redis": rig.settings.redis.model_copy(update={"key_prefix": lost.prefix})})
        with pytest.raises(StartupError, match="has 2 buckets, not 1"):
            async with open_runtime(settings, redis_url, data_dir=tmp_path):
                pass
        assert not await rig.rt.client.exists(lost.config)
