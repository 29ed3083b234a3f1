"""Attack all compatible API routes with hostile ids and bodies, and check that no data leaks.

The routes come from the application, so new routes are attacked automatically.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import AsyncGenerator
from typing import Any, cast

import httpx
import pytest
from starlette.routing import Route

from agent_memory.foundation.core.scope import Principal, Role
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.compat.callers import OWNER, STRANGER, Callers
from tests.support.stack import working
from tests.support.waiting import wait_until

MARK = "zebraquartz"
VICTIM = "vera"
ATTACKERS = [
    STRANGER,
    *(Principal("t1", f"{user}'s", Role.WRITE, users=frozenset({user})) for user in ("eve", "Vera", "vera ")),
    Principal("t1", "eve's robot", Role.WRITE, users=frozenset({"eve"}), agents=frozenset({"robot"})),
]
NAMES = (VICTIM, "*", "vera*", "vera|eve", "x) | (@u:*", "{vera}", "%00", "..%2F..", "Vera", "0")
# Out of 10,000 cases, each of some eighty routes and each attacker gets a share.
CASES_EACH = max(6, int(os.environ.get("ISOLATION_CASES", "0")) // 400)


def routes_of(app: Any) -> set[tuple[str, str]]:
    routes = cast("list[Any]", app.routes)
    return {(method, route.path) for route in routes if isinstance(route, Route) for method in route.methods or () if method != "HEAD"}


class Field:
    """An application in which a victim owns one object of each kind."""

    def __init__(self, callers: Callers, routes: list[tuple[str, str]], ids: list[str]) -> None:
        self.callers = callers
        self.routes = routes
        self.ids = ids

    async def state(self) -> list[Any]:
        """Return everything in the victim's tenant that its owner can read."""
        client = self.callers(OWNER)
        mem0 = await client.post("/v3/memories/", json={"filters": {"user_id": VICTIM}})
        documents = await client.post("/v3/documents/list", json={"containerTags": [VICTIM]})
        assert (mem0.status_code, documents.status_code) == (200, 200), (mem0.text, documents.text)
        return [sorted(memory["memory"] for memory in mem0.json()["results"]), MARK in mem0.text, documents.json().get("memories")]


@pytest.fixture(scope="module")
async def field(redis_url: str) -> AsyncGenerator[Field]:
    common = {"KEY_PREFIX": "compat-routes", "MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local"}
    settings = load_settings(**common, COMPAT_APIS="mem0,supermemory")
    async with open_runtime(settings, redis_url) as runtime, working(runtime):
        app = create_app(settings, runtime)
        routes = sorted(routes_of(app) - routes_of(create_app(load_settings(**common), runtime)))
        callers = Callers(app)
        owner = callers(OWNER)
        body = {"messages": [{"role": "user", "content": f"{MARK} is a secret"}], "infer": False, "user_id": VICTIM}
        added = await owner.post("/v3/memories/add/", json=body)
        assert added.status_code == 200, added.text
        document = await owner.post("/v3/documents", json={"content": f"{MARK} in a document", "containerTag": VICTIM, "customId": "doc-1"})
        assert document.status_code < 300, document.text
        field = Field(callers, routes, [added.json()["results"][0]["id"], document.json()["id"], "doc-1"])

        async def stored() -> bool:
            return all(document["status"] == "done" for document in (await field.state())[2])

        await wait_until(stored, "workers have stored the document")
        yield field


def body_of(choose: random.Random, ids: list[str]) -> dict[str, Any]:
    """Return a body that sets every field that identifies an owner or an object."""
    name, item = choose.choice(NAMES), choose.choice([*ids, *NAMES])
    whose = {"user_id": name, "containerTag": name, "containerTags": [name], "agent_id": name, "run_id": name, "app_id": name}
    owners = {"user_id": VICTIM, "namespace": name, "agent_id": name}
    call = {"id": item, "function": {"name": "brew", "arguments": json.dumps(owners)}}
    called = {"role": "assistant", "content": None, "tool_calls": [call]}
    spoken = [{"role": "user", "content": "hello", "id": item, "remember_as": {"agent_id": name}, **owners}, called]
    entry = {"memory_id": item, "id": item, "text": "changed", "content": "changed", "customId": item, "containerTag": name, **owners}
    what = {"id": item, "ids": [item], "memory_id": item, "memory_ids": [item], "memories": [entry], "documents": [entry]}
    named = {"customId": item, "docId": item, "documentId": item, "metadata": owners | {"id": item}, "newContent": "changed"}
    said = {"query": "secret", "q": "secret", "text": "changed", "content": "changed", "messages": spoken, "infer": choose.random() < 0.5}
    told = [{"user_id": name}, {"OR": [{"user_id": name}, {"user_id": "*"}]}, {"AND": []}, {"AND": [{"key": "user_id", "value": VICTIM}]}]
    parts = [whose, what, named, said, {"filters": choose.choice(told)}]
    return {field: value for part in choose.sample(parts, choose.randint(1, 5)) for field, value in part.items()}


async def attack(client: httpx.AsyncClient, method: str, path: str, ids: list[str], choose: random.Random) -> None:
    filled = re.sub(r"\{[^}]*\}", lambda _: choose.choice([*ids, *NAMES]).replace("/", "%2F"), path)
    query = choose.choice([{}, {"user_id": choose.choice(NAMES)}, {"user_id": VICTIM}])
    body = None if method == "GET" else body_of(choose, ids)
    try:
        answer = await client.request(method, filled, params=query, json=body)
    except httpx.InvalidURL:
        return  # the client only refuses to send the request, which is safe
    assert answer.status_code < 500 or answer.status_code == 501, (method, filled, query, body, answer.text)
    assert MARK not in answer.text, (method, filled, query, body, answer.text)


async def test_no_route_shows_or_changes_data_of_others(field: Field) -> None:
    before = await field.state()
    assert before[1], "there is something to be seen"
    assert len(field.routes) > 30
    choose = random.Random(3)
    for method, path in field.routes:
        for attacker in ATTACKERS:
            client = field.callers(attacker)
            for _ in range(CASES_EACH):
                await attack(client, method, path, field.ids, choose)
    assert await field.state() == before
