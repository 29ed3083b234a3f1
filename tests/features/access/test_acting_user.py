"""Test that `X-Acting-User` limits an application's key to one user per request."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from agent_memory_client import MemoryClient, MemoryClientConfig, MemoryNotFoundError, MemoryServerError, MemoryValidationError
from agent_memory_client.integrations._shared import EitherClient
from tests.features.access.conftest import Guarded
from tests.support.stack import stack


async def _status(guarded: Guarded, key: str, user: str, method: str, path: str, **more: object) -> int:
    async with guarded.client(key, **{"x-acting-user": user}) as client:
        return (await client.request(method, path, **more)).status_code  # type: ignore[arg-type]


async def test_acting_user_cannot_access_other_users_by_id(guarded: Guarded) -> None:
    key = (await guarded.key("shop"))["token"]
    config = MemoryClientConfig(base_url="http://127.0.0.1", api_key=key)
    async with MemoryClient(config, transport=guarded.transport) as app:
        ida, bob = app.for_user("ida åström/1"), app.for_user("bob")
        await ida.memories.create([{"id": "home", "text": "Ida lives in Rome", "user_id": "ida åström/1"}])
        assert (await ida.memories.get("home")).text == "Ida lives in Rome"
        for call in (bob.memories.get, bob.memories.evidence, bob.memories.history):
            with pytest.raises(MemoryNotFoundError):
                await call("home")
        with pytest.raises(MemoryNotFoundError):
            await bob.memories.edit("home", {"text": "Ida lives in Bonn"})
        assert not (await bob.memories.forget_by_request(ids=["home"])).matches
        gone = await ida.memories.forget_by_request(ids=["home"])
        assert gone.receipt_id is not None
        with pytest.raises(MemoryNotFoundError):
            await bob.memories.undo_forget(gone.receipt_id)
        assert (await ida.memories.undo_forget(gone.receipt_id)).restored["memories"] == 1
        with pytest.raises(MemoryServerError, match="do not give access"):
            await bob.memories.create([{"text": "Ida is mine", "user_id": "ida åström/1"}])
        assert (await app.memories.get("home")).text == "Ida lives in Rome"
        with pytest.raises(MemoryValidationError):
            app.for_user(" ")


async def test_acting_user_never_widens_rights(guarded: Guarded) -> None:
    limited = (await guarded.key("shop", "admin", users=["ida"]))["token"]
    reader = (await guarded.key("shop", "read"))["token"]
    assert await _status(guarded, limited, "bob", "GET", "/v1/working-memory/") == 403
    assert await _status(guarded, limited, "ida", "GET", "/v1/working-memory/") == 200
    assert await _status(guarded, limited, "ida", "GET", "/v1/auth/tokens") == 403, "a user is no administrator"
    assert await _status(guarded, reader, "ida", "POST", "/v1/long-term-memory/", json={"memories": [{"text": "x"}]}) == 403


@pytest.mark.parametrize("user", ["", " ", "%20", "%FF", "a" * 5000])
async def test_invalid_or_repeated_acting_user_header_is_rejected(guarded: Guarded, user: str) -> None:
    key = (await guarded.key("shop"))["token"]
    assert await _status(guarded, key, user, "GET", "/v1/working-memory/") == 422
    async with guarded.client(key) as client:
        two = await client.get("/v1/working-memory/", headers=[("x-acting-user", "ida"), ("x-acting-user", "bob")])
    assert two.status_code == 422
    assert two.json()["detail"][0]["loc"] == ["header", "X-Acting-User"]


async def test_acting_user_limits_requests_without_authentication(redis_url: str) -> None:
    settings = load_settings(KEY_PREFIX="acting", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with open_runtime(settings, redis_url) as runtime:
        transport = httpx.ASGITransport(create_app(settings, runtime))
        async with MemoryClient(MemoryClientConfig(base_url="http://127.0.0.1"), transport=transport) as app:
            await app.for_user("ida").memories.create([{"id": "home", "text": "Ida lives in Rome", "user_id": "ida"}])
            with pytest.raises(MemoryNotFoundError):
                await app.for_user("bob").memories.get("home")
            assert (await app.memories.get("home")).user_id == "ida"


async def test_blocking_calls_of_an_adapter_are_limited_to_the_clients_user(redis_url: str) -> None:
    settings = load_settings(KEY_PREFIX="acting-adapter", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with stack(settings, redis_url) as url, MemoryClient(MemoryClientConfig(base_url=url)) as app:
        await app.memories.create([{"id": "home", "text": "Ida lives in Rome", "user_id": "ida"}], wait=15)
        own, others = EitherClient(app.for_user("ida"), "ida"), EitherClient(app.for_user("bob"), "ida")
        for access, ids in ((own, ["home"]), (others, [])):
            answer = await asyncio.to_thread(access.blocking.memories.search, "Rome", **access.filters)
            assert [hit.id for hit in answer.memories] == ids
            access.close()
