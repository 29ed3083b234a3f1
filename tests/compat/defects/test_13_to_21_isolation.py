"""Test defects 13-21 in scope isolation and credentials.

Scopes were widened, compared loosely, redirected, lost and confused. Credentials were slow, unused
or not required.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory.features.memories import routes
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.base import EmbeddingModel
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.interfaces.http.app import create_app
from agent_memory_client import create_memory_client
from tests.registrations import registrations
from tests.support.api import serving
from tests.support.lookalike import Lookalike
from tests.support.rig import Rig, gathered, open_rig

OPERATOR = "operator-of-the-defects"
MEMORIES, SESSIONS = "/v1/long-term-memory/", "/v1/working-memory/"
TIME = "2026-01-02T03:04:05Z"


@dataclass
class Server:
    """A client with full access that can create other clients."""

    url: str
    rig: Rig
    http: httpx.AsyncClient

    async def key(self, **wanted: Any) -> str:
        answer = await self.http.post("/v1/auth/tokens", json=wanted)
        assert answer.status_code == 200, answer.text
        return answer.json()["token"]

    def client(self, **headers: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=30)

    async def store(self, *records: dict[str, Any]) -> None:
        _ok(await self.http.post(MEMORIES, json={"memories": [{"id": str(ULID()), **one} for one in records]}))
        await self.work()

    async def work(self) -> None:
        await self.rig.work(*DueKind)

    async def search(self, **body: Any) -> list[dict[str, Any]]:
        return _ok(await self.http.post(f"{MEMORIES}search", json={"limit": 50, **body}))["memories"]

    async def say(self, session: str, *texts: str, **more: Any) -> dict[str, Any]:
        messages = [{"id": text, "role": "user", "content": text, "created_at": TIME} for text in texts]
        return _ok(await self.http.put(f"{SESSIONS}{session}", json={"messages": messages, **more}))


def _ok(answer: httpx.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture(scope="module")
async def server(redis_url: str, local: EmbeddingModel, counter: TokenCounter, running_lookalike: Lookalike) -> AsyncGenerator[Server]:
    chat = await OpenAIChat.open(load_settings(OPENAI_BASE_URL=running_lookalike.url, OPENAI_API_KEY="sk-test-0000"))
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(routes, "MAX_WAIT_SECONDS", 0.0)  # no worker would end the wait
    given: dict[str, Any] = {"AUTH_MODE": "token", "AUTH_ADMIN_TOKEN": OPERATOR, "EXTRACTION_DEBOUNCE_SECONDS": 0}
    async with (
        open_rig(redis_url, local, counter, chat, **given) as rig,
        serving(create_app(rig.settings, rig.rt)) as url,
        httpx.AsyncClient(base_url=url, headers={"X-API-Key": OPERATOR}, timeout=30) as http,
    ):
        yield Server(url, rig, http)
    monkeypatch.undo()


@pytest.fixture
def name() -> str:
    """Return a unique name."""
    return str(ULID())


async def test_13_search_without_hits_never_drops_its_filters(server: Server, name: str) -> None:
    await server.store({"text": "Ada's launch code is heron", "namespace": name, "user_id": "ada", "topics": ["codes"]})
    elsewhere: list[dict[str, Any]] = [
        {"namespace": {"eq": f"{name}-2"}},
        {"namespace": {"eq": name}, "user_id": {"eq": "bob"}},
        {"namespace": {"eq": name}, "topics": {"any": ["cats"]}},
        {"namespace": {"eq": name}, "entities": {"any": ["Ada"]}},
        {"namespace": {"eq": name}, "memory_type": {"eq": "episodic"}},
        {"namespace": {"eq": name}, "created_at": {"lt": "2001-01-01T00:00:00Z"}},
    ]
    for filters in elsewhere:
        for mode in ("semantic", "keyword", "hybrid"):
            assert await server.search(text="launch code heron", search_mode=mode, **filters) == []
        prompt = {"query": "launch code heron", "long_term_search": filters}
        assert "heron" not in json.dumps(_ok(await server.http.post("/v1/memory/prompt", json=prompt))["long_term_memories"])
    assert len(await server.search(text="launch code heron", namespace={"eq": name}, topics={"any": ["codes"]})) == 1


async def test_14_user_ids_match_exactly_and_empty_ids_are_rejected(server: Server, name: str) -> None:
    users = ["Alice", "alice", "ALICE", "Alice2", "Zo\u00eb"]
    await server.store(*({"text": f"{user} likes tea", "user_id": user, "namespace": name} for user in users))
    for user in users:
        found = await server.search(namespace={"eq": name}, user_id={"eq": user})
        assert [one["text"] for one in found] == [f"{user} likes tea"]
    for other in ("aLICE", "Ali", "Alice*", "Zoe"):
        assert await server.search(namespace={"eq": name}, user_id={"eq": other}) == []
    for field in ("user_id", "namespace", "session_id"):
        for empty in ({"eq": ""}, {"any": [""]}, {"eq": " "}, {}, {"any": []}):
            answer = await server.http.post(f"{MEMORIES}search", json={"text": "tea", field: empty})
            assert answer.status_code == 422
            assert field in answer.text


async def test_15_filters_accept_only_documented_operators(server: Server, name: str) -> None:
    await server.store(
        {"text": "Cy plays chess", "user_id": "cy", "namespace": name}, {"text": "Di swims", "user_id": "di", "namespace": name}
    )
    for wrong in ({"field": "namespace"}, {"field": "text"}, {"enum_class": "x"}, {"raw": "*"}, {"query": "@text:(*)"}):
        answer = await server.http.post(f"{MEMORIES}search", json={"text": "x", "user_id": {"eq": "cy", **wrong}})
        assert answer.status_code == 422
        assert "user_id" in answer.text
    for inject in ("*", "cy|di", "{cy}", "cy} | @user_id:{di", "-cy", "cy) | (*", '"cy"', "cy,di", "$cy", "\\"):
        assert await server.search(namespace={"eq": name}, user_id={"eq": inject}) == []
        assert await server.search(user_id={"eq": "cy"}, namespace={"eq": inject}) == []
        done = await server.http.post(f"{MEMORIES}compact", params={"namespace": inject, "user_id": "cy"})
        assert done.status_code < 500
        forgotten = await server.http.post(
            f"{MEMORIES}forget", params={"namespace": inject, "dry_run": "false"}, json={"policy": {"budget": 0}}
        )
        assert forgotten.status_code < 500
    await server.work()
    assert len(await server.search(namespace={"eq": name})) == 2


async def test_16_derived_memories_keep_the_scope_of_their_source(server: Server, name: str) -> None:
    place = {"namespace": name, "user_id": "eli"}
    memories = [{"id": f"{name}-kept", "text": "Eli collects stamps", "memory_type": "semantic"}]
    await server.say(name, "Eli moved to Bergen", **place, memories=memories)
    # The same words without an owner neither merge with, nor change, another user's memory.
    await server.store({"id": f"{name}-loose", "text": "Eli collects stamps"})
    await server.work()
    _ok(await server.http.post(f"{MEMORIES}compact"))
    await server.work()
    found = await server.search(session_id={"eq": name})
    assert {one["extraction_strategy"] for one in found} >= {"message", "discrete"}
    assert len(found) == 3
    assert {(one["namespace"], one["user_id"]) for one in found} == {(name, "eli")}
    assert _ok(await server.http.get(f"{MEMORIES}{name}-kept"))["text"] == "Eli collects stamps"
    loose = _ok(await server.http.get(f"{MEMORIES}{name}-loose"))
    assert (loose["text"], loose["namespace"], loose["user_id"]) == ("Eli collects stamps", None, None)


async def test_17_prompt_searches_the_session_scope_with_its_query(server: Server, name: str) -> None:
    await server.store(
        {"text": "Fay's boat is green", "namespace": name, "user_id": "fay"},
        {"text": "Fay's tax number is 77", "namespace": name, "user_id": "fay"},
        {"text": "Fay's boat is black", "namespace": f"{name}-2", "user_id": "fay"},
        {"text": "Gus's boat is white", "namespace": name, "user_id": "gus"},
    )
    session = {"session_id": name, "namespace": name, "user_id": "fay"}
    body = {"query": "Which colour has the boat?", "session": session, "long_term_search": True}
    found = _ok(await server.http.post("/v1/memory/prompt", json=body))["long_term_memories"]
    texts = [one["text"] for one in found]
    assert texts[0] == "Fay's boat is green"
    assert set(texts) <= {"Fay's boat is green", "Fay's tax number is 77"}


async def test_18_key_accesses_only_its_scope(server: Server, name: str) -> None:
    place = {"namespace": name, "user_id": "hal"}
    await server.store({"id": name, "text": "Hal fears heights", **place})
    await server.say(name, "Hal is home", **place)
    of_features = [await one.prepare_stranger(server.http, name) for one in registrations()]
    operation = _ok(await server.http.get("/v1/operations", params={"kind": "session"}))["operations"][0]["id"]
    attempts: list[tuple[str, str, dict[str, Any] | None]] = [
        ("GET", f"{MEMORIES}{name}", None),
        ("PATCH", f"{MEMORIES}{name}", {"text": "mine"}),
        ("DELETE", f"{MEMORIES}?memory_ids={name}", None),
        ("POST", f"{MEMORIES}forget?dry_run=false&namespace={name}", {"policy": {"budget": 0}}),
        ("POST", f"{MEMORIES}compact?namespace={name}&user_id=hal", None),
        ("GET", f"{SESSIONS}{name}?namespace={name}&user_id=hal", None),
        ("DELETE", f"{SESSIONS}{name}?namespace={name}&user_id=hal", None),
        ("DELETE", "/v1/users/hal", None),
        ("GET", f"/v1/operations/{operation}", None),
        ("DELETE", f"/v1/operations/{operation}", None),
        *(attempt for more, _ in of_features for attempt in more),
        ("POST", "/v1/auth/tokens", {"role": "admin"}),
    ]
    keys = [await server.key(users=["ivy"]), await server.key(namespaces=[f"{name}-2"]), await server.key(tenant=name, role="write")]
    for key in keys:
        async with server.client(Authorization=f"Bearer {key}") as stranger:
            for method, path, body in attempts:
                answer = await stranger.request(method, path, json=body)
                assert answer.status_code in (200, 403, 404), (method, path, answer.text)
                assert "Hal" not in answer.text
            refused = await stranger.post("/v1/auth/tokens", json={"role": "admin"})
            assert refused.status_code == 403
    await server.work()
    async with server.client(**{"X-API-Key": await server.key(role="read")}) as reader:
        assert (await reader.get(f"{MEMORIES}{name}")).status_code == 200
        for method, path, body in attempts[1:4]:
            assert (await reader.request(method, path, json=body)).status_code == 403
    assert _ok(await server.http.get(f"{MEMORIES}{name}"))["text"] == "Hal fears heights"
    kept = _ok(await server.http.get(f"{SESSIONS}{name}", params=place))
    assert [message["content"] for message in kept["messages"]] == ["Hal is home"]
    for path in (path for _, paths in of_features for path in paths):
        assert (await server.http.get(path)).status_code == 200, "it is still there"


async def test_19_mcp_requires_a_key_and_concurrent_calls_stay_in_their_namespaces(server: Server, name: str) -> None:
    async def call(http: httpx.AsyncClient, place: str, tool: str, **arguments: Any) -> httpx.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        return await http.post(f"/{place}/mcp", json=body, headers={"accept": "application/json, text/event-stream"})

    async with server.client() as stranger:
        assert (await call(stranger, name, "search_long_term_memory", text="x")).status_code == 401
        wrong = {"authorization": "Bearer of bad news"}
        assert (await stranger.post("/mcp", json={}, headers=wrong)).status_code == 401

    async def remember(number: int) -> None:
        memory = {"id": f"{name}-{number}", "text": f"note {number}", "memory_type": "semantic"}
        answer = await call(server.http, f"{name}-{number}", "create_long_term_memories", memories=[memory])
        assert answer.status_code == 200, answer.text

    await gathered(remember(number) for number in range(20))
    for number in range(20):
        assert _ok(await server.http.get(f"{MEMORIES}{name}-{number}"))["namespace"] == f"{name}-{number}"


async def test_20_key_is_found_by_direct_lookup_and_accepted_in_both_headers(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [await server.key() for _ in range(20)]
    commands = 0
    send = server.rig.rt.client.execute_command

    async def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal commands
        commands += 1
        return await send(*arguments, **options)

    monkeypatch.setattr(server.rig.rt.client, "execute_command", counted)
    for header in ({"X-API-Key": keys[-1]}, {"Authorization": f"Bearer {keys[-1]}"}):
        async with server.client(**header) as http:
            assert (await http.get("/v1/extraction-rules")).status_code == 200
    assert commands <= 6  # at most two look-ups of one key, and the reads of the operation itself
    monkeypatch.undo()
    async with server.client(**{"X-API-Key": keys[0][:-1] + ("A" if keys[0][-1] != "A" else "B")}) as http:
        assert (await http.get("/v1/extraction-rules")).status_code == 401
    for how in ({"api_key": keys[0]}, {"bearer_token": keys[1]}):
        client = await create_memory_client(server.url, **how)  # type: ignore[arg-type]
        async with client:
            assert (await client.list_sessions(namespace="of-nobody")).total == 0


async def test_21_no_two_sessions_share_a_key(server: Server, name: str) -> None:
    places = [
        ("c", f"{name}:a:b", None),
        ("b:c", f"{name}:a", None),
        ("a:b:c", name, None),
        ("c", f"{name}:a", "b"),
        ("c", f"{name}", "a:b"),
        ("b:c", name, "a"),
        ("c", None, f"{name}:a:b"),
        ("a:b:c", None, name),
    ]

    def where(namespace: str | None, user: str | None) -> dict[str, str]:
        return {key: value for key, value in (("namespace", namespace), ("user_id", user)) if value is not None}

    puts = (server.say(session, f"{number}", **where(namespace, user)) for number, (session, namespace, user) in enumerate(places))
    await asyncio.gather(*puts)
    for number, (session, namespace, user) in enumerate(places):
        found = _ok(await server.http.get(f"{SESSIONS}{session}", params=where(namespace, user)))
        assert [message["content"] for message in found["messages"]] == [f"{number}"]
        assert (found["session_id"], found["namespace"], found["user_id"]) == (session, namespace, user)
