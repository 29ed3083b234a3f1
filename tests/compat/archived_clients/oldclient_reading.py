"""Call every read method of an archived Python client on a prepared namespace.

The client's environment runs
`python -I oldclient_reading.py BASE_URL NAMESPACE IDS PARTS [FOLDER]`. IDS is a JSON list of memory
ids. PARTS are files with the `METHODS` of a feature. FOLDER contains another version of the client.
The program prints a JSON report of results and errors.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import runpy
import sys
import traceback
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, (sys.argv[5:] or sys.path)[0])

from oldclient_watch import Watch, talking

import agent_memory_client as package
from agent_memory_client import MemoryClientConfig, MemoryNotFoundError

Client = Any
Seen = dict[str, str]
"""The types of the memories that a method returned, by id, or by text if the method returns no id."""
READS = ("get_", "list_", "search_", "hydrate_", "memory_prompt", "health_check", "resolve_")
QUERY = "What do we know about the bees?"
warnings.simplefilter("ignore", DeprecationWarning)


def shown(memories: Any) -> Seen:
    """Return the ids (or texts) and types of memories, given as models or dictionaries."""
    found: Seen = {}
    for memory in memories:
        values = memory if isinstance(memory, dict) else memory.model_dump(mode="json")
        found[str(values.get("id") or values["text"])] = str(getattr(values["memory_type"], "value", values["memory_type"]))
    return found


async def sessions(client: Client) -> list[str]:
    return list((await client.list_sessions(limit=100)).sessions)


async def session_memories(client: Client) -> Seen:
    found: Seen = {}
    assert "chat" in await sessions(client)
    for name in await sessions(client):
        session = await client.get_working_memory(name, user_id="ada")
        found |= shown(session.memories)
        assert all(isinstance(message["content"] if isinstance(message, dict) else message.content, str) for message in session.messages)
    return found


async def of_sessions(client: Client) -> Seen:
    found: Seen = {}
    for name in await sessions(client):
        created, session = await client.get_or_create_working_memory(name, user_id="ada")
        assert not created, name
        found |= shown(session.memories)
    return found


async def by_id(client: Client) -> Seen:
    found: Seen = {}
    for name in json.loads(sys.argv[3]):
        try:
            found |= shown([await client.get_long_term_memory(name)])
        except MemoryNotFoundError:
            found[name] = "not found"
    return found


async def searched(client: Client) -> Seen:
    answers = [await client.search_long_term_memory(QUERY, limit=100), await client.search_long_term_memory("", limit=100)]
    narrowed = await client.search_long_term_memory(QUERY, memory_type={"eq": "semantic"}, limit=100)
    assert {memory.memory_type for memory in narrowed.memories} == {"semantic"}
    return {name: kind for answer in answers for name, kind in shown(answer.memories).items()}


async def paged(client: Client) -> Seen:
    return shown([memory async for memory in client.search_all_long_term_memories(QUERY, batch_size=3)])


async def tool(client: Client) -> Seen:
    return shown((await client.search_memory_tool(QUERY, max_results=50))["memories"])


async def prompted(client: Client) -> Seen:
    search = {"namespace": {"eq": client.config.default_namespace}, "limit": 100}
    found: Seen = {}
    for name in await sessions(client):
        answer = await client.memory_prompt(QUERY, session_id=name, user_id="ada", context_window_max=4000, long_term_search=search)
        assert answer["messages"][-1]["content"]["text"] == QUERY
        assert all(isinstance(message["content"]["text"], str) for message in answer["messages"])
        found |= shown(answer["long_term_memories"])
    return found


async def hydrated(client: Client) -> Seen:
    return shown((await client.hydrate_memory_prompt(QUERY, limit=100))["long_term_memories"])


async def as_tool(client: Client) -> Seen:
    for name in await sessions(client):
        answer = await client.get_working_memory_tool(name, user_id="ada")
        assert answer.get("session_id") == name, answer
    return {}


async def as_tool_made(client: Client) -> Seen:
    for name in await sessions(client):
        assert (await client.get_or_create_working_memory_tool(name, user_id="ada"))["created"] is False
    return {}


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def resolved(answer: Any) -> Seen:
    assert answer["success"], answer
    return shown(answer["result"]["memories"])


async def call(client: Client) -> Seen:
    return resolved(await client.resolve_tool_call(_call("search_memory", query=QUERY, max_results=20), session_id="long"))


async def calls(client: Client) -> Seen:
    both = [_call("search_memory", query=QUERY), _call("search_memory", query="honey", memory_type="semantic")]
    first, second = await client.resolve_tool_calls(both, session_id="long")
    return resolved(first) | resolved(second)


async def function(client: Client) -> Seen:
    return resolved(await client.resolve_function_call("search_memory", {"query": QUERY}, session_id="long"))


async def functions(client: Client) -> Seen:
    (answer,) = await client.resolve_function_calls([{"name": "search_memory", "arguments": {"query": QUERY}}], session_id="long")
    return resolved(answer)


async def health(client: Client) -> Seen:
    assert (await client.health_check()).now > 0
    return {}


async def listed(client: Client) -> Seen:
    return dict.fromkeys(await sessions(client), "session")


METHODS: dict[str, Callable[[Client], Awaitable[Seen]]] = {
    "health_check": health,
    "list_sessions": listed,
    "get_working_memory": session_memories,
    "get_or_create_working_memory": of_sessions,
    "get_long_term_memory": by_id,
    "search_long_term_memory": searched,
    "search_all_long_term_memories": paged,
    "search_memory_tool": tool,
    "memory_prompt": prompted,
    "hydrate_memory_prompt": hydrated,
    "get_working_memory_tool": as_tool,
    "get_or_create_working_memory_tool": as_tool_made,
    "resolve_tool_call": call,
    "resolve_tool_calls": calls,
    "resolve_function_call": function,
    "resolve_function_calls": functions,
    **{name: method for part in json.loads(sys.argv[4]) for name, method in runpy.run_path(part)["METHODS"].items()},
}


async def main(base_url: str, namespace: str) -> None:
    watch, failures, seen = Watch(), dict[str, str](), dict[str, Seen]()
    client_class = watch.watched(package.MemoryAPIClient)
    reading = [name for name in talking(package.MemoryAPIClient) if name.startswith(READS)]
    async with client_class(MemoryClientConfig(base_url=base_url, timeout=30, default_namespace=namespace)) as client:
        watch.listen(client._client)
        for name in METHODS.keys() & set(reading):
            try:
                seen[name] = await METHODS[name](client)
            except Exception:  # noqa: BLE001 the report tells of it
                failures[name] = traceback.format_exc()
    report = {
        "version": importlib.metadata.version("agent-memory-client"),
        "reading": reading,
        "requests": watch.requests,
        "seen": seen,
        "failures": failures,
    }
    print(json.dumps(report))


asyncio.run(main(sys.argv[1], sys.argv[2]))
