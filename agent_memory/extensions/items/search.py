"""Search items by meaning and keyword."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from redisvl.query import FilterQuery, VectorQuery
from redisvl.query.filter import Tag

from agent_memory.extensions.items.filters import matches_filter
from agent_memory.extensions.items.search_index import item_index_name
from agent_memory.extensions.items.store import ItemOwner, ItemStore, StoredItem, owner_digest, path_tag
from agent_memory.extensions.items.texts import item_text
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.foundation.core.errors import BudgetSpent, ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.base import TextRole
from agent_memory.foundation.llm.profiles import raised
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search.indexes import VectorSpec
from agent_memory.foundation.storage.search.list_replies import SearchReader
from agent_memory.foundation.storage.search.queries import WITH_SORT_KEYS, name_query, queue_search
from agent_memory.foundation.storage.search.results import parse_hits
from agent_memory.foundation.storage.search.syntax import all_of, negated, scoring
from agent_memory.foundation.text.terms import query_terms
from agent_memory_client.models import ScoredItem, SearchItems

log = get_logger(__name__)

_LEAST_CANDIDATES = 100
_MOST_PENDING = 1_000
# A search embeds at most this many new items. A worker embeds the others soon.
_MOST_NEW = 16

Vector = NDArray[np.float32]


class ItemSearch:
    def __init__(
        self, store: ItemStore, settings: Settings, keys: Keys, spec: VectorSpec, reader: SearchReader, models: TenantModels
    ) -> None:
        self._store = store
        self._query_characters = settings.limits.query_bytes
        self._index = item_index_name(keys, spec)
        self._spec = spec
        self._reader = reader
        self._models = models
        # If embedding the query takes longer than this, the search uses only keywords.
        self._timeout = settings.models.query_embedding_timeout_seconds
        # Items that are waiting for a vector from the current model. `em` names the model that made an item's vector;
        # "x" means never embed.
        self._pending = all_of(negated(Tag("em") == spec.digest), negated(Tag("em") == "x"))

    async def rank(self, scope: Scope, owner: ItemOwner, request: SearchItems, query: str) -> list[tuple[StoredItem, float | None]]:
        """Return a page of items, best first. Raises Forbidden.

        The score is similarity + (1 - similarity) * s / 2, where s is the share of query words in
        the item. If there is no vector, the score is s. Items that the search did not find come
        last and have no score.
        """
        query = query[: self._query_characters]
        vector = next(iter(await self._vectors(scope, [query], "query")), None)
        terms = query_terms(query)
        end = request.offset + request.limit
        if request.filter:
            candidates = self._matching(scope, owner, request.prefix, request.filter)
        else:
            candidates = self._candidates(scope, owner, request.prefix, vector, terms, max(_LEAST_CANDIDATES, 2 * end))
        indexed: list[StoredItem] = []
        unindexed: list[tuple[StoredItem, float | None]] = []
        async for item in candidates:
            if item.indexed:
                indexed.append(item)
            elif len(unindexed) < end:
                unindexed.append((item, None))
        if vector is not None:
            indexed = await self._with_vectors(scope, indexed)
        scored: list[tuple[StoredItem, float | None]] = [(item, _score(item, vector, terms)) for item in indexed]
        scored.sort(key=lambda entry: (-(entry[1] or 0.0), entry[0].entry))
        if len(scored) + len(unindexed) < end and not request.filter:
            unindexed += await self._rest(scope, owner, request.prefix, {item.iid for item, _ in scored}, end - len(scored))
        return [*scored, *unindexed][request.offset : end]

    async def list_unembedded(self, limit: int) -> Sequence[str]:
        """Return ids of items that need a vector, across all owners."""
        replies = await self._reader(lambda pipe: queue_search(pipe, self._index, name_query(self._pending, 0, limit)))
        return parse_hits(replies[0]).names

    async def _vectors(self, scope: Scope, texts: Sequence[str], role: TextRole) -> list[Vector]:
        try:
            return list(await self._models.embedder(scope.tenant).embed(texts, role=role, timeout=self._timeout))
        except (ModelUnavailable, ModelAnswerInvalid, BudgetSpent) as error:
            log.warning("item search uses words only", tenant=scope.tenant, error=error)
            return []

    async def _with_vectors(self, scope: Scope, items: Sequence[StoredItem]) -> list[StoredItem]:
        new = [item for item in items if item.vector is None][:_MOST_NEW]
        texts = [item_text(item.item.value, item.index) for item in new]
        vectors = await self._vectors(scope, texts, "document") if new else []
        new_vectors = {item.iid: vector for item, vector in zip(new, vectors, strict=False)}
        return [replace(item, vector=new_vectors.get(item.iid, item.vector)) for item in items] if new_vectors else list(items)

    async def _matching(
        self, scope: Scope, owner: ItemOwner, prefix: Sequence[str], conditions: Mapping[str, Any]
    ) -> AsyncGenerator[StoredItem]:
        async for item in self._store.scan_items(scope, owner, prefix, vectors=True):
            if matches_filter(item.item.value, conditions):
                yield item

    async def _candidates(
        self, scope: Scope, owner: ItemOwner, prefix: Sequence[str], vector: Vector | None, terms: Sequence[str], limit: int
    ) -> AsyncGenerator[StoredItem]:
        under = str(Tag("px") == path_tag(owner_digest(scope, owner), prefix))

        def build(pipe: Any) -> None:
            queue_search(pipe, self._index, name_query(all_of(under, self._pending), 0, _MOST_PENDING))
            if terms:
                words = FilterQuery(scoring(under, terms))
                words.no_content().scorer("BM25STD").with_scores().paging(0, limit)
                queue_search(pipe, self._index, words)
            if vector is not None:
                queue_search(pipe, self._index, self._nearest(under, vector, limit), WITH_SORT_KEYS)

        replies = await self._reader(build)
        iids = list(dict.fromkeys(name for reply in replies for name in parse_hits(reply).names))
        for item in await self._store.load_entries(scope, owner, iids, vectors=True):
            if item is not None:
                yield item

    def _nearest(self, clause: str, vector: Vector, limit: int) -> VectorQuery:
        query = VectorQuery(
            self._store.blob(vector),
            self._spec.field,
            return_fields=None,
            filter_expression=clause,
            dtype=self._spec.numpy_type,
            num_results=limit,
            return_score=False,
        )
        query.no_content()
        return query

    async def _rest(
        self, scope: Scope, owner: ItemOwner, prefix: Sequence[str], excluded_ids: Collection[str], limit: int
    ) -> list[tuple[StoredItem, float | None]]:
        rest: list[tuple[StoredItem, float | None]] = []
        async for item in self._store.scan_items(scope, owner, prefix):
            if len(rest) == limit:
                break
            if item.iid not in excluded_ids:
                rest.append((item, None))
        return rest


def _score(item: StoredItem, vector: Vector | None, terms: Sequence[str]) -> float:
    share = sum(term in item.terms for term in terms) / len(terms) if terms else 0.0
    if vector is None or item.vector is None:
        return share
    return raised(float(vector @ item.vector), share)


def scored_item(item: StoredItem, score: float | None) -> ScoredItem:
    return ScoredItem.model_construct(**dict(item.item), score=score)
