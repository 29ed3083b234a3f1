"""Store job orders: background work that callers requested."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from redis.asyncio import Redis

from agent_memory.foundation.core.errors import Forbidden
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.connection import read, redis_errors, server_ms
from agent_memory.foundation.storage.keyspace import Keys, digest

_LIFETIME_SECONDS = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class JobOrder:
    """A requested job. `errand` is the job's name in the feature that declares it.

    Duplicate orders run once, or once more if the job is already running.
    """

    errand: str
    tenant: str
    arguments: dict[str, str | None] = field(default_factory=dict[str, str | None])
    namespaces: frozenset[str] | None = None
    users: frozenset[str] | None = None

    @classmethod
    def of(cls, scope: Scope, errand: str, **arguments: str | None) -> JobOrder:
        """Return an order restricted to the caller's scope. Raises Forbidden if `scope` restricts agents."""
        if scope.agents is not None:
            raise Forbidden("credentials that are limited to some agents cannot order work on memories: use others")
        return cls(errand, scope.tenant, arguments, scope.namespaces, scope.users)

    @property
    def name(self) -> str:
        parts = [part for name, value in sorted(self.arguments.items()) for part in (name, value)]
        limits = [json.dumps(None if limit is None else sorted(limit)) for limit in (self.namespaces, self.users)]
        return digest("order", self.errand, self.tenant, *limits, *parts)


class OrderStore:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def place_orders(self, *orders: JobOrder) -> None:
        if not orders:
            return
        now = await server_ms(self._client)
        with redis_errors():
            async with self._client.pipeline(transaction=True) as pipe:
                for order in orders:
                    pipe.set(self._keys.order_of_work(order.name), encode_order(order), ex=_LIFETIME_SECONDS)
                    pipe.zrem(self._keys.dead(DueKind.ORDER), order.name)
                    pipe.zadd(self._keys.due(DueKind.ORDER), {order.name: now}, lt=True)
                pipe.lpush(self._keys.wake, "1")
                pipe.ltrim(self._keys.wake, 0, 0)
                await pipe.execute()

    def placement(self, order: JobOrder | None) -> Mapping[str, str | int | None]:
        """Return the script arguments that place an order (see `lua/orders.lua`).

        If `order` is None, all arguments are None.
        """
        k, kind = self._keys, DueKind.ORDER
        if order is None:
            return dict.fromkeys(("order", "order_dead", "order_due", "wake", "order_name", "order_body", "order_seconds"))
        keys = {"order": k.order_of_work(order.name), "order_dead": k.dead(kind), "order_due": k.due(kind), "wake": k.wake}
        return keys | {"order_name": order.name, "order_body": encode_order(order), "order_seconds": _LIFETIME_SECONDS}

    async def load_order(self, name: str) -> JobOrder | None:
        """Return an order, or None if it is missing or has expired."""
        raw = (await read(self._client, lambda pipe: pipe.get(self._keys.order_of_work(name))))[0]
        return None if raw is None else decode_order(raw)

    async def keep_receipt(self, order: JobOrder, counts: Mapping[str, int], ids: Sequence[str] = (), *, note: str | None = None) -> None:
        """Add a receipt to a finished order, if the order still exists.

        The receipt expires after seven days, or after an hour if it contains `ids`.
        """
        body = json.loads(encode_order(order)) | {"done": dict(counts)} | ({"ids": list(ids)} if ids else {})
        body |= {} if note is None else {"note": note}
        with redis_errors():
            await self._client.set(self._keys.order_of_work(order.name), json.dumps(body), xx=True, ex=3600 if ids else _LIFETIME_SECONDS)

    async def receipt(self, name: str) -> tuple[dict[str, int], list[str]] | None:
        """Return the counts and ids in an order's receipt, or None."""
        raw = (await read(self._client, lambda pipe: pipe.get(self._keys.order_of_work(name))))[0]
        body = {} if raw is None else json.loads(raw)
        return (body["done"], body.get("ids", [])) if "done" in body else None

    async def give_up(self, order: JobOrder, reason: str) -> None:
        """Make an order a dead letter immediately. The running job must then raise an error."""
        k, kind = self._keys, DueKind.ORDER
        now = await server_ms(self._client)
        with redis_errors():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.zrem(k.due(kind), order.name)
                pipe.hdel(k.tries(kind), order.name)
                pipe.zadd(k.dead(kind), {order.name: now})
                pipe.hset(k.why(kind), order.name, reason[:1000])
                await pipe.execute()

    async def given_up(self, order: JobOrder) -> bool:
        dead = self._keys.dead(DueKind.ORDER)
        return (await read(self._client, lambda pipe: pipe.zscore(dead, order.name)))[0] is not None


def encode_order(order: JobOrder) -> str:
    limits = [None if limit is None else sorted(limit) for limit in (order.namespaces, order.users)]
    return json.dumps({"do": order.errand, "tn": order.tenant, "args": order.arguments, "nss": limits[0], "uss": limits[1]})


def decode_order(raw: bytes) -> JobOrder:
    body = json.loads(raw)
    limits = [None if body[name] is None else frozenset(body[name]) for name in ("nss", "uss")]
    return JobOrder(body["do"], body["tn"], body["args"], *limits)
