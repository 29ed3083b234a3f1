"""A LangGraph store that saves its items on the memory server.

Install it with `pip install 'agent-memory-api-client[langgraph]'`. LangMem's tools and LangGraph's
prebuilt agents can use this store. For checkpoints, use one of LangGraph's own checkpointers.
"""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from agent_memory_client._wire.requests import checked
from agent_memory_client.errors import MemoryValidationError
from agent_memory_client.integrations._shared import AnyClient, EitherClient
from agent_memory_client.models import MAX_ITEM_OPERATIONS, ItemBatch, ItemOperation, ItemResult

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        InvalidNamespaceError,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
    )
except ImportError as error:
    raise ImportError("the LangGraph store needs langgraph: pip install 'agent-memory-api-client[langgraph]'") from error

_OPERATORS = frozenset({"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"})


class AgentMemoryStore(BaseStore):
    """A `BaseStore` on the memory server. Searches support filters, meaning and keywords.

    Items are stored for `user_id` and `namespace`, so exporting or erasing the user's data includes
    them. Blocking and awaited calls work with both clients. With an asynchronous client, blocking
    calls open a second client, which `close` closes. `index` lists the fields to search (default:
    all). `ttl` is LangGraph's TTL config. Calls raise the errors in `agent_memory_client.errors`,
    InvalidNamespaceError, and ValueError for an unknown operator.
    """

    supports_ttl = True

    __slots__ = ("_access", "_index", "ttl_config")

    def __init__(
        self,
        client: AnyClient,
        *,
        user_id: str | None = None,
        namespace: str | None = None,
        index: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._access = EitherClient(client, user_id, namespace)
        self._index = None if index is None else list(index)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations. Reads return values from before the batch.

        If a key is put more than once, the last put wins.
        """
        op_list = list(ops)
        results: dict[int, ItemResult] = {}
        for positions, operations in self._parts(op_list):
            answers = self._access.blocking.items.batch(operations, **self._access.owner)
            results.update(zip(positions, answers, strict=True))
        return [_result(op, results.get(position)) for position, op in enumerate(op_list)]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        op_list = list(ops)
        results: dict[int, ItemResult] = {}
        for positions, operations in self._parts(op_list):
            answers = await self._access.awaited(lambda client, sent=operations: client.items.batch(sent, **self._access.owner))
            results.update(zip(positions, answers, strict=True))
        return [_result(op, results.get(position)) for position, op in enumerate(op_list)]

    def close(self) -> None:
        """Close the second client, if any. The original client stays open."""
        self._access.close()

    def _parts(self, ops: Sequence[Op]) -> list[tuple[list[int], list[ItemOperation]]]:
        """Return `(positions in ops, operations)` for each request, with reads before writes.

        Raises ValueError for an unknown operation or operator, and InvalidNamespaceError for an
        invalid label.
        """
        last = {(op.namespace, op.key): position for position, op in enumerate(ops) if isinstance(op, PutOp)}
        reads = [position for position, op in enumerate(ops) if not isinstance(op, PutOp)]
        order = [*reads, *sorted(last.values())]
        operations = [self._operation(ops[position]) for position in order]
        size = MAX_ITEM_OPERATIONS
        return [(order[at : at + size], operations[at : at + size]) for at in range(0, len(order), size)]

    def _operation(self, op: Op) -> ItemOperation:
        _check_labels(op)
        match op:
            case GetOp():
                values: dict[str, Any] = {"op": "get", "path": op.namespace, "key": op.key, "refresh_ttl": op.refresh_ttl}
            case PutOp() if op.value is None:
                values = {"op": "delete", "path": op.namespace, "key": op.key}
            case PutOp():
                index = self._index if op.index is None else op.index
                value = _json(op.value, "value")
                values = {"op": "put", "path": op.namespace, "key": op.key, "value": value, "index": index, "ttl_minutes": op.ttl}
            case SearchOp():
                _check_operators(op.filter)
                values = {"op": "search", **op._asdict(), "prefix": op.namespace_prefix}
            case ListNamespacesOp():
                conditions = [{"match_type": each.match_type, "path": list(each.path)} for each in op.match_conditions or ()]
                values = {"op": "list_namespaces", **op._asdict(), "match_conditions": conditions}
            case _:
                raise ValueError(f"there is no operation {type(op).__name__}")
        return _request(values)


def _request(values: dict[str, Any]) -> ItemOperation:
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return checked(ItemBatch, operations=[plain]).operations[0]


def _json(value: Any, name: str) -> Any:
    """Convert a value to JSON, with tuples as lists.

    Raises MemoryValidationError for NaN and infinity.
    """
    if isinstance(value, Mapping):
        return {key: _json(item, f"{name}.{key}") for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_json(item, f"{name}.{position}") for position, item in enumerate(cast("Sequence[Any]", value))]
    if isinstance(value, float) and not math.isfinite(value):
        raise MemoryValidationError(f"{name}: JSON has no {value}: store null or a text instead")
    return value


def _check_operators(filters: Mapping[str, Any] | None) -> None:
    """Raise ValueError for an unknown operator, like LangGraph's own stores."""
    for condition in (filters or {}).values():
        words = cast("Mapping[Any, Any]", condition) if isinstance(condition, Mapping) else {}
        unknown = {str(word) for word in words if str(word).startswith("$")} - _OPERATORS
        if unknown:
            raise ValueError(f"Unsupported operator: {min(unknown)}")


def _check_labels(op: Op) -> None:
    """Raise InvalidNamespaceError for an invalid label, like LangGraph's own stores."""
    if isinstance(op, GetOp | PutOp):
        paths: list[Sequence[Any]] = [op.namespace]
    elif isinstance(op, SearchOp):
        paths = [op.namespace_prefix]
    else:
        paths = [condition.path for condition in getattr(op, "match_conditions", None) or ()]
    for label in (label for path in paths for label in path):
        if not isinstance(label, str) or not label or "." in label or "\x00" in label:
            raise InvalidNamespaceError(f"Namespace labels are strings that are not empty, without periods and NUL. Got {label!r}.")


def _result(op: Op, result: ItemResult | None) -> Result:
    if result is None or isinstance(op, PutOp):
        return None
    if isinstance(op, GetOp):
        return None if result.item is None else Item(**_fields(result.item))
    if isinstance(op, SearchOp):
        return [SearchItem(**_fields(item), score=item.score) for item in result.items or []]
    return [tuple(path) for path in result.namespaces or []]


def _fields(item: Any) -> dict[str, Any]:
    return {"namespace": tuple(item.path), **item.model_dump(include={"key", "value", "created_at", "updated_at"})}
