"""Test the client's method signatures, and methods that send multiple requests."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from agent_memory_client import MemoryAPIClient, MemoryClientConfig, SyncMemoryAPIClient, create_memory_client
from agent_memory_client.errors import (
    MemoryClientError,
    MemoryNotFoundError,
    MemoryPreconditionFailedError,
    MemoryProtocolError,
    MemoryValidationError,
)
from agent_memory_client.models import (
    ClientMemoryRecord,
    MemoryMessage,
    MemoryRecord,
    MemoryStrategyConfig,
    SearchRequest,
    WorkingMemory,
)
from agent_memory_client.resources.memories import Memories

METHODS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parents[2] / "compat" / "contract" / "contract.json").read_text())[
    "python_client_methods"
]


class Sessions:
    """A fake session API that supports versions, GET, PUT and append."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, int] = {}
        self.requests: list[httpx.Request] = []
        self.before_put: Callable[[], None] = lambda: None

    def store(self, session_id: str, body: dict[str, Any]) -> None:
        self.stored[session_id] = {**body, "session_id": session_id}
        self.versions[session_id] = self.versions.get(session_id, 0) + 1

    def answer(self, session_id: str) -> httpx.Response:
        return httpx.Response(200, json=self.stored[session_id], headers={"ETag": f'"{self.versions[session_id]}"'})

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        session_id, _, below = unquote(request.url.path.removeprefix("/v1/working-memory/")).partition("/")
        exists = session_id in self.stored
        if below == "messages":
            return self.append(session_id, json.loads(request.content))
        if request.method == "PUT":
            self.before_put()
            exists = session_id in self.stored
            wanted = request.headers.get("If-Match")
            if (wanted and wanted != f'"{self.versions.get(session_id)}"') or (request.headers.get("If-None-Match") == "*" and exists):
                return httpx.Response(412, json={"detail": "version mismatch", "code": "version_mismatch"})
            self.store(session_id, json.loads(request.content))
            exists = True
        return self.answer(session_id) if exists else httpx.Response(404, json={"detail": f"Session {session_id} not found"})

    def append(self, session_id: str, body: dict[str, Any]) -> httpx.Response:
        session = self.stored.get(session_id, {"namespace": body.get("namespace"), "user_id": body.get("user_id"), "messages": []})
        known = {message["id"] for message in session["messages"]}
        new = [message for message in body["messages"] if message["id"] not in known]
        self.store(session_id, {**session, "messages": session["messages"] + new})
        scope = {key: session.get(key) for key in ("namespace", "user_id")}
        counts = {
            "appended": len(new),
            "total_messages": len(session["messages"]) + len(new),
            "tokens": 1,
            "version": self.versions[session_id],
        }
        return httpx.Response(200, json={"session_id": session_id, **scope, **counts})


@pytest.fixture
def sessions() -> Sessions:
    return Sessions()


@pytest.fixture
async def client(sessions: Sessions) -> AsyncIterator[MemoryAPIClient]:
    async with MemoryAPIClient(MemoryClientConfig(base_url="http://memory"), transport=httpx.MockTransport(sessions)) as opened:
        yield opened


def answering(*answers: Any, **config: Any) -> tuple[MemoryAPIClient, list[httpx.Request]]:
    """Return a client whose fake server sends these responses, and a list of its requests."""
    requests: list[httpx.Request] = []
    left = list(answers)

    def serve(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json=left.pop(0))

    return MemoryAPIClient(MemoryClientConfig(base_url="http://memory", **config), transport=httpx.MockTransport(serve)), requests


def test_contract_lists_all_65_methods() -> None:
    assert len(METHODS) == 65


@pytest.mark.parametrize("kind", [MemoryAPIClient, SyncMemoryAPIClient])
@pytest.mark.parametrize("name", sorted(METHODS))
def test_signatures_match_the_contract(name: str, kind: type[Any]) -> None:
    method = getattr(kind, name)
    wanted = METHODS[name]
    assert isinstance(inspect.getattr_static(kind, name), classmethod) == (wanted["binding"] == "class")
    assert isinstance(inspect.getattr_static(kind, name), staticmethod) == (wanted["binding"] == "static")
    if name == "validate_search_filters":
        assert inspect.signature(method).parameters["filters"].kind is inspect.Parameter.VAR_KEYWORD
        return
    parameters = [value for key, value in inspect.signature(method).parameters.items() if key != "self"]
    added = [parameter for parameter in parameters if parameter.name not in wanted["params"]]
    assert all(parameter.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD) for parameter in added)
    known = [parameter for parameter in parameters if parameter.name in wanted["params"]]
    assert [parameter.name for parameter in known] == list(wanted["params"])
    for parameter in known:
        rule = wanted["params"][parameter.name]
        assert (parameter.default is inspect.Parameter.empty) == bool(rule.get("required"))
        if "default" in rule:
            assert parameter.default == rule["default"]
    waits = inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
    assert waits == (wanted["async"] and kind is MemoryAPIClient)


def test_search_accepts_every_option_of_the_request() -> None:
    options = set(SearchRequest.model_fields) - {name for name in SearchRequest.model_fields if "recency" in name}
    assert options <= set(inspect.signature(Memories.search).parameters)


async def test_readme_program_creates_and_continues_a_session(client: MemoryAPIClient, sessions: Sessions) -> None:
    created, empty = await client.get_or_create_working_memory("s", user_id="ada", namespace="app")
    assert (created, empty.messages, empty.user_id) == (True, [], "ada")
    turn = [{"role": "user", "content": "I like tea."}, {"role": "assistant", "content": "Noted."}]
    await client.put_working_memory("s", WorkingMemory(session_id="s", messages=turn, user_id="ada"))  # pyright: ignore
    created, session = await client.get_or_create_working_memory("s", user_id="ada")
    assert not created
    assert [message.content for message in session.messages] == ["I like tea.", "Noted."]


async def test_new_session_gets_the_requested_strategy(client: MemoryAPIClient, sessions: Sessions) -> None:
    await client.get_or_create_working_memory("s", long_term_memory_strategy=MemoryStrategyConfig(strategy="summary"))
    assert sessions.stored["s"]["long_term_memory_strategy"]["strategy"] == "summary"


async def test_append_sends_only_new_messages(client: MemoryAPIClient, sessions: Sessions) -> None:
    first = await client.append_messages_to_working_memory("s", [{"role": "user", "content": "one"}], user_id="ada")
    second = await client.append_messages_to_working_memory("s", [MemoryMessage(role="user", content="two")])
    assert [message.content for message in first.messages] == ["one"]
    assert [message.content for message in second.messages] == ["one", "two"]
    assert [request.method for request in sessions.requests] == ["POST", "GET", "GET", "POST", "GET"]
    sent = json.loads(sessions.requests[3].content)
    assert [message["content"] for message in sent["messages"]] == ["two"]
    assert sent["user_id"] == sessions.requests[4].url.params["user_id"] == "ada", "the session's own scope counts"


async def test_appending_nothing_returns_the_session(client: MemoryAPIClient, sessions: Sessions) -> None:
    assert (await client.append_messages_to_working_memory("s", [])).session_id == "s"


async def test_parallel_appends_keep_every_message(client: MemoryAPIClient, sessions: Sessions) -> None:
    answers = await asyncio.gather(*(client.append_messages("s", [{"role": "user", "content": str(n)}]) for n in range(20)))
    assert sum(answer.appended for answer in answers) == 20
    assert len(sessions.stored["s"]["messages"]) == 20


async def test_data_update_keeps_the_rest_of_the_session(client: MemoryAPIClient, sessions: Sessions) -> None:
    kept = {
        "messages": [{"role": "user", "content": "x", "id": "1", "created_at": "2024-01-01T00:00:00Z"}],
        "ttl_seconds": 60,
        "context": "sum",
    }
    sessions.store(
        "s", {**kept, "data": {"a": {"x": 1}, "b": 2}, "user_id": "ada", "long_term_memory_strategy": {"strategy": "preferences"}}
    )
    await client.update_working_memory_data("s", {"a": {"y": 2}})
    assert sessions.stored["s"]["data"] == {"a": {"y": 2}, "b": 2}
    await client.update_working_memory_data("s", {"a": {"z": [None]}}, merge_strategy="deep_merge")
    assert sessions.stored["s"]["data"] == {"a": {"y": 2, "z": [None]}, "b": 2}
    await client.update_working_memory_data("s", {"c": 3}, merge_strategy="replace")
    assert sessions.stored["s"]["data"] == {"c": 3}
    await client.set_working_memory_data("s", {"d": 4})
    stored = sessions.stored["s"]
    assert stored["data"] == {"d": 4}
    assert (stored["ttl_seconds"], stored["context"], stored["user_id"]) == (60, "sum", "ada")
    assert stored["long_term_memory_strategy"]["strategy"] == "preferences"
    assert [message["id"] for message in stored["messages"]] == ["1"]
    await client.set_working_memory_data("s", {"e": 5}, preserve_existing=False)
    assert sessions.stored["s"]["messages"] == []


async def test_unknown_merge_strategy_is_rejected_before_sending(client: MemoryAPIClient, sessions: Sessions) -> None:
    with pytest.raises(MemoryValidationError, match="merge_strategy"):
        await client.update_working_memory_data("s", {}, merge_strategy="mix")  # pyright: ignore
    assert sessions.requests == []


async def test_data_update_does_not_overwrite_a_concurrent_change(client: MemoryAPIClient, sessions: Sessions) -> None:
    sessions.store("s", {"data": {"n": 0}})
    others = [1, 2]

    def somebody_else() -> None:
        if others:
            sessions.store("s", {"data": {"n": others.pop(0)}})

    sessions.before_put = somebody_else
    session = await client.update_working_memory_data("s", {"mine": True})
    assert session.data == {"n": 2, "mine": True}


async def test_data_update_does_not_overwrite_a_concurrently_created_session(client: MemoryAPIClient, sessions: Sessions) -> None:
    def somebody_else() -> None:
        if "s" not in sessions.stored:
            sessions.store("s", {"data": {"theirs": True}})

    sessions.before_put = somebody_else
    assert (await client.update_working_memory_data("s", {"mine": True})).data == {"theirs": True, "mine": True}


async def test_data_update_gives_up_after_repeated_conflicts(client: MemoryAPIClient, sessions: Sessions) -> None:
    sessions.before_put = lambda: sessions.store("s", {"data": {}})
    with pytest.raises(MemoryPreconditionFailedError):
        await client.set_working_memory_data("s", {"a": 1})


async def test_session_memories_are_upserted_by_id(client: MemoryAPIClient, sessions: Sessions) -> None:
    await client.add_memories_to_working_memory("s", [MemoryRecord(id="a", text="one"), ClientMemoryRecord(text="two")])
    await client.add_memories_to_working_memory("s", [MemoryRecord(id="a", text="one, corrected")])
    assert [memory["text"] for memory in sessions.stored["s"]["memories"]] == ["two", "one, corrected"]
    await client.add_memories_to_working_memory("s", [MemoryRecord(id="b", text="three")], replace=True)
    assert [memory["id"] for memory in sessions.stored["s"]["memories"]] == ["b"]


async def test_data_update_writes_whole_session_despite_default_context_window(sessions: Sessions) -> None:
    config = MemoryClientConfig(base_url="http://memory", default_model_name="small", default_context_window_max=10)
    async with MemoryAPIClient(config, transport=httpx.MockTransport(sessions)) as client:
        sessions.store("s", {"data": {}})
        await client.set_working_memory_data("s", {"a": 1})
    assert all("context_window_max" not in request.url.params for request in sessions.requests)


async def test_promotion_keeps_ids_and_adds_the_session_scope() -> None:
    memories = [{"id": "a", "text": "one"}, {"id": "b", "text": "two", "namespace": "own"}]
    session = {"session_id": "s", "namespace": "app", "user_id": "ada", "memories": memories}
    client, requests = answering(session, {"status": "ok"}, session)
    await client.promote_working_memories_to_long_term("s")
    sent = json.loads(requests[1].content)["memories"]
    assert [(record["id"], record["namespace"], record["user_id"], record["session_id"]) for record in sent] == [
        ("a", "app", "ada", "s"),
        ("b", "own", "ada", "s"),
    ]
    assert (await client.promote_working_memories_to_long_term("s", memory_ids=["none"])).status == "ok"
    assert len(requests) == 3


async def test_bulk_creation_splits_batches() -> None:
    client, requests = answering(*[{"status": "ok"}] * 4)
    records = [ClientMemoryRecord(text=str(number)) for number in range(5)]
    answers = await client.bulk_create_long_term_memories([records, records[:1]], batch_size=2, delay_between_batches=0)
    assert [answer.status for answer in answers] == ["ok"] * 4
    assert [len(json.loads(request.content)["memories"]) for request in requests] == [2, 2, 1, 1]
    with pytest.raises(MemoryValidationError, match="batch_size"):
        await client.bulk_create_long_term_memories([records], batch_size=0)


def page(ids: list[str], total: int, next_offset: int | None) -> dict[str, Any]:
    return {"memories": [{"id": found, "text": "x", "dist": 0.5} for found in ids], "total": total, "next_offset": next_offset}


async def test_search_all_reads_every_page() -> None:
    client, requests = answering(page(["a", "b"], 3, 2), page(["c"], 3, None))
    assert [memory.id async for memory in client.search_all_long_term_memories("x", batch_size=2)] == ["a", "b", "c"]
    assert [json.loads(request.content)["offset"] for request in requests] == [0, 2]


async def test_search_all_without_next_offset_reads_until_a_short_page() -> None:
    client, requests = answering(page(["a", "b"], 2, None), page(["c", "d"], 4, None), page([], 4, None))
    assert [memory.id async for memory in client.search_all_long_term_memories("x", batch_size=2)] == ["a", "b", "c", "d"]
    assert len(requests) == 3


PROMPT = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "tea?", "annotations": None, "_meta": None}}],
    "long_term_memories": None,
}


async def test_prompt_response_works_as_dict_and_object() -> None:
    client, requests = answering(PROMPT)
    answer = await client.memory_prompt(
        query="tea?", session_id="s", model_name="my-litellm-model", long_term_search={"text": "tea?", "limit": 5}
    )
    assert answer["messages"] == answer.messages == answer.get("messages") == PROMPT["messages"]
    assert isinstance(answer, dict)
    assert json.loads(json.dumps(answer)) == PROMPT
    assert answer.long_term_memories is None
    assert answer.to_openai() == [{"role": "user", "content": "tea?"}]
    assert answer.to_model().to_openai() == answer.to_openai()
    sent = json.loads(requests[0].content)
    assert sent["session"] == {"session_id": "s", "model_name": "my-litellm-model"}
    assert sent["long_term_search"] == {"text": "tea?", "limit": 5}


async def test_hydration_sends_filters_and_recency() -> None:
    client, requests = answering(PROMPT, default_namespace="app")
    await client.hydrate_memory_prompt(
        "tea?", topics={"any": ["tea"]}, limit=3, recency_semantic_weight=0.9, recency_boost=True, search_mode="hybrid"
    )
    assert json.loads(requests[0].content) == {
        "query": "tea?",
        "long_term_search": {
            "topics": {"any": ["tea"]},
            "namespace": {"eq": "app"},
            "limit": 3,
            "offset": 0,
            "search_mode": "hybrid",
            "recency_boost": True,
            "recency_semantic_weight": 0.9,
        },
    }


async def test_delete_in_parts_returns_the_total() -> None:
    client, requests = answering({"status": "ok, deleted 100 memories"}, {"status": "ok, deleted 7 memories"})
    assert (await client.delete_long_term_memories([f"{number:030}" for number in range(150)])).status == "ok, deleted 107 memories"
    assert len(requests) == 2


async def test_missing_views_and_tasks_return_none() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(404, json={"detail": "not found"}))
    async with MemoryAPIClient(MemoryClientConfig(base_url="http://memory"), transport=transport) as client:
        assert await client.get_summary_view("v") is None
        assert await client.get_task("t") is None
        with pytest.raises(MemoryNotFoundError, match="not found"):
            await client.get_working_memory("s")


@pytest.mark.parametrize("answer", [[1], "ok", {"memories": "none"}, {}])
async def test_foreign_responses_raise_protocol_errors(answer: Any) -> None:
    client, _ = answering(answer, answer)
    with pytest.raises(MemoryProtocolError):
        await client.search_long_term_memory("x")
    with pytest.raises(MemoryProtocolError):
        await client.memory_prompt("x")


async def test_unknown_response_keys_are_ignored() -> None:
    client, _ = answering({"status": "ok", "took_ms": 3}, {"sessions": ["s"], "total": 1, "cursor": None})
    assert (await client.create_long_term_memory([ClientMemoryRecord(text="x")])).status == "ok"
    assert (await client.list_sessions()).sessions == ["s"]


def test_records_are_checked_before_they_are_sent() -> None:
    client, _ = answering()
    client.validate_memory_record(ClientMemoryRecord(text="fine"))
    with pytest.raises(MemoryValidationError, match="text"):
        client.validate_memory_record(ClientMemoryRecord(text="x").model_copy(update={"text": " "}))
    with pytest.raises(ValueError, match="ULID"):
        client.validate_memory_record(MemoryRecord(id="mine", text="x"))


def test_searches_are_checked_before_they_are_sent() -> None:
    client, _ = answering()
    client.validate_search_filters(session_id={"in_": ["a"]}, limit=5, offset=0, distance_threshold=0.5)
    for bad in ({"color": "red"}, {"limit": 0}, {"offset": -1}, {"distance_threshold": -1}, {"topics": {}}, {"user_id": {"eq": ""}}):
        with pytest.raises(MemoryValidationError):
            client.validate_search_filters(**bad)


async def test_create_memory_client_fails_if_no_server_answers() -> None:
    with pytest.raises(MemoryClientError, match="no memory server answers at"):
        await create_memory_client("http://127.0.0.1:1", timeout=5, max_retries=0)
