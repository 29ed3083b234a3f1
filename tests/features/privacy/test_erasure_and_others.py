"""Test that an erasure deletes all of a user's data, in every bucket, and no one else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory.features.access.tokens import OPERATOR as OPERATORS
from agent_memory.features.access.tokens import TokenService
from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.privacy.purge import PurgeService
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.keyspace import bucket_of
from agent_memory_client.models import CreateTokenRequest, PurgeRequest
from tests.support.cli import agent_memory, unwrapped
from tests.support.rig import SCOPE, MakeRig, Rig
from tests.support.stack import stack

OPERATOR = "the-operator-of-this-server"
BUCKETS = 4
MESSAGE = {"user_id": "ada", "messages": [{"role": "user", "content": "My train leaves at nine."}]}


class Tenants:
    def __init__(self, url: str, clients: AsyncExitStack) -> None:
        self._url = url
        self._clients = clients

    async def caller(self, key: str) -> httpx.AsyncClient:
        return await self._clients.enter_async_context(httpx.AsyncClient(base_url=self._url, timeout=30, headers={"x-api-key": key}))

    async def key(self, **fields: Any) -> httpx.AsyncClient:
        """Create an API key and return a client that uses it."""
        operator = await self.caller(OPERATOR)
        return await self.caller((await operator.post("/v1/auth/tokens", json=fields)).raise_for_status().json()["token"])


@pytest.fixture(scope="module")
async def tenants(redis_url: str) -> AsyncGenerator[Tenants]:
    options = {"REDIS_BUCKETS": BUCKETS, "AUTH_MODE": "token", "AUTH_ADMIN_TOKEN": OPERATOR}
    settings = load_settings(KEY_PREFIX=f"others{ULID()}".lower(), MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", **options)
    async with stack(settings, redis_url) as url, AsyncExitStack() as clients:
        yield Tenants(url, clients)


def tenants_in(bucket: int) -> list[str]:
    return [name for name in (f"team-{number}" for number in range(100)) if bucket_of(name, BUCKETS) == bucket]


async def erase(caller: httpx.AsyncClient, user: str, **params: str) -> dict[str, int]:
    """Erase a user, and return the receipt's counts."""
    erased = (await caller.delete(f"/v1/users/{user}", params={"wait": "20"} | params)).raise_for_status()
    assert erased.json()["status"] == "ok", erased.text
    return (await caller.get(f"/v1/operations/{erased.headers['x-operation-id']}")).json()["stages"]


@pytest.mark.parametrize("bucket", [0, 1])
async def test_erasure_revokes_the_users_api_keys_in_every_bucket(tenants: Tenants, bucket: int) -> None:
    tenant, other = tenants_in(bucket)[:2]
    caller = await tenants.key(tenant=tenant)
    own, shared = await tenants.key(tenant=tenant, users=["zoe"]), await tenants.key(tenant=tenant, users=["zoe", "bob"])
    elsewhere = await tenants.key(tenant=other, users=["zoe"])
    assert (await erase(caller, "zoe"))["keys"] == 2
    assert (await own.get("/v1/working-memory/")).status_code == 401
    assert (await shared.get("/v1/working-memory/", params={"user_id": "zoe"})).status_code == 403
    assert (await shared.get("/v1/working-memory/")).status_code == 200
    assert (await elsewhere.get("/v1/working-memory/")).status_code == 200


@pytest.mark.parametrize("erased", ["ada", "appended"])
async def test_erasure_in_another_tenant_leaves_stored_responses(tenants: Tenants, erased: str) -> None:
    caller, other = [await tenants.key(tenant=tenant) for tenant in tenants_in(2)[:2]]
    headers = {"idempotency-key": str(ULID())}
    path = f"/v1/working-memory/{ULID()}/messages"
    first = await caller.post(path, json=MESSAGE, headers=headers)
    assert "answers" not in await erase(other, erased)
    again = await caller.post(path, json=MESSAGE, headers=headers)
    assert (again.headers["idempotent-replayed"], again.json()) == ("true", first.json())


async def test_request_repeated_after_another_users_erasure_stores_nothing_twice(tenants: Tenants) -> None:
    caller = await tenants.key(tenant="field-names")
    path, headers = f"/v1/working-memory/{ULID()}/messages", {"idempotency-key": str(ULID())}
    await caller.post(path, json=MESSAGE, headers=headers)
    # Every response to an append has a field of this name, so it may contain the user's id.
    assert (await erase(caller, "appended"))["answers"] == 1
    again = (await caller.post(path, json=MESSAGE, headers=headers)).raise_for_status()
    assert again.json()["total_messages"] == 1


async def test_erasure_in_one_namespace_deletes_stored_responses(tenants: Tenants) -> None:
    caller = await tenants.key(tenant="one-namespace")
    body = {"when_to_use": "to open the door", "steps": ["turn the brass key"], "user_id": "ada", "namespace": "n"}
    headers = {"idempotency-key": str(ULID())}
    assert "brass" in (await caller.post("/v1/procedures", json=body, headers=headers)).text
    assert (await erase(caller, "ada", namespace="n"))["answers"] == 1
    assert "idempotent-replayed" not in (await caller.post("/v1/procedures", json=body, headers=headers)).headers


async def test_erasure_lets_accepted_purges_of_other_users_run(rig: Rig) -> None:
    for session in ("chat-17-1", "17"):
        await rig.append(session, "I like trains", user_id="ada")
        await rig.rt[PurgeService].order(SCOPE, PurgeRequest(session_id=session), None, None, dry_run=False)
    limited = await rig.rt[PurgeService].order(SCOPE, PurgeRequest(session_id="17"), None, "17", dry_run=False)
    await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, "17", None))
    await rig.work(DueKind.DELETION)
    assert limited.name not in await rig.marks(DueKind.ORDER), "it is only for the erased user"
    assert len(await rig.marks(DueKind.ORDER)) == 2
    await rig.work(DueKind.ORDER)
    for session in ("chat-17-1", "17"):
        assert await rig.contents(session, user_id="ada") == []


@pytest.mark.parametrize("bucket", [0, 1])
async def test_key_commands_on_the_store_are_refused_during_the_users_erasure(
    make_rig: MakeRig, redis_url: str, tmp_path: Path, bucket: int
) -> None:
    tenant = tenants_in(bucket)[0]
    async with make_rig(REDIS_BUCKETS=BUCKETS, AUTH_MODE="token") as rig:
        key = await rig.rt[TokenService].create(OPERATORS, CreateTokenRequest(tenant=tenant, users=["zoe", "bob"]))
        await rig.rt.of(tenant)[ErasureOrders].order_erasure(scope_of_work(tenant), Erasure(tenant, None, "zoe", None))
        store = {"REDIS_URL": redis_url, "REDIS_BUCKETS": str(BUCKETS), "KEY_PREFIX": rig.keys.prefix}
        for words in (["add", "-d", "x", "--tenant", tenant, "--user", "zoe"], ["rotate", key.id]):
            result = await asyncio.to_thread(agent_memory, "token", *words, cwd=tmp_path, **store)
            assert (result.returncode, "an erasure of this user" in unwrapped(result.stderr)) == (1, True), result.stdout + result.stderr


async def test_age_of_requested_work_is_the_time_since_its_request(rig: Rig) -> None:
    await rig.rt[PurgeService].order(SCOPE, PurgeRequest(session_id="s"), None, None, dry_run=False)
    await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, "ada", None))
    backlog = await rig.rt.outbox.backlog()
    for kind in (DueKind.ORDER, DueKind.DELETION):
        assert backlog[kind].pending == 1
        assert backlog[kind].oldest_seconds < 3600
