"""Test background work over HTTP: idempotency keys, waiting, operations and dead letters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest
from starlette.responses import Response
from ulid import ULID

from agent_memory.foundation.api.idempotency import LEASE_SECONDS, IdempotencyService, request_digest
from agent_memory.foundation.api.principals import scope_of_request
from agent_memory.foundation.core.errors import RequestUnderWay
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.runtime import Runtime, open_runtime
from agent_memory_client.models import OperationState
from tests.support.cli import agent_memory
from tests.support.rig import claim_kind
from tests.support.stack import stack
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
async def worked(redis_url: str) -> AsyncGenerator[tuple[httpx.AsyncClient, Runtime], None]:
    """Start a server with a worker. Yield a client and a runtime."""
    settings = load_settings(KEY_PREFIX=f"ops{ULID()}".lower(), MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with (
        stack(settings, redis_url) as url,
        open_runtime(settings, redis_url) as runtime,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        yield client, runtime


def memory(text: str, **fields: object) -> dict[str, object]:
    return {"memories": [{"id": str(ULID()), "text": text, **fields}]}


async def test_request_repeated_with_the_same_key_runs_once(live: httpx.AsyncClient) -> None:
    user = str(ULID())
    body = {"user_id": user, "messages": [{"role": "user", "content": "only once", "created_at": "2026-01-01T00:00:00Z"}]}
    path, headers = f"/v1/working-memory/{user}/messages", {"Idempotency-Key": str(ULID())}
    first = await live.post(path, json=body, headers=headers)
    again = await live.post(path, json=body, headers=headers)
    assert first.status_code == again.status_code == 200
    assert again.content == first.content
    assert again.headers["etag"] == first.headers["etag"]
    assert "idempotent-replayed" in again.headers
    assert "idempotent-replayed" not in first.headers
    session = (await live.get(f"/v1/working-memory/{user}", params={"user_id": user})).json()
    assert len(session["messages"]) == 1


async def test_idempotency_key_of_another_request_is_refused(live: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": str(ULID())}
    assert (await live.post("/v1/long-term-memory/", json=memory("a"), headers=headers)).status_code == 200
    other = await live.post("/v1/long-term-memory/", json=memory("b"), headers=headers)
    assert other.status_code == 422
    assert other.json()["detail"][0]["loc"] == ["header", "Idempotency-Key"]


async def test_request_with_a_running_idempotency_key_is_a_conflict(
    worked: tuple[httpx.AsyncClient, Runtime], live: httpx.AsyncClient
) -> None:
    client, runtime = worked

    key, body, over = str(ULID()), b'{"memories": []}', asyncio.Event()
    scope = scope_of_request(runtime.settings)

    async def answer() -> Response:
        await over.wait()
        return Response()

    request = request_digest("POST", "/v1/long-term-memory/", b"", body)
    first = asyncio.create_task(runtime[IdempotencyService].answer_once(scope, key, request, answer, keeps=True))
    name = runtime.keys.idempotency(scope.tenant, key)
    await wait_until(lambda: runtime.client.exists(name), "the claim of the key")
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
    refused = await client.post("/v1/long-term-memory/", content=body, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (409, "request_under_way")
    assert 1 <= int(refused.headers["Retry-After"]) <= LEASE_SECONDS
    over.set()
    assert isinstance(await first, Response)


async def test_idempotency_key_lease_is_renewed_while_its_request_runs(worked: tuple[httpx.AsyncClient, Runtime]) -> None:
    _, runtime = worked
    scope, key = scope_of_request(runtime.settings), str(ULID())
    service = IdempotencyService(runtime.client, runtime.keys, lease_seconds=0.3)
    name = runtime.keys.idempotency(scope.tenant, key)

    async def forever() -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    async def at_once() -> Response:
        return Response()

    async def end_of_lease() -> int:
        return int(await runtime.client.hget(name, "u") or 0)

    running = asyncio.create_task(service.answer_once(scope, key, "request", forever, keeps=True))
    await wait_until(lambda: runtime.client.exists(name), "the claim of the key")
    first = await end_of_lease()

    async def renewed() -> bool:
        return await end_of_lease() > first

    await wait_until(renewed, "the renewal of the lease")
    await runtime.client.hset(name, "o", "another process")
    last = await end_of_lease()

    async def free() -> bool:
        try:
            return isinstance(await service.answer_once(scope, key, "request", at_once, keeps=True), Response)
        except RequestUnderWay:
            return False

    running.cancel()
    await asyncio.wait({running})
    assert await runtime.client.hget(name, "o") == b"another process", "who lost a key does not take it from whoever has it now"
    assert await end_of_lease() == last
    await wait_until(free, "the end of the lease")


async def test_refused_request_can_be_corrected_under_the_same_key(live: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": str(ULID())}
    refused = await live.post(
        "/v1/long-term-memory/search", json={"text": "x", "search_mode": "keyword", "distance_threshold": 0.5}, headers=headers
    )
    assert refused.status_code == 400
    assert (await live.post("/v1/long-term-memory/search", json={"text": "x"}, headers=headers)).status_code == 200


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there", "ümlaut"])
async def test_invalid_idempotency_key_is_refused(live: httpx.AsyncClient, key: str) -> None:
    answer = await live.post("/v1/long-term-memory/search", json={}, headers=[(b"Idempotency-Key", key.encode("latin-1"))])
    assert answer.status_code == 422


async def test_create_can_wait_until_the_memory_is_searchable(worked: tuple[httpx.AsyncClient, Runtime]) -> None:
    client, _ = worked
    user = str(ULID())
    answer = await client.post("/v1/long-term-memory/", params={"wait": "true"}, json=memory("The boat is called Aurora", user_id=user))
    assert answer.headers["x-searchable"] == "true"
    body = {"text": "what is the ship's name", "search_mode": "semantic", "user_id": {"eq": user}}
    found = (await client.post("/v1/long-term-memory/search", json=body)).json()
    assert [hit["text"] for hit in found["memories"]] == ["The boat is called Aurora"]


async def test_wait_without_a_worker_times_out_and_reports_not_searchable(live: httpx.AsyncClient) -> None:
    answer = await live.post("/v1/long-term-memory/", params={"wait": 0.05}, json=memory("Nobody embeds this"))
    assert (answer.status_code, answer.headers["x-searchable"]) == (200, "false")


async def test_accepted_work_has_an_operation_until_it_is_done(live: httpx.AsyncClient, worked: tuple[httpx.AsyncClient, Runtime]) -> None:
    session = str(ULID())
    await live.post(f"/v1/working-memory/{session}/messages", json={"messages": [{"role": "user", "content": "Remember the milk"}]})
    flushed = await live.post(f"/v1/working-memory/{session}/flush")
    operation = flushed.headers["x-operation-id"]
    found = (await live.get(f"/v1/operations/{operation}")).json()
    assert (found["state"], found["kind"], found["session_id"], found["stages"]["messages"]) == ("pending", "session", session, 1)

    client, _ = worked
    await client.post(f"/v1/working-memory/{session}/messages", json={"messages": [{"role": "user", "content": "Remember the milk"}]})
    done = await client.post(f"/v1/working-memory/{session}/flush", params={"wait": 15})
    assert done.json() == {"status": "ok"}
    finished = (await client.get(f"/v1/operations/{done.headers['x-operation-id']}")).json()
    assert (finished["state"], finished["stages"]["promoted"]) == ("done", 1)


async def test_unknown_operation_is_not_found(live: httpx.AsyncClient) -> None:
    for name in ("session-0", "memory-" + "0" * 32, "nonsense", "deletion-x", "session-"):
        assert (await live.get(f"/v1/operations/{name}")).status_code == 404


async def test_dead_work_can_be_listed_inspected_replayed_and_dropped(redis_url: str, tmp_path: Path) -> None:
    settings = load_settings(KEY_PREFIX=f"dead{ULID()}".lower(), MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    from agent_memory.interfaces.http.app import create_app
    from tests.support.api import serving

    async with (
        open_runtime(settings, redis_url) as runtime,
        serving(create_app(settings, runtime)) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        await client.post("/v1/long-term-memory/", json=memory("Doomed"))
        # The attempt starts and never ends, until the mark becomes a dead letter.
        while True:
            claims = await claim_kind(runtime.outbox, DueKind.MEMORY, limit=10, lease_seconds=0.001, max_attempts=2)
            if (await runtime.outbox.backlog())[DueKind.MEMORY].dead:
                break
            await runtime.outbox.begin_claims(
                DueKind.MEMORY, [claim.member for claim in claims.claims], lease_seconds=0.001, max_attempts=2
            )
        (dead,) = (await client.get("/v1/operations", params={"state": "dead"})).json()["operations"]
        assert (dead["state"], dead["attempts"]) == ("dead", 2)
        assert "no attempt ended" in dead["reason"]
        assert (await client.get("/v1/operations", params={"state": "pending", "kind": "memory"})).json()["operations"] == []
        listed = await asyncio.to_thread(_command, tmp_path, "call", "GET", "/v1/operations?state=dead", "--url", url)
        assert json.loads(listed)["operations"] == [dead]
        replayed = (await client.post(f"/v1/operations/{dead['id']}/replay")).json()
        assert (replayed["state"], replayed["attempts"]) == ("pending", 0)
        assert (await client.post(f"/v1/operations/{dead['id']}/replay")).status_code == 409
        while not (await claim_kind(runtime.outbox, DueKind.MEMORY, limit=10, lease_seconds=0.001, max_attempts=0)).given_up:
            pass
        assert (await client.delete(f"/v1/operations/{dead['id']}")).json() == {"status": "ok"}
        assert (await client.get("/v1/operations", params={"state": "dead"})).json()["operations"] == []
        # The data of the dropped work still exists.
        assert (await client.get(f"/v1/long-term-memory/{dead['memory_id']}")).status_code == 200


def _command(cwd: Path, *arguments: str) -> str:
    done = agent_memory(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_operations_are_paged(live: httpx.AsyncClient) -> None:
    names = [str(ULID()) for _ in range(5)]
    await live.post("/v1/long-term-memory/", json={"memories": [{"id": name, "text": name} for name in names]})
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = (await live.get("/v1/operations", params={"kind": "memory", "limit": 2, "offset": offset})).json()
        seen += [operation["memory_id"] for operation in page["operations"]]
        offset = page["next_offset"]
    assert len(seen) == len(set(seen))
    assert set(names) <= set(seen)


async def test_session_is_deleted_with_its_memories_on_request(worked: tuple[httpx.AsyncClient, Runtime]) -> None:
    client, _ = worked
    user = str(ULID())
    for session in ("gone", "kept"):
        body = {"user_id": user, "messages": [{"role": "user", "content": f"I told the {session} session about sailing"}]}
        await client.post(f"/v1/working-memory/{session}/messages", json=body)
        await client.post(f"/v1/working-memory/{session}/flush", params={"user_id": user, "wait": 15})
    answer = await client.delete("/v1/working-memory/gone", params={"user_id": user, "memories": True, "wait": 15})
    assert answer.json() == {"status": "ok"}
    found = (await client.post("/v1/long-term-memory/search", json={"user_id": {"eq": user}})).json()
    assert [hit["session_id"] for hit in found["memories"]] == ["kept"]
    assert (await client.get("/v1/working-memory/gone", params={"user_id": user})).status_code == 404
    # A receipt of the order remains.
    receipt = (await client.get(f"/v1/operations/{answer.headers['x-operation-id']}")).json()
    assert receipt["state"] == "done"


async def test_deleting_a_user_deletes_all_data_of_that_user_only(worked: tuple[httpx.AsyncClient, Runtime]) -> None:
    client, runtime = worked
    going, staying = str(ULID()), str(ULID())
    for user in (going, staying):
        await client.put("/v1/working-memory/s", json={"user_id": user, "messages": [{"role": "user", "content": "I like chess"}]})
        await client.post("/v1/long-term-memory/", json=memory("Plays chess on Fridays", user_id=user), params={"wait": 10})
    answer = await client.delete(f"/v1/users/{going}", params={"wait": 15})
    assert answer.json() == {"status": "ok"}

    async def hits(user: str) -> int:
        return (await client.post("/v1/long-term-memory/search", json={"user_id": {"eq": user}})).json()["total"]

    assert await hits(going) == 0
    assert (await client.get("/v1/working-memory/s", params={"user_id": going})).status_code == 404
    assert (await client.get("/v1/working-memory/s", params={"user_id": staying})).status_code == 200
    await wait_until(lambda: _settled(runtime), "all work is done")
    assert (await hits(going), await hits(staying)) == (0, 2)


async def _settled(runtime: Runtime) -> bool:
    return all(backlog.pending == 0 for backlog in (await runtime.outbox.backlog()).values())


async def test_strict_durability_accepts_writes(redis_url: str) -> None:
    settings = load_settings(KEY_PREFIX=f"strict{ULID()}".lower(), MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", DURABILITY="strict")
    async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url) as client:
        put = await client.put("/v1/working-memory/s", json={"messages": [{"role": "user", "content": "on disk"}]})
        assert put.status_code == 200
        assert (await client.post("/v1/long-term-memory/", json=memory("on disk"), params={"wait": 10})).headers["x-searchable"] == "true"


def test_operation_states_and_kinds_match_the_outbox() -> None:
    from agent_memory_client.models import OperationKind

    # Periodic jobs are not accepted work, and an export finishes while the caller reads it.
    assert {kind.value for kind in OperationKind} - {"export"} == {kind.value for kind in DueKind}
    assert OperationState.DEAD == "dead"


async def test_if_none_match_creates_a_session_only_if_it_does_not_exist(live: httpx.AsyncClient) -> None:
    path, body = f"/v1/working-memory/{ULID()}", {"messages": []}
    made = await live.put(path, json=body, headers={"If-None-Match": "*"})
    assert made.status_code == 200
    again = await live.put(path, json=body, headers={"If-None-Match": "*"})
    assert (again.status_code, again.json()["code"]) == (412, "version_mismatch")
    assert (await live.put(path, json=body, headers={"If-None-Match": '"3"'})).status_code == 400
    assert (await live.put(path, json=body, headers={"If-None-Match": "*", "If-Match": "*"})).status_code == 400
