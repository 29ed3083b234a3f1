"""Register summary views in the tests that cover all features."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

import httpx

from agent_memory.extensions.views.prompts import summarize_group
from agent_memory.extensions.views.service import ViewService
from agent_memory.extensions.views.store import ViewKeys, ViewStore
from agent_memory_client import MemoryAPIClient
from tests.registrations import Registration, Request, Send
from tests.support.rig import SCOPE

PATH = "/v1/summary-views"
MOVED_VIEW = "01JNVIEW0000000000000000AA"
"""A view that the archived server stored."""


def _create(states: dict[str, set[Any]], intent: dict[str, Any], ok: bool) -> None:
    states[intent["key"]] = {True} if ok else {True, False}


def _delete(states: dict[str, set[Any]], intent: dict[str, Any], ok: bool) -> None:
    states[intent["key"]] = {False} if ok else {True, False}


def _of_view(ids: Any, method: str, below: str = "", query: dict[str, Any] | None = None, body: Any = None) -> Request:
    return (method, f"{PATH}/{quote(ids.made['view'], safe='')}{below}", query or {}, body)


_ANA = {"user_id": "ana"}
_AT_WORK = {"namespace": "work", **_ANA}
_ATTACKS: dict[str, Callable[[Any], list[Request]]] = {
    "list_summary_views_endpoint_v1_summary_views_get": lambda i: [("GET", PATH, {}, None)],
    "create_summary_view_v1_summary_views_post": lambda i: [
        ("POST", PATH, {}, {"name": i.user[:50], "source": "long_term", "group_by": ["user_id"], "filters": {"namespace": i.namespace}})
    ],
    "get_summary_view_v1_summary_views__view_id__get": lambda i: [_of_view(i, "GET")],
    "delete_summary_view_endpoint_v1_summary_views__view_id__delete": lambda i: [_of_view(i, "DELETE")],
    "run_summary_view_partition_v1_summary_views__view_id__partitions_run_post": lambda i: [
        _of_view(i, "POST", "/partitions/run", body={"group": group}) for group in (i.where, _AT_WORK, _ANA)
    ],
    "list_summary_view_partitions_v1_summary_views__view_id__partitions_get": lambda i: [
        _of_view(i, "GET", "/partitions", query) for query in ({}, i.where, _ANA)
    ],
    "run_summary_view_full_v1_summary_views__view_id__run_post": lambda i: [_of_view(i, "POST", "/run", body={"task_id": i.made["task"]})],
    "get_task_status_v1_tasks__task_id__get": lambda i: [("GET", f"/v1/tasks/{quote(i.made['task'], safe='')}", {}, None)],
}


class Views(Registration):
    recorded: ClassVar[Any] = {ViewService: "views"}
    least_bodies: ClassVar[Any] = {
        ("POST", PATH): {"source": "long_term"},
        ("POST", f"{PATH}/v1/partitions/run"): {"group": {}},
        ("POST", f"{PATH}/v1/run"): {},
    }
    path_parts: ClassVar[Any] = {"v1": "{view_id}"}
    example_ids: ClassVar[Any] = {"create_summary_view_v1_summary_views_post": "view_id"}
    reads = (("GET", PATH, {}, None),)
    writes = (("POST", PATH, {}, {"source": "long_term", "group_by": []}),)
    searches = (("GET", PATH, {}, None), ("GET", "/v1/tasks/t", {}, None))
    keyed_writes = ((PATH, {"source": "long_term", "name": "one"}, lambda listed: [view["name"] for view in listed], ["one"]),)
    periods: ClassVar[Any] = {"views": 3600.0}
    export_kinds = frozenset({"summary"})
    refused_kinds = frozenset({"summary"})
    attacks = _ATTACKS
    fault_kinds: ClassVar[Any] = {"create_view": _create, "delete_view": _delete}

    def forged_lines(self, ids: Any, user: str) -> list[dict[str, Any]]:
        group = {"user_id": user, "namespace": "work"}
        return [{"kind": "summary", "partition": {"view_id": ids.made["view"], "group": group, "memory_count": 1, "summary": "mine"}}]

    async def fill_victim(self, send: Send, where: dict[str, str]) -> dict[str, str]:
        # A view's name and grouping are visible to the whole tenant; the content of its groups is not.
        view = (await send("POST", PATH, json={"name": "per user", "source": "long_term", "group_by": ["user_id", "namespace"]}))["id"]
        await send("POST", f"{PATH}/{view}/partitions/run", json={"group": where})
        return {"view": view, "task": (await send("POST", f"{PATH}/{view}/run", json={"task_id": "shared"}))["id"]}

    async def read_victim(self, send: Send, made: Mapping[str, str], where: dict[str, str]) -> list[Any]:
        # A caller with access to Ana may compute the view for her: a separate group beside the victim's.
        return [one for one in await send("GET", f"{PATH}/{made['view']}/partitions") if one["group"] == where]

    async def fill_person(self, send: Send, user: str) -> None:
        view = await send("POST", PATH, json={"source": "long_term", "group_by": ["user_id"]})
        await send("POST", f"{PATH}/{view['id']}/partitions/run", json={"group": {"user_id": user}})

    async def show_person(self, send: Send, user: str) -> dict[str, Any]:
        views = await send("GET", PATH)
        return {f"view{view['id']}": await send("GET", f"{PATH}/{view['id']}/partitions", params={"user_id": user}) for view in views}

    async def fill_erased(self, send: Send, user: str, namespace: str) -> None:
        for group_by, filters in ((["user_id"], {}), ([], {}), (["namespace"], {"user_id": user})):
            view = await send("POST", PATH, json={"source": "long_term", "group_by": group_by, "filters": filters})
            group = {"user_id": user, "namespace": namespace}
            body = {"group": {name: group[name] for name in group_by}}
            await send("POST", f"{PATH}/{view['id']}/partitions/run", json=body, headers={"idempotency-key": f"v{view['id']}"})
            await send("POST", f"{PATH}/{view['id']}/run", json={})

    async def fill_moved(self, client: Any) -> set[tuple[str, str]]:
        view = {"id": MOVED_VIEW, "name": "friends", "source": "long_term", "group_by": ["user_id"], "filters": {"namespace": "work"}}
        view |= {"time_window_days": 30, "continuous": False, "prompt": None, "model_name": None}
        async with client.pipeline(transaction=False) as pipe:
            pipe.sadd("summary_view:index", MOVED_VIEW, "gone")
            pipe.set(f"summary_view:{MOVED_VIEW}:config", json.dumps(view))
            pipe.set("summary_view:wrong:config", json.dumps({"id": "wrong", "source": "long_term", "group_by": ["colour"]}))
            for user in ("ada", "ben"):
                part = {"view_id": MOVED_VIEW, "group": {"user_id": user}, "summary": f"About {user}.", "memory_count": 3}
                part |= {"computed_at": "2025-03-01T10:00:00Z"}
                pipe.set(f"summary_view:{MOVED_VIEW}:summary:{quote(f'user_id={user}')}", json.dumps(part))
            lost = {"view_id": "gone", "group": {}, "summary": "?", "memory_count": 1, "computed_at": "2025-03-01T10:00:00Z"}
            pipe.set("summary_view:gone:summary:", json.dumps(lost))
            await pipe.execute()
        return {("summary", "wrong:config"), ("summary", "gone:summary:")}

    async def check_moved(self, client: MemoryAPIClient) -> None:
        view = await client.get_summary_view(MOVED_VIEW)
        assert view is not None
        assert (view.name, view.group_by, view.filters, view.time_window_days) == ("friends", ["user_id"], {"namespace": "work"}, 30)
        found = await client.list_summary_view_partitions(MOVED_VIEW)
        assert {one.group["user_id"]: one.summary for one in found} == {"ada": "About ada.", "ben": "About ben."}

    async def delete_moved(self, rig: Any) -> None:
        await rig.rt[ViewService].delete_view(SCOPE, MOVED_VIEW)

    async def show_moved(self, rig: Any) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for view in await rig.rt[ViewStore].load_views(SCOPE):
            shown[f"view {view.id}"] = view
            shown[f"partitions of {view.id}"] = await rig.rt[ViewStore].load_partitions(SCOPE, view.id)
        return shown

    async def prepare_stranger(self, http: httpx.AsyncClient, namespace: str) -> tuple[list[tuple[str, str, Any]], list[str]]:
        view = {"name": namespace, "source": "long_term", "group_by": ["user_id"], "filters": {"namespace": namespace}}
        view_id = (await http.post(PATH, json=view)).raise_for_status().json()["id"]
        task = (await http.post(f"{PATH}/{view_id}/run", json={})).raise_for_status().json()["id"]
        attempts: list[tuple[str, str, Any]] = [
            ("GET", f"/v1/tasks/{task}", None),
            ("DELETE", f"{PATH}/{view_id}", None),
            ("POST", f"{PATH}/{view_id}/partitions/run", {"group": {"user_id": "hal"}}),
        ]
        return attempts, [f"{PATH}/{view_id}"]

    old_scenarios = 2
    npm_scenarios = 1
    old_readings = frozenset({"list_summary_views", "get_summary_view", "list_summary_view_partitions"})

    async def fill_for_reading(self, send: Send, namespace: str) -> None:
        view = {"name": namespace, "source": "long_term", "group_by": ["memory_type"], "filters": {"namespace": namespace}}
        made = await send("POST", PATH, view)
        await send("POST", f"{PATH}/{made['id']}/partitions/run", {"group": {"memory_type": "procedural"}})

    def prompts_of(self, text: str, shown: Sequence[Any]) -> list[Any]:
        return [summarize_group(shown, {"user_id": text}, instructions=None, max_words=10)]

    def fault_actors(self, common: tuple[Any, ...]) -> list[Any]:
        from tests.extensions.views.view_actor import ViewActor

        return [ViewActor("v0", *common)]

    async def check_faults(self, client: Any, keys: Any, states: Mapping[str, set[Any]], stored: set[str], found: Any) -> None:
        own = ViewKeys(keys.root)
        raw = await client.hgetall(own.views(SCOPE.tenant))
        names = Counter(json.loads(view).get("name") for view in raw.values())
        for name, possible in states.items():
            if names[name] > 1:
                found.duplicated.append(f"view {name}: {names[name]} times")
            elif bool(names[name]) not in possible:
                kind = found.resurrected if names[name] else found.lost
                kind.append(f"view {name} is {'' if names[name] else 'not '}there")
        found.counts["views"] += len(raw)
        living = {own.partitions(SCOPE.tenant, view.decode()) for view in raw}
        computed = {key for key in stored if key.startswith(f"{keys.root}svp:")}
        found.counts["views computed"] += len(computed)
        if computed - living:
            found.resurrected.append(f"{len(computed - living)} views are deleted, but their partitions are there")


REGISTRATION = Views()
