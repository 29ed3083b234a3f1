"""Test summary views and tasks over HTTP, including a 4xx response to each misuse."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from ulid import ULID

from tests.support.waiting import wait_until

VIEWS = "/v1/summary-views"


async def make(client: httpx.AsyncClient, **given: Any) -> dict[str, Any]:
    answer = await client.post(VIEWS, json={"source": "long_term", **given})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def remember(client: httpx.AsyncClient, namespace: str) -> None:
    memories = [
        {"id": f"{namespace}-{n}", "text": f"Fact {n} of {user}", "namespace": namespace, "user_id": user}
        for n, user in enumerate(["ada", "ada", "bob"])
    ]
    assert (await client.post("/v1/long-term-memory/", json={"memories": memories})).status_code == 200


async def test_unsupported_group_by_fields_are_rejected(live: httpx.AsyncClient) -> None:
    body = {"source": "long_term", "group_by": ["user_id", "topics", "invalid"]}
    answer = await live.post(VIEWS, json=body)
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("Unsupported group_by fields: invalid, topics;")


async def test_view_can_be_created_read_listed_and_deleted(worked: httpx.AsyncClient) -> None:
    made = await make(worked, name="n")
    assert made == {
        "id": made["id"],
        "name": "n",
        "source": "long_term",
        "group_by": [],
        "filters": {},
        "time_window_days": None,
        "continuous": False,
        "prompt": None,
        "model_name": None,
    }
    assert (await worked.get(f"{VIEWS}/{made['id']}")).json() == made
    assert made in (await worked.get(VIEWS + "/")).json()
    for _ in range(2):
        assert (await worked.delete(f"{VIEWS}/{made['id']}")).json() == {"status": "ok"}
    gone = await worked.get(f"{VIEWS}/{made['id']}")
    assert (gone.status_code, gone.json()["detail"]) == (404, f"Summary view {made['id']} not found")


async def test_partition_run_returns_its_summary_at_once(worked: httpx.AsyncClient) -> None:
    space = f"n-{ULID()}"
    await remember(worked, space)
    made = await make(worked, group_by=["user_id"], filters={"namespace": space})
    url = f"{VIEWS}/{made['id']}/partitions"
    found = (await worked.post(f"{url}/run", json={"group": {"user_id": "ada"}})).json()
    assert {"Fact 0 of ada", "Fact 1 of ada"} <= {line.split("] ")[1] for line in found["summary"].splitlines()}
    assert found["computed_at"].endswith("Z")
    assert (found["view_id"], found["group"], found["memory_count"], found["empty"], found["empty_reason"]) == (
        made["id"],
        {"user_id": "ada"},
        2,
        False,
        None,
    )
    assert "no language model" in found["degraded"]
    assert (await worked.get(url)).json() == [found]
    assert (await worked.get(url, params={"user_id": "bob"})).json() == []
    empty = (await worked.post(f"{url}/run", json={"group": {"user_id": "nobody"}})).json()
    assert (empty["empty"], empty["empty_reason"], empty["summary"]) == (True, "no_matching_memories", "")


async def test_full_run_is_a_task_with_status(worked: httpx.AsyncClient) -> None:
    space = f"n-{ULID()}"
    await remember(worked, space)
    made = await make(worked, group_by=["user_id"], filters={"namespace": {"eq": space}})
    task = (await worked.post(f"{VIEWS}/{made['id']}/run", json={"force": True})).json()
    assert (task["status"], task["type"], task["view_id"]) == ("pending", "summary_view_full_run", made["id"])
    assert (task["started_at"], task["completed_at"], task["error_message"]) == (None, None, None)

    async def finished() -> dict[str, Any] | None:
        now = (await worked.get(f"/v1/tasks/{task['id']}")).json()
        assert now["status"] in ("pending", "running", "success")
        return now if now["status"] == "success" else None

    done = await wait_until(finished, "the task's end")
    assert done["completed_at"] >= done["started_at"] >= done["created_at"]
    listed = (await worked.get(f"{VIEWS}/{made['id']}/partitions")).json()
    assert [(one["group"], one["memory_count"]) for one in listed] == [({"user_id": "ada"}, 2), ({"user_id": "bob"}, 1)]


async def test_a_task_may_have_any_id(worked: httpx.AsyncClient) -> None:
    made = await make(worked)
    name = f"mine/{ULID()}"
    assert (await worked.post(f"{VIEWS}/{made['id']}/run", json={"task_id": name})).json()["id"] == name
    assert (await worked.get(f"/v1/tasks/{name}")).json()["view_id"] == made["id"]


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({"source": "working_memory"}, 400, "long_term"),
        ({"source": "long_term", "group_by": ["topics"]}, 400, "topics"),
        ({"source": "long_term", "filters": {"text": "x"}}, 400, "text"),
        ({"source": "long_term", "filters": {"memory_type": "nonsense"}}, 422, "filters.memory_type"),
        ({"source": "long_term", "filters": {"user_id": {}}}, 422, "filters.user_id"),
        ({"source": "long_term", "filters": {"topics": {"eq": "a", "ne": "b"}}}, 422, "filters.topics"),
        ({"source": "long_term", "filters": {"namespace": {"field": "user_id", "eq": "x"}}}, 422, "filters.namespace.field"),
        ({"source": "long_term", "filters": {"event_date": {"between": ["2024-01-01"]}}}, 422, "filters.event_date.between"),
        ({"source": "elsewhere"}, 422, "source"),
        ({"source": "long_term", "time_window_days": 0}, 422, "time_window_days"),
        ({}, 422, "source"),
    ],
)
async def test_invalid_view_is_rejected_with_the_field_name(live: httpx.AsyncClient, body: Any, status: int, named: str) -> None:
    answer = await live.post(VIEWS, json=body)
    assert answer.status_code == status, answer.text
    assert named in answer.text


async def test_groups_that_do_not_match_the_view_are_rejected(live: httpx.AsyncClient) -> None:
    made = await make(live, group_by=["user_id"])
    url = f"{VIEWS}/{made['id']}/partitions/run"
    for group in ({}, {"namespace": "n"}, {"user_id": "a", "namespace": "n"}):
        assert (await live.post(url, json={"group": group})).status_code == 400
    for body in ({}, {"group": None}, {"group": {"user_id": 1}}, {"group": {"user_id": ""}}, {"group": {"user_id": "a\x00"}}):
        assert (await live.post(url, json=body)).status_code == 422


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"{VIEWS}/unknown", None),
        ("GET", f"{VIEWS}/unknown/partitions", None),
        ("POST", f"{VIEWS}/unknown/partitions/run", {"group": {}}),
        ("POST", f"{VIEWS}/unknown/run", {}),
        ("GET", "/v1/tasks/unknown", None),
        ("GET", "/v1/tasks/%00", None),
    ],
)
async def test_missing_views_and_tasks_get_404(live: httpx.AsyncClient, method: str, path: str, body: Any) -> None:
    assert (await live.request(method, path, json=body)).status_code == (422 if "%00" in path else 404)
    if body is not None:
        assert (await live.request(method, path)).status_code in (415, 422)
