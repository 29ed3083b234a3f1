"""Serve the paths used by versions 0.1, 1.x and 2.x of Mem0's clients."""

from __future__ import annotations

import ast
from typing import Any

from fastapi import Request, Response

from agent_memory.foundation.api.body import read_object
from agent_memory.foundation.api.dependencies import scope_of
from agent_memory.foundation.api.responses import JsonResponse, add_notices
from agent_memory.foundation.core.errors import BadInput, NotFound, NotSupported
from agent_memory.foundation.core.notices import collecting_notices
from agent_memory.interfaces.compat.mem0.filters import only_entities
from agent_memory.interfaces.compat.mem0.profiles import Mem0Profiles
from agent_memory.interfaces.compat.mem0.requests import ENTITY_IDS, AddRequest, Entities, ListRequest, SearchBody
from agent_memory.interfaces.compat.mem0.service import Mem0Service
from agent_memory.interfaces.compat.routing import CompatApi, Handler, Operation
from agent_memory.interfaces.opened_runtime import runtime_of

PREFIXES = ("/v1/ping", "/v1/memories", "/v2/memories", "/v3/memories", "/v1/entities", "/v2/entities", "/v1/batch", "/v1/exports",
            "/v1/summary", "/v1/feedback", "/v1/event", "/v2/profiles", "/api/v1/")  # fmt: skip
"""Path prefixes that accept `Authorization: Token …`."""

_MOST_IN_BATCH = 1000
# Clients send these parameters with every request.
_EVERYWHERE = ("org_id", "project_id")
_MOST_FILTERS = 4096


async def _answer(handler: Handler, request: Request) -> Response:
    service = Mem0Service(runtime_of(request), scope_of(request))
    with collecting_notices() as notices:
        return add_notices(JsonResponse(await handler(request, service)), notices)


async def _ping(request: Request, service: Mem0Service) -> Any:
    return {"status": "ok", "org_id": "default", "project_id": service.project_id, "user_email": None}


async def _add(request: Request, service: Mem0Service) -> Any:
    body = await read_object(request)
    if isinstance(body.get("messages"), str):
        body["messages"] = [{"role": "user", "content": body["messages"]}]
    # Older clients wait for the result, unless they set `async_mode`.
    waits = request.url.path.startswith("/v1/") and not body.get("async_mode", False)
    return await service.add(AddRequest.model_validate({**body, **_within_filters(body), "waits": waits}))


def _within_filters(body: dict[str, Any]) -> dict[str, Any]:
    filters = body.get("filters")
    return {name: filters[name] for name in ENTITY_IDS if name in filters} if isinstance(filters, dict) else {}


async def _search(request: Request, service: Mem0Service) -> Any:
    body = await read_object(request)
    hits = await service.search(SearchBody.model_validate(body))
    # Older clients get a list, unless they ask for the later form.
    wrapped = request.url.path.startswith("/v3/") or body.get("output_format") == "v1.1"
    return {"results": hits} if wrapped else hits


async def _list_posted(request: Request, service: Mem0Service) -> Any:
    body = ListRequest.model_validate({**await read_object(request), **request.query_params})
    memories, total = await service.list(body)
    paged = "page" in request.query_params or request.url.path.startswith("/v3/")
    return _page(request, body, memories, total) if paged else memories


async def _list(request: Request, service: Mem0Service) -> Any:
    query: dict[str, Any] = dict(request.query_params)
    for name in ("categories", "fields"):
        if name in query:
            query[name] = [part for value in request.query_params.getlist(name) for part in value.split(",")]
    body = ListRequest.model_validate(query)
    memories, total = await service.list(body)
    if "page" in query:
        return _page(request, body, memories, total)
    return {"results": memories} if query.get("output_format") == "v1.1" else memories


def _page(request: Request, body: ListRequest, memories: list[dict[str, Any]], total: int) -> dict[str, Any]:
    size = min(body.page_size or 100, 100)
    more = body.page * size < total
    address = request.url.include_query_params
    return {
        "count": total,
        "next": str(address(page=body.page + 1)) if more else None,
        "previous": str(address(page=body.page - 1)) if body.page > 1 else None,
        "results": memories,
    }


async def _get(request: Request, service: Mem0Service) -> Any:
    return await service.get(request.path_params["memory_id"])


async def _update(request: Request, service: Mem0Service) -> Any:
    return await service.update(request.path_params["memory_id"], await read_object(request))


async def _delete(request: Request, service: Mem0Service) -> Any:
    if request.query_params.get("delete_linked", "").lower() == "true":
        raise NotSupported("delete_linked")
    await service.delete([request.path_params["memory_id"]])
    return {"message": "Memory deleted successfully!"}


async def _delete_all(request: Request, service: Mem0Service) -> Any:
    query = dict(request.query_params)
    named = Entities.model_validate({**query, **_filters_in_query(query.pop("filters", None))}).entities()
    await service.delete_all(named)
    return {"message": "Memories deleted successfully!"}


def _filters_in_query(text: str | None) -> dict[str, str]:
    """Parse the owner from the filters in a query parameter.

    Clients send a Python literal or JSON. Raises NotSupported for other filters.
    """
    if text is None:
        return {}
    try:
        filters = ast.literal_eval(text) if len(text) <= _MOST_FILTERS else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        filters = None
    named = only_entities(filters)
    if not named:
        raise NotSupported("delete_all: filters beside user_id, agent_id, run_id and app_id")
    return named


async def _history(request: Request, service: Mem0Service) -> Any:
    return await service.history(request.path_params["memory_id"])


async def _entities(request: Request, service: Mem0Service) -> Any:
    entities = await service.entities()
    return {"count": len(entities), "next": None, "previous": None, "results": entities, "total_users": len(entities)}


async def _delete_entity(request: Request, service: Mem0Service) -> Any:
    kind, name = request.path_params["kind"], request.path_params["name"]
    if kind not in ("user", "agent", "run", "app"):
        raise NotSupported(f"entities of type {kind}")
    if name == "*":
        raise BadInput("must be one name", field="name", where="path")
    if not await service.delete_all({f"{kind}_id": name}):
        raise NotFound(f"{kind} {name} not found", field="name")
    return {"message": "Entity deleted successfully!"}


async def _batch(request: Request) -> list[dict[str, Any]]:
    memories = (await read_object(request)).get("memories")
    if not isinstance(memories, list) or not 0 < len(memories) <= _MOST_IN_BATCH:
        raise BadInput(f"must be a list of 1 to {_MOST_IN_BATCH} memories", field="memories")
    for memory in memories:
        if not isinstance(memory, dict) or not isinstance(memory.get("memory_id"), str):
            raise BadInput("each must have a memory_id", field="memories")
    return memories


async def _batch_update(request: Request, service: Mem0Service) -> Any:
    memories = await _batch(request)
    for memory in memories:
        await service.update(memory["memory_id"], memory)
    return {"message": f"Successfully updated {len(memories)} memories"}


async def _batch_delete(request: Request, service: Mem0Service) -> Any:
    memories = await _batch(request)
    await service.delete([memory["memory_id"] for memory in memories])
    return {"message": f"Successfully deleted {len(memories)} memories"}


async def _project(request: Request, service: Mem0Service) -> Any:
    _check_project(request, service)
    return await service.project(request.query_params.getlist("fields"))


async def _update_project(request: Request, service: Mem0Service) -> Any:
    _check_project(request, service)
    return await service.update_project(await read_object(request))


def _check_project(request: Request, service: Mem0Service) -> None:
    if request.path_params["project"] != service.project_id or request.path_params["org"] != "default":
        raise NotSupported("organizations and projects beside the default")


def _profiles(request: Request) -> Mem0Profiles:
    return Mem0Profiles(runtime_of(request), scope_of(request))


async def _profile(request: Request, service: Mem0Service) -> Any:
    return await _profiles(request).read(request.path_params["kind"], request.path_params["name"])


async def _profile_settings(request: Request, service: Mem0Service) -> Any:
    return await _profiles(request).settings()


async def _update_profile_settings(request: Request, service: Mem0Service) -> Any:
    return await _profiles(request).update_settings(await read_object(request))


async def _start_profile_job(request: Request, service: Mem0Service) -> Any:
    return await _profiles(request).start_job(await read_object(request))


async def _profile_job(request: Request, service: Mem0Service) -> Any:
    return await _profiles(request).read_job(request.path_params["job"])


OPERATIONS: tuple[Operation, ...] = (
    ("GET", "/v1/ping/", _ping),
    ("POST", "/v1/memories/", _add),
    ("POST", "/v3/memories/add/", _add),
    ("POST", "/v1/memories/search/", _search),
    ("POST", "/v2/memories/search/", _search),
    ("POST", "/v3/memories/search/", _search),
    ("GET", "/v1/memories/", _list),
    ("POST", "/v2/memories/", _list_posted),
    ("POST", "/v3/memories/", _list_posted),
    ("DELETE", "/v1/memories/", _delete_all),
    ("GET", "/v1/memories/{memory_id:path}/history/", _history),
    ("GET", "/v1/memories/{memory_id:path}/", _get),
    ("PUT", "/v1/memories/{memory_id:path}/", _update),
    ("DELETE", "/v1/memories/{memory_id:path}/", _delete),
    ("GET", "/v1/entities/", _entities),
    ("DELETE", "/v2/entities/{kind}/{name:path}/", _delete_entity),
    ("GET", "/v2/entities/{kind}/{name:path}/profile/", _profile),
    ("GET", "/v2/profiles/settings/", _profile_settings),
    ("POST", "/v2/profiles/settings/", _update_profile_settings),
    ("POST", "/v2/profiles/jobs/", _start_profile_job),
    ("GET", "/v2/profiles/jobs/{job:path}/", _profile_job),
    ("PUT", "/v1/batch/", _batch_update),
    ("DELETE", "/v1/batch/", _batch_delete),
    ("GET", "/api/v1/orgs/organizations/{org}/projects/{project}/", _project),
    ("PATCH", "/api/v1/orgs/organizations/{org}/projects/{project}/", _update_project),
)
_UNSUPPORTED = ("/v1/exports/{rest:path}", "/v1/summary/{rest:path}", "/v1/feedback/{rest:path}", "/v1/event/{rest:path}",
                "/v1/events/{rest:path}", "/v2/entities/{rest:path}", "/v2/profiles/{rest:path}", "/api/v1/{rest:path}")  # fmt: skip

_API = CompatApi(
    operations=OPERATIONS,
    unsupported=_UNSUPPORTED,
    answer=_answer,
    delete_parameters={
        _delete: (*_EVERYWHERE, "delete_linked"),
        _delete_all: (*_EVERYWHERE, *ENTITY_IDS, "filters"),
        _delete_entity: _EVERYWHERE,
        _batch_delete: _EVERYWHERE,
    },
    error_field="detail",
)
routes = _API.routes
