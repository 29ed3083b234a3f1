"""Test that a key limited in one dimension cannot read or change shared state beyond its limit.

Covers rules, schemas, views and orders.

The test discovers all API operations, MCP tools and compatible API operations, and runs each for
every place in a tenant.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from agent_memory.features.jobs import operations as background
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.interfaces.compat.mem0 import requests as mem0
from agent_memory.interfaces.compat.mem0.routes import OPERATIONS as MEM0_OPERATIONS
from agent_memory.interfaces.compat.routing import Operation
from agent_memory.interfaces.compat.supermemory import requests as supermemory
from agent_memory.interfaces.compat.supermemory.routes import OPERATIONS as SUPERMEMORY_OPERATIONS
from agent_memory.interfaces.http.app import create_app
from agent_memory.interfaces.mcp import tools as mcp_tools
from tests.features.access.conftest import Guarded
from tests.features.access.forged_fields import SchemaFields
from tests.features.access.hostile import CASES, Case, Ids
from tests.features.access.tool_cases import TOOL_CASES
from tests.registrations import registrations

MORE_SETTINGS = {"COMPAT_APIS": "mem0,supermemory"}
MARK = "zebraquartz"
NAMESPACES = ("work", "mem0", "supermemory")
PLACES: list[dict[str, str]] = [
    dict(pairs)
    for user in ((), (("user_id", "ana"),))
    for namespace in ((), *(((("namespace", name),)) for name in NAMESPACES))
    for pairs in [(*user, *namespace)]
]
DOCUMENT = create_app(load_settings()).openapi()
LIMITS = ({"agents": ["robot"]}, {"users": ["eve"]}, {"namespaces": ["home", "away"]})
# Bodies for routes whose document does not describe them, and additional bodies.
SENT = {"custom_instructions": "planted", "custom_categories": [{"mine": "planted"}], "supportingContext": "planted"}
SENT |= {"entityContext": "planted", "containerTag": "ana", "user_id": "ana", "query": "secret tea", "text": "planted"}
# Models of bodies, by the names of the handlers that read them.
MEM0_BODIES: dict[str, type[BaseModel]] = {"_add": mem0.AddRequest, "_search": mem0.SearchBody, "_list_posted": mem0.ListRequest}
SUPERMEMORY_BODIES: dict[str, type[BaseModel]] = {
    "_add": supermemory.Document,
    "_add_batch": supermemory.DocumentBatch,
    "_change": supermemory.DocumentChanges,
    "_change_container": supermemory.ContainerChanges,
    "_change_memory": supermemory.ChangedMemory,
    "_converse": supermemory.Conversation,
    "_create": supermemory.NewMemories,
    "_delete_many": supermemory.BulkDelete,
    "_forget": supermemory.NamedMemory,
    "_list": supermemory.DocumentListing,
    "_namespace_profile": supermemory.ProfileQuestion,
    "_namespace_search": supermemory.Search,
    "_profile": supermemory.ProfileQuestion,
    "_search": supermemory.Search,
    "_search_documents": supermemory.Search,
}


@dataclass
class Shared:
    """A tenant's shared state, and its administrator."""

    admin: httpx.AsyncClient
    guarded: Guarded
    ids: list[Ids]
    """One object for each dead operation."""
    before: dict[str, list[str]]
    """State of the tenant before the first attack, and after each one."""


def _ok(answer: httpx.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _give_up_all_work(guarded: Guarded) -> None:
    """Move all pending work to the dead letters."""
    client, keys = guarded.runtime.client, guarded.runtime.keys
    for kind in (DueKind.ORDER, DueKind.DELETION, DueKind.SESSION, DueKind.MEMORY):
        for member in await client.zrange(keys.due(kind), 0, -1):
            await client.zrem(keys.due(kind), member)
            await client.zadd(keys.dead(kind), {member: 1})


@pytest.fixture(scope="module")
async def shared(guarded: Guarded) -> AsyncGenerator[Shared]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(background, "MAX_WAIT_SECONDS", 0.0)
        patch.setattr(mcp_tools, "MAX_WAIT_SECONDS", 0.0)
        admin = await guarded.caller("house", "admin", description=MARK)

        async def send(method: str, path: str, **more: Any) -> Any:
            return _ok(await admin.request(method, path, **more))

        made: dict[str, str] = {}
        for place in PLACES:
            rules = {"instructions": f"only {MARK}", "do_not_record": [MARK], "categories": [{"name": MARK, "description": MARK}]}
            await send("PUT", "/v1/extraction-rules", params=place, json=rules)
            if "user_id" not in place:
                schema = {"topics": {"tea": {"description": MARK, "sub_topics": {"kind": MARK}}}}
                await send("PUT", "/v1/profile/schema", params=place, json=schema)
        ana = {"user_id": "ana", "namespace": "work", "agent_id": "coach"}
        session = {"agent_id": "coach", "messages": [{"role": "user", "content": f"{MARK} is my secret", "id": "x1"}]}
        await send("PUT", "/v1/working-memory/shared", params={"user_id": "ana", "namespace": "work"}, json=session)
        await send("POST", "/v1/long-term-memory/", json={"memories": [{"id": "m-shared", "text": f"{MARK} drinks tea", **ana}]})
        for one in registrations():
            made |= await one.fill_victim(send, {"user_id": "ana", "namespace": "work"})
        await send("POST", "/v1/long-term-memory/purge", params={"dry_run": "false"}, json={"session_id": "gone"})
        await send("DELETE", "/v1/users/zoe")
        await _give_up_all_work(guarded)
        dead = _ok(await admin.get("/v1/operations", params={"state": "dead", "limit": 100}))["operations"]
        assert {operation["kind"] for operation in dead} >= {"order", "deletion", "session", "memory"}
        ids = [Ids("shared", "ana", "work", "m-shared", operation["id"], "k", made=made) for operation in dead]
        made_by_admin = Shared(admin, guarded, ids, {})
        made_by_admin.before = await _state(made_by_admin)
        yield made_by_admin


def _native(ids: Ids) -> Iterator[Case]:
    """Yield every operation in our API, for every possible place."""
    takes = {
        operation["operationId"]: {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"}
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
    }
    for name, cases in CASES.items():
        for (method, path, params, body), place in itertools.product(cases(ids), PLACES):
            if takes[name] & {"user_id", "namespace"}:
                rest = {key: value for key, value in params.items() if key not in ("user_id", "namespace")}
                yield method, path, {**rest, **{key: value for key, value in place.items() if key in takes[name]}}, body
            elif place == PLACES[0]:
                yield method, path, params, body


def _tools(ids: Ids) -> Iterator[Case]:
    for cases in TOOL_CASES.values():
        for (method, path, params, call), place in itertools.product(cases(ids), PLACES):
            arguments = {**call["params"]["arguments"], **place}
            yield method, path, params, {**call, "params": {**call["params"], "arguments": arguments}}


def _compatible(operations: Sequence[Operation], models: Mapping[str, type[BaseModel]]) -> Iterator[Case]:
    """Yield every compatible operation of another product, directed at the shared state."""
    assert models.keys() <= {handler.__name__ for _, _, handler in operations}
    parts = {"namespace": "ana", "name": "ana", "kind": "user", "org": "default", "project": "mem0"}
    for method, path, handler in operations:
        filled = re.sub(r"{(\w+)(:path)?}", lambda part: parts.get(part[1], "m-shared"), path)
        schema = models[handler.__name__].model_json_schema() if handler.__name__ in models else None
        least = {} if schema is None else SchemaFields(schema, schema.get("$defs", {})).least()
        bodies = [None] if method == "GET" else [{**SENT, **least}, SENT, {**least, "containerTag": "ana"}]
        yield from ((method, filled, {}, body) for body in bodies)


def _marks(body: Any) -> list[str]:
    """Return all strings in a response that contain the mark."""
    if isinstance(body, dict):
        return [mark for value in body.values() for mark in _marks(value)]
    if isinstance(body, list):
        return [mark for value in body for mark in _marks(value)]
    return [body] if isinstance(body, str) and MARK in body else []


async def _state(shared: Shared) -> dict[str, list[str]]:
    """Return all data that is readable without an id, for every place, and the dead letters."""
    state: dict[str, list[str]] = {}
    for path, methods in DOCUMENT["paths"].items():
        asked = [parameter for parameter in methods.get("get", {}).get("parameters", ()) if parameter["in"] != "header"]
        if "get" not in methods or any(parameter.get("required") for parameter in asked):
            continue
        for place in PLACES:
            answer = await shared.admin.get(path, params=place)
            if answer.headers["content-type"].startswith("application/json"):
                state[f"{path} {place}"] = sorted(_marks(answer.json()))
    dead = _ok(await shared.admin.get("/v1/operations", params={"state": "dead", "limit": 100}))["operations"]
    known = {ids.operation for ids in shared.ids}
    return {**state, "dead": sorted(operation["id"] for operation in dead if operation["id"] in known)}


@pytest.mark.parametrize("limits", LIMITS, ids=str)
async def test_key_limited_in_one_dimension_does_not_reach_shared_state(shared: Shared, limits: dict[str, list[str]]) -> None:
    before = shared.before
    assert len(before["dead"]) == len(shared.ids)
    assert all(before[f"/v1/extraction-rules {place}"] for place in PLACES)
    assert sum(map(bool, before.values())) > 2 * len(PLACES), "schemas, views and sessions are read as well"
    attacker = await shared.guarded.caller("house", "admin", **limits)
    first, *others = shared.ids
    cases = [*_native(first), *_tools(first), *_compatible(MEM0_OPERATIONS, MEM0_BODIES)]
    cases += _compatible(SUPERMEMORY_OPERATIONS, SUPERMEMORY_BODIES)
    cases += [case for ids in others for name, of in CASES.items() if name.endswith("_operation") for case in of(ids)]
    for method, path, params, body in cases:
        sent: dict[str, Any] = {"content": body, "headers": {"content-type": "application/x-ndjson"}} if isinstance(body, bytes) else {}
        answer = await attacker.request(method, path, params=params, **(sent or {"json": body}))
        assert answer.status_code < 500 or answer.status_code == 501, (method, path, params, body, answer.text)
        assert MARK not in answer.text, (method, path, params, body, answer.text)
    assert await _state(shared) == before


async def test_compatible_apis_work_with_a_key_limited_to_agents(shared: Shared) -> None:
    robot = await shared.guarded.caller("house", "write", agents=["android"])
    assert _ok(await robot.get("/v1/ping/"))["status"] == "ok"
    asked = {"query": "tea", "filters": {"AND": [{"agent_id": "android"}, {"categories": {"contains": "mi"}}]}}
    assert _ok(await robot.post("/v3/memories/search/", json=asked)) == {"results": []}
    refused = await robot.patch("/api/v1/orgs/organizations/default/projects/mem0/", json={"custom_instructions": "planted"})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
