"""The request builders: method, path, query and body of every call, with the client's defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from agent_memory_client._calls import MAX_QUERY_CHARS, Call, Calls
from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.errors import MemoryValidationError
from agent_memory_client.models import (
    ClientMemoryRecord,
    CreatedAt,
    CreateSummaryViewRequest,
    ForgetPolicy,
    MemoryMessage,
    MemoryRecord,
    RecencyConfig,
    SearchRequest,
    SessionId,
    WorkingMemory,
    WorkingMemoryResponse,
)

PLAIN = Calls(MemoryClientConfig(base_url="http://memory"))
WITH_DEFAULTS = Calls(
    MemoryClientConfig(base_url="http://memory", default_namespace="app", default_model_name="m-1", default_context_window_max=4000)
)


def body(call: Call) -> dict[str, Any]:
    assert call.json is not None
    return call.json


def test_paths_and_methods() -> None:
    calls = {
        "GET /v1/health": PLAIN.health(),
        "GET /v1/ready": PLAIN.ready(),
        "GET /v1/working-memory/": PLAIN.list_sessions(20, 0, None, None),
        "GET /v1/working-memory/s": PLAIN.get_session("s", None, None),
        "PUT /v1/working-memory/s": PLAIN.put_session("s", WorkingMemory(session_id="s"), None, {}, {}),
        "POST /v1/working-memory/s/messages": PLAIN.append("s", [{"role": "user", "content": "x"}], None, None, {}),
        "DELETE /v1/working-memory/s": PLAIN.delete_session("s", None, None),
        "POST /v1/long-term-memory/": PLAIN.create_memories([], True),
        "GET /v1/long-term-memory/m": PLAIN.get_memory("m"),
        "PATCH /v1/long-term-memory/m": PLAIN.edit_memory("m", {"text": "x"}),
        "DELETE /v1/long-term-memory": PLAIN.delete_memories(["m"])[0],
        "POST /v1/long-term-memory/forget": PLAIN.forget(ForgetPolicy(), None, None, None, None, False, None),
        "POST /v1/long-term-memory/search": PLAIN.search({"text": "x"}, False),
        "POST /v1/memory/prompt": PLAIN.prompt("q", None, None, None, {}, True, False),
        "GET /v1/summary-views": PLAIN.list_views(),
        "POST /v1/summary-views": PLAIN.create_view(CreateSummaryViewRequest(source="long_term")),
        "GET /v1/summary-views/v": PLAIN.get_view("v"),
        "DELETE /v1/summary-views/v": PLAIN.delete_view("v"),
        "POST /v1/summary-views/v/partitions/run": PLAIN.run_partition("v", {"user_id": "ada"}),
        "GET /v1/summary-views/v/partitions": PLAIN.list_partitions("v", None, None, None, None),
        "POST /v1/summary-views/v/run": PLAIN.run_view("v", False),
        "GET /v1/tasks/t": PLAIN.get_task("t"),
        "POST /v1/working-memory/s/flush": PLAIN.flush_session("s", None, None, None),
        "POST /v1/long-term-memory/explain": PLAIN.explain("m", {"text": "x"}),
        "POST /v1/long-term-memory/compact": PLAIN.compact(None, None),
        "DELETE /v1/users/a%2Fb": PLAIN.delete_user("a/b", None, None),
        "GET /v1/operations": PLAIN.list_operations(None, None, 20, 0),
        "GET /v1/operations/o": PLAIN.get_operation("o"),
        "POST /v1/operations/o/replay": PLAIN.replay_operation("o"),
        "DELETE /v1/operations/o": PLAIN.drop_operation("o"),
    }
    for wanted, call in calls.items():
        assert f"{call.method} {call.path}" == wanted


MADE_SAFE: list[Callable[[], Call]] = [
    lambda: PLAIN.create_memories([ClientMemoryRecord(id="m", text="x")], True),
    lambda: PLAIN.forget(ForgetPolicy(), None, None, None, None, False, None),
    lambda: PLAIN.create_view(CreateSummaryViewRequest(source="long_term")),
    lambda: PLAIN.run_partition("v", {}),
    lambda: PLAIN.run_view("v", False),
    lambda: PLAIN.flush_session("s", None, None, None),
    lambda: PLAIN.replay_operation("o"),
]


@pytest.mark.parametrize("build", MADE_SAFE)
def test_what_is_not_safe_to_repeat_by_itself_is_made_so_by_a_key_of_its_own(build: Callable[[], Call]) -> None:
    first, second = build(), build()
    assert first.idempotent
    assert len(first.headers["Idempotency-Key"]) == 26
    assert first.headers["Idempotency-Key"] != second.headers["Idempotency-Key"], "every call is a request of its own"


def test_what_is_safe_by_itself_has_no_key() -> None:
    assert PLAIN.append("s", [{"role": "user", "content": "x"}], None, None, {}).headers == {}
    assert PLAIN.search({"text": "x"}, False).headers == {}
    assert not PLAIN.ready().idempotent
    assert not PLAIN.drop_operation("o").idempotent


def test_a_key_of_the_callers_own_is_sent() -> None:
    records = [ClientMemoryRecord(text="x")]
    assert PLAIN.create_memories(records, True, idempotency_key="job-7").headers == {"Idempotency-Key": "job-7"}
    for bad in ("", "ключ", "a\nb", "x" * 256):
        with pytest.raises(MemoryValidationError, match="idempotency_key"):
            PLAIN.create_memories(records, True, idempotency_key=bad)


def test_a_wait_is_asked_for_and_counted() -> None:
    assert (PLAIN.flush_session("s", None, "ada", True).params, PLAIN.flush_session("s", None, None, True).wait) == (
        {"user_id": "ada", "wait": "true"},
        10.0,
    )
    call = WITH_DEFAULTS.delete_session("s", None, None, True, 2.5)
    assert (call.params, call.wait) == ({"namespace": "app", "memories": "true", "wait": "2.5"}, 2.5)
    assert PLAIN.create_memories([], True).params == {}
    assert PLAIN.create_memories([], True, wait=5).params == {"wait": "5"}
    for bad in (-1, float("nan"), float("inf")):
        with pytest.raises(MemoryValidationError, match="wait"):
            PLAIN.flush_session("s", None, None, bad)


def test_a_user_is_deleted_in_all_namespaces_unless_one_is_named() -> None:
    assert WITH_DEFAULTS.delete_user("ada", None, None).params == {}
    assert WITH_DEFAULTS.delete_user("ada", "app", 1).params == {"namespace": "app", "wait": "1"}


@pytest.mark.parametrize("session_id", ["a b", "ü", "a?b#c%d", "a:b", "日本", "a%2Fb"])
def test_ids_are_one_encoded_segment_of_the_path(session_id: str) -> None:
    assert PLAIN.get_session(session_id, None, None).path == f"/v1/working-memory/{quote(session_id, safe='')}"


@pytest.mark.parametrize("session_id", ["", " ", "a/b", "..", "a\nb", "x" * 600])
def test_bad_session_ids_are_refused_here(session_id: str) -> None:
    with pytest.raises(MemoryValidationError, match="session_id"):
        PLAIN.get_session(session_id, None, None)


def test_memory_ids_may_hold_anything_but_nothing() -> None:
    assert PLAIN.get_memory("a/b").path == "/v1/long-term-memory/a%2Fb"
    assert PLAIN.get_memory("..").path == "/v1/long-term-memory/%2E%2E"
    with pytest.raises(MemoryValidationError, match="memory_id"):
        PLAIN.get_memory("")


def test_defaults_fill_what_is_not_given() -> None:
    window = WITH_DEFAULTS.window(None, 0)
    assert window == {"model_name": "m-1", "context_window_max": 4000}
    assert WITH_DEFAULTS.get_session("s", None, None, window).params == {
        "namespace": "app",
        "model_name": "m-1",
        "context_window_max": "4000",
    }
    assert WITH_DEFAULTS.get_session("s", "ada", "own").params == {"namespace": "own", "user_id": "ada"}
    assert WITH_DEFAULTS.window("m-2", 10) == {"model_name": "m-2", "context_window_max": 10}
    assert WITH_DEFAULTS.delete_session("s", None, None).params == {"namespace": "app"}
    assert WITH_DEFAULTS.list_sessions(5, 2, None, "ada").params == {"limit": "5", "offset": "2", "namespace": "app", "user_id": "ada"}
    assert PLAIN.window(None, None) == {}


def test_put_sends_scope_in_the_body_and_the_user_in_both() -> None:
    memory = WorkingMemory(session_id="s", user_id="old", messages=[MemoryMessage(role="user", content="x")], data={"a": None})
    call = WITH_DEFAULTS.put_session("s", memory, "ada", {"model_name": "m"}, {"If-Match": '"3"'})
    assert (body(call)["namespace"], body(call)["user_id"], body(call)["session_id"]) == ("app", "ada", "s")
    assert call.params == {"user_id": "ada", "model_name": "m"}
    assert call.headers == {"If-Match": '"3"'}
    assert body(call)["data"] == {"a": None}
    assert memory.namespace is None, "the caller's object must not change"


def test_put_sends_the_times_of_a_session_only_if_somebody_set_them() -> None:
    times = {"created_at", "updated_at", "last_accessed"}
    assert times.isdisjoint(body(PLAIN.put_session("s", WorkingMemory(session_id="s"), None, {}, {})))
    stored = WorkingMemoryResponse.model_validate({"session_id": "s", "created_at": "2024-01-01T00:00:00Z"})
    sent = body(PLAIN.put_session("s", stored, None, {}, {}))
    assert sent["created_at"] == "2024-01-01T00:00:00Z"
    assert "context_percentage_total_used" not in sent


def test_every_message_goes_out_with_id_and_time() -> None:
    call = WITH_DEFAULTS.append(
        "s", [{"role": "user", "content": "x", "id": None}, MemoryMessage(role="tool", content="y", id="2")], None, "ada", {}
    )
    sent = body(call)
    assert (sent["namespace"], sent["user_id"]) == ("app", "ada")
    assert len(sent["messages"][0]["id"]) == 26
    assert sent["messages"][1]["id"] == "2"
    assert all(message["created_at"].endswith("Z") for message in sent["messages"])


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
def test_bad_messages_are_refused_here_and_named(message: Any, field: str) -> None:
    with pytest.raises(MemoryValidationError, match=field):
        PLAIN.append("s", [message], None, None, {})


def test_memories_get_the_default_namespace_without_being_changed() -> None:
    own, given = ClientMemoryRecord(text="a"), MemoryRecord(id="m", text="b", namespace="other", metadata={"k": None})
    sent = body(WITH_DEFAULTS.create_memories([own, given], False))
    assert [record["namespace"] for record in sent["memories"]] == ["app", "other"]
    assert sent["memories"][0]["id"] == own.id
    assert sent["memories"][1]["metadata"] == {"k": None}
    assert sent["deduplicate"] is False
    assert own.namespace is None


def test_long_lists_of_ids_are_deleted_in_several_short_queries() -> None:
    ids = [f"memory-{number:04}" for number in range(2000)]
    calls = PLAIN.delete_memories(ids)
    assert [memory_id for call in calls for memory_id in call.params["memory_ids"]] == ids
    for call in calls:
        assert sum(len(f"memory_ids={memory_id}&") for memory_id in call.params["memory_ids"]) <= MAX_QUERY_CHARS
    assert [call.params for call in PLAIN.delete_memories([])] == [{"memory_ids": []}]
    assert len(PLAIN.delete_memories(["ö" * 2000, "b"])) == 2


def test_forget_always_says_whether_it_is_a_dry_run() -> None:
    call = WITH_DEFAULTS.forget(ForgetPolicy(max_age_days=30), None, "ada", None, 5, False, ["m"])
    assert call.params == {"user_id": "ada", "limit": "5", "dry_run": "false"}
    assert call.json == {"policy": {"max_age_days": 30.0}, "pinned_ids": ["m"]}


def test_filters_go_out_as_objects_or_as_they_are_given() -> None:
    sent = WITH_DEFAULTS.search_body(
        {"session_id": SessionId(in_=["a"]), "topics": {"none": ["x"]}, "created_at": CreatedAt(gte="2024-01-01"), "user_id": None},  # pyright: ignore
        RecencyConfig(recency_boost=False, semantic_weight=0.5, half_life_created_days=7, server_side_recency=True),
        text="tea",
        limit=3,
        distance_threshold=None,
    )
    assert sent == {
        "text": "tea",
        "limit": 3,
        "session_id": {"in_": ["a"]},
        "topics": {"none": ["x"]},
        "created_at": {"gte": "2024-01-01T00:00:00Z", "inclusive": "both"},
        "namespace": {"eq": "app"},
        "recency_boost": False,
        "recency_semantic_weight": 0.5,
        "recency_half_life_created_days": 7.0,
        "server_side_recency": True,
    }
    assert SearchRequest.model_validate(sent)
    assert WITH_DEFAULTS.search_body({"namespace": {"eq": "own"}})["namespace"] == {"eq": "own"}
    assert PLAIN.search({"text": "x"}, True).params == {"optimize_query": "true"}


def test_a_prompt_is_scoped_by_the_default_namespace() -> None:
    search = {"text": "tea", "limit": 5, "user_id": {"eq": "ada"}}
    call = WITH_DEFAULTS.prompt("tea", "s", None, "ada", {"model_name": "my-litellm-model"}, search, False)
    assert call.params == {"optimize_query": "false"}
    assert call.json == {
        "query": "tea",
        "session": {"session_id": "s", "namespace": "app", "user_id": "ada", "model_name": "my-litellm-model"},
        "long_term_search": {**search, "namespace": {"eq": "app"}},
    }
    assert "namespace" not in search, "the caller's object must not change"
    assert body(PLAIN.prompt("q", None, "own", None, {}, {}, False)) == {"query": "q", "long_term_search": {"namespace": {"eq": "own"}}}
    assert body(PLAIN.prompt("q", None, None, None, {}, True, False)) == {"query": "q", "long_term_search": True}
    sent = body(PLAIN.prompt("q", None, None, None, {}, SearchRequest(text="x", session_id=SessionId(ne="s")), False))["long_term_search"]
    assert SearchRequest.model_validate(sent).session_id == SessionId(ne="s")


def test_a_run_of_a_view_names_its_task() -> None:
    first, second = body(PLAIN.run_view("v", False)), body(PLAIN.run_view("v", True))
    assert first["task_id"] != second["task_id"]
    assert second["force"] is True
