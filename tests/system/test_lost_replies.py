"""Test that a write takes effect once if it is repeated after a lost Redis reply (F5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import sha1
from typing import Any

import httpx
import pytest

from agent_memory.features.memories.service import MemoryService
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.storage.lua_files import load
from agent_memory.interfaces.http.app import create_app
from tests.registrations import registrations
from tests.support.api import serving
from tests.support.rig import SCOPE, Rig
from tests.support.shared.lua import SCRIPTS
from tests.system.conftest import MakeChat, MakeProxied
from tests.system.faults.pictures import finished, picture, texts
from tests.system.faults.proxy import Proxy

pytestmark = pytest.mark.slow

Loser = Callable[[], None]

_SESSION = "/v1/working-memory/s"
_MESSAGES = [{"id": f"m{n}", "role": "user", "content": f"I moved to city number {n} in May", "created_at": "2026-01-02"} for n in range(3)]
_RECORD = {"id": "f1", "text": "Ana plays the violin in Lisbon", "memory_type": "semantic", "user_id": "u"}
# Each write of the API: the data before it, and the request.
WRITES: dict[str, tuple[list[tuple[str, str, dict[str, Any]]], tuple[str, str, dict[str, Any]]]] = {
    "append": ([], ("POST", f"{_SESSION}/messages", {"json": {"messages": _MESSAGES}})),
    "append to": (
        [("POST", f"{_SESSION}/messages", {"json": {"messages": _MESSAGES[:1]}})],
        ("POST", f"{_SESSION}/messages", {"json": {"messages": _MESSAGES[1:]}}),
    ),
    "put": ([], ("PUT", _SESSION, {"json": {"messages": _MESSAGES, "memories": [_RECORD], "data": {"k": 1}}})),
    "patch data": (
        [("PUT", _SESSION, {"json": {"messages": _MESSAGES, "data": {"k": 1, "old": 2}}})],
        ("PATCH", f"{_SESSION}/data", {"json": {"data": {"k": 2, "old": None}}}),
    ),
    "delete session": ([("PUT", _SESSION, {"json": {"messages": _MESSAGES}})], ("DELETE", _SESSION, {})),
    "create": ([], ("POST", "/v1/long-term-memory/", {"json": {"memories": [_RECORD]}})),
    "patch": (
        [("POST", "/v1/long-term-memory/", {"json": {"memories": [_RECORD]}})],
        ("PATCH", "/v1/long-term-memory/f1", {"json": {"text": "Ana plays the cello"}}),
    ),
    "delete": (
        [("POST", "/v1/long-term-memory/", {"json": {"memories": [_RECORD]}})],
        ("DELETE", "/v1/long-term-memory", {"params": {"memory_ids": "f1"}}),
    ),
}


@pytest.mark.parametrize("name", WRITES)
async def test_retried_write_after_a_lost_reply_has_one_effect(make_proxied: MakeProxied, name: str) -> None:
    async def story(rig: Rig, proxy: Proxy, *, lossy: bool) -> tuple[Any, Any, Any]:
        before, (method, path, body) = WRITES[name]
        async with serving(create_app(rig.settings, rig.rt)) as base_url, httpx.AsyncClient(base_url=base_url, timeout=60) as http:
            for earlier in before:
                assert (await http.request(earlier[0], earlier[1], **earlier[2])).status_code == 200
            if lossy:
                # A second deletion finds nothing: that request writes nothing.
                times = 1 if name == "delete" else 2
                proxy.lose_replies(times, lambda chunk: b"EVALSHA" in chunk[:40])
                for _ in range(times):
                    refused = await http.request(method, path, **body)
                    assert (refused.status_code, refused.json()["code"]) == (503, "redis_unavailable")
                    assert int(refused.headers["retry-after"]) >= 1
                assert proxy.counts["lost replies"] == times
            answer = await http.request(method, path, **body)
            assert answer.status_code == 200
        right_after = await picture(rig)
        await finished(rig)
        return _counters(answer.json()), right_after, (await picture(rig), await texts(rig))

    async with make_proxied() as (rig, proxy):
        calm = await story(rig, proxy, lossy=False)
    async with make_proxied() as (rig, proxy):
        rough = await story(rig, proxy, lossy=True)
    assert rough == calm


def _counters(body: dict[str, Any]) -> dict[str, Any]:
    """Return the response fields that must not change if the request is repeated."""
    return {name: body[name] for name in ("total_messages", "tokens", "text", "data") if name in body}


@pytest.mark.parametrize("lost_at", range(3))
async def test_idempotency_key_prevents_duplicates_whichever_reply_is_lost(make_proxied: MakeProxied, lost_at: int) -> None:
    """Lose the reply to the claim, to the write, or to storing the response."""
    message = {"role": "user", "content": "Twice said is once said", "created_at": "2026-01-02T03:04:05Z"}
    requests: list[tuple[str, dict[str, Any]]] = [
        ("/v1/working-memory/s/messages", {"messages": [message, message]}),
        *((path, body) for one in registrations() for path, body, _, _ in one.keyed_writes),
    ]
    async with (
        make_proxied(REQUEST_TIMEOUT_SECONDS=0.5) as (rig, proxy),
        serving(create_app(rig.settings, rig.rt)) as base_url,
        httpx.AsyncClient(base_url=base_url, timeout=60) as http,
    ):
        for path, body in requests:
            scripts_seen = 0

            def chosen(chunk: bytes) -> bool:
                nonlocal scripts_seen
                scripts_seen += b"EVALSHA" in chunk[:40] or b"MULTI" in chunk[:40]
                return scripts_seen == lost_at + 1

            headers = {"Idempotency-Key": f"key of {path}"}
            proxy.lose_replies(1, chosen)
            first = await http.post(path, json=body, headers=headers)
            proxy.heal()
            # The key of a lost request is taken until its deadline has passed.
            await rig.rt.client.hset(rig.keys.idempotency(SCOPE.tenant, headers["Idempotency-Key"]), "u", 0)
            again = await http.post(path, json=body, headers=headers)
            assert (first.status_code in (200, 503), again.status_code) == (True, 200), again.text
        assert (await http.get("/v1/working-memory/s")).json()["messages"][2:] == []
        for path, _, shown, wanted in (write for one in registrations() for write in one.keyed_writes):
            assert shown((await http.get(path)).json()) == wanted


# Read-only scripts.
_NO_STORY = ("sessions/recent_messages", "sessions/session_window")
# No lifecycle contains pictures: the ids of their descriptions differ between stores.
_NEVER_RUN = ("sessions/session_data", "sessions/session_pictures", "sessions/session_dead_batch", "storage/due_fail")
# The store's marker is written before any data could be lost.
BACKGROUND = [name for name in SCRIPTS if name.startswith(("sessions/", "storage/due_")) and name not in _NO_STORY]

# The result of the lifecycle without lost replies, which is the same for every script.
_CALM: list[tuple[Any, Any]] = []


@pytest.mark.parametrize("name", BACKGROUND)
async def test_every_script_tolerates_lost_replies(make_proxied: MakeProxied, make_chat: MakeChat, name: str) -> None:
    """Run a session's lifecycle with and without lost replies, and compare the results."""

    def runs_it(chunk: bytes) -> bool:
        return digest in chunk[:200]

    digest = sha1(load(name).source.encode()).hexdigest().encode()

    async def life(rig: Rig, lose: Loser) -> tuple[Any, Any]:
        for number in range(12):
            lose()
            await repeated(lambda n=number: rig.append("s", f"In year {n} I bought a house with {n} rooms near the old harbour"))
        await rig.append("gone", "This session will be deleted")
        lose()
        await _work(rig, lose)
        lose()
        await repeated(lambda: rig.rt[SessionService].delete(SCOPE, "gone"))
        memory = min(await rig.stored(), key=lambda record: (record.text, record.id))
        lose()
        await repeated(lambda: rig.rt[MemoryService].delete(SCOPE, [memory.id]))
        lose()
        await repeated(lambda: _struck(rig, "In year 11"))
        await _work(rig, lose)
        return await picture(rig), await texts(rig)

    settings = {"DEFAULT_CONTEXT_WINDOW": 256, "EXTRACTION_DEBOUNCE_SECONDS": 0, "WORKER_MAX_ATTEMPTS": 50}
    if not _CALM:
        async with make_proxied(await make_chat(), **settings) as (rig, _):
            _CALM.append(await life(rig, lambda: None))
    async with make_proxied(await make_chat(), **settings) as (rig, proxy):
        rough = await life(rig, lambda: proxy.lose_replies(1, runs_it) if proxy.to_lose == 0 else None)
        lost = proxy.counts["lost replies"]
    _equal(rough, _CALM[0])
    assert lost or name in _NEVER_RUN, f"the story never ran {name}"


async def repeated(request: Callable[[], Awaitable[Any]]) -> Any:
    """Repeat the request until a response arrives."""
    for _ in range(20):
        try:
            return await request()
        except RedisUnavailable:
            continue
    raise AssertionError("never answered")


async def _struck(rig: Rig, beginning: str) -> None:
    """Purge messages that start with this text from session "s"."""
    state = await rig.rt[SessionStore].get(SCOPE, SessionRef("s", None, None))
    assert state is not None
    if bad := [stored.seq for stored in state.messages if stored.message.content.startswith(beginning)]:
        assert await rig.rt[SessionStore].strike(SCOPE, state.ref, state.epoch, state.fence, bad, drop_context=False)


async def _work(rig: Rig, lose: Loser) -> None:
    for _ in range(4):
        lose()
        try:
            await finished(rig)
        except RedisUnavailable:
            continue  # a worker would wait for the lease to end; `finished` makes everything due at once
    await finished(rig)


def _equal(rough: Any, calm: Any) -> None:
    for part, (one, other) in enumerate(zip(rough, calm, strict=True)):
        assert one == other, f"part {part} differs"
