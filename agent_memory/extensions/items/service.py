"""Put, get, delete, search and list items."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.extensions.items.filters import check_filter, matches_filter, select_paths
from agent_memory.extensions.items.search import ItemSearch, scored_item
from agent_memory.extensions.items.store import ItemOwner, ItemStore, StoredItem, items_read
from agent_memory.foundation.api.dependencies import OwnerParameters
from agent_memory.foundation.api.principals import place_of, writing
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory_client.models import DeleteItem, GetItem, Item, ItemOperation, ItemResult, ListItemPaths, PutItem, ScoredItem, SearchItems

MOST_READ = 100_000
"""A batch starts no more searches after this many items and paths (about a second)."""
# Comparing a path with a condition takes as much time as processing this many characters of text.
_PATH_CHARS = 4


class ItemService:
    def __init__(self, store: ItemStore, search: ItemSearch) -> None:
        self._store = store
        self._search = search

    async def get_item(self, scope: Scope, owner: ItemOwner, request: GetItem) -> Item | None:
        stored = await self._store.load_item(scope, owner, request.path, request.key)
        if stored is None:
            return None
        if request.refresh_ttl:
            await self._store.refresh_items(scope, owner, [stored])
        return stored.item

    async def search_items(self, scope: Scope, owner: ItemOwner, request: SearchItems) -> list[ScoredItem]:
        """Return the matching items, ranked if there is a query. Raises BadInput or Forbidden."""
        check_filter(request.filter or {})
        query = (request.query or "").strip()
        if request.limit == 0:
            return []
        if query:
            ranked = await self._search.rank(scope, owner, request, query)
        else:
            ranked = [(item, None) for item in await self._list(scope, owner, request)]
        if request.refresh_ttl:
            await self._store.refresh_items(scope, owner, [item for item, _ in ranked])
        return [scored_item(item, score) for item, score in ranked]

    async def _list(self, scope: Scope, owner: ItemOwner, request: SearchItems) -> list[StoredItem]:
        if not request.filter:
            return await self._store.list_items(scope, owner, request.prefix, request.offset, request.limit)
        matches: list[StoredItem] = []
        async for item in self._store.scan_items(scope, owner, request.prefix):
            if matches_filter(item.item.value, request.filter):
                matches.append(item)
                if len(matches) == request.offset + request.limit:
                    break
        return matches[request.offset :]

    async def list_paths(self, scope: Scope, owner: ItemOwner, request: ListItemPaths) -> list[list[str]]:
        """Return a sorted page of matching paths. Raises Forbidden."""
        stored = await self._store.list_paths(scope, owner)
        work = len(stored) * (1 + len(request.match_conditions)) * _PATH_CHARS
        paths = await run_in_thread(lambda: select_paths(stored, request.match_conditions, request.max_depth), work)
        return [list(path) for path in paths[request.offset : request.offset + request.limit]]

    async def write_items(self, scope: Scope, owner: ItemOwner, changes: Sequence[PutItem | DeleteItem]) -> None:
        """Put and delete items atomically. The last change to a key wins. Raises Forbidden."""
        await self._store.write_items(writing(scope), owner, changes)

    async def run_batch(self, scope: Scope, owner: ItemOwner, operations: Sequence[ItemOperation]) -> list[ItemResult]:
        """Run a batch of operations and return one result for each.

        Reads see the state before the batch. The last write to a key wins. Raises Forbidden if a
        read-only caller writes. Raises BadInput for a search once the batch has read MOST_READ
        items and paths.
        """
        changes = [operation for operation in operations if isinstance(operation, PutItem | DeleteItem)]
        if changes:
            writing(scope)
        results: list[ItemResult] = []
        counts: list[int] = []
        token = items_read.set(counts)
        try:
            for position, operation in enumerate(operations):
                if sum(counts) >= MOST_READ and isinstance(operation, SearchItems | ListItemPaths):
                    problem = f"the batch has searched {sum(counts)} items and paths"
                    message = f"{problem}: send this operation and the ones after it in another batch"
                    raise BadInput(message, field=f"operations.{position}")
                results.append(await self._answer(scope, owner, operation))
        finally:
            items_read.reset(token)
        if changes:
            await self._store.write_items(scope, owner, changes)
        return results

    async def _answer(self, scope: Scope, owner: ItemOwner, operation: ItemOperation) -> ItemResult:
        if isinstance(operation, GetItem):
            return ItemResult.model_construct(item=await self.get_item(scope, owner, operation))
        if isinstance(operation, SearchItems):
            return ItemResult.model_construct(items=await self.search_items(scope, owner, operation))
        if isinstance(operation, ListItemPaths):
            return ItemResult.model_construct(namespaces=await self.list_paths(scope, owner, operation))
        return ItemResult()


def owner_of(scope: Scope, names: OwnerParameters | ItemOwner) -> ItemOwner:
    """Return the owner. The caller's scope supplies missing names. Raises Forbidden."""
    return ItemOwner(*place_of(scope, names.namespace, names.user_id))
