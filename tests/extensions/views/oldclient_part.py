"""Test summary views with the archived Python client.

This is part of the programs in `tests/compat/archived_clients/`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

Client = Any


def scenarios(program: Any) -> tuple[Callable[[Client], Awaitable[None]], ...]:
    """Return the scenarios that `oldclient_program.py` also runs."""
    from agent_memory_client.models import CreateSummaryViewRequest

    async def views(client: Client) -> None:
        await program.three(client)
        space = client.config.default_namespace
        request = CreateSummaryViewRequest(name="per user", source="long_term", group_by=["user_id"], filters={"namespace": space})
        view = await client.create_summary_view(request)
        assert (view.name, view.source, view.group_by, view.filters) == ("per user", "long_term", ["user_id"], {"namespace": space})
        assert await client.get_summary_view(view.id) == view
        assert view in await client.list_summary_views()
        partition = await client.run_summary_view_partition(view.id, {"user_id": "ada"})
        assert (partition.view_id, partition.group, partition.memory_count) == (view.id, {"user_id": "ada"}, 2)
        assert "bicycle" in partition.summary
        assert [found.group for found in await client.list_summary_view_partitions(view.id, user_id="ada")] == [{"user_id": "ada"}]
        assert await client.list_summary_view_partitions(view.id, user_id="bob") == []
        task = await client.run_summary_view(view.id, force=True)
        assert (task.type, task.view_id) == ("summary_view_full_run", view.id)

        async def finished() -> Any:
            found = await client.get_task(task.id)
            return found if found.status not in ("pending", "running") else None

        done = await program.until(finished, "the view's run")
        assert (done.status, done.error_message, done.completed_at is None) == ("success", None, False)
        groups = [found.group["user_id"] for found in await client.list_summary_view_partitions(view.id)]
        assert sorted(groups) == ["ada", "bob"]
        assert (await client.delete_summary_view(view.id)).status == "ok"
        assert await client.get_summary_view(view.id) is None
        assert await client.get_task("none") is None

    async def refused_views(client: Client) -> None:
        elsewhere = CreateSummaryViewRequest(source="working_memory", group_by=[])
        error = await program.refused(client.create_summary_view(elsewhere), program.MemoryServerError)
        assert error.status_code == 400
        await program.refused(client.run_summary_view("none"), program.MemoryNotFoundError)

    return views, refused_views


async def the_view(client: Client) -> Any:
    return next(view for view in await client.list_summary_views() if view.name == client.config.default_namespace)


async def views(client: Client) -> dict[str, str]:
    return {(await the_view(client)).name: "view"}


async def view(client: Client) -> dict[str, str]:
    found = await client.get_summary_view((await the_view(client)).id)
    return {found.name: "view"}


async def partitions(client: Client) -> dict[str, str]:
    found = await client.list_summary_view_partitions((await the_view(client)).id)
    return {partition.group["memory_type"]: "partition" for partition in found}


async def task(client: Client) -> dict[str, str]:
    assert await client.get_task("none") is None
    return {}


METHODS = {"list_summary_views": views, "get_summary_view": view, "list_summary_view_partitions": partitions, "get_task": task}
"""Methods that `oldclient_reading.py` calls, too."""
