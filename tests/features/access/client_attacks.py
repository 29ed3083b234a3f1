"""Call every method of the Python client with hostile ids, based on the parameter names."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import httpx

from agent_memory_client import MemoryAPIClient, MemoryClientError, MemoryServerError, SyncMemoryAPIClient
from agent_memory_client.models import (
    ClientMemoryRecord,
    CreateSummaryViewRequest,
    CreateTokenRequest,
    ExtractionRules,
    ForgetPolicy,
    PurgeRequest,
    WorkingMemory,
)
from tests.features.access.hostile import ANA, OWNED, Ids, bodies, exported


def _records(i: Ids) -> list[ClientMemoryRecord]:
    """Return forged memories, except in every fourth case."""
    if i.number % 4 == 0:
        return [ClientMemoryRecord(id=i.memory, text="mine", user_id=i.user, namespace=i.namespace)]
    return [ClientMemoryRecord.model_validate(one) for one in bodies(i)[0]["memories"]]


def _calls(i: Ids) -> list[dict[str, Any]]:
    """Return one call for each tool that a model can receive."""
    planted = {"text": "secret tea is planted", "memory_type": "semantic"}
    named = [i.memory, *OWNED][i.number % 4]
    calls: dict[str, dict[str, Any]] = {
        "search_memory": {"query": "secret tea", "user_id": "ana"},
        "get_or_create_working_memory": {},
        "lazily_create_long_term_memory": planted,
        "update_working_memory_data": {"data": {"changed": True}},
        "get_long_term_memory": {"memory_id": named},
        "eagerly_create_long_term_memory": {"memories": [planted | {"id": named} | ANA]},
        "edit_long_term_memory": {"memory_id": named, "text": "changed"} | (ANA if i.number % 2 else {"user_id": i.user}),
        "delete_long_term_memories": {"memory_ids": [named, "m-shared"]},
        "search_procedures": {"situation": "secret tea", "user_id": "ana", "namespace": "work"},
        "save_procedure": {"when_to_use": "secret tea", "steps": ["mine"]} | ANA,
        "forget_memory": {"ids": [named, "m-shared"], "dry_run": False},
        "get_profile": {"query": "secret tea"},
        "core_memory_append": {"label": "human", "content": "secret tea is planted"},
        "core_memory_replace": {"label": "human", "old_content": "secret", "new_content": "planted"},
        "archival_memory_insert": {"content": "secret tea is planted", "tags": ["ana"]},
        "archival_memory_search": {"query": "secret tea", "tags": ["ana"]},
        "conversation_search": {"query": "secret"},
        "conversation_search_date": {"start_date": "2026-01-01", "end_date": "2026-01-02"},
    }
    return [{"name": name, "arguments": given} for name, given in calls.items()]


def _call(i: Ids) -> dict[str, Any]:
    calls = _calls(i)
    return calls[i.number % len(calls)]


# The value for a parameter of this name.
_ARGUMENTS: dict[str, Callable[[Ids], Any]] = {
    **{name: lambda i: i.memory for name in ("memory_id", "change_id", "batch_id")},
    **{name: lambda i: "secret tea" for name in ("text", "query")},
    **{name: lambda i: {"changed": True} for name in ("data", "data_updates")},
    "session_id": lambda i: i.session,
    "user_id": lambda i: i.user,
    "namespace": lambda i: i.namespace,
    "memory_ids": lambda i: [i.memory, "m-shared"],
    "pinned_ids": lambda i: [i.memory],
    "ids": lambda i: [i.memory, "m-shared", "x1"],
    "receipt_id": lambda i: i.memory,
    "view_id": lambda i: i.made.get("view", "none"),
    "task_id": lambda i: i.made.get("task", "none"),
    "operation_id": lambda i: i.operation,
    "token_id": lambda i: i.token,
    "memories": _records,
    "memory_batches": lambda i: [_records(i)],
    "delay_between_batches": lambda i: 0.0,
    "messages": lambda i: [{"role": "user", "content": "mine", "id": i.memory}],
    "memory": lambda i: WorkingMemory.model_validate({"session_id": i.session, **i.where, **bodies(i)[i.number % 3]}),
    "memory_type": lambda i: "semantic",
    "topics": lambda i: [i.user],
    "entities": lambda i: [i.namespace],
    "updates": lambda i: {"text": "secret tea is planted"} | (ANA if i.number % 2 else {"user_id": i.user}),
    "policy": lambda i: ForgetPolicy(max_age_days=0),
    "rules": lambda i: ExtractionRules(),
    "source": lambda i: PurgeRequest(source_class=["client", "user"], session_id=i.session),
    "min_trust": lambda i: 0.0,
    "min_relevance": lambda i: 0.0,
    "import_source": lambda i: i.memory,
    "wait": lambda i: 0.0,
    "dry_run": lambda i: False,
    "group": lambda i: i.where,
    "long_term_search": lambda i: {"text": "secret tea", "namespace": {"startswith": i.namespace}, "user_id": {"eq": i.user}},
    "search": lambda i: {"text": "secret tea", "namespace": {"startswith": i.namespace}},
    "lines": lambda i: exported(i, i.user).splitlines(),
    "function_name": lambda i: _call(i)["name"],
    "function_arguments": lambda i: _call(i)["arguments"],
    "function_calls": _calls,
    "tool_call": _call,
    "tool_calls": _calls,
}
_REQUESTS: dict[str, Callable[[Ids], Any]] = {
    "create_summary_view": lambda i: CreateSummaryViewRequest(
        name="mine", source="long_term", group_by=["user_id"], filters={"namespace": i.namespace}
    ),
    "create_token": lambda i: CreateTokenRequest(tenant=i.user, users=[i.user]),
}


def methods() -> dict[str, inspect.Signature]:
    """Return the client methods that send requests, by name."""
    found: dict[str, inspect.Signature] = {}
    for name, method in inspect.getmembers(MemoryAPIClient, inspect.isfunction):
        asks = inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
        if asks and not name.startswith("_") and name != "close":
            found[name] = inspect.signature(method)
    return found


def arguments(name: str, signature: inspect.Signature, ids: Ids) -> dict[str, Any]:
    """Return the arguments for a method.

    Raises ValueError if the client's models reject an id. Raises AssertionError if a parameter has
    no value.
    """
    given: dict[str, Any] = {}
    for parameter in list(signature.parameters.values())[1:]:
        if parameter.name == "request":
            given["request"] = _REQUESTS[name](ids)
        elif parameter.name in _ARGUMENTS:
            value = _ARGUMENTS[parameter.name](ids)
            filters = parameter.name in ("session_id", "user_id", "namespace", "topics", "entities") and "dict" in str(parameter.annotation)
            given[parameter.name] = {"any" if isinstance(value, list) else "eq": value} if filters else value
        elif parameter.default is inspect.Parameter.empty and parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            raise AssertionError(f"nothing is known to give {name} as {parameter.name}")
    if name == "list_summary_view_partitions":
        del given["memory_type"]
    return given


class Bridge(httpx.BaseTransport):
    """Connects a synchronous client in a thread to an application on this event loop."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return asyncio.run_coroutine_threadsafe(self._answer(request), self._loop).result()

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._transport.handle_async_request(request)
        assert isinstance(answer.stream, httpx.AsyncByteStream)
        content = b"".join([piece async for piece in answer.stream])
        await answer.stream.aclose()
        return httpx.Response(answer.status_code, headers=answer.headers, content=content)


async def attack(client: MemoryAPIClient | SyncMemoryAPIClient, name: str, signature: inspect.Signature, ids: Ids) -> str:
    """Return everything that a call reveals: its response, or the text of its error.

    Raises AssertionError for a 5xx. Errors that the client does not define also propagate.
    """
    try:
        given = arguments(name, signature, ids)
        if isinstance(client, SyncMemoryAPIClient):
            return await asyncio.to_thread(_said, client, name, given)
        answer = getattr(client, name)(**given)
        return repr([one async for one in answer] if inspect.isasyncgen(answer) else await answer)
    except MemoryServerError as error:
        if error.status_code is None or error.status_code >= 500:
            raise AssertionError((name, ids, str(error))) from error
        return str(error)
    except (MemoryClientError, ValueError) as error:
        # Errors of the client's models quote only the attacker's own input.
        return str(error)


def _said(client: SyncMemoryAPIClient, name: str, given: dict[str, Any]) -> str:
    answer = getattr(client, name)(**given)
    return repr(list(answer) if inspect.isgenerator(answer) else answer)
