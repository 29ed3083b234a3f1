"""Test that killing servers and workers does not lose or duplicate any accepted file."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.processes import QUICK, Running, running
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

URL, OWNER = "/v1/files", {"user_id": "ada"}
MANUAL = "".join(f"Line {number} of the manual describes the machine in hall {number % 7}.\n" for number in range(1_500)).encode()
NOTES = {f"note-{number}.txt": f"Note {number} is about a lamp." for number in range(12)}


async def upload(http: httpx.AsyncClient, name: str, data: bytes) -> dict[str, Any]:
    answer = await http.post(URL, params={**OWNER, "name": name}, content=data)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_killed_servers_and_workers_store_each_file_once(tmp_path: Path, redis_url: str) -> None:
    environment = {"REDIS_URL": redis_url, "KEY_PREFIX": "killed-files", "MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local", **QUICK}
    accepted: dict[str, dict[str, Any]] = {}

    def server() -> contextlib.AbstractAsyncContextManager[Running]:
        return running(tmp_path, "api", "--port", "0", warm=True, **environment)

    async with server() as api, httpx.AsyncClient(base_url=await api.base_url(), timeout=60) as http:
        accepted["manual.txt"] = await upload(http, "manual.txt", MANUAL)

        async def send(name: str, text: str) -> None:
            with contextlib.suppress(httpx.HTTPError):
                accepted[name] = await upload(http, name, text.encode())

        sending = [asyncio.create_task(send(name, text)) for name, text in NOTES.items()]

        async def some_accepted() -> bool:
            return len(accepted) > 3

        await wait_until(some_accepted, "some answers")
        await api.kill()
        await asyncio.gather(*sending)
    async with server() as api, httpx.AsyncClient(base_url=await api.base_url(), timeout=60) as http:

        async def file(name: str) -> Any:
            return (await http.get(f"{URL}/{accepted[name]['id']}", params=OWNER)).json()

        async def count(session_id: str) -> int:
            body = {"text": "", "session_id": {"eq": session_id}, "user_id": {"eq": "ada"}, "limit": 1}
            return (await http.post("/v1/long-term-memory/search", json=body)).json()["total"]

        async with running(tmp_path, "worker", warm=True, **environment) as worker:

            async def is_half_read() -> bool:
                return (await http.get(f"/v1/working-memory/{accepted['manual.txt']['id']}", params=OWNER)).status_code == 200

            await wait_until(is_half_read, "a worker reads the manual", seconds=60)
            await worker.kill()
        async with running(tmp_path, "worker", warm=True, **environment):

            async def all_read() -> bool:
                return all([(await file(name))["state"] == "ready" for name in accepted])

            await wait_until(all_read, "all accepted files are read", seconds=120)

            async def all_done() -> bool:
                operations = [await http.get(f"/v1/operations/{one['operation_id']}") for one in accepted.values()]
                return {operation.json()["state"] for operation in operations} == {"done"}

            await wait_until(all_done, "all operations end")
            # Clients without a response send their file again; other clients may repeat theirs.
            sent = {name: await upload(http, name, text.encode()) for name, text in NOTES.items()}
            assert all(sent[name]["id"] == one["id"] for name, one in accepted.items() if name in sent)
            accepted |= sent
            await wait_until(all_read, "all files are read", seconds=60)
            listed = (await http.get(URL, params={**OWNER, "limit": 100})).json()
            assert listed["total"] == len(NOTES) + 1
            counts = {one["name"]: (one["passages"], await count(one["id"])) for one in listed["files"]}
            assert all(passages == found > 0 for passages, found in counts.values()), counts
            found = await http.post("/v1/long-term-memory/search", json={"text": "", "user_id": {"eq": "ada"}, "limit": 1})
            assert found.json()["total"] == sum(passages for passages, _ in counts.values()), "no passage belongs to no file"
