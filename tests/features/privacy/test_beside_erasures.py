"""Test writes and undos during an erasure.

Erased data does not come back, and writes acknowledged after the order are not lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from agent_memory.features.privacy.erasure_store import ErasureStore
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage import connection, round_trip, scripts
from tests.features.privacy.persons import Face, faced
from tests.features.privacy.test_erasure import traces
from tests.support.rig import MakeRig
from tests.support.stack import stack
from tests.support.waiting import wait_until

SIGN = "saxhorn"
_PERSONS = 11
_watched: ContextVar[bool] = ContextVar("watched", default=False)
Send = Callable[..., Awaitable[httpx.Response]]


@pytest.fixture(autouse=True)
def refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reject writes during an erasure immediately, so that tests do not wait."""
    monkeypatch.setattr(scripts, "_ERASURE_SECONDS", 0.0, raising=False)


@dataclass
class Person:
    """A user with every kind of data that an undo or import restores."""

    user: str
    restores: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list[tuple[str, str, dict[str, Any]]])

    @property
    def where(self) -> dict[str, str]:
        return {"user_id": self.user}


async def person(face: Face, user: str) -> Person:
    """Create a user's data, along with the requests that restore parts of it."""
    someone = Person(user)
    said = [{"id": f"{user}-m", "role": "user", "content": f"My {SIGN} is called {user}."}]
    await face.ok("POST", f"/v1/working-memory/{user}-s/messages", json={"messages": said, **someone.where})
    facts = [{"id": f"{user}-{n}", "text": f"The {SIGN} of {user} has {n} valves", **someone.where} for n in (1, 2)]
    await face.ok("POST", "/v1/long-term-memory/", json={"memories": facts})
    await face.rig.work()
    again = [facts[0] | {"text": f"The {SIGN} of {user} has three valves"}]
    await face.ok("POST", "/v1/long-term-memory/", json={"memories": again})
    change = (await face.ok("GET", "/v1/changes", params={"memory_id": f"{user}-1"}))["changes"][0]["id"]
    await face.ok("PUT", "/v1/blocks/human", params=someone.where, json={"value": f"Plays the {SIGN}."})
    await face.ok("PATCH", "/v1/blocks/human", params=someone.where, json={"operation": "append", "content": "Daily."})
    made = await face.ok("POST", "/v1/procedures", json={"when_to_use": f"The {SIGN} sticks", "steps": ["Oil it"], **someone.where})
    await face.ok("PATCH", f"/v1/procedures/{made['id']}", json={"steps": [f"Oil the {SIGN}"]})
    lines = (await face.http.post(f"/v1/users/{user}/export")).text
    gone = await face.ok("POST", "/v1/memory/forget", json={"ids": [f"{user}-2"], **someone.where})
    someone.restores = [
        ("POST", f"/v1/memory/forget/{gone['receipt_id']}/undo", {}),
        ("POST", f"/v1/changes/{change}/undo", {}),
        ("POST", "/v1/blocks/human/undo", {"params": someone.where, "json": {}}),
        ("POST", f"/v1/procedures/{made['id']}/undo", {}),
        ("POST", f"/v1/users/{user}/import", {"content": lines, "headers": {"content-type": "application/x-ndjson"}}),
    ]
    return someone


@contextmanager
def interrupted(monkeypatch: pytest.MonkeyPatch, at: Callable[[int], bool], run: Callable[[], Awaitable[Any]]) -> Iterator[list[int]]:
    """Run an action before each selected round trip to Redis, and count all round trips.

    `at` selects round trips by number.
    """
    count, whole = [0], round_trip.exchange

    async def aside() -> None:
        _watched.set(False)
        await run()

    async def exchange(*args: Any, **more: Any) -> Any:
        if _watched.get():
            count[0] += 1
            if at(count[0]):
                await asyncio.create_task(aside())
        return await whole(*args, **more)

    token = _watched.set(True)
    with monkeypatch.context() as patched:
        for module in (round_trip, connection, scripts):
            patched.setattr(module, "exchange", exchange)
        yield count
    _watched.reset(token)


async def test_undo_during_any_step_of_an_erasure_restores_nothing(
    make_rig: MakeRig, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Send all restoring requests before selected round trips of an erasure.

    Together, the users cover every round trip.
    """
    async with make_rig() as rig, faced(rig) as face:
        fired = 0
        for first in range(_PERSONS):
            someone = await person(face, f"ann-{first:03}")
            await face.ok("DELETE", f"/v1/users/{someone.user}")
            (order,) = await rig.marks(DueKind.DELETION)

            async def restore(someone: Person = someone, order: str = order) -> None:
                nonlocal fired
                if await rig.rt[ErasureStore].load(order) is not None:
                    fired += 1
                    await asyncio.gather(*(face.http.request(method, path, **more) for method, path, more in someone.restores))

            with interrupted(monkeypatch, lambda count, first=first: count % _PERSONS == first, restore):
                await rig.work(DueKind.DELETION)
            await rig.work()
            assert await traces(redis_url, rig.settings.redis.key_prefix, someone.user) == []
        assert fired > 3 * _PERSONS


async def test_restoring_request_overtaken_by_an_erasure_restores_nothing(
    make_rig: MakeRig, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the erasure before each round trip of each request.

    An import that begins afterward is a separate write.
    """
    async with make_rig() as rig, faced(rig) as face:
        for which in range(5):
            at, steps = 1, [1]
            while steps[0] >= at:
                someone = await person(face, f"ann-{which}-{at:03}")
                method, path, more = someone.restores[which]

                async def erase(someone: Person = someone) -> None:
                    await face.ok("DELETE", f"/v1/users/{someone.user}")
                    await rig.work(DueKind.DELETION)

                with interrupted(monkeypatch, lambda count, at=at: count == at, erase) as steps:
                    answer = await face.http.request(method, path, **more)
                await rig.work()
                left = await traces(redis_url, rig.settings.redis.key_prefix, someone.user)
                whole = answer.status_code == 200 and "imported" in answer.text and answer.json()["problem_count"] == 0
                assert whole or left == [], (path, at, answer.text, left)
                at += 2


def writes(user: str, session: str, agent: str | None = None) -> list[tuple[str, str, dict[str, Any]]]:
    """Return requests that write new data for a user. With an agent, they write in its name."""
    where = {"user_id": user} | ({} if agent is None else {"agent_id": agent})
    messages = {"messages": [{"role": "user", "content": f"A new {SIGN}."}], "user_id": user}
    if agent is not None:
        return [
            ("PUT", f"/v1/working-memory/{session}", {"json": messages | where}),
            ("POST", "/v1/long-term-memory/", {"json": {"memories": [{"id": f"{user}-{agent}", "text": f"A new {SIGN}", **where}]}}),
            ("PUT", "/v1/blocks/new", {"params": where, "json": {"value": SIGN}}),
            ("POST", "/v1/procedures", {"json": {"when_to_use": f"A new {SIGN}", "steps": ["Play"], **where}}),
            ("POST", "/v1/tools/memory", {"json": {"tool": "play", "arguments": {}, **where}}),
            ("POST", "/v1/auth/tokens", {"json": {"description": SIGN, "agents": [agent, "another"]}}),
        ]
    about = {"source": "long_term", "group_by": ["user_id"], "filters": {"user_id": {"any": [user, "another"]}}}
    return [
        ("POST", f"/v1/working-memory/{session}/messages", {"json": messages}),
        ("PUT", f"/v1/working-memory/{session}-new", {"json": messages}),
        ("PATCH", f"/v1/working-memory/{session}/data", {"params": where, "json": {"data": {"key": SIGN}}}),
        ("POST", "/v1/long-term-memory/", {"json": {"memories": [{"id": f"{user}-new", "text": f"A new {SIGN}", **where}]}}),
        ("PATCH", f"/v1/long-term-memory/{user}-1", {"json": {"text": f"A newer {SIGN}"}}),
        ("PUT", "/v1/blocks/new", {"params": where, "json": {"value": SIGN}}),
        ("POST", "/v1/procedures", {"json": {"when_to_use": f"A new {SIGN}", "steps": ["Play"], **where}}),
        ("POST", "/v1/tools/memory", {"json": {"tool": "play", "arguments": {}, **where}}),
        ("PUT", "/v1/items", {"params": where, "json": {"path": ["new"], "key": "k", "value": {"what": SIGN}}}),
        ("PUT", "/v1/extraction-rules", {"params": where, "json": {"instructions": SIGN}}),
        ("POST", "/v1/summary-views", {"json": {"name": SIGN, **about}}),
        ("POST", "/v1/auth/tokens", {"json": {"description": SIGN, "users": [user, "another"]}}),
    ]


async def answers(face: Face, requests: list[tuple[str, str, dict[str, Any]]]) -> dict[str, int]:
    """Send all requests and return their statuses. Check the code and retry time of each 409."""
    replies = await asyncio.gather(*(face.http.request(method, path, **more) for method, path, more in requests))
    for reply in replies:
        if reply.status_code == 409:
            assert (reply.json()["code"], reply.headers["retry-after"]) == ("erasure_under_way", "1"), reply.text
    return {f"{method} {path}": reply.status_code for (method, path, _), reply in zip(requests, replies, strict=True)}


async def test_write_after_an_erasure_order_conflicts_until_the_erasure_is_done(make_rig: MakeRig) -> None:
    """No worker runs until later, so acknowledged writes must survive even a long wait."""
    async with make_rig() as rig, faced(rig) as face:
        for user in ("ann", "bob"):
            await person(face, user)
        await face.ok("DELETE", "/v1/users/ann")
        refused = await answers(face, writes("ann", "ann-s"))
        assert set(refused.values()) == {409}, refused
        assert set((await answers(face, writes("bob", "bob-s"))).values()) == {200}
        await rig.work(DueKind.DELETION)
        gone = {"PATCH /v1/working-memory/ann-s/data", "PATCH /v1/long-term-memory/ann-1"}
        written = await answers(face, writes("ann", "ann-s"))
        assert {name for name, status in written.items() if status != 200} <= gone
        await rig.work()
        assert await rig.contents("ann-s", user_id="ann") == [f"A new {SIGN}."]
        assert (await face.ok("GET", "/v1/long-term-memory/ann-new"))["text"] == f"A new {SIGN}"
        assert (await face.ok("GET", "/v1/extraction-rules", params={"user_id": "ann"}))["instructions"] == SIGN


async def test_write_during_a_session_or_agent_erasure_conflicts_until_it_is_done(make_rig: MakeRig) -> None:
    async with make_rig() as rig, faced(rig) as face:
        await person(face, "ann")
        await face.ok("DELETE", "/v1/working-memory/ann-s", params={"user_id": "ann", "memories": True})
        append = writes("ann", "ann-s")[:1]
        assert set((await answers(face, append)).values()) == {409}
        assert set((await answers(face, writes("ann", "other")[:1] + writes("bob", "ann-s")[:1])).values()) == {200}
        await rig.work(DueKind.DELETION)
        assert set((await answers(face, append)).values()) == {200}

        await face.ok("PUT", "/v1/working-memory/hers", json={"user_id": "ann", "agent_id": "coach", "messages": []})
        await face.ok("DELETE", "/v1/agents/coach")
        said = {"messages": [{"role": "user", "content": "More."}], "user_id": "ann"}
        of_session = ("POST", "/v1/working-memory/hers/messages", {"json": said})
        assert set((await answers(face, [*writes("ann", "new", "coach"), of_session])).values()) == {409}
        assert set((await answers(face, writes("ann", "new", "other"))).values()) == {200}
        await rig.work(DueKind.DELETION)
        assert set((await answers(face, [*writes("ann", "new", "coach"), of_session])).values()) == {200}


async def test_write_right_after_an_erasure_order_waits_for_the_worker_and_survives(
    make_settings: Any, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    async with stack(make_settings(), redis_url) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:

        async def erased_and_written(user: str) -> None:
            for text in ("old", "new"):
                said = {"messages": [{"role": "user", "content": f"The {text} {SIGN} of {user}."}], "user_id": user}
                answer = await client.post(f"/v1/working-memory/{user}/messages", json=said, params={"wait": "promoted"})
                assert answer.status_code == 200, answer.text
                if text == "old":
                    assert (await client.delete(f"/v1/users/{user}")).json()["status"] == "pending"

            async def contents() -> bool:
                found = await client.get(f"/v1/working-memory/{user}", params={"user_id": user})
                memories = (await client.post("/v1/long-term-memory/search", json={"user_id": {"eq": user}})).json()["memories"]
                said = [message["content"] for message in found.json()["messages"]]
                return said == [memory["text"] for memory in memories] == [f"The new {SIGN} of {user}."]

            await wait_until(contents, f"what {user} said after the order")

        await asyncio.gather(*(erased_and_written(f"user-{n}") for n in range(6)))


async def test_dropped_dead_erasure_no_longer_blocks_writes(make_rig: MakeRig) -> None:
    async with make_rig() as rig, faced(rig) as face:
        answer = await face.http.delete("/v1/users/ann")
        (order,) = await rig.marks(DueKind.DELETION)
        assert not await rig.claim(DueKind.DELETION, max_attempts=0)
        assert set((await answers(face, writes("ann", "s")[:1])).values()) == {409}
        await face.ok("DELETE", f"/v1/operations/{answer.headers['x-operation-id']}")
        assert await rig.marks(DueKind.DELETION) == {} != {order: 0}
        assert set((await answers(face, writes("ann", "s")[:1])).values()) == {200}
