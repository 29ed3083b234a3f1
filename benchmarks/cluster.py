"""Run the server on a local Redis Cluster and check that every read is complete.

`python -m benchmarks cluster` moves a bucket to another node. Before and after the move, it counts
missing data and data from other tenants. With `--replicas 1`, it then kills a node, and counts
again when a replica has taken over.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
from redis.crc import key_slot

from agent_memory.foundation.storage.keyspace import Keys, bucket_of
from benchmarks.setup import corpus
from benchmarks.setup.stack import Process, child_environment, free_port, settings_of
from tests.support.cli import COMMAND
from tests.support.cluster import SLOTS, Cluster, redis_cluster

_OPERATOR = "the-operator-of-this-cluster"
_BATCH = 20
_PAGE = 100
_AT_ONCE = 16
_PATIENCE_SECONDS = 600.0
_SEARCHES = 5

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """The cluster size and the amount of data per tenant."""

    nodes: int = 3
    replicas: int = 0
    buckets: int = 12
    tenants: int = 60
    memories: int = 100
    sessions: int = 5
    messages: int = 6

    def memory_ids(self, tenant: int) -> set[str]:
        return {f"t{tenant}-m{number}" for number in range(self.memories)}

    def session_ids(self, tenant: int) -> set[str]:
        return {f"t{tenant}-s{number}" for number in range(self.sessions)}


@dataclass
class ReadTally:
    """Counters for one round of reads."""

    reads: int = 0
    whole: int = 0
    missing: int = 0
    foreign: int = 0
    refused: int = 0

    def count_answer(self, ids: Sequence[str], expected: set[str]) -> None:
        """Compare the returned ids with the expected ids, and count the differences."""
        self.reads += 1
        missing, foreign = expected - set(ids), set(ids) - expected
        self.missing += len(missing)
        self.foreign += len(foreign)
        self.whole += not missing and not foreign and len(ids) == len(expected)

    def summary(self) -> dict[str, Any]:
        return {
            "reads": self.reads,
            "complete": self.whole,
            "missing": self.missing,
            "of other tenants": self.foreign,
            "503, then repeated": self.refused,
        }


async def experiment(folder: Path, plan: Plan, say: Say) -> dict[str, Any]:
    """Write to a new cluster, read before and after moving a bucket, and return the results."""
    async with (
        redis_cluster(folder, nodes=plan.nodes, replicas=plan.replicas > 0) as cluster,
        _servers(folder, cluster, plan) as base,
        httpx.AsyncClient(base_url=base, timeout=60, headers={"x-api-key": _OPERATOR}, trust_env=False) as operator,
    ):
        clients = [await _caller(operator, base, number) for number in range(plan.tenants)]
        say(f"{plan.nodes} nodes, {plan.buckets} buckets; {plan.tenants} tenants write {plan.memories} memories each")
        began = time.perf_counter()
        await _each(clients, lambda number, client: _write(client, number, plan))
        await _settled(operator)
        result: dict[str, Any] = {"plan": asdict(plan), "written and indexed in s": round(time.perf_counter() - began, 1)}
        result["nodes"] = await _nodes(cluster, plan)
        result["reads"] = {"before": await _read_all(clients, plan)}
        say(f"before: {json.dumps(result['reads']['before'])}")
        result["moved"] = await _move(cluster, plan, clients, say)
        await _each(clients, lambda number, client: _write_again(client, number, 1))
        await _settled(operator)
        result["nodes after"] = await _nodes(cluster, plan)
        result["reads"]["after the move and more writes"] = await _read_all(clients, plan)
        if plan.replicas:
            result["killed"] = await _kill(cluster, plan, clients, say)
            await _each(clients, lambda number, client: _write_again(client, number, 2))
            await _settled(operator)
            result["reads"]["after the loss of a node and more writes"] = await _read_all(clients, plan)
        for client in clients:
            await client.aclose()
    return result


def table(result: dict[str, Any]) -> str:
    """Format the result as readable text."""
    plan = result["plan"]
    lines = [
        f"{plan['nodes']} nodes, {plan['buckets']} buckets, {plan['tenants']} tenants, {plan['memories']} memories and {plan['sessions']} "
        f"sessions of {plan['messages']} messages each; written and indexed in {result['written and indexed in s']} s",
        "",
        "| node | slots | buckets | tenants | memories | vectors | keys | Redis MiB |",
        "|---:|---:|---|---:|---:|---:|---:|---:|",
    ]
    for name in ("nodes", "nodes after"):
        lines += [f"| {' | '.join(str(value) for value in node.values())} |" for node in result[name]]
        lines += ["| after the move: ||||||||"] if name == "nodes" else []
    moved = result["moved"]
    lines += ["", f"Bucket {moved['bucket']} moved from node {moved['from']} to {moved['to']}: {moved['keys']} keys; {moved['note']}.", ""]
    if killed := result.get("killed"):
        lines += [f"Killed node {killed['node']}: {killed['note']}.", ""]
    for title, reads in result["reads"].items():
        lines.append(f"{title}: " + ", ".join(f"{key} {value}" for key, value in reads.items()))
    return "\n".join(lines)


def whole(result: dict[str, Any]) -> bool:
    """True if all reads were complete and no tenant saw another tenant's data."""
    complete = all(reads["complete"] == reads["reads"] > 0 and not reads["of other tenants"] for reads in result["reads"].values())
    return complete and all(node["memories"] for node in result["nodes"])


@asynccontextmanager
async def _servers(folder: Path, cluster: Cluster, plan: Plan) -> AsyncGenerator[str]:
    """Start an API and a worker that know only one node, and yield the API's URL."""
    async with AsyncExitStack() as stack:

        def start(name: str, command: Sequence[str], environment: dict[str, str]) -> Process:
            process = Process(name, command, folder, environment)
            stack.callback(process.end)
            return process

        port = free_port()
        start("model", [sys.executable, "-m", "benchmarks.setup.model", str(port)], child_environment())
        environment = child_environment(
            REDIS_URL=cluster.urls[-1],
            REDIS_BUCKETS=str(plan.buckets),
            AUTH_MODE="token",
            AUTH_ADMIN_TOKEN=_OPERATOR,
            **settings_of(f"http://127.0.0.1:{port}", local=False),
        )
        api = start("api", [*COMMAND, "api", "--port", "0"], environment)
        worker = start("worker", [*COMMAND, "worker"], {**environment, "LOG_LEVEL": "INFO"})
        base = await api.wait_for_output(r"agent-memory listens on (\S+)")
        await worker.wait_for_output(r"(worker ready)")
        yield base


async def _caller(operator: httpx.AsyncClient, base: str, number: int) -> httpx.AsyncClient:
    answer = await operator.post("/v1/auth/tokens", json={"tenant": f"tenant-{number}", "role": "admin"})
    answer.raise_for_status()
    return httpx.AsyncClient(base_url=base, timeout=60, headers={"x-api-key": answer.json()["token"]}, trust_env=False)


async def _each(clients: Sequence[httpx.AsyncClient], work: Callable[[int, httpx.AsyncClient], Any]) -> None:
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int, client: httpx.AsyncClient) -> None:
        async with places:
            await work(number, client)

    async with asyncio.TaskGroup() as group:
        for number, client in enumerate(clients):
            group.create_task(one(number, client))


async def _ask(client: httpx.AsyncClient, tally: ReadTally, method: str, path: str, body: Any = None) -> Any:
    """Send a request and return the response.

    After a 503, wait as long as the server asks, and retry. Raise any other error status.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        answer = await client.request(method, path, json=body)
        if answer.status_code != 503 or time.monotonic() > deadline:
            answer.raise_for_status()
            return answer.json()
        tally.refused += 1
        await asyncio.sleep(float(answer.headers["retry-after"]))


async def _write(client: httpx.AsyncClient, tenant: int, plan: Plan) -> None:
    tally = ReadTally()
    for first in range(0, plan.memories, _BATCH):
        records = [
            # All tenants have the same user and texts, so that only the tenant distinguishes their data.
            {"id": f"t{tenant}-m{number}", "text": corpus.fact(0, number), "user_id": "ada"}
            for number in range(first, min(first + _BATCH, plan.memories))
        ]
        await _ask(client, tally, "POST", "/v1/long-term-memory/", {"memories": records})
    for number in range(plan.sessions):
        name = f"t{tenant}-s{number}"
        messages = [corpus.message(name, place) for place in range(plan.messages)]
        body = {"messages": messages, "user_id": "ada"}
        await _ask(client, tally, "PUT", f"/v1/working-memory/{name}", body)


async def _write_again(client: httpx.AsyncClient, tenant: int, time_of: int) -> None:
    """Edit a memory, so that a worker writes a new vector to the bucket's current node."""
    await _ask(client, ReadTally(), "PATCH", f"/v1/long-term-memory/t{tenant}-m0", {"text": corpus.fact(time_of, tenant)})


async def _settled(operator: httpx.AsyncClient) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        work = (await operator.get("/v1/ready")).json()["checks"].get("work", {})
        if work and not any(kind["pending"] for kind in work.values()):
            return
        await asyncio.sleep(0.2)
    raise RuntimeError("background work does not end")


async def _read_all(clients: Sequence[httpx.AsyncClient], plan: Plan) -> dict[str, Any]:
    tally = ReadTally()
    await _each(clients, lambda number, client: _read(client, number, plan, tally))
    return tally.summary()


async def _read(client: httpx.AsyncClient, tenant: int, plan: Plan, tally: ReadTally) -> None:
    """Read all of a tenant's memories and sessions, and search for some of the memories."""
    ids = plan.memory_ids(tenant)
    memory_ids: list[str] = []
    while page := await _search(client, tally, {"text": "", "user_id": {"eq": "ada"}, "memory_type": {"eq": "semantic"}}, len(memory_ids)):
        memory_ids += page
    tally.count_answer(memory_ids, ids)
    for number in range(1, 1 + min(_SEARCHES, plan.memories - 1)):
        best = await _search(client, tally, {"text": corpus.fact(0, number), "memory_type": {"eq": "semantic"}, "search_mode": "hybrid"}, 0)
        tally.foreign += len(set(best) - ids)
        tally.count_answer(best[:1], {f"t{tenant}-m{number}"})
    listed = await _ask(client, tally, "GET", f"/v1/working-memory/?limit={_PAGE}&user_id=ada")
    tally.count_answer(listed["sessions"], plan.session_ids(tenant))
    for name in plan.session_ids(tenant):
        session = await _ask(client, tally, "GET", f"/v1/working-memory/{name}?user_id=ada")
        tally.count_answer([one["id"] for one in session["messages"]], {f"{name}-{place:05d}" for place in range(plan.messages)})


async def _search(client: httpx.AsyncClient, tally: ReadTally, body: dict[str, Any], offset: int) -> list[str]:
    answer = await _ask(client, tally, "POST", "/v1/long-term-memory/search", {**body, "limit": _PAGE, "offset": offset})
    return [memory["id"] for memory in answer["memories"]]


def _buckets_of(node: int, plan: Plan) -> list[int]:
    """Return the buckets that are initially on a node."""
    return [bucket for bucket in range(plan.buckets) if _slot(bucket) * plan.nodes // SLOTS == node]


def _slot(bucket: int) -> int:
    return key_slot(Keys(bucket=bucket).root.encode())


async def _nodes(cluster: Cluster, plan: Plan) -> list[dict[str, Any]]:
    """Count each node's data by scanning its keys."""
    tenants = Counter(bucket_of(f"tenant-{number}", plan.buckets) for number in range(plan.tenants))
    rows: list[dict[str, Any]] = []
    for number, node in enumerate(cluster.nodes):
        info = (await node.client.execute_command("CLUSTER", "SLOTS")) or []
        me = await node.id()
        owned = [(first, last) for first, last, primary, *_ in info if primary[2] == me]
        buckets = [bucket for bucket in range(plan.buckets) if any(first <= _slot(bucket) <= last for first, last in owned)]
        counts: Counter[str] = Counter()
        async for key in node.client.scan_iter(count=1000):
            counts[key.decode().split(":")[2]] += 1
        used = (await node.client.info("memory"))["used_memory"]
        rows.append(
            {
                "node": number,
                "slots": sum(last - first + 1 for first, last in owned),
                "buckets": " ".join(map(str, buckets)),
                "tenants": sum(tenants[bucket] for bucket in buckets),
                "memories": counts["m"],
                "vectors": counts["v"],
                "keys": sum(counts.values()),
                "Redis MiB": round(used / 1024**2, 1),
            }
        )
    return rows


async def _move(cluster: Cluster, plan: Plan, clients: Sequence[httpx.AsyncClient], say: Say) -> dict[str, Any]:
    """Move a bucket while one of its tenants reads its data.

    Choose the largest bucket of the first node that has tenants.
    """
    tenants = Counter(bucket_of(f"tenant-{number}", plan.buckets) for number in range(plan.tenants))
    source = next(node for node in range(plan.nodes) if any(tenants[bucket] for bucket in _buckets_of(node, plan)))
    bucket = max(_buckets_of(source, plan), key=lambda one: tenants[one])
    target = (source + 1) % plan.nodes
    keys = int(await cluster.nodes[source].client.execute_command("CLUSTER", "COUNTKEYSINSLOT", _slot(bucket)))  # pyright: ignore[reportArgumentType]
    reader = next(number for number in range(plan.tenants) if bucket_of(f"tenant-{number}", plan.buckets) == bucket)
    tally, over = ReadTally(), asyncio.Event()

    async def keep_reading() -> None:
        while not over.is_set():
            await _read(clients[reader], reader, plan, tally)

    reading = asyncio.create_task(keep_reading())
    say(f"move bucket {bucket} from node {source} to node {target}")
    began = time.perf_counter()
    await cluster.move_slot(_slot(bucket), source=source, target=target)
    took = time.perf_counter() - began
    over.set()
    await reading
    note = (
        f"{took:.1f} s; until the server followed the move, a tenant of the bucket made {tally.reads} reads, {tally.whole} complete; "
        f"{tally.refused} answers were 503"
    )
    return {"bucket": bucket, "from": source, "to": target, "keys": keys, "reads": tally.summary(), "note": note}


async def _kill(cluster: Cluster, plan: Plan, clients: Sequence[httpx.AsyncClient], say: Say) -> dict[str, Any]:
    """Kill the last node, then read one of its tenants' data once the replica takes over."""
    number = plan.nodes - 1
    reader = next(one for one in range(plan.tenants) if bucket_of(f"tenant-{one}", plan.buckets) in _buckets_of(number, plan))
    say(f"kill node {number}")
    process = cluster.nodes[number].process
    process.kill()
    process.wait()
    tally, began = ReadTally(), time.perf_counter()
    await _read(clients[reader], reader, plan, tally)
    took = time.perf_counter() - began
    note = (
        f"after {took:.1f} s, a tenant of the node had made {tally.reads} reads, {tally.whole} complete; "
        f"{tally.refused} answers before were 503"
    )
    return {"node": number, "reads": tally.summary(), "note": note}
