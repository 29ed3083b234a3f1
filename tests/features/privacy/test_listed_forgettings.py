"""What was forgotten or erased is listed: who asked, when, and how much, without content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
from ulid import ULID

from agent_memory.foundation.core.settings import Settings
from tests.support.stack import stack
from tests.support.waiting import wait_until

ADMIN = "the-operators-own-key-of-these-tests"


async def _key(url: str, **limits: Any) -> tuple[httpx.AsyncClient, str]:
    async with httpx.AsyncClient(base_url=url, headers={"x-api-key": ADMIN}) as admin:
        made = (await admin.post("/v1/auth/tokens", json={"description": "app", "role": "write", **limits})).json()
    return httpx.AsyncClient(base_url=url, headers={"x-api-key": made["token"]}, timeout=60), f"token:{made['id']}"


async def _changes(client: httpx.AsyncClient, **query: str) -> list[dict[str, Any]]:
    return (await client.get("/v1/changes", params=query)).json()["changes"]


async def test_forgettings_and_erasures_are_listed(make_settings: Callable[..., Settings], redis_url: str) -> None:
    async with stack(make_settings(AUTH_MODE="token", AUTH_ADMIN_TOKEN=ADMIN), redis_url) as url:
        (app, name), (other, _) = await _key(url), await _key(url, users=["eve"])
        async with app, other:
            fact = {"id": f"fact-{ULID()}", "text": "Bob's ex is called Carla.", "user_id": "bob", "namespace": "shop"}
            await app.post("/v1/long-term-memory/", json={"memories": [fact]})
            gone = (await app.post("/v1/memory/forget", json={"ids": [fact["id"]], "user_id": "bob"})).json()
            (listed,) = await _changes(app, user_id="bob", kind="forget")
            assert listed["id"] == listed["receipt_id"] == gone["receipt_id"]
            assert (listed["actor"], listed["state"], listed["user_id"]) == (name, "applied", "bob")
            assert listed["forgotten"]["facts"] == 1
            assert [await _changes(app, user_id="bob", namespace=name) for name in ("shop", "else")] == [[listed], []]
            assert "Carla" not in str(listed)
            assert await _changes(other) == []
            assert (await other.post(f"/v1/changes/{listed['id']}/undo")).status_code == 404
            undone = (await app.post(f"/v1/changes/{listed['id']}/undo")).json()
            assert undone["state"] == "undone"
            assert (await app.get(f"/v1/long-term-memory/{fact['id']}")).status_code == 200
            assert (await app.post(f"/v1/changes/{listed['id']}/undo")).status_code == 409

            again = (await app.post("/v1/memory/forget", json={"ids": [fact["id"]]})).json()
            await app.post(f"/v1/memory/forget/{again['receipt_id']}/undo")
            assert [each["state"] for each in await _changes(app, user_id="bob", kind="forget")] == ["undone", "undone"]

            await app.delete("/v1/users/bob", params={"wait": 20})

            async def receipts() -> list[dict[str, Any]]:
                return (await app.get("/v1/operations", params={"state": "done"})).json()["operations"]

            (receipt,) = await wait_until(receipts, "a receipt of the erasure", 120)
            assert await _changes(app, user_id="bob") == []
            assert receipt["stages"]["memories"] == 1
            assert receipt["ordered_by"] == name
            assert receipt["ordered_at"] < receipt["finished_at"]
            assert "bob" not in str(receipt)
            assert (await other.get("/v1/operations", params={"state": "done"})).json()["operations"] == []
