"""Test that feedback counts and learned procedures match a replay after any operations."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.base import EmbeddingModel
from agent_memory.foundation.llm.tokens import TokenCounter
from tests.extensions.procedures.support import Server, serve
from tests.support.rig import open_rig

USERS = ("ann", "ben")
TASKS = ("Book a flight to Oslo", "Write the sales report", "Repair the kitchen sink")
HISTORIES = 12
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["session", "mark", "mark", "learn", "feedback", "feedback", "edit", "undo", "delete", "forget", "erase"]),
        st.sampled_from(USERS),
        st.integers(0, 2),
        st.booleans(),
    ),
    min_size=12,
    max_size=30,
)


@pytest.fixture(scope="module")
async def server(redis_url: str, local: EmbeddingModel, counter: TokenCounter) -> AsyncGenerator[Server]:
    async with open_rig(redis_url, local, counter, None) as rig, serve(rig) as server:
        yield server


@dataclass
class Model:
    """Computes the expected state.

    A user has at most one learned procedure per situation, because TASKS are dissimilar.
    """

    sessions: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    marks: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    waiting: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    learned: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    counts: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    tools: dict[str, int] = field(default_factory=dict[str, int])
    counted: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    """Sessions whose calls were counted."""

    def learn(self) -> None:
        """Learn from all sessions that are waiting."""
        for key, result in self.waiting.items():
            self.learned[key] = result
            if key not in self.counted:
                self.counted.add(key)
                self.tools[key[0]] = self.tools.get(key[0], 0) + 1
        self.waiting.clear()

    def forget_session(self, key: tuple[str, int]) -> None:
        self.sessions.discard(key)
        for kept in (self.marks, self.waiting):
            kept.pop(key, None)
        self.counted.discard(key)


class History:
    def __init__(self, server: Server, prefix: str) -> None:
        self.server = server
        self.prefix = prefix
        self.model = Model()

    def user(self, name: str) -> str:
        return f"{self.prefix}{name}"

    async def procedures(self, name: str) -> list[Any]:
        return (await self.server.call("GET", "/v1/procedures", user_id=self.user(name), limit=100))["procedures"]

    async def step(self, what: str, name: str, task: int, good: bool) -> None:
        key = (name, task)
        await getattr(self, f"do_{what}")(key, good)

    async def do_session(self, key: tuple[str, int], good: bool) -> None:
        if key not in self.model.sessions:
            await self.server.put_session(f"s{key[1]}", TASKS[key[1]], {"tool": "work"}, user_id=self.user(key[0]))
            self.model.sessions.add(key)

    async def do_mark(self, key: tuple[str, int], good: bool) -> None:
        result, known = "success" if good else "failure", key in self.model.sessions
        path = f"/v1/working-memory/s{key[1]}/result"
        await self.server.call("PATCH", path, {"result": result}, user_id=self.user(key[0]), status=200 if known else 404)
        if known and self.model.marks.get(key) != result:
            self.model.marks[key] = result
            self.model.waiting[key] = result

    async def do_learn(self, key: tuple[str, int], good: bool) -> None:
        await self.server.work()
        self.model.learn()

    async def do_feedback(self, key: tuple[str, int], good: bool) -> None:
        """Send each feedback request twice concurrently with the same idempotency key."""
        for stored in await self.procedures(key[0]):
            path = f"/v1/procedures/{stored['id']}/feedback"
            count = self.model.counts.setdefault(stored["id"], [0, 0])
            headers = {"Idempotency-Key": f"{self.prefix}{stored['id']}{sum(count)}"}
            sent = [self.server.http.post(path, json={"helped": good}, headers=headers) for _ in range(2)]
            states = sorted([answer.status_code for answer in await asyncio.gather(*sent)])
            assert states in ([200, 200], [200, 409]), states
            count[not good] += 1

    async def do_edit(self, key: tuple[str, int], good: bool) -> None:
        for stored in await self.procedures(key[0]):
            await self.server.call("PATCH", f"/v1/procedures/{stored['id']}", {"text": f"edited {stored['version']}"})

    async def do_undo(self, key: tuple[str, int], good: bool) -> None:
        """Undo a change, check that the previous state is back, and redo the change."""
        for stored in await self.procedures(key[0]):
            history = await self.server.call("GET", f"/v1/procedures/{stored['id']}/history")
            before = history["changes"][-1]["before"]
            if before is None:
                await self.server.call("POST", f"/v1/procedures/{stored['id']}/undo", status=409)
                continue
            undone = await self.server.call("POST", f"/v1/procedures/{stored['id']}/undo")
            for name in ("when_to_use", "steps", "text", "result", "learned_from", "pitfalls"):
                assert undone[name] == before.get(name, undone[name] if undone[name] in (None, []) else before.get(name)), name
            await self.server.call("POST", f"/v1/procedures/{stored['id']}/undo")

    async def do_delete(self, key: tuple[str, int], good: bool) -> None:
        for stored in await self.procedures(key[0]):
            if stored["when_to_use"] == TASKS[key[1]]:
                await self.server.call("DELETE", f"/v1/procedures/{stored['id']}")
                self.model.learned.pop(key, None)
                self.model.counts.pop(stored["id"], None)

    async def do_forget(self, key: tuple[str, int], good: bool) -> None:
        """Delete a session. Pending results are lost, but learned procedures remain."""
        await self.server.call("DELETE", f"/v1/working-memory/s{key[1]}", user_id=self.user(key[0]))
        self.model.forget_session(key)

    async def do_erase(self, key: tuple[str, int], good: bool) -> None:
        await self.server.call("DELETE", f"/v1/users/{self.user(key[0])}")
        await self.server.rig.work(DueKind.DELETION)
        for other in [(key[0], task) for task in range(len(TASKS))]:
            self.model.forget_session(other)
            self.model.learned.pop(other, None)
        self.model.tools.pop(key[0], None)

    async def compare(self) -> None:
        """Assert that the store matches the model."""
        await self.server.work()
        self.model.learn()
        for name in USERS:
            stored = await self.procedures(name)
            results = {one["when_to_use"]: one["learned_from"][-1]["result"] for one in stored}
            assert len(results) == len(stored), "two of one situation"
            assert results == {TASKS[task]: result for (user, task), result in self.model.learned.items() if user == name}
            for one in stored:
                assert [one["helped"], one["failed"]] == self.model.counts.get(one["id"], [0, 0])
            tools = (await self.server.call("GET", "/v1/tools/memory", user_id=self.user(name)))["tools"]
            assert [tool["succeeded"] for tool in tools] == ([self.model.tools[name]] if name in self.model.tools else [])
            assert json.dumps(stored).count(self.user(USERS[name == "ann"])) == 0


async def test_procedures_equal_their_replay_after_any_history(server: Server) -> None:
    histories: list[list[tuple[str, str, int, bool]]] = []

    @settings(max_examples=HISTORIES, database=None, derandomize=True)
    @given(STEPS)
    def draw(steps: list[tuple[str, str, int, bool]]) -> None:
        histories.append(steps)

    draw()
    choose = random.Random(3)
    for number, steps in enumerate(histories):
        history = History(server, f"h{number}-")
        # Each history starts with data to change.
        start = [("session", user, task, True) for user in USERS for task in range(len(TASKS)) if choose.random() < 0.7]
        for step in [*start, *steps]:
            await history.step(*step)
        await history.compare()
