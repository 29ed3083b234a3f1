"""Run a Redis Cluster of local redis-server processes."""

from __future__ import annotations

import asyncio
import secrets
import socket
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import redis.asyncio as aioredis
from redis.exceptions import RedisError

from agent_memory.foundation.embedded.engine import Engine, find_engine, last_words, spawn, stop
from agent_memory.foundation.embedded.server import RECORD_OPTIONS

SLOTS = 16384
_PATIENCE_SECONDS = 60.0
_TRIES = 3


class DidNotStart(Exception):
    """Raised if a node exits before it responds, usually because its port was taken."""


@dataclass
class Node:
    """A process in the cluster."""

    port: int
    process: subprocess.Popen[bytes]
    client: aioredis.Redis
    log: Path

    async def id(self) -> bytes:
        return bytes(await self.client.execute_command("CLUSTER", "MYID"))


@dataclass
class Cluster:
    """A cluster whose nodes share the slots equally. `url` points to the first node."""

    nodes: list[Node]
    password: str = field(repr=False)
    replicas: list[Node] = field(default_factory=list[Node])
    """One replica of each node, in the same order, if there are any."""

    @property
    def urls(self) -> list[str]:
        return [f"redis://:{self.password}@127.0.0.1:{node.port}/0" for node in self.nodes]

    @property
    def url(self) -> str:
        return self.urls[0]

    async def move_slot(self, slot: int, *, source: int, target: int) -> None:
        """Move a slot and its keys, like `redis-cli --cluster reshard`."""
        old, new = self.nodes[source], self.nodes[target]
        await self.begin_move(slot, source=source, target=target)
        while keys := await old.client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
            await old.client.execute_command("MIGRATE", "127.0.0.1", new.port, "", 0, 10_000, "AUTH", self.password, "KEYS", *keys, keys=[])
        for node in (new, old, *self.nodes):
            await node.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", await new.id())

    async def begin_move(self, slot: int, *, source: int, target: int) -> None:
        """Mark a slot as migrating on both nodes without moving its keys."""
        old, new = self.nodes[source], self.nodes[target]
        await new.client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", await old.id())
        await old.client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", await new.id())


@asynccontextmanager
async def redis_cluster(folder: Path, *, nodes: int = 3, replicas: bool = False) -> AsyncGenerator[Cluster]:
    """Start a cluster with its files in `folder`, and stop it on exit.

    With `replicas`, each node has a replica, which takes over a few seconds after the node dies.
    """
    engine = await find_engine(folder)
    for attempt in range(1, _TRIES + 1):
        cluster = Cluster([], secrets.token_urlsafe(16))
        try:
            for number in range(nodes * (1 + replicas)):
                place = folder / f"{attempt}-{number}"
                place.mkdir()
                kind = cluster.nodes if number < nodes else cluster.replicas
                kind.append(_start(place, engine, cluster.password, node_timeout_ms=2_000 if replicas else 60_000))
            try:
                await _join(cluster)
            except DidNotStart:
                if attempt == _TRIES:
                    raise
                continue
            yield cluster
            return
        finally:
            for node in [*cluster.nodes, *cluster.replicas]:
                await node.client.aclose()
                await stop(node.process)


def _start(folder: Path, engine: Engine, password: str, *, node_timeout_ms: int) -> Node:
    port, bus = _free_port(), _free_port()
    lines = [
        b"bind 127.0.0.1",
        b"port %d" % port,
        b"cluster-enabled yes",
        b"cluster-port %d" % bus,
        b"cluster-config-file nodes.conf",
        b"cluster-node-timeout %d" % node_timeout_ms,
        # A cluster that lost one node continues with the others.
        b"cluster-require-full-coverage no",
        b"requirepass " + password.encode(),
        b"masterauth " + password.encode(),
        b'save ""',
        b"appendonly yes",
        *RECORD_OPTIONS,
        *engine.config_lines(),
        b"",
    ]
    conf, log = folder / "redis.conf", folder / "redis.log"
    conf.write_bytes(b"\n".join(lines))
    process = spawn(engine.server, conf, cwd=folder, log=log)
    return Node(port, process, aioredis.Redis(host="127.0.0.1", port=port, password=password, socket_timeout=10), log)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _join(cluster: Cluster) -> None:
    """Connect the nodes, assign the slots, and wait until all nodes report a healthy cluster."""
    everybody = [*cluster.nodes, *cluster.replicas]
    for number, node in enumerate(everybody):
        await _until(node, _answers)
        await node.client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
    for number, node in enumerate(cluster.nodes):
        low, high = (SLOTS * place // len(cluster.nodes) for place in (number, number + 1))
        await node.client.execute_command("CLUSTER", "ADDSLOTSRANGE", low, high - 1)
    first, *others = everybody
    for node in others:
        await node.client.execute_command("CLUSTER", "MEET", "127.0.0.1", first.port, await _bus(first))
    for node in everybody:
        await _until(node, lambda client: _is_well(client, len(everybody), len(cluster.nodes)))
    for node, replica in zip(cluster.nodes, cluster.replicas, strict=False):
        await replica.client.execute_command("CLUSTER", "REPLICATE", await node.id())
        await _until(replica, _is_in_step)


async def _bus(node: Node) -> int:
    return int((await node.client.config_get("cluster-port"))["cluster-port"])


async def _until(node: Node, condition: Callable[[aioredis.Redis], Awaitable[bool]]) -> None:
    deadline = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
    while True:
        with suppress(RedisError, OSError):
            if await condition(node.client):
                return
        if node.process.poll() is not None or asyncio.get_running_loop().time() > deadline:
            raise DidNotStart(f"the node on port {node.port} is not ready: {last_words(node.log)}")
        await asyncio.sleep(0.02)


async def _answers(client: aioredis.Redis) -> bool:
    return bool(await client.execute_command("FT._LIST") is not None)


async def _is_in_step(client: aioredis.Redis) -> bool:
    return (await client.info("replication")).get("master_link_status") == "up"


async def _is_well(client: aioredis.Redis, nodes: int, masters: int) -> bool:
    said = (await client.execute_command("CLUSTER", "INFO")).decode()
    wanted = ("cluster_state:ok", f"cluster_slots_ok:{SLOTS}", f"cluster_known_nodes:{nodes}\r", f"cluster_size:{masters}")
    return all(line in said for line in wanted)
