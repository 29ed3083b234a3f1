"""Test access to memory blocks for callers limited to certain users, namespaces or agents."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.features.access.conftest import Guarded

OWNERS: dict[str, dict[str, str]] = {
    "ana": {"user_id": "ana"},
    "ana with the coach": {"user_id": "ana", "agent_id": "coach"},
    "ben": {"user_id": "ben"},
    "the coach": {"agent_id": "coach"},
    "the robot": {"agent_id": "robot"},
    "work": {"namespace": "work"},
    "ana at work": {"user_id": "ana", "namespace": "work"},
    "the coach at work": {"agent_id": "coach", "namespace": "work"},
}
EVERY = set(OWNERS)
OF_ANA = {"ana", "ana with the coach", "ana at work"}
AGENTS = {"the coach", "the robot", "the coach at work"}
AT_WORK = {"work", "ana at work", "the coach at work"}
LIMITS: list[tuple[dict[str, Any], set[str], set[str]]] = [
    ({}, EVERY, EVERY),
    ({"role": "read"}, EVERY, set()),
    ({"users": ["ana"]}, OF_ANA | AGENTS, OF_ANA),
    ({"users": ["ana"], "namespaces": ["work"]}, {"ana at work", "the coach at work"}, {"ana at work"}),
    ({"users": ["ana"], "agents": ["coach"]}, {"ana with the coach", "the coach", "the coach at work"}, {"ana with the coach"}),
    ({"namespaces": ["work"]}, AT_WORK, AT_WORK),
    (
        {"agents": ["coach"]},
        {"ana with the coach", "the coach", "the coach at work"},
        {"ana with the coach", "the coach", "the coach at work"},
    ),
    ({"users": ["Ana", "ana "]}, AGENTS, set()),
]


@pytest.fixture(scope="module")
async def blocks(guarded: Guarded) -> httpx.AsyncClient:
    """Create a block for each owner, and return a client with full access."""
    admin = await guarded.caller("blocks", "admin")
    for name, owner in OWNERS.items():
        (await admin.put("/v1/blocks/note", params=owner, json={"value": f"of {name}"})).raise_for_status()
    return admin


@pytest.mark.parametrize(("limits", "reads", "writes"), LIMITS)
async def test_block_access_is_limited_to_the_callers_own_owners(
    guarded: Guarded, blocks: httpx.AsyncClient, limits: dict[str, Any], reads: set[str], writes: set[str]
) -> None:
    caller = await guarded.caller("blocks", **{"role": "write", **limits})
    for name, owner in OWNERS.items():
        statuses = {
            (await caller.get("/v1/blocks/note", params=owner)).status_code,
            (await caller.get("/v1/blocks", params=owner)).status_code,
            (await caller.get("/v1/blocks/note/history", params=owner)).status_code,
        }
        assert statuses == {200 if name in reads else 403}, name
        changed = [
            await caller.put("/v1/blocks/note", params=owner, json={"description": ""}),
            await caller.patch("/v1/blocks/note", params=owner, json={"operation": "rethink", "content": f"of {name}"}),
            await caller.delete("/v1/blocks/none", params=owner),
        ]
        assert {answer.status_code for answer in changed} == {200 if name in writes else 403}, name
    other = await guarded.caller("another-tenant", "admin")
    assert (await other.get("/v1/blocks/note", params={"user_id": "ana"})).status_code == 404


async def test_attaching_a_block_needs_access_to_both_owners_and_leaks_nothing(guarded: Guarded, blocks: httpx.AsyncClient) -> None:
    of_ana = await guarded.caller("blocks", users=["ana"])
    for owner, target in (
        ({"user_id": "ana"}, {"user_id": "ben"}),
        ({"user_id": "ben"}, {"user_id": "ana"}),
        ({"user_id": "ana"}, {"agent_id": "coach"}),
    ):
        assert (await of_ana.post("/v1/blocks/note/attach", params=owner, json=target)).status_code == 403
    (await blocks.put("/v1/blocks/secret", params={"user_id": "ben"}, json={"value": "zebraquartz"})).raise_for_status()
    for target in ({"agent_id": "coach"}, {"user_id": "ana"}):
        (await blocks.post("/v1/blocks/secret/attach", params={"user_id": "ben"}, json=target)).raise_for_status()
    prompt = {"query": "?", "long_term_search": True, "user_id": "ana", "agent_id": "coach"}
    assert "zebraquartz" in (await blocks.post("/v1/memory/prompt", json=prompt)).text
    for asked in (prompt, {**prompt, "session": {"session_id": "s", "user_id": "ana", "agent_id": "coach"}}):
        answer = await of_ana.post("/v1/memory/prompt", json=asked)
        assert answer.status_code == 200
        assert "of ana with the coach" in answer.text
        assert "zebraquartz" not in answer.text
    shown = await of_ana.get("/v1/blocks", params={"user_id": "ana", "agent_id": "coach", "shown": "true"})
    assert "zebraquartz" not in shown.text


async def test_agent_outside_the_callers_limits_is_refused_in_prompts_and_sessions(guarded: Guarded, blocks: httpx.AsyncClient) -> None:
    caller = await guarded.caller("blocks", agents=["coach"])
    session = {"session_id": "s", "agent_id": "robot"}
    for body in ({"query": "?", "session": session}, {"query": "?", "long_term_search": True, "agent_id": "robot"}):
        assert (await caller.post("/v1/memory/prompt", json=body)).status_code == 403
    assert (await caller.put("/v1/working-memory/s", json={"agent_id": "robot"})).status_code == 403
    assert (await caller.put("/v1/working-memory/s", json={"agent_id": "coach"})).status_code == 200
