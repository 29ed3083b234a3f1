"""Code shared by the compatible APIs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, ClassVar, cast

from pydantic import ValidationError

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.foundation.api.principals import within_namespace, writing
from agent_memory.foundation.core.errors import BadInput, NotSupported
from agent_memory.foundation.core.input.bounds import check_values
from agent_memory.foundation.core.scope import Scope
from agent_memory.runtime import Runtime
from agent_memory_client._wire.problems import plain_problems
from agent_memory_client.models import MemoryRecordResult, MemoryRecordResultsResponse, SearchRequest

MAX_PAGE = 100
_MOST_PAGES = 5_000
_MOST_OBJECTS = 1_000


class CompatService:
    """Another product's API for one caller, in one namespace.

    Raises Forbidden if the caller cannot access the namespace.
    """

    product: ClassVar[str]

    def __init__(self, runtime: Runtime, scope: Scope) -> None:
        self._runtime = runtime
        self._services = runtime.services
        self._namespace = runtime.settings.compat.namespace_of(self.product)
        self._scope = within_namespace(scope, self._namespace)

    async def _search(self, **values: Any) -> MemoryRecordResultsResponse:
        body = SearchRequest.model_validate({"namespace": {"eq": self._namespace}, **values})
        return await self._services[SearchService].search(self._scope, body)

    async def _pages(self, most: int, **values: Any) -> AsyncGenerator[Sequence[MemoryRecordResult]]:
        """Yield pages with at most `most` hits in total."""
        for offset in range(0, most, MAX_PAGE):
            page = await self._search(**{**values, "limit": MAX_PAGE, "offset": offset})
            yield page.memories
            if page.next_offset is None:
                break

    async def _delete_matching(self, **values: Any) -> int:
        """Delete all matching memories, including superseded ones. Return the number deleted."""
        deleted = 0
        for _ in range(_MOST_PAGES):
            ids = [hit.id for hit in (await self._search(**values, history=True, limit=MAX_PAGE)).memories]
            if not ids:
                break
            await self._services[MemoryService].delete(writing(self._scope), ids)
            deleted += len(ids)
        return deleted


def similarity_of(hit: MemoryRecordResult) -> float:
    """Return a hit's similarity (0 to 1), or 0 for a keyword-only match."""
    similarity = None if hit.explanation is None else hit.explanation.similarity
    return round(min(max(similarity or 0.0, 0.0), 1.0), 6)


def bad_input(error: ValidationError, field: str | None = None) -> BadInput:
    """Return a BadInput that describes the first validation error."""
    problem = plain_problems(error)[0]
    # For a union, pydantic adds the alternative's type, such as `list[str]`.
    names = [name for name in map(str, problem["loc"]) if "[" not in name]
    return BadInput(problem["msg"], field=field or ".".join(names) or "body")


def refuse_unknown(names: Iterable[object], allowed_names: Iterable[object], prefix: str) -> None:
    """Raise NotSupported for a name that is not in `allowed_names`.

    The error message starts with `prefix`.
    """
    if unknown := set(names).difference(allowed_names):
        raise NotSupported(prefix + min(map(str, unknown)))


def check_filter_size(filters: object) -> None:
    """Raise BadInput if the filters contain too many objects."""
    if isinstance(filters, str):
        check_values(filters.encode(), field="filters")
        return
    left: list[Any] = [filters]
    objects = 0
    while left:
        node = left.pop()
        if isinstance(node, dict):
            objects += 1
            left.extend(cast("dict[str, Any]", node).values())
        elif isinstance(node, list):
            left.extend(cast("list[Any]", node))
        if objects > _MOST_OBJECTS:
            raise BadInput("must have at most 8 levels and 64 conditions: simplify it", field="filters")
