"""Test that hostile texts in any field of the APIs and tools do not delay other requests.

The tests find all fields, tools and routes in the application. They measure CPU time per event
loop turn, which does not depend on how busy the machine is.
"""

from __future__ import annotations

import importlib
import os
import random
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from pydantic import BaseModel
from starlette.routing import Route

from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.core.task_kinds import TaskName
from agent_memory.interfaces.http.app import create_app
from agent_memory_client.models import filters
from agent_memory_client.models.conditions import MetadataFilter
from tests.support.api import Recorded
from tests.support.hostile_texts import PARTS, hostile_text
from tests.support.lookalike import Lookalike
from tests.support.stalls.text_fields import SchemaWalk, TextField
from tests.support.stalls.watched import Watched, watched_server

# The sizes tried for a field; its own maximum is the largest.
_SIZES = (2_000_000, 64_000, 20_000, 8_000, 4_000, 2_000, 1_000, 500, 200, 60)
_OFTEN = 64_000
_LARGE_KINDS = ("sentences", "ligatures", "different words")
_LONGEST_QUERY = 8_000
_FEW = 2
# All kinds take an hour: STALL_KINDS=60.
_KINDS = int(os.environ.get("STALL_KINDS", "1"))
# Conditions of searches: all requests with conditions use the same model and code. `STALL_KINDS` above 2 tries all.
_CONDITIONS = {each.__name__ for each in vars(filters).values() if isinstance(each, type) and issubclass(each, filters.Filter)} | {
    MetadataFilter.__name__
}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200 if _KINDS == 1 else 7200)]
_VALUES = {"user_id": "victim", "session_id": "s1", "role": "user", "label": "b1", "memory_id": "m1", "id": "m1", "name": "notes"}
_IN_PATHS = {**_VALUES, "agent_id": "a1"}
# Erased or deleted data could not be compared any more.
_LATER = ("delete /v1/users", "delete /v1/agents", "post /v1/long-term-memory/purge", "post /v1/long-term-memory/forget")


@dataclass
class Fields(Watched):
    """A watched server whose fields the test tries one by one."""

    _kind: Iterable[int] = field(default_factory=count)
    tried: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    """The operators of conditions that have received texts."""

    async def try_field(self, what: str, text_field: TextField, request: Callable[[Any], httpx.Request]) -> None:
        """Send hostile texts in one field, up to the field's maximum size.

        To save time, similar fields share a few kinds of text.
        """
        if text_field.schema in _CONDITIONS and _KINDS <= _FEW:
            condition = (text_field.schema, text_field.path.rpartition(".")[2], "in a filter" if "filter." in text_field.path else "")
            if condition in self.tried:
                return
            self.tried.add(condition)
        sizes = [size for size in _SIZES if text_field.most is None or size <= text_field.most]
        is_short = text_field.most is not None and text_field.most < 1000
        largest = max(sizes, default=0)
        for largest in () if is_short else sizes:
            if _is_taken(await self.send(what, request(text_field.build(("word " * (largest // 5 + 1))[:largest])))):
                break
        direct = largest > 1000 and not re.search(r"metadata|filter|\.note", text_field.path)
        often = _KINDS if direct else min(_KINDS, _FEW)
        kinds = [list(PARTS)[number % len(PARTS)] for number in islice(self._kind, min(often, len(PARTS)))]
        tries = [(kind, min(largest, _OFTEN)) for kind in kinds]
        tries += [(kind, largest) for kind in (_LARGE_KINDS if _KINDS > _FEW else _LARGE_KINDS[:1]) if largest > _OFTEN]
        for kind, size in tries:
            await self.send(f"{what}, {size} of {kind}", request(text_field.build(hostile_text(kind, size)[:size])))
        if not is_short:
            await self.rest(what)


def _is_taken(answer: httpx.Response) -> bool:
    is_json = answer.headers.get("content-type") == "application/json"
    value = answer.json() if is_json and answer.status_code == 200 else None
    failed = isinstance(value, dict) and ("error" in value or (isinstance(value.get("result"), dict) and value["result"].get("isError")))
    return answer.status_code < 400 and not failed


@pytest.fixture(scope="module")
async def filled(redis_url: str, running_lookalike: Lookalike, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Fields]:
    # The local model takes 2 s of CPU for each 60 KB; another test below covers it.
    model = {
        "MODEL_PROVIDER": "openai",
        "EMBEDDING_PROVIDER": "openai",
        "OPENAI_BASE_URL": running_lookalike.url,
        "OPENAI_API_KEY": "none",
        # As many dimensions as the local model has.
        "EMBEDDING_MODEL": "text-embedding-lookalike",
        "EMBEDDING_DIMENSIONS": "384",
    }
    async with watched_server(redis_url, tmp_path_factory.mktemp("stalls"), **model) as (client, bound):
        watched = Fields(client, bound)
        await _fill(client)
        await watched.rest("the beginning")
        yield watched


@pytest.fixture
def watched(filled: Fields) -> Fields:
    filled.found.clear()
    filled.tried.clear()
    return filled


async def _fill(client: httpx.AsyncClient) -> None:
    """Store 50 memories of 60 KB for one user."""
    choose = random.Random(5)
    for start in range(0, 50, 10):
        memories = [
            {"id": f"big-{number}", "user_id": "victim", "text": f"{number} " + _different_words(choose, 60_000)}
            for number in range(start, start + 10)
        ]
        assert (await client.post("/v1/long-term-memory/", json={"memories": memories})).status_code == 200
    small = {"memories": [{"id": "m1", "user_id": "victim", "text": "I live in Lisbon"}]}
    assert (await client.post("/v1/long-term-memory/", json=small)).status_code == 200
    said = {"user_id": "victim", "messages": [{"role": "user", "content": "I like gin"}]}
    assert (await client.put("/v1/working-memory/s1", json=said)).status_code == 200
    assert (await client.put("/v1/blocks/b1?user_id=victim", json={"value": "hello"})).status_code == 200


def _different_words(choose: random.Random, size: int) -> str:
    """Return words that share prefixes, so that each could be an inflection of another."""
    words = (choose.choice(("perso", "compa", "quart")) + "".join(choose.choices("abcdefghij", k=3)) for _ in range(size // 9))
    return "I like gin and " + " ".join(words)


def _app() -> Any:
    return create_app(load_settings(COMPAT_APIS="mem0,supermemory"), Recorded().runtime)


def _url(path: str) -> str:
    return re.sub(r"\{(\w+)(?::path)?\}", lambda part: _IN_PATHS.get(part[1], "m1"), path)


def _operations(document: Any) -> list[tuple[str, str, Any]]:
    """Return all operations as (method, path, description), with deletions last."""
    found = [(method, path, each) for path, methods in document["paths"].items() for method, each in methods.items()]
    return sorted(found, key=lambda one: f"{one[0]} {one[1]}".startswith(_LATER))


def _tries(client: httpx.AsyncClient) -> Iterator[tuple[str, TextField, Callable[[Any], httpx.Request]]]:
    """Yield every text parameter and body field with a function that builds its request."""
    document = _app().openapi()
    walk = SchemaWalk(document, _VALUES)
    for method, path, operation in _operations(document):
        what, url = f"{method} {path}", _url(path)
        parameters = [each for each in operation.get("parameters", ()) if each["in"] == "query"]
        query = {each["name"]: "victim" for each in parameters if each["name"] == "user_id"}
        for parameter in parameters:
            build = partial(_with_parameter, client, method, url, query, parameter["name"])
            for text in walk.text_fields(parameter["schema"]):
                most = min(text.most or _LONGEST_QUERY, _LONGEST_QUERY)
                yield f"{what}?{parameter['name']}", TextField(text.path, most, text.build), build
        for media_type, body in operation.get("requestBody", {}).get("content", {}).items():
            build = partial(_with_body, client, method, url, query, media_type)
            for text in walk.text_fields(body["schema"]):
                yield f"{what} {text.path}", text, build


def _with_parameter(client: httpx.AsyncClient, method: str, url: str, query: dict[str, str], name: str, value: Any) -> httpx.Request:
    return client.build_request(method, url, params={**query, name: value})


def _with_body(client: httpx.AsyncClient, method: str, url: str, query: dict[str, str], media_type: str, value: Any) -> httpx.Request:
    if media_type == "application/json":
        return client.build_request(method, url, params=query, json=value)
    return client.build_request(method, url, params=query, content=str(value), headers={"content-type": media_type})


async def test_request_texts_do_not_block_the_event_loop(watched: Fields) -> None:
    fields = 0
    for what, text, request in _tries(watched.client):
        fields += 1
        await watched.try_field(what, text, request)
    await watched.rest("all fields")
    assert fields > 300
    assert not watched.found, "\n".join(watched.found)


def _call(client: httpx.AsyncClient, method: str, name: str, value: Any) -> httpx.Request:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": name, "arguments": value} if name else {}}
    return client.build_request("POST", "/mcp", json=body, headers={"accept": "application/json, text/event-stream"})


async def test_tool_call_texts_do_not_block_the_event_loop(watched: Fields) -> None:
    listed = await watched.send("the list of tools", _call(watched.client, "tools/list", "", None))
    tools = listed.json()["result"]["tools"]
    assert len(tools) > 15
    for tool in tools:
        schema = tool["inputSchema"]
        for text in SchemaWalk(schema, _VALUES).text_fields(schema):
            await watched.try_field(
                f"the tool {tool['name']} {text.path}", text, partial(_call, watched.client, "tools/call", tool["name"])
            )
    await watched.rest("all tools")
    assert not watched.found, "\n".join(watched.found)


def _compat_bodies() -> list[Callable[[str], dict[str, Any]]]:
    """Return functions that put a text into each text field of the compatible APIs."""
    names: dict[str, Callable[[str], Any]] = {}
    for product in ("mem0", "supermemory"):
        module = importlib.import_module(f"agent_memory.interfaces.compat.{product}.requests")
        for model in vars(module).values():
            if isinstance(model, type) and issubclass(model, BaseModel) and model.__module__ == module.__name__:
                schema = model.model_json_schema()
                for text in SchemaWalk(schema, _VALUES).text_fields(schema):
                    name = text.path.partition(".")[0].partition("[")[0]
                    if (text.most or 1_000_000) > 1000:
                        names.setdefault(name, lambda given, text=text, name=name: text.build(given)[name])
    whose = {"user_id": "victim", "containerTag": "victim", "customId": "doc"}
    return [lambda given, name=name, build=build: {**whose, name: build(given)} for name, build in names.items()]


def _routes(app: Any) -> set[tuple[str, str]]:
    """Return the (method, path) pairs of routes that accept a body."""
    routes = [route for route in cast("list[Any]", app.routes) if isinstance(route, Route)]
    return {(method, route.path) for route in routes for method in route.methods or () if method not in ("GET", "HEAD")}


async def test_compatible_api_texts_do_not_block_the_event_loop(watched: Fields) -> None:
    routes = sorted(_routes(_app()) - _routes(create_app(load_settings(), Recorded().runtime)))
    assert len(routes) > 20
    kinds = list(PARTS)
    for number, (method, path) in enumerate(routes):
        for place, body in enumerate(_compat_bodies()):
            for kind in ("different words", kinds[(number + place) % len(kinds)])[-_KINDS:]:
                request = watched.client.build_request(method, _url(path), json=body(hostile_text(kind, _OFTEN)[:_OFTEN]))
                await watched.send(f"{method} {path} {list(body('-'))}, {kind}", request)
        await watched.rest(f"{method} {path}")
    assert not watched.found, "\n".join(watched.found)


async def test_forget_requests_in_messages_do_not_block_the_event_loop(watched: Fields) -> None:
    for kind in PARTS:
        content = f"Please forget that {hostile_text(kind, 4_000)[:3_900]}"
        body = {"user_id": "victim", "messages": [{"role": "user", "content": content}]}
        await watched.send(f"forget {kind}", watched.client.build_request("POST", "/v1/working-memory/s2/messages", json=body))
    await watched.rest("requests to forget")
    assert not watched.found, "\n".join(watched.found)


@pytest.mark.parametrize("tokens", [2_000, 64_000])
async def test_prompt_with_fifty_long_memories_does_not_block_the_event_loop(watched: Fields, tokens: int) -> None:
    body = {"query": "I like gin, yesterday", "user_id": "victim", "long_term_search": {"limit": 100}, "max_tokens": tokens}
    answer = await watched.send(f"a prompt of {tokens} tokens", watched.client.build_request("POST", "/v1/memory/prompt", json=body))
    assert answer.status_code == 200
    assert not watched.found, "\n".join(watched.found)


async def test_texts_do_not_block_the_event_loop_with_the_local_model(redis_url: str, tmp_path: Path) -> None:
    async with watched_server(redis_url, tmp_path) as (client, bound):
        watched = Fields(client, bound)
        await watched.rest("the start")
        watched.found.clear()
        for kind in list(PARTS)[::6]:
            text = hostile_text(kind, 1_000)[:1_000]
            memory = {"memories": [{"id": kind, "user_id": "victim", "text": f"I like gin {text}"}]}
            await watched.send(f"a memory of {kind}", client.build_request("POST", "/v1/long-term-memory/", json=memory))
            question = {"text": text, "user_id": {"eq": "victim"}}
            await watched.send(f"a search for {kind}", client.build_request("POST", "/v1/long-term-memory/search", json=question))
        await watched.rest("the memories")
        assert not watched.found, "\n".join(watched.found)


async def test_every_task_runs_without_blocking_the_event_loop(watched: Fields) -> None:
    item = {"path": ["notes"], "key": "k", "value": {"text": hostile_text("different words", _OFTEN)}}
    for method, url, body in (
        ("PUT", "/v1/items?user_id=victim", item),
        ("POST", "/v1/long-term-memory/compact?user_id=victim", None),
        ("DELETE", "/v1/users/victim", None),
    ):
        await watched.send(url, watched.client.build_request(method, url, json=body))
        await watched.rest(url)
    assert set(TaskName) <= watched.tasks.keys()
    assert not watched.found, "\n".join(watched.found)
