"""Test defects 33 to 35, which users of the archived server reported."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import Result
from redis.asyncio import Redis
from typer.testing import CliRunner

from agent_memory.foundation.core.errors import AgentMemoryError
from agent_memory.interfaces.cli.app import app
from agent_memory.interfaces.mcp.server import listed_tools
from agent_memory_client.models import EditMemoryRecordRequest, SearchRequest, UpdateWorkingMemory
from tests.compat.defects.conftest import Space
from tests.support.cli import agent_memory

SESSION = {"messages": [{"role": "user", "content": "Hello", "created_at": "2026-01-02T03:04:05Z"}]}


async def test_34_put_accepts_the_same_scope_as_get_and_delete(space: Space) -> None:
    path = "/v1/working-memory/same"
    scopes = [{"namespace": space.name, "user_id": "ada"}, {"namespace": space.name, "user_id": "bob"}, {"namespace": f"{space.name}-2"}]
    for number, scope in enumerate(scopes):
        put = await space.client.put(path, params=scope, json={**SESSION, "data": {"number": number}})
        assert {key: put.json()[key] for key in scope} == scope
    for number, scope in enumerate(scopes):
        assert (await space.client.get(path, params=scope)).json()["data"] == {"number": number}
    assert (await space.client.get(path, params={**scopes[0], "user_id": "eve"})).status_code == 404
    appended = await space.client.post(f"{path}/messages", json={"messages": SESSION["messages"], **scopes[1]})
    assert appended.json()["user_id"] == "bob"
    for scope in scopes:
        assert (await space.client.delete(path, params=scope)).json() == {"status": "ok"}
        assert (await space.client.get(path, params=scope)).status_code == 404


async def test_34_scope_in_the_body_overrides_the_query(space: Space) -> None:
    body = {**SESSION, "namespace": space.name, "user_id": "ada"}
    put = await space.client.put("/v1/working-memory/s", params={"user_id": "bob", "namespace": "other"}, json=body)
    assert (put.json()["namespace"], put.json()["user_id"]) == (space.name, "ada")


async def test_34_session_is_found_without_user_id_if_unique(space: Space) -> None:
    path, space_only = f"/v1/working-memory/{space.name}", {"namespace": space.name}
    await space.client.put(path, json={**SESSION, **space_only, "user_id": "ada"})
    for params in ({}, space_only, {"user_id": "ada"}):
        found = (await space.client.get(path, params=params)).json()
        assert (found["namespace"], found["user_id"], len(found["messages"])) == (space.name, "ada", 1)
    await space.client.put(path, json={**SESSION, **space_only, "user_id": "bob"})
    assert (await space.client.get(path)).status_code == 404
    assert (await space.client.delete(path)).json() == {"status": "ok"}
    assert (await space.client.get(path, params={"user_id": "bob"})).status_code == 200


async def test_33_json_output_contains_only_json(space: Space, tmp_path: Path) -> None:
    await space.store({"Ada drinks tea.": {}, "Bob runs.": {}})
    options = ("--format", "json", "--namespace", space.name, "--url", str(space.client.base_url))
    done = await asyncio.to_thread(agent_memory, "search", "tea", *options, cwd=tmp_path, LOG_LEVEL="DEBUG")
    assert done.returncode == 0, done.stderr
    assert "Ada drinks tea." in json.dumps(json.loads(done.stdout))


async def test_33_listing_tokens_keeps_them_and_a_hash_prefix_finds_one(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("KEY_PREFIX", "defect-33")

    async def token(*arguments: str) -> Result:
        return await asyncio.to_thread(CliRunner().invoke, app, ["token", *arguments])

    made = [json.loads((await token("add", "-d", name, "--format", "json")).stdout) for name in ("one", "two", "three")]
    for _ in range(2):
        assert [one["description"] for one in json.loads((await token("list", "--format", "json")).stdout)] == ["one", "two", "three"]
    for one in made:
        for name in (one["hash"], one["hash"][:12], one["id"]):
            assert json.loads((await token("show", name, "--format", "json")).stdout)["description"] == one["description"]
    for unknown in ("z" * 12, "", "*"):
        refused = await token("show", unknown)
        assert refused.exit_code != 0, unknown
        assert refused.stdout == "", unknown
        assert isinstance(refused.exception, AgentMemoryError | SystemExit), unknown
    assert (await token("remove", made[0]["hash"][:12], "-f")).exit_code == 0
    assert [one["description"] for one in json.loads((await token("list", "--format", "json")).stdout)] == ["two", "three"]
    async with Redis.from_url(redis_url) as redis:
        await redis.delete(*[key async for key in redis.scan_iter(match="defect-33:*")])


def test_35_tool_parameters_and_defaults_match_the_request() -> None:
    tools = {tool.name: tool.input_schema for tool in listed_tools("all")}
    for tool, request, apart in (
        ("search_long_term_memory", SearchRequest, {"optimize_query"}),
        ("set_working_memory", UpdateWorkingMemory, {"session_id", "model_name", "context_window_max"}),
        ("edit_long_term_memory", EditMemoryRecordRequest, {"memory_id"}),
    ):
        fields = request.model_fields
        assert set(tools[tool]["properties"]) - apart <= set(fields), tool
        for name, schema in tools[tool]["properties"].items():
            if name in fields and isinstance(schema.get("default"), (bool, int, float, str)):
                assert schema["default"] == fields[name].default, (tool, name)
    assert (
        tools["set_working_memory"]["properties"]["ttl_seconds"].get("default")
        is UpdateWorkingMemory.model_fields["ttl_seconds"].default
        is None
    )
