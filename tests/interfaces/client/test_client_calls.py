"""Test the HTTP request that each resource method sends with the default settings."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Never
from urllib.parse import quote

import httpx
import pytest

from agent_memory_client import MemoryClient, MemoryClientConfig
from agent_memory_client._wire.requests import MAX_QUERY_CHARS, Call
from agent_memory_client.errors import MemoryValidationError
from agent_memory_client.models import (
    ClientMemoryRecord,
    CreatedAt,
    CreateSummaryViewRequest,
    CreateTokenRequest,
    ExtractionRules,
    ForgetPolicy,
    MemoryMessage,
    MemoryRecord,
    PurgeRequest,
    RecencyConfig,
    SearchRequest,
    SessionId,
    WorkingMemory,
    WorkingMemoryResponse,
)
from agent_memory_client.transport import Transport

PLAIN = MemoryClient(MemoryClientConfig(base_url="http://memory"))
WITH_DEFAULTS = MemoryClient(
    MemoryClientConfig(base_url="http://memory", default_namespace="app", default_model_name="m-1", default_context_window_max=4000)
)


class Recorded(Exception):
    """Raised instead of sending a call."""

    def __init__(self, call: Call) -> None:
        self.call = call


@pytest.fixture(autouse=True)
def _nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def record(_: object, call: Call) -> Never:
        raise Recorded(call)

    monkeypatch.setattr(Transport, "send", record)


def sent(call: Coroutine[Any, Any, Any]) -> Call:
    """Return the first request that a call would send."""
    with pytest.raises(Recorded) as recorded:
        call.send(None)
    return recorded.value.call


HELLO = [{"role": "user", "content": "x"}]


def body(call: Call) -> dict[str, Any]:
    assert call.json is not None
    return call.json


def test_calls_use_the_right_method_and_path() -> None:
    c = PLAIN
    view = CreateSummaryViewRequest(source="long_term")
    calls = {
        "GET /v1/health": c.server.health(),
        "GET /v1/ready": c.server.ready(),
        "GET /v1/working-memory/": c.sessions.list(),
        "GET /v1/working-memory/s": c.sessions.get("s"),
        "PUT /v1/working-memory/s": c.sessions.put("s", WorkingMemory(session_id="s")),
        "POST /v1/working-memory/s/messages": c.sessions.append("s", HELLO),
        "DELETE /v1/working-memory/s": c.sessions.delete("s"),
        "POST /v1/working-memory/s/flush": c.sessions.flush("s"),
        "POST /v1/long-term-memory/": c.memories.create([]),
        "GET /v1/long-term-memory/m": c.memories.get("m"),
        "PATCH /v1/long-term-memory/m": c.memories.edit("m", {"text": "x"}),
        "DELETE /v1/long-term-memory": c.memories.delete(["m"]),
        "POST /v1/long-term-memory/forget": c.memories.forget(ForgetPolicy()),
        "POST /v1/long-term-memory/search": c.memories.search("x"),
        "POST /v1/long-term-memory/explain": c.memories.explain("m", {"text": "x"}),
        "POST /v1/long-term-memory/compact": c.memories.compact(),
        "POST /v1/long-term-memory/purge": c.memories.purge(PurgeRequest(session_id="s")),
        "GET /v1/long-term-memory/m/evidence": c.memories.evidence("m"),
        "GET /v1/long-term-memory/m/history": c.memories.history("m"),
        "POST /v1/memory/prompt": c.prompts.render("q", long_term_search=True),
        "GET /v1/summary-views": c.views.list(),
        "POST /v1/summary-views": c.views.create(view),
        "GET /v1/summary-views/v": c.views.get("v"),
        "DELETE /v1/summary-views/v": c.views.delete("v"),
        "POST /v1/summary-views/v/partitions/run": c.views.run_partition("v", {"user_id": "ada"}),
        "GET /v1/summary-views/v/partitions": c.views.list_partitions("v"),
        "POST /v1/summary-views/v/run": c.views.run("v"),
        "GET /v1/tasks/t": c.jobs.get_task("t"),
        "GET /v1/operations": c.jobs.list(),
        "GET /v1/operations/o": c.jobs.get("o"),
        "POST /v1/operations/o/replay": c.jobs.replay("o"),
        "DELETE /v1/operations/o": c.jobs.drop("o"),
        "GET /v1/changes": c.changes.list(),
        "GET /v1/changes/c": c.changes.get("c"),
        "POST /v1/changes/c/undo": c.changes.undo("c"),
        "POST /v1/changes/c/approve": c.changes.approve("c"),
        "POST /v1/changes/c/reject": c.changes.reject("c"),
        "POST /v1/changes/batches/b/undo": c.changes.undo_batch("b"),
        "GET /v1/extraction-rules": c.extraction_rules.get(),
        "PUT /v1/extraction-rules": c.extraction_rules.put(ExtractionRules()),
        "DELETE /v1/extraction-rules": c.extraction_rules.delete(),
        "GET /v1/quarantine": c.quarantine.list(),
        "POST /v1/quarantine/m/approve": c.quarantine.approve("m"),
        "POST /v1/quarantine/m/reject": c.quarantine.reject("m"),
        "POST /v1/users/u/import": c.users.import_lines("u", ["{}"]),
        "DELETE /v1/users/a%2Fb": c.users.delete("a/b"),
        "GET /v1/auth/tokens": c.tokens.list(),
        "POST /v1/auth/tokens": c.tokens.create(CreateTokenRequest()),
        "GET /v1/auth/tokens/t": c.tokens.get("t"),
        "DELETE /v1/auth/tokens/t": c.tokens.delete("t"),
        "POST /v1/auth/tokens/t/rotate": c.tokens.rotate("t"),
    }
    for wanted, coroutine in calls.items():
        call = sent(coroutine)
        assert f"{call.method} {call.path}" == wanted


MADE_SAFE: list[Callable[[], Coroutine[Any, Any, Any]]] = [
    lambda: PLAIN.memories.create([ClientMemoryRecord(id="m", text="x")]),
    lambda: PLAIN.memories.forget(ForgetPolicy()),
    lambda: PLAIN.views.create(CreateSummaryViewRequest(source="long_term")),
    lambda: PLAIN.views.run_partition("v", {}),
    lambda: PLAIN.views.run("v"),
    lambda: PLAIN.sessions.flush("s"),
    lambda: PLAIN.jobs.replay("o"),
    lambda: PLAIN.changes.undo("c"),
    lambda: PLAIN.changes.undo_batch("b"),
]


@pytest.mark.parametrize("build", MADE_SAFE)
def test_unsafe_calls_get_a_unique_idempotency_key(build: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    first, second = sent(build()), sent(build())
    assert first.idempotent
    assert len(first.headers["Idempotency-Key"]) == 26
    assert first.headers["Idempotency-Key"] != second.headers["Idempotency-Key"], "every call is a request of its own"


def test_append_and_search_send_no_idempotency_key() -> None:
    assert sent(PLAIN.sessions.append("s", HELLO)).headers == {}
    assert sent(PLAIN.memories.search("x")).headers == {}
    assert not sent(PLAIN.server.ready()).idempotent
    assert not sent(PLAIN.jobs.drop("o")).idempotent
    assert not sent(PLAIN.tokens.create(CreateTokenRequest())).idempotent
    assert not sent(PLAIN.tokens.rotate("t")).idempotent
    assert not sent(PLAIN.tokens.delete("t")).idempotent
    assert not sent(PLAIN.quarantine.approve("m")).idempotent


def test_given_idempotency_key_is_sent_and_validated() -> None:
    records = [ClientMemoryRecord(text="x")]
    assert sent(PLAIN.memories.create(records, idempotency_key="job-7")).headers == {"Idempotency-Key": "job-7"}
    for bad in ("", "ключ", "a\nb", "x" * 256):
        with pytest.raises(MemoryValidationError, match="idempotency_key"):
            sent(PLAIN.memories.create(records, idempotency_key=bad))


def test_wait_is_sent_and_added_to_the_client_timeout() -> None:
    flush = sent(PLAIN.sessions.flush("s", user_id="ada", wait=True))
    assert (flush.params, flush.wait) == ({"user_id": "ada", "wait": "true"}, 10.0)
    call = sent(WITH_DEFAULTS.sessions.delete("s", memories=True, wait=2.5))
    assert (call.params, call.wait) == ({"namespace": "app", "memories": "true", "wait": "2.5"}, 2.5)
    assert sent(PLAIN.memories.create([])).params == {}
    assert sent(PLAIN.memories.create([], wait=5)).params == {"wait": "5"}
    for bad in (-1, float("nan"), float("inf")):
        with pytest.raises(MemoryValidationError, match="wait"):
            sent(PLAIN.sessions.flush("s", wait=bad))


def test_delete_user_covers_all_namespaces_unless_one_is_given() -> None:
    assert sent(WITH_DEFAULTS.users.delete("ada")).params == {}
    assert sent(WITH_DEFAULTS.users.delete("ada", "app", 1)).params == {"namespace": "app", "wait": "1"}


@pytest.mark.parametrize("session_id", ["a b", "ü", "a?b#c%d", "a:b", "日本", "a%2Fb"])
def test_ids_are_encoded_as_one_path_segment(session_id: str) -> None:
    assert sent(PLAIN.sessions.get(session_id)).path == f"/v1/working-memory/{quote(session_id, safe='')}"


@pytest.mark.parametrize("session_id", ["", " ", "a/b", "..", "a\nb", "x" * 600])
def test_client_rejects_invalid_session_ids(session_id: str) -> None:
    with pytest.raises(MemoryValidationError, match="session_id"):
        sent(PLAIN.sessions.get(session_id))


def test_memory_ids_may_contain_anything_but_not_be_empty() -> None:
    assert sent(PLAIN.memories.get("a/b")).path == "/v1/long-term-memory/a%2Fb"
    assert sent(PLAIN.memories.get("..")).path == "/v1/long-term-memory/%2E%2E"
    with pytest.raises(MemoryValidationError, match="memory_id"):
        sent(PLAIN.memories.get(""))


def test_client_defaults_fill_missing_arguments() -> None:
    window = {"model_name": "m-1", "context_window_max": "4000"}
    assert sent(WITH_DEFAULTS.sessions.get("s", context_window_max=0)).params == {"namespace": "app", **window}
    assert sent(WITH_DEFAULTS.sessions.get("s", "ada", "own")).params == {"namespace": "own", "user_id": "ada", **window}
    own = sent(WITH_DEFAULTS.sessions.get("s", model_name="m-2", context_window_max=10)).params  # pyright: ignore
    assert own == {"namespace": "app", "model_name": "m-2", "context_window_max": "10"}
    assert sent(WITH_DEFAULTS.sessions.delete("s")).params == {"namespace": "app"}
    assert sent(WITH_DEFAULTS.sessions.list(5, 2, user_id="ada")).params == {
        "limit": "5",
        "offset": "2",
        "namespace": "app",
        "user_id": "ada",
    }
    assert sent(PLAIN.sessions.get("s")).params == {}


def test_put_sends_scope_in_body_and_user_in_body_and_query() -> None:
    memory = WorkingMemory(session_id="s", user_id="old", messages=[MemoryMessage(role="user", content="x")], data={"a": None})
    call = sent(WITH_DEFAULTS.sessions.put("s", memory, "ada", "m", if_match='"3"'))
    assert (body(call)["namespace"], body(call)["user_id"], body(call)["session_id"]) == ("app", "ada", "s")
    assert call.params == {"user_id": "ada", "model_name": "m", "context_window_max": "4000"}
    assert call.headers == {"If-Match": '"3"'}
    assert body(call)["data"] == {"a": None}
    assert memory.namespace is None, "the caller's object must not change"


def test_put_sends_session_times_only_if_set() -> None:
    times = {"created_at", "updated_at", "last_accessed"}
    assert times.isdisjoint(body(sent(PLAIN.sessions.put("s", WorkingMemory(session_id="s")))))
    stored = WorkingMemoryResponse.model_validate({"session_id": "s", "created_at": "2024-01-01T00:00:00Z"})
    sent_body = body(sent(PLAIN.sessions.put("s", stored)))
    assert sent_body["created_at"] == "2024-01-01T00:00:00Z"
    assert "context_percentage_total_used" not in sent_body


def test_every_message_is_sent_with_id_and_time() -> None:
    messages = [{"role": "user", "content": "x", "id": None}, MemoryMessage(role="tool", content="y", id="2")]
    sent_body = body(sent(WITH_DEFAULTS.sessions.append("s", messages, user_id="ada")))
    assert (sent_body["namespace"], sent_body["user_id"]) == ("app", "ada")
    assert len(sent_body["messages"][0]["id"]) == 26
    assert sent_body["messages"][1]["id"] == "2"
    assert all(message["created_at"].endswith("Z") for message in sent_body["messages"])


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"role": "user"}, "content"),
        ({"content": "x"}, "role"),
        ({"role": "user", "content": " "}, "content"),
        ("text", "messages"),
        (5, "messages"),
    ],
)
def test_client_rejects_invalid_messages_with_the_field_name(message: Any, field: str) -> None:
    with pytest.raises(MemoryValidationError, match=field):
        sent(PLAIN.sessions.append("s", [message]))


def test_create_adds_default_namespace_without_changing_the_callers_memories() -> None:
    own, given = ClientMemoryRecord(text="a"), MemoryRecord(id="m", text="b", namespace="other", metadata={"k": None})
    sent_body = body(sent(WITH_DEFAULTS.memories.create([own, given], False)))
    assert [record["namespace"] for record in sent_body["memories"]] == ["app", "other"]
    assert sent_body["memories"][0]["id"] == own.id
    assert sent_body["memories"][1]["metadata"] == {"k": None}
    assert sent_body["deduplicate"] is False
    assert own.namespace is None


async def test_delete_splits_long_id_lists_into_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Call] = []

    async def answer(_: object, call: Call) -> httpx.Response:
        calls.append(call)
        return httpx.Response(200, json={"status": "ok, deleted 1 memories"})

    monkeypatch.setattr(Transport, "send", answer)
    ids = [f"memory-{number:04}" for number in range(2000)]
    await PLAIN.memories.delete(ids)
    assert [memory_id for call in calls for memory_id in call.params["memory_ids"]] == ids
    for call in calls:
        assert sum(len(f"memory_ids={memory_id}&") for memory_id in call.params["memory_ids"]) <= MAX_QUERY_CHARS
    calls.clear()
    await PLAIN.memories.delete([])
    assert [call.params for call in calls] == [{"memory_ids": []}]
    calls.clear()
    await PLAIN.memories.delete(["ö" * 2000, "b"])
    assert len(calls) == 2


def test_forget_always_sends_dry_run() -> None:
    call = sent(WITH_DEFAULTS.memories.forget(ForgetPolicy(max_age_days=30), user_id="ada", limit=5, pinned_ids=["m"]))
    assert call.params == {"user_id": "ada", "limit": "5", "dry_run": "false"}
    assert call.json == {"policy": {"max_age_days": 30.0}, "pinned_ids": ["m"]}


def test_search_sends_filters_given_as_objects_or_dicts() -> None:
    search = WITH_DEFAULTS.memories.search(
        "tea",
        session_id=SessionId(in_=["a"]),
        topics={"none": ["x"]},
        created_at=CreatedAt(gte="2024-01-01"),  # pyright: ignore
        recency=RecencyConfig(recency_boost=False, semantic_weight=0.5, half_life_created_days=7, server_side_recency=True),
        limit=3,
    )
    request = body(sent(search))
    assert request == {
        "text": "tea",
        "limit": 3,
        "offset": 0,
        "session_id": {"in_": ["a"]},
        "topics": {"none": ["x"]},
        "created_at": {"gte": "2024-01-01", "inclusive": "both"},
        "namespace": {"eq": "app"},
        "recency_boost": False,
        "recency_semantic_weight": 0.5,
        "recency_half_life_created_days": 7.0,
        "server_side_recency": True,
    }
    assert SearchRequest.model_validate(request)
    assert body(sent(WITH_DEFAULTS.memories.search("", namespace={"eq": "own"})))["namespace"] == {"eq": "own"}
    assert sent(PLAIN.memories.search("x", optimize_query=True)).params == {"optimize_query": "true"}


def test_prompt_is_scoped_to_the_default_namespace() -> None:
    search = {"text": "tea", "limit": 5, "user_id": {"eq": "ada"}}
    call = sent(WITH_DEFAULTS.prompts.render("tea", "s", None, "my-litellm-model", 100, search, "ada"))
    assert call.params == {"optimize_query": "false"}
    assert call.json == {
        "query": "tea",
        "session": {"session_id": "s", "namespace": "app", "user_id": "ada", "model_name": "my-litellm-model", "context_window_max": 100},
        "long_term_search": {**search, "namespace": {"eq": "app"}},
    }
    assert "namespace" not in search, "the caller's object must not change"
    assert body(sent(PLAIN.prompts.render("q", namespace="own", long_term_search={}))) == {
        "query": "q",
        "namespace": "own",
        "long_term_search": {"namespace": {"eq": "own"}},
    }
    assert body(sent(PLAIN.prompts.render("q", long_term_search=True))) == {"query": "q", "long_term_search": True}
    search_request = SearchRequest(text="x", session_id=SessionId(ne="s"))
    sent_body = body(sent(PLAIN.prompts.render("q", long_term_search=search_request)))["long_term_search"]
    assert SearchRequest.model_validate(sent_body).session_id == SessionId(ne="s")


def test_view_run_sends_a_new_task_id() -> None:
    first, second = body(sent(PLAIN.views.run("v"))), body(sent(PLAIN.views.run("v", True)))
    assert first["task_id"] != second["task_id"]
    assert second["force"] is True
