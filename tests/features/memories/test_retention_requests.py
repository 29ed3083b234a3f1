"""Test forgetting over HTTP: the contract's response, default dry runs, and validation errors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from ulid import ULID

FORGET = "/v1/long-term-memory/forget"


def days_ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


async def remember(live: httpx.AsyncClient, namespace: str, *memories: dict[str, Any]) -> None:
    body = {"memories": [{"namespace": namespace, "text": "a fact", **one} for one in memories], "deduplicate": False}
    assert (await live.post("/v1/long-term-memory/", json=body)).status_code == 200


async def test_forget_is_a_dry_run_by_default(live: httpx.AsyncClient) -> None:
    space = f"n-{ULID()}"
    await remember(live, space, {"id": f"{space}-old", "created_at": days_ago(50)}, {"id": f"{space}-new"})
    answer = await live.post(FORGET, params={"namespace": space}, json={"policy": {"max_age_days": 30}})
    assert (answer.status_code, answer.json()) == (
        200,
        {"scanned": 2, "deleted": 1, "deleted_ids": [f"{space}-old"], "dry_run": True},
    )
    assert (await live.get(f"/v1/long-term-memory/{space}-old")).status_code == 200

    answer = await live.post(FORGET, params={"namespace": space, "dry_run": "false"}, json={"policy": {"max_age_days": 30}})
    assert answer.json() == {"scanned": 2, "deleted": 1, "deleted_ids": [f"{space}-old"], "dry_run": False}
    assert (await live.get(f"/v1/long-term-memory/{space}-old")).status_code == 404


async def test_forget_respects_scope_limit_and_exempted_ids(live: httpx.AsyncClient) -> None:
    space = f"n-{ULID()}"
    memories = [
        {"id": f"{space}-{n}", "created_at": days_ago(50 + n), "user_id": "ada" if n % 2 else "bob", "session_id": f"s{n}"}
        for n in range(6)
    ]
    await remember(live, space, *memories)
    body = {"policy": {"max_age_days": 1}, "pinned_ids": [f"{space}-5"]}
    answer = (await live.post(FORGET, params={"namespace": space, "user_id": "ada"}, json=body)).json()
    assert (answer["scanned"], answer["deleted_ids"]) == (3, [f"{space}-3", f"{space}-1"])
    answer = (await live.post(FORGET, params={"namespace": space, "session_id": "s4"}, json=body)).json()
    assert answer["deleted_ids"] == [f"{space}-4"]
    answer = (await live.post(FORGET, params={"namespace": space, "limit": 1}, json=body)).json()
    assert (answer["scanned"], answer["deleted_ids"]) == (6, [f"{space}-4"])
    answer = (await live.post(FORGET, params={"namespace": space, "limit": 100_000}, json={"policy": {"budget": 2}})).json()
    assert answer["deleted"] == 4


async def test_empty_policy_forgets_nothing(live: httpx.AsyncClient) -> None:
    space = f"n-{ULID()}"
    await remember(live, space, {"id": f"{space}-old", "created_at": days_ago(5000)})
    for policy in ({}, {"max_age_days": None}, {"max_age_days": "30"}, {"unknown": 1}):
        answer = await live.post(FORGET, params={"namespace": space, "dry_run": False}, json={"policy": policy})
        assert (answer.status_code, answer.json()["deleted"]) == (200, 0)


@pytest.mark.parametrize(
    ("params", "body", "field"),
    [
        ({}, {"max_age_days": 30}, "policy"),
        ({}, {"policy": None}, "policy"),
        ({}, {"policy": {"max_age_days": -1}}, "policy.max_age_days"),
        ({}, {"policy": {"budget": -1}}, "policy.budget"),
        ({}, {"policy": {"memory_type_allowlist": "message"}}, "policy.memory_type_allowlist"),
        ({}, {"policy": {}, "pinned_ids": "a"}, "pinned_ids"),
        ({"limit": -1}, {"policy": {}}, "limit"),
        ({"limit": "many"}, {"policy": {}}, "limit"),
        ({"dry_run": "perhaps"}, {"policy": {}}, "dry_run"),
        ({"user_id": "a\x00"}, {"policy": {}}, "user_id"),
    ],
)
async def test_invalid_forget_request_is_refused_with_the_field_name(live: httpx.AsyncClient, params: Any, body: Any, field: str) -> None:
    answer = await live.post(FORGET, params=params, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["detail"][0]["msg"].startswith(f"{field}: ")


async def test_get_on_the_forget_path_reads_a_memory_id(live: httpx.AsyncClient) -> None:
    assert (await live.get(FORGET)).status_code == 404
    assert (await live.post(FORGET + "/", json={"policy": {}})).status_code == 200
