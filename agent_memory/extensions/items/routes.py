"""HTTP operations for items."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Query, Response

from agent_memory.extensions.items.service import ItemService, owner_of
from agent_memory.foundation.api.dependencies import OwnerQuery, ScopeDep, ServicesDep, WriteScopeDep
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import JsonResponse, errors
from agent_memory.foundation.core.errors import NotFound
from agent_memory_client import models

router = operations("items")

PathQuery = Annotated[models.ItemPath, Query(description="The labels of the namespace path, in order: `path=users&path=ada`.")]
KeyQuery = Annotated[models.ItemKey, Query(description="The item's key within the path.")]


@router.put("/v1/items", operation_id="put_item", response_model=models.AckResponse, responses=errors(409, 413, 415))
async def put_item(services: ServicesDep, scope: WriteScopeDep, body: Annotated[models.PutItem, Body()], names: OwnerQuery) -> Response:
    """Stores a value.

    Reads and keyword searches find it immediately. Semantic searches find it a moment later, after a worker has
    embedded it.
    """
    await services[ItemService].write_items(scope, owner_of(scope, names), [body])
    return JsonResponse({"status": "ok"})


@router.get("/v1/items", operation_id="get_item", response_model=models.Item, responses=errors(404))
async def get_item(
    services: ServicesDep,
    scope: ScopeDep,
    path: PathQuery,
    key: KeyQuery,
    names: OwnerQuery,
    refresh_ttl: Annotated[bool, Query(description="Whether to restart the item's TTL.")] = True,
) -> Response:
    """Returns a value."""
    request = models.GetItem(path=path, key=key, refresh_ttl=refresh_ttl)
    item = await services[ItemService].get_item(scope, owner_of(scope, names), request)
    if item is None:
        raise NotFound("Item not found", field="key")
    return JsonResponse(item)


@router.delete("/v1/items", operation_id="delete_item", response_model=models.AckResponse, responses=errors())
async def delete_item(services: ServicesDep, scope: WriteScopeDep, path: PathQuery, key: KeyQuery, names: OwnerQuery) -> Response:
    """Deletes a value. A missing value is not an error."""
    await services[ItemService].write_items(scope, owner_of(scope, names), [models.DeleteItem(path=path, key=key)])
    return JsonResponse({"status": "ok"})


@router.post("/v1/items/search", operation_id="search_items", response_model=models.ItemSearchResults, responses=errors(413, 415))
async def search_items(services: ServicesDep, scope: ScopeDep, body: Annotated[models.SearchItems, Body()], names: OwnerQuery) -> Response:
    """Searches the values under a path, optionally with a field filter and a query."""
    return JsonResponse({"items": await services[ItemService].search_items(scope, owner_of(scope, names), body)})


@router.post("/v1/items/namespaces", operation_id="list_item_namespaces", response_model=models.ItemPaths, responses=errors(413, 415))
async def list_item_namespaces(
    services: ServicesDep, scope: ScopeDep, body: Annotated[models.ListItemPaths, Body()], names: OwnerQuery
) -> Response:
    """Lists the namespace paths that contain items."""
    return JsonResponse({"namespaces": await services[ItemService].list_paths(scope, owner_of(scope, names), body)})


@router.post("/v1/items/batch", operation_id="run_item_batch", response_model=models.ItemBatchResults, responses=errors(409, 413, 415))
async def run_item_batch(services: ServicesDep, scope: ScopeDep, body: Annotated[models.ItemBatch, Body()], names: OwnerQuery) -> Response:
    """Runs a batch of operations.

    Reads see the state before the batch. Writes take effect together, after the reads.
    """
    results = await services[ItemService].run_batch(scope, owner_of(scope, names), body.operations)
    return JsonResponse({"results": results})
