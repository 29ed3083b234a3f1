"""Present `procedural` memories as `semantic` to clients of the archived server.

A response shows the real type if the request contains `procedural`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Header

from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory_client.models import (
    MEMORY_TYPES_HEADER,
    Condition,
    MemoryPromptRequest,
    MemoryRecord,
    MemoryType,
    MemoryTypeEnum,
    SearchRequest,
    WorkingMemoryResponse,
)

Filtered = TypeVar("Filtered", SearchRequest, Condition)

_PROCEDURAL, _SEMANTIC = MemoryTypeEnum.PROCEDURAL, MemoryTypeEnum.SEMANTIC

MemoryTypesHeader = Annotated[
    str | None,
    Header(
        alias=MEMORY_TYPES_HEADER,
        max_length=256,
        description="`procedural` if the caller supports memories of this type. Otherwise, they are shown as `semantic`.",
    ),
]


def knows_procedural(header: str | None) -> bool:
    """True if the header's comma-separated list contains `procedural`."""
    return header is not None and any(word.strip().lower() == _PROCEDURAL for word in header.split(","))


def names_procedural(types: Iterable[MemoryTypeEnum | None]) -> bool:
    return _PROCEDURAL in types


def search_as_shown(request: SearchRequest, header: str | None) -> tuple[SearchRequest, bool]:
    """Return the search, and whether its results may show the type `procedural`.

    If they may not, `semantic` matches both types.
    """
    if knows_procedural(header) or any(map(_named, _type_filters(request))):
        return request, True
    return _widened_filters(request), False


def prompt_as_shown(request: MemoryPromptRequest, header: str | None) -> tuple[MemoryPromptRequest, bool]:
    """Apply `search_as_shown` to the search in a prompt request."""
    if not isinstance(request.long_term_search, SearchRequest):
        return request, knows_procedural(header)
    search, shows = search_as_shown(request.long_term_search, header)
    return request.model_copy(update={"long_term_search": search}), shows


def show_types(memories: Iterable[ShownMemory], *, shows: bool) -> None:
    """Change the type `procedural` to `semantic`, unless `shows` is True."""
    if not shows:
        for card in memories:
            if card.memory_type == _PROCEDURAL:
                card.values["memory_type"] = _SEMANTIC.value


def record_as_shown(record: MemoryRecord, *, shows: bool) -> MemoryRecord:
    if shows or record.memory_type is not _PROCEDURAL:
        return record
    return record.model_copy(update={"memory_type": _SEMANTIC})


def session_as_shown(session: WorkingMemoryResponse, *, shows: bool) -> WorkingMemoryResponse:
    """Apply `record_as_shown` to the memories in a session."""
    if shows or not names_procedural(memory.memory_type for memory in session.memories):
        return session
    return session.model_copy(update={"memories": [record_as_shown(memory, shows=False) for memory in session.memories]})


def _type_filters(request: SearchRequest | Condition) -> Iterator[MemoryType]:
    if request.memory_type is not None:
        yield request.memory_type
    for condition in _conditions(request):
        yield from _type_filters(condition)


def _conditions(request: SearchRequest | Condition) -> list[Condition]:
    if isinstance(request, SearchRequest):
        return [] if request.filter is None else [request.filter]
    return [*(request.and_ or ()), *(request.or_ or ()), *([] if request.not_ is None else [request.not_])]


def _named(type_filter: MemoryType) -> bool:
    conditions = type_filter.conditions()
    return _PROCEDURAL in conditions.excluded or any(_PROCEDURAL in group for group in conditions.required)


def _widened(type_filter: MemoryType) -> MemoryType:
    conditions = type_filter.conditions()
    excluded = _with_procedural(conditions.excluded)
    if not conditions.required:
        return MemoryType(not_in=_sorted(excluded))
    allowed = set[MemoryTypeEnum].intersection(*map(_with_procedural, conditions.required)) - excluded
    if not allowed:
        return MemoryType(any=[_SEMANTIC], not_in=[_SEMANTIC])
    return MemoryType(any=_sorted(allowed))


def _with_procedural(types: Sequence[str]) -> set[MemoryTypeEnum]:
    type_set = set(map(MemoryTypeEnum, types))
    return type_set | {_PROCEDURAL} if _SEMANTIC in type_set else type_set


def _sorted(types: set[MemoryTypeEnum]) -> list[MemoryTypeEnum]:
    return sorted(types)


def _widened_filters(request: Filtered) -> Filtered:
    update: dict[str, Any] = {}
    if request.memory_type is not None:
        update["memory_type"] = _widened(request.memory_type)
    for name in ("filter", "and_", "or_", "not_"):
        if inner := getattr(request, name, None):
            update[name] = [*map(_widened_filters, inner)] if isinstance(inner, list) else _widened_filters(inner)
    return request.model_copy(update=update) if update else request
