"""Test that a killed process frees the Idempotency-Key of its running request."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
import redis.asyncio as aioredis

from agent_memory.foundation.api.idempotency import LEASE_SECONDS
from tests.support.processes import running
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

# No worker embeds the memory, so the request waits until its timeout.
PATH = "/v1/long-term-memory/?wait=15"
BODY = {"memories": [{"id": "miso", "text": "The cat is called Miso."}]}
HEADERS = {"Idempotency-Key": "killed"}


async def test_idempotency_key_of_a_killed_process_is_free_after_its_lease(tmp_path: Path) -> None:
    async with running(tmp_path, "redis", "--data-dir", "data") as redis:
        url = await redis.said(r"REDIS_URL=(\S+)")
        async with (
            running(tmp_path, "api", "--port", "0", warm=True, REDIS_URL=url) as first,
            running(tmp_path, "api", "--port", "0", warm=True, REDIS_URL=url, REQUEST_TIMEOUT_SECONDS="25") as second,
            httpx.AsyncClient(base_url=await first.base_url(), timeout=60) as killed,
            httpx.AsyncClient(base_url=await second.base_url(), timeout=60) as other,
        ):
            client = aioredis.Redis.from_url(url)
            under_way = asyncio.create_task(killed.post(PATH, json=BODY, headers=HEADERS))

            async def written() -> bool:
                return bool([key async for key in client.scan_iter(match="*:m:*")])

            await wait_until(written, "the memory of the request")
            await first.kill()
            assert isinstance((await asyncio.gather(under_way, return_exceptions=True))[0], httpx.TransportError)

            refused = await other.post(PATH, json=BODY, headers=HEADERS)
            assert (refused.status_code, refused.json()["code"]) == (409, "request_under_way"), refused.text
            assert 1 <= int(refused.headers["Retry-After"]) <= LEASE_SECONDS

            async def carried_out() -> httpx.Response | None:
                answer = await other.post(PATH, json=BODY, headers=HEADERS)
                return None if answer.status_code == 409 else answer

            again = await wait_until(carried_out, "the end of the lease")
            assert again is not None
            assert again.status_code == 200, again.text
            assert len([key async for key in client.scan_iter(match="*:m:*")]) == 1
            await client.aclose()
