"""Memory for CrewAI agents, crews and flows."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false, reportUnknownLambdaType=false

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from agent_memory_client.integrations._shared import AnyClient, EitherClient
from agent_memory_client.models import MAX_ITEM_OPERATIONS, DeleteItem, PutItem, ScoredItem

try:
    from crewai.memory.types import MemoryMatch, MemoryRecord, ScopeInfo, compute_composite_score
    from crewai.memory.unified_memory import Memory
    from crewai.memory.utils import join_scope_paths
except ImportError as error:
    raise ImportError("the memory needs crewai: pip install 'agent-memory-api-client[crewai]'") from error

ROOT = "crewai"
"""The first label of the items' paths. The scope's parts follow it."""
_ALL = 10_000
_FILTERED = 20


class AgentMemoryStorage:
    """CrewAI's `StorageBackend`. Each record is an item, and its scope is the item's path.

    CrewAI's vectors are not stored. Use `search_text`, because `search` raises NotImplementedError.
    """

    def __init__(self, client: AnyClient, *, user_id: str | None = None, namespace: str | None = None) -> None:
        self._access = EitherClient(client, user_id, namespace)

    def save(self, records: list[MemoryRecord]) -> None:
        self._write([_put(record) for record in records])

    def search_text(
        self, query: str, scope_prefix: str | None = None, categories: Sequence[str] | None = None, limit: int = 10
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the best-matching records in a scope, each with a score from 0 to 1.

        If `categories` is given, a record must match at least one of them.
        """
        count = min(_ALL, limit * (_FILTERED if categories else 1))
        items = self._access.blocking.items.search(_path(scope_prefix), query=query, limit=count, **self._access.owner)
        scored = [(_record(item), min(1.0, max(0.0, item.score or 0.0))) for item in items]
        return [(record, score) for record, score in scored if not categories or set(categories) & set(record.categories)][:limit]

    def search(self, query_embedding: list[float], *args: Any, **filters: Any) -> list[tuple[MemoryRecord, float]]:
        raise NotImplementedError("the memory server searches by text: use AgentMemoryMemory.recall")

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete records that match all given conditions, and return how many were deleted."""

        def fits(record: MemoryRecord) -> bool:
            return (
                (not categories or bool(set(categories) & set(record.categories)))
                and (record_ids is None or record.id in record_ids)
                and (older_than is None or _utc(record.created_at) < _utc(older_than))
                and all(record.metadata.get(name) == value for name, value in (metadata_filter or {}).items())
            )

        items = [item for item in self._items(scope_prefix) if fits(_record(item))]
        self._write([DeleteItem(path=item.path, key=item.key) for item in items])
        return len(items)

    def update(self, record: MemoryRecord) -> None:
        """Replace the record with the same id, even if its scope has changed."""
        old = self._items(None, {"id": record.id})
        new = _put(record)
        self._write([*(DeleteItem(path=item.path, key=item.key) for item in old if item.path != new.path), new])

    def get_record(self, record_id: str) -> MemoryRecord | None:
        return next(map(_record, self._items(None, {"id": record_id})), None)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        records = sorted(map(_record, self._items(scope_prefix)), key=lambda record: _utc(record.created_at), reverse=True)
        return records[offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        records = self.list_records(scope, _ALL)
        return ScopeInfo(
            path=scope,
            record_count=len(records),
            categories=sorted(self.list_categories(scope)),
            oldest_record=records[-1].created_at if records else None,
            newest_record=records[0].created_at if records else None,
            child_scopes=self.list_scopes(scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes directly below `parent`."""
        path = _path(parent)
        paths = self._access.blocking.items.list_namespaces(prefix=path, max_depth=len(path) + 1, limit=_ALL // 10, **self._access.owner)
        return sorted("/" + "/".join(each[1:]) for each in paths if len(each) > len(path))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        return dict(Counter(category for item in self._items(scope_prefix) for category in _record(item).categories))

    def count(self, scope_prefix: str | None = None) -> int:
        return len(self._items(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        self.delete(scope_prefix)

    async def asave(self, records: list[MemoryRecord]) -> None:
        await asyncio.to_thread(self.save, records)

    async def asearch(self, query_embedding: list[float], *args: Any, **filters: Any) -> list[tuple[MemoryRecord, float]]:
        return self.search(query_embedding, *args, **filters)

    async def adelete(self, *args: Any, **filters: Any) -> int:
        return await asyncio.to_thread(self.delete, *args, **filters)

    def _items(self, scope: str | None, filter: dict[str, Any] | None = None) -> list[ScoredItem]:
        return self._access.blocking.items.search(_path(scope), filter=filter, limit=_ALL, **self._access.owner)

    def _write(self, operations: Sequence[PutItem | DeleteItem]) -> None:
        for start in range(0, len(operations), MAX_ITEM_OPERATIONS):
            self._access.blocking.items.batch(operations[start : start + MAX_ITEM_OPERATIONS], **self._access.owner)


class AgentMemoryMemory(Memory):
    """CrewAI's `Memory`: `Agent(…, memory=AgentMemoryMemory(client, user_id="ada"))`.

    `remember` stores records as given, and does not ask a model for a scope or categories. `recall`
    searches by meaning and keywords, and ranks results the way CrewAI does. `depth` is ignored.
    After an error, an agent continues without memories.
    """

    def __init__(self, client: AnyClient, *, user_id: str | None = None, namespace: str | None = None, **fields: Any) -> None:
        super().__init__(**fields, storage=AgentMemoryStorage(client, user_id=user_id, namespace=namespace))

    def remember(
        self,
        content: str,
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        agent_role: str | None = None,
        root_scope: str | None = None,
    ) -> MemoryRecord | None:
        """Store text and return its record, or None if this memory is read-only."""
        values: dict[str, Any] = {"metadata": metadata, "importance": importance, "source": source, "private": private}
        records = self.remember_many([content], scope, categories, agent_role=agent_role, root_scope=root_scope, **values)
        return records[0] if records else None

    def remember_many(
        self,
        contents: list[str],
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        agent_role: str | None = None,
        root_scope: str | None = None,
    ) -> list[MemoryRecord]:
        """Store each text and return the records, or [] if this memory is read-only."""
        if self.read_only:
            return []
        values: dict[str, Any] = {"categories": categories or [], "metadata": metadata or {}, "source": source, "private": private}
        root = self.root_scope if root_scope is None else root_scope
        place = join_scope_paths(root, scope) if root else scope or "/"
        weight = self.default_importance if importance is None else importance
        records = [MemoryRecord(content=content, scope=place, importance=weight, **values) for content in contents]
        self._storage.save(records)
        return records

    def recall(
        self,
        query: str,
        scope: str | None = None,
        categories: list[str] | None = None,
        limit: int = 10,
        depth: Literal["shallow", "deep"] = "deep",
        source: str | None = None,
        include_private: bool = False,
    ) -> list[MemoryMatch]:
        """Return matching records, ranked by similarity, age and importance.

        Other sources' private records are returned only if `include_private` is True.
        """
        place = join_scope_paths(self.root_scope, scope) if self.root_scope else scope
        scored = self._storage.search_text(query, place, categories, limit * 2) if query.strip() else []
        matches: list[MemoryMatch] = []
        for record, similarity in scored:
            if include_private or not record.private or (source is not None and record.source == source):
                score, reasons = compute_composite_score(record, similarity, self._config)
                matches.append(MemoryMatch(record=record, score=score, match_reasons=reasons))
        return sorted(matches, key=lambda match: match.score, reverse=True)[:limit]

    def update(
        self,
        record_id: str,
        content: str | None = None,
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
    ) -> MemoryRecord:
        """Update the given fields of a record. None leaves a field unchanged.

        Raises ValueError for an unknown record.
        """
        record = self._storage.get_record(record_id)
        if record is None:
            raise ValueError(f"Record not found: {record_id}")
        if self.read_only:
            return record
        values = {"content": content, "scope": scope, "categories": categories, "metadata": metadata, "importance": importance}
        updated = record.model_copy(update={name: value for name, value in values.items() if value is not None})
        self._storage.update(updated)
        return updated


def _path(scope: str | None) -> list[str]:
    return [ROOT, *(part for part in (scope or "").split("/") if part)]


def _put(record: MemoryRecord) -> PutItem:
    return PutItem(path=_path(record.scope), key=record.id, value=record.model_dump(mode="json"), index=["content", "categories[*]"])


def _record(item: ScoredItem) -> MemoryRecord:
    return MemoryRecord.model_validate(item.value)


def _utc(at: datetime) -> datetime:
    # CrewAI's times are naive UTC.
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
