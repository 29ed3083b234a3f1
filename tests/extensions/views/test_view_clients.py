"""Test summary views and tasks through both clients and the command line, without a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

import httpx
import pytest
from typer.testing import CliRunner
from ulid import ULID

from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.cli.app import app
from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_client.errors import MemoryNotFoundError, MemoryServerError
from agent_memory_client.models import ClientMemoryRecord, CreateSummaryViewRequest, TaskStatusEnum
from tests.interfaces.client.conftest import opened
from tests.support.stack import stack
from tests.support.waiting import wait_until


@pytest.fixture(params=["async", "sync"])
async def memory(worked: httpx.AsyncClient, request: pytest.FixtureRequest) -> AsyncGenerator[MemoryAPIClient]:
    """Return a client with its own namespace."""
    client = opened(request.param, MemoryClientConfig(base_url=str(worked.base_url), default_namespace=f"app-{ULID()}"))
    yield client
    await client.close()


async def test_view_can_be_created_run_read_and_deleted(memory: MemoryAPIClient) -> None:
    namespace = memory.config.default_namespace
    assert namespace
    records = [
        ClientMemoryRecord(text="Ada paid the rent on Monday.", user_id="ada"),
        ClientMemoryRecord(text="Ben grows tomatoes on the balcony.", user_id="ben"),
    ]
    await memory.create_long_term_memory(records, wait=20)
    request = CreateSummaryViewRequest(name="who", source="long_term", group_by=["user_id"], filters={"namespace": namespace})
    view = await memory.create_summary_view(request)
    assert (view.name, view.group_by) == ("who", ["user_id"])
    assert view.id in {found.id for found in await memory.list_summary_views()}
    assert await memory.get_summary_view(view.id) == view

    partition = await memory.run_summary_view_partition(view.id, {"user_id": "ada"})
    assert (partition.group, partition.memory_count) == ({"user_id": "ada"}, 1)
    assert "rent" in partition.summary
    assert [found.group for found in await memory.list_summary_view_partitions(view.id)] == [{"user_id": "ada"}]

    task = await memory.run_summary_view(view.id)

    async def finished() -> bool:
        found = await memory.get_task(task.id)
        assert found
        assert found.status is not TaskStatusEnum.FAILED, found.error_message
        return found.status is TaskStatusEnum.COMPLETED

    await wait_until(finished, "the view's run")
    stored = {found.group["user_id"]: found.summary for found in await memory.list_summary_view_partitions(view.id)}
    assert set(stored) == {"ada", "ben"}
    assert "tomatoes" in stored["ben"]
    assert [found.group for found in await memory.list_summary_view_partitions(view.id, user_id="ben")] == [{"user_id": "ben"}]

    assert (await memory.delete_summary_view(view.id)).status == "ok"
    assert await memory.get_summary_view(view.id) is None


class Cutting(httpx.AsyncBaseTransport):
    """Drops the first response to a POST."""

    def __init__(self) -> None:
        self.below = httpx.AsyncHTTPTransport()
        self.posts = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self.below.handle_async_request(request)
        self.posts += request.method == "POST"
        if request.method == "POST" and self.posts == 1:
            await response.aread()
            await response.aclose()
            raise httpx.ReadError("the connection broke", request=request)
        return response

    async def aclose(self) -> None:
        await self.below.aclose()


async def test_create_with_a_lost_answer_is_done_once(worked: httpx.AsyncClient) -> None:
    cutting = Cutting()
    name = str(ULID())
    async with MemoryAPIClient(MemoryClientConfig(base_url=str(worked.base_url)), transport=cutting) as memory:
        view = await memory.create_summary_view(CreateSummaryViewRequest(name=name, source="long_term"))
        assert cutting.posts == 2
        assert [found.id for found in await memory.list_summary_views() if found.name == name] == [view.id]


async def test_missing_view_returns_none_and_invalid_view_is_rejected(memory: MemoryAPIClient) -> None:
    assert await memory.get_summary_view("none") is None
    assert await memory.get_task("none") is None
    with pytest.raises(MemoryNotFoundError):
        await memory.run_summary_view("none")
    with pytest.raises(MemoryServerError):
        await memory.create_summary_view(CreateSummaryViewRequest(source="long_term", group_by=["shoe_size"]))


async def test_schedule_task_refreshes_all_continuous_views(settings: Settings, redis_url: str) -> None:
    async with stack(settings, redis_url) as url, MemoryAPIClient(MemoryClientConfig(base_url=url)) as memory:

        async def ordered() -> list[str]:
            words = ["schedule-task", "periodic_refresh_summary_views", "--json", "--url", url]
            done = await asyncio.to_thread(CliRunner().invoke, app, words)
            return [task["view_id"] for task in json.loads(done.stdout)]

        assert await ordered() == []
        view = await memory.create_summary_view(CreateSummaryViewRequest(name="one", source="long_term"))
        assert await ordered() == [view.id]
