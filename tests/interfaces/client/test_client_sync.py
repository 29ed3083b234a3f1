"""Test that the synchronous client matches the asynchronous one and is thread-safe."""

from __future__ import annotations

import inspect
import runpy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_type_hints

import httpx
import pytest

import agent_memory_client
from agent_memory_client import (
    MemoryAPIClient,
    MemoryClient,
    MemoryClientConfig,
    SyncMemoryAPIClient,
    SyncMemoryClient,
    create_memory_client,
    create_memory_client_sync,
)
from agent_memory_client.errors import MemoryClientError, MemoryUnavailableError, MemoryValidationError
from agent_memory_client.flat_calls import FlatCalls
from agent_memory_client.resources.base import Resource
from agent_memory_client.resources.registry import FeatureResources
from agent_memory_client.transport import Transport

SCRIPT = Path(__file__).parents[3] / "client" / "scripts" / "make_sync.py"
PUBLIC = sorted(name for name in dir(MemoryClient) if not name.startswith("_"))
CONFIG = MemoryClientConfig(base_url="http://memory")


def test_generated_files_are_up_to_date() -> None:
    package = Path(agent_memory_client.__file__).parent
    made = {path: path.read_text() for path in (package / "_sync").rglob("*.py")}
    assert made == runpy.run_path(str(SCRIPT))["twins"](package)


@pytest.mark.parametrize("client", [SyncMemoryClient, SyncMemoryAPIClient, MemoryAPIClient])
def test_every_client_has_all_methods_and_properties(client: type[Any]) -> None:
    assert {"append_messages", "memory_prompt", "close"} < set(PUBLIC)
    assert [name for name in dir(client) if not name.startswith("_")] == PUBLIC
    assert [name for name in dir(client(CONFIG)) if not name.startswith("_")] == [
        name for name in dir(MemoryClient(CONFIG)) if not name.startswith("_")
    ]


def hints(function: Any) -> dict[str, str]:
    """Return the annotations as text, ignoring differences between the two clients."""
    return {name: str(hint).replace("AsyncIterator", "Iterator") for name, hint in get_type_hints(function).items()}


@pytest.mark.parametrize("name", PUBLIC)
def test_sync_and_async_signatures_match(name: str) -> None:
    ours, theirs = getattr(SyncMemoryClient, name), getattr(MemoryClient, name)
    assert not inspect.iscoroutinefunction(ours)
    assert not inspect.isasyncgenfunction(ours)
    shapes = [[(p.name, p.kind, p.default) for p in inspect.signature(method).parameters.values()] for method in (ours, theirs)]
    assert shapes[0] == shapes[1]
    assert hints(ours) == hints(theirs)
    assert ours.__doc__ is not None


PLAIN = MemoryClient(CONFIG)
NOUNS = sorted(name for name, value in vars(PLAIN).items() if isinstance(value, Resource))


@pytest.mark.parametrize("noun", NOUNS)
def test_sync_and_async_resources_have_the_same_methods(noun: str) -> None:
    resources = [getattr(client(CONFIG), noun) for client in (SyncMemoryClient, MemoryClient)]
    ours, theirs = ({name: getattr(resource, name) for name in dir(resource) if not name.startswith("_")} for resource in resources)
    assert ours.keys() == theirs.keys()
    for name, method in ours.items():
        assert inspect.signature(method).parameters == inspect.signature(theirs[name]).parameters
        assert hints(method) == hints(theirs[name])
        assert method.__doc__ == theirs[name].__doc__
        assert not inspect.iscoroutinefunction(method)


def test_every_archived_client_method_is_a_resource_method() -> None:
    flat = {name for name in vars(FlatCalls) if not name.startswith("_")}
    of_features = vars(FeatureResources(Transport(PLAIN.config), PLAIN.config))
    calls = {name for noun in NOUNS if noun not in of_features for name in dir(getattr(PLAIN, noun)) if not name.startswith("_")}
    delegated = {getattr(FlatCalls, name).__name__ for name in flat} - {"get_summary_view", "get_task"}
    assert delegated - calls <= {"validate_memory_record", "validate_search_filters"}
    assert calls - delegated == {"get_task", "load", "change_messages", "pop_message", "schemas", "validate", "validate_search"}


def test_sync_and_async_factories_match() -> None:
    assert inspect.signature(create_memory_client_sync).parameters == inspect.signature(create_memory_client).parameters
    with pytest.raises(MemoryClientError, match="no memory server answers at"):
        create_memory_client_sync("http://127.0.0.1:1", timeout=5, max_retries=0)


def test_safe_requests_are_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int | Exception] = [503, httpx.ReadError("cut"), 200]
    waits: list[float] = []

    def serve(request: httpx.Request) -> httpx.Response:
        step = steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return httpx.Response(step, json={"status": "ok", "now": 1})

    config = MemoryClientConfig(base_url="http://memory")
    with SyncMemoryAPIClient(config, transport=httpx.MockTransport(serve)) as client:
        monkeypatch.setattr(client.server._transport, "_sleep", waits.append)  # pyright: ignore[reportPrivateUsage]
        assert client.health_check().now == 1
        assert len(waits) == 2
        steps[:] = [503] * 3
        with pytest.raises(MemoryUnavailableError):
            client.health_check()
        with pytest.raises(MemoryValidationError):
            client.get_working_memory("")


def test_closed_client_raises_on_use() -> None:
    client = SyncMemoryAPIClient(MemoryClientConfig(base_url="http://memory"))
    client.close()
    with pytest.raises(MemoryClientError, match="closed"):
        client.health_check()


async def test_closed_async_client_raises_on_use() -> None:
    client = MemoryAPIClient(MemoryClientConfig(base_url="http://memory"))
    await client.close()
    with pytest.raises(MemoryClientError, match="closed"):
        await client.health_check()


def test_threads_share_one_client() -> None:
    def serve(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"sessions": [request.url.params["user_id"]], "total": 1})

    config = MemoryClientConfig(base_url="http://memory")
    with SyncMemoryAPIClient(config, transport=httpx.MockTransport(serve)) as client, ThreadPoolExecutor(8) as threads:

        def sessions_of(number: int) -> list[str]:
            return client.list_sessions(user_id=f"u{number}").sessions

        answers = list(threads.map(sessions_of, range(200)))
    assert answers == [[f"u{number}"] for number in range(200)]
