"""Test that a client works in multiple event loops and tolerates lost responses."""

from __future__ import annotations

import asyncio
import gc
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory_client import MemoryClient, MemoryClientConfig
from agent_memory_client.errors import MemoryValidationError


class LosesAnswers(httpx.AsyncBaseTransport):
    """A transport that drops the first response to each write."""

    def __init__(self) -> None:
        self._inner = httpx.AsyncHTTPTransport()
        self._seen: set[tuple[str, bytes]] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        sent = (str(request.url), request.content)
        if request.method != "GET" and sent not in self._seen:
            self._seen.add(sent)
            await response.aread()
            await response.aclose()
            raise httpx.ReadError("the answer is lost", request=request)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


@pytest.fixture
async def user(server: str) -> tuple[MemoryClientConfig, str]:
    return MemoryClientConfig(base_url=server, default_namespace=f"loops-{ULID()}"), f"ada-{ULID()}"


async def in_a_thread(call: Any) -> Any:
    """Run `call` in a thread that has no event loop."""
    return await asyncio.to_thread(call)


async def stored(config: MemoryClientConfig, user_id: str) -> list[str]:
    async with MemoryClient(config) as client:
        found = await client.memories.search("", user_id={"eq": user_id}, limit=100)
        return sorted(memory.text for memory in found.memories)


async def test_client_works_in_consecutive_event_loops(user: tuple[MemoryClientConfig, str]) -> None:
    config, user_id = user
    client = MemoryClient(config)

    def program() -> None:
        for number in range(4):
            asyncio.run(client.append_messages("s", [{"role": "user", "content": str(number)}], user_id=user_id))
            asyncio.run(client.memories.create([{"text": f"Fact {number}", "user_id": user_id}]))
        asyncio.run(client.close())

    # Exclude connections of former tests and of the server in this process.
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a connection that remains open
        warnings.filterwarnings("ignore", "unclosed (Connection <redis|<StreamWriter)", ResourceWarning)
        await in_a_thread(program)
        gc.collect()
    async with MemoryClient(config) as reader:
        session = await reader.sessions.get("s", user_id)
    assert [message.content for message in session.messages] == ["0", "1", "2", "3"]
    facts = [text for text in await stored(config, user_id) if text.startswith("Fact")]
    assert facts == ["Fact 0", "Fact 1", "Fact 2", "Fact 3"]


async def test_client_works_in_concurrent_loops_and_after_an_early_closed_loop(
    user: tuple[MemoryClientConfig, str],
) -> None:
    config, user_id = user
    client = MemoryClient(config)

    async def some(part: int) -> None:
        for number in range(5):
            await client.memories.create([{"text": f"Fact {part}{number}", "user_id": user_id}])

    def closed_early() -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(some(9))
        loop.close()

    def program() -> None:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda part: asyncio.run(some(part)), range(4)))
        closed_early()
        asyncio.run(some(4))

    await in_a_thread(program)
    await some(5)
    await client.close()
    assert len(await stored(config, user_id)) == 7 * 5


async def test_lost_response_stores_nothing_twice(user: tuple[MemoryClientConfig, str]) -> None:
    config, user_id = user
    client = MemoryClient(config, transport=LosesAnswers())

    def program() -> None:
        for number in range(2):
            asyncio.run(client.memories.create([{"text": f"Fact {number}", "user_id": user_id}]))
            asyncio.run(client.sessions.append("s", [{"role": "user", "content": f"word {number}"}], user_id=user_id))
        asyncio.run(client.tools.resolve_function_call("archival_memory_insert", {"content": "A note"}, "s", user_id=user_id))
        asyncio.run(client.procedures.create({"when_to_use": "The tap drips", "steps": ["close it"], "user_id": user_id}))

    await in_a_thread(program)
    async with MemoryClient(config) as reader:
        assert [message.content for message in (await reader.sessions.get("s", user_id)).messages] == ["word 0", "word 1"]
        assert len((await reader.procedures.list(user_id)).procedures) == 1
    texts = [text for text in await stored(config, user_id) if not text.startswith("word")]
    assert texts == ["A note", "Fact 0", "Fact 1"]


async def test_client_accepts_memories_as_dicts(user: tuple[MemoryClientConfig, str]) -> None:
    config, user_id = user
    async with MemoryClient(config) as client:
        await client.memories.create([{"text": "Ada likes tea", "user_id": user_id, "id": None, "topics": ["food"]}])
        await client.memories.create_batches([[{"text": "Ada likes pears", "user_id": user_id}]])
        await client.sessions.put("s", {"memories": [{"id": "m", "text": "Ada likes figs"}], "user_id": user_id})
        session = await client.sessions.add_memories("s", [{"text": "Ada likes rye"}], user_id=user_id)
        assert [memory.text for memory in session.memories] == ["Ada likes figs", "Ada likes rye"]
        for bad, said in (({"text": ""}, "text"), ({"texts": "x"}, "no field texts"), ({"text": "x", "userid": "ada"}, "no field userid")):
            with pytest.raises(MemoryValidationError, match=said):
                await client.memories.create([bad])
        no_lists: list[Any] = ["Ada likes tea", {"text": "Ada likes tea"}, [None], [5]]
        for no_list in no_lists:
            with pytest.raises(MemoryValidationError, match="give a list of mappings"):
                await client.memories.create(no_list)
        with pytest.raises(MemoryValidationError, match="messages"):
            await client.sessions.put("s", {"messages": "none"})
        with pytest.raises(MemoryValidationError, match="situation"):
            await client.procedures.search("")
    assert {"Ada likes tea", "Ada likes pears"} <= set(await stored(config, user_id))
