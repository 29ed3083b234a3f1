"""Items: JSON values stored under a namespace path and a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from agent_memory_client._wire.requests import Call, as_body, checked, query
from agent_memory_client.errors import MemoryNotFoundError
from agent_memory_client.models import (
    AckResponse,
    Item,
    ItemBatch,
    ItemBatchResults,
    ItemOperation,
    ItemPaths,
    ItemResult,
    ItemSearchResults,
    ListItemPaths,
    PathCondition,
    PutItem,
    ScoredItem,
    SearchItems,
)
from agent_memory_client.resources.base import Resource

_PATH = "/v1/items"


ScoredItems: TypeAlias = list[ScoredItem]
ItemResults: TypeAlias = list[ItemResult]
PathList: TypeAlias = list[list[str]]


class Items(Resource):
    """Store, read, search and delete items. The owner is a namespace, a user, both, or neither."""

    async def put(
        self,
        path: Sequence[str],
        key: str,
        value: dict[str, Any],
        *,
        index: Literal[False] | Sequence[str] | None = None,
        ttl_minutes: float | None = None,
        namespace: str | None = None,
        user_id: str | None = None,
    ) -> AckResponse:
        """Store a value, replacing any existing value for the path and key.

        `index` lists the fields to make searchable (None: all fields, False: no fields). The item
        expires `ttl_minutes` after it was last read or stored.
        """
        fields = index if index is None or index is False else list(index)
        body = checked(PutItem, path=list(path), key=key, value=value, index=fields, ttl_minutes=ttl_minutes)
        call = Call("PUT", _PATH, self._owner(namespace, user_id), json=as_body(body))
        return await self._read(AckResponse, call)

    async def get(
        self, path: Sequence[str], key: str, *, refresh_ttl: bool = True, namespace: str | None = None, user_id: str | None = None
    ) -> Item | None:
        """Return an item, or None. Restarts the item's TTL unless `refresh_ttl` is False."""
        params = {**self._owner(namespace, user_id), "path": list(path), "key": key, **query(refresh_ttl=refresh_ttl)}
        try:
            return await self._read(Item, Call("GET", _PATH, params))
        except MemoryNotFoundError:
            return None

    async def delete(self, path: Sequence[str], key: str, *, namespace: str | None = None, user_id: str | None = None) -> AckResponse:
        """Delete an item, if it exists."""
        params = {**self._owner(namespace, user_id), "path": list(path), "key": key}
        return await self._read(AckResponse, Call("DELETE", _PATH, params))

    async def search(
        self,
        prefix: Sequence[str] = (),
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool = True,
        namespace: str | None = None,
        user_id: str | None = None,
    ) -> ScoredItems:
        """Return the items under a path that match a filter.

        If there is a query, the best matches come first. Otherwise, items are sorted by path and
        key.
        """
        body = checked(SearchItems, prefix=list(prefix), query=query, filter=filter, limit=limit, offset=offset, refresh_ttl=refresh_ttl)
        call = Call("POST", f"{_PATH}/search", self._owner(namespace, user_id), json=as_body(body))
        return (await self._read(ItemSearchResults, call)).items

    async def list_namespaces(
        self,
        *,
        prefix: Sequence[str] | None = None,
        suffix: Sequence[str] | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
        namespace: str | None = None,
        user_id: str | None = None,
    ) -> PathList:
        """Return a sorted list of the namespace paths that contain items. `*` matches any label."""
        ends: tuple[tuple[Literal["prefix", "suffix"], Sequence[str] | None], ...] = (("prefix", prefix), ("suffix", suffix))
        conditions = [checked(PathCondition, match_type=end, path=list(path)) for end, path in ends if path]
        body = checked(ListItemPaths, match_conditions=conditions, max_depth=max_depth, limit=limit, offset=offset)
        call = Call("POST", f"{_PATH}/namespaces", self._owner(namespace, user_id), json=as_body(body))
        return (await self._read(ItemPaths, call)).namespaces

    async def batch(self, operations: Sequence[ItemOperation], *, namespace: str | None = None, user_id: str | None = None) -> ItemResults:
        """Run multiple operations in one request.

        Reads return values from before the batch. Writes are applied atomically.
        """
        body = checked(ItemBatch, operations=list(operations))
        call = Call("POST", f"{_PATH}/batch", self._owner(namespace, user_id), json=as_body(body))
        return (await self._read(ItemBatchResults, call)).results

    def _owner(self, namespace: str | None, user_id: str | None) -> dict[str, Any]:
        return query(**self._scope(namespace, user_id))
