"""Test the working memory service: replace, append, read, patch, delete and list."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.errors import BadInput, NotFound, VersionMismatch
from agent_memory_client.models import AppendMessagesRequest, UpdateWorkingMemory, WorkingMemoryResponse
from tests.support.rig import SCOPE, MakeRig, Rig, gathered


async def put(rig: Rig, body: dict[str, Any] | None = None, session_id: str = "s", **more: Any) -> WorkingMemoryResponse:
    return (await rig.rt[SessionService].put(SCOPE, session_id, UpdateWorkingMemory.model_validate(body or {}), **more)).session


async def get(rig: Rig, session_id: str = "s", **more: Any) -> WorkingMemoryResponse:
    return (await rig.rt[SessionService].get(SCOPE, session_id, **more)).session


def says(*texts: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text, "id": text[:50], **more} for text in texts]}


async def test_put_returns_what_a_later_get_returns(rig: Rig) -> None:
    body = says("a", "b") | {
        "context": "c",
        "data": {"k": [1, {}]},
        "tokens": 7,
        "ttl_seconds": 100,
        "memories": [{"id": "m", "text": "own", "topics": ["t"]}],
        "long_term_memory_strategy": {"strategy": "summary", "config": {"x": 1}},
        "created_at": "2020-01-01T00:00:00Z",
        "last_accessed": 1600000000,
    }
    answer, seen = await put(rig, body, context_window_max=1000), await get(rig, context_window_max=1000)
    assert answer.model_dump(exclude={"updated_at"}) == seen.model_dump(exclude={"updated_at"})
    assert abs(answer.updated_at - seen.updated_at) < timedelta(minutes=1)
    assert seen.created_at == datetime(2020, 1, 1, tzinfo=UTC)
    assert seen.memories[0].id == "m"


async def test_put_without_created_at_keeps_the_earlier_one(rig: Rig) -> None:
    first = await put(rig, says("a"))
    assert (await put(rig, says("b"))).created_at == first.created_at == (await get(rig)).created_at
    given = datetime(2020, 1, 1, tzinfo=UTC)
    await put(rig, says("b") | {"created_at": given.isoformat()})
    assert (await put(rig, says("c"))).created_at == given == (await get(rig)).created_at


async def test_repeated_put_without_ids_generates_the_same_ids(rig: Rig) -> None:
    body = {
        "messages": [{"role": "user", "content": "yes"}] * 2 + [{"role": "assistant", "content": "yes"}],
        "memories": [{"text": "figs"}],
    }
    first, second = await put(rig, body), await put(rig, body)
    ids = [message.id for message in first.messages]
    assert len(set(ids)) == 3
    assert ids == [message.id for message in second.messages] == [message.id for message in (await get(rig)).messages]
    assert first.memories[0].id == second.memories[0].id
    other = await put(rig, body, "t")
    assert other.memories[0].id != first.memories[0].id


async def test_scope_in_the_body_overrides_the_query_parameters(rig: Rig) -> None:
    await put(rig, says("a") | {"namespace": "body"}, namespace="query", user_id="query")
    seen = await get(rig, namespace="body", user_id="query")
    assert (seen.namespace, seen.user_id) == ("body", "query")
    with pytest.raises(NotFound):
        await get(rig, namespace="query", user_id="query")


async def test_session_is_found_by_id_alone_only_if_it_is_unique(rig: Rig) -> None:
    await put(rig, says("a") | {"namespace": "n", "user_id": "u"})
    for part in ({}, {"namespace": "n"}, {"user_id": "u"}, {"namespace": "", "user_id": ""}):
        assert (await get(rig, **part)).user_id == "u"
    for wrong in ({"namespace": "x"}, {"user_id": "n"}, {"namespace": "n", "user_id": "x"}):
        with pytest.raises(NotFound):
            await get(rig, **wrong)
    await put(rig, says("b") | {"namespace": "m", "user_id": "u"})
    for ambiguous in ({}, {"user_id": "u"}):
        with pytest.raises(NotFound):
            await get(rig, **ambiguous)
        await rig.rt[SessionService].delete(SCOPE, "s", **ambiguous)
    assert (await get(rig, namespace="m")).messages[0].content == "b"
    await put(rig, says("bare"))
    assert (await get(rig)).messages[0].content == "bare"
    await rig.rt[SessionService].delete(SCOPE, "s")
    await rig.rt[SessionService].delete(SCOPE, "s", namespace="m")
    assert (await get(rig)).namespace == "n"
    await rig.rt[SessionService].delete(SCOPE, "s")
    assert (await rig.rt[SessionService].list(SCOPE)).total == 0
    assert (await rig.rt[SessionService].delete(SCOPE, "s")).status == "ok"


async def test_recent_messages_limit_returns_the_last_messages_ordered_by_time(rig: Rig) -> None:
    times = ["2024-01-03T00:00:00", 1704067200, "2024-01-02T00:00:00+00:00"]  # naive, epoch (2024-01-01), aware
    messages = [{"role": "user", "content": str(at), "created_at": at} for at in times]
    await put(rig, {"messages": messages})
    assert [m.content for m in (await get(rig)).messages] == [str(at) for at in times]
    assert [m.content for m in (await get(rig, recent_messages_limit=2)).messages] == [str(times[1]), str(times[2])]
    for none in (0, -1, None):
        assert len((await get(rig, recent_messages_limit=none)).messages) == 3


async def test_context_window_limits_the_returned_messages_only(rig: Rig) -> None:
    await put(rig, says(*(f"message number {number} " + "word " * 50 for number in range(10))))
    seen = await get(rig, context_window_max=200)
    assert 1 <= len(seen.messages) < 10
    assert seen.messages[-1].content.startswith("message number 9")
    assert len((await get(rig, context_window_max=1)).messages) == 1
    assert len((await get(rig, context_window_max=0)).messages) == 10
    assert len((await get(rig, model_name="a-model-nobody-knows")).messages) == 10


async def test_context_percentages_follow_the_window(rig: Rig) -> None:
    await put(rig, says("word " * 699))
    tokens = rig.rt.counter.count_message("user", "word " * 699)
    seen = await get(rig, context_window_max=1000)
    assert seen.context_percentage_total_used == pytest.approx(tokens / 10)
    assert seen.context_percentage_until_summarization == pytest.approx(min(tokens / 7, 100))
    assert (await get(rig)).context_percentage_total_used is None
    empty = await put(rig, {}, "empty", context_window_max=1000)
    assert (empty.context_percentage_total_used, empty.context_percentage_until_summarization) == (0.0, 0.0)
    assert (await get(rig, context_window_max=1)).context_percentage_total_used == 100.0


async def test_future_message_times_are_refused_and_missing_ones_reported(rig: Rig, make_rig: MakeRig) -> None:
    late = (datetime.now(UTC) + timedelta(seconds=1000)).isoformat()
    with pytest.raises(BadInput) as refused:
        await put(rig, {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b", "created_at": late}]})
    assert refused.value.field == "messages.1.created_at"
    with pytest.raises(NotFound):
        await get(rig)
    answer = await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory.model_validate(says("a")))
    assert answer.missing_timestamps
    answer = await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory.model_validate(says("a", created_at=0)))
    assert not answer.missing_timestamps
    async with make_rig(REQUIRE_MESSAGE_TIMESTAMPS="true") as strict:
        with pytest.raises(BadInput):
            await put(strict, says("a"))
        assert (await put(strict, says("a", created_at=0))).messages


async def test_append_creates_extends_and_repeats_idempotently(rig: Rig) -> None:
    body = AppendMessagesRequest.model_validate(says("a", "b"))
    first = await rig.rt[SessionService].append(SCOPE, "s", body)
    again = await rig.rt[SessionService].append(SCOPE, "s", body)
    assert (first.appended, first.total_messages, first.version) == (2, 2, 1)
    assert (again.appended, again.total_messages, again.version, again.tokens) == (0, 2, 1, first.tokens)
    assert first.tokens == sum(rig.rt.counter.count_message("user", text) for text in "ab")
    with pytest.raises(VersionMismatch):
        await rig.rt[SessionService].append(SCOPE, "s", AppendMessagesRequest.model_validate(says("c")), if_match="7")
    assert await rig.contents("s") == ["a", "b"]


async def test_fifty_concurrent_appends_keep_every_message_and_version(rig: Rig) -> None:
    answers = await gathered(rig.append("s", f"{writer} one", f"{writer} two", context_window_max=100_000) for writer in range(50))
    said = await rig.contents("s")
    assert len(said) == len(set(said)) == 100
    assert sorted(answer.version for answer in answers) == list(range(1, 51))
    assert sorted(answer.total_messages for answer in answers) == list(range(2, 101, 2))
    for writer in range(50):
        assert said.index(f"{writer} two") == said.index(f"{writer} one") + 1


async def test_patch_data_changes_only_the_data(rig: Rig) -> None:
    await put(rig, says("a") | {"data": {"keep": 1, "drop": 2, "deep": {"x": 1, "y": 2}}, "ttl_seconds": 500, "namespace": "n"})
    answer = await rig.rt[SessionService].patch_data(SCOPE, "s", {"drop": None, "deep": {"y": None, "z": []}, "new": "é"})
    assert answer.session.data == {"keep": 1, "deep": {"x": 1, "z": []}, "new": "é"}
    assert (answer.version, answer.session.ttl_seconds, len(answer.session.messages)) == (2, 500, 1)
    with pytest.raises(VersionMismatch):
        await rig.rt[SessionService].patch_data(SCOPE, "s", {"a": 1}, if_match="1")
    assert (await rig.rt[SessionService].patch_data(SCOPE, "s", {"a": 1}, if_match="2")).version == 3
    with pytest.raises(NotFound):
        await rig.rt[SessionService].patch_data(SCOPE, "t", {"a": 1})
    with pytest.raises(NotFound):
        await rig.rt[SessionService].patch_data(SCOPE, "s", {"a": 1}, namespace="other")


async def test_concurrent_patches_and_appends_lose_nothing(rig: Rig) -> None:
    await put(rig)
    await gathered(
        [
            *(rig.rt[SessionService].patch_data(SCOPE, "s", {f"key {number}": number}) for number in range(20)),
            *(rig.append("s", f"message {number}") for number in range(20)),
        ]
    )
    seen = await get(rig)
    assert seen.data == {f"key {number}": number for number in range(20)}
    assert len(seen.messages) == 20


async def test_list_filters_and_pages_sessions(rig: Rig) -> None:
    for number in range(5):
        await put(rig, says("a") | {"namespace": "n" if number % 2 else "N"}, f"s{number}")
    assert (await rig.rt[SessionService].list(SCOPE)).model_dump() == {"sessions": [f"s{n}" for n in range(5)], "total": 5}
    assert (await rig.rt[SessionService].list(SCOPE, namespace="n")).sessions == ["s1", "s3"]
    assert (await rig.rt[SessionService].list(SCOPE, namespace="nobody")).total == 0
    assert (await rig.rt[SessionService].list(SCOPE, limit=2, offset=4)).model_dump() == {"sessions": ["s4"], "total": 5}
    assert (await rig.rt[SessionService].list(SCOPE, limit=2, offset=50)).model_dump() == {"sessions": [], "total": 5}


async def test_message_flags_are_stored_and_prevent_promotion(rig: Rig) -> None:
    stored = {"persisted_at": "2024-01-01T00:00:00Z", "discrete_memory_extracted": "t"}
    await put(rig, says("a", **stored))
    (message,) = (await get(rig)).messages
    assert message.persisted_at == datetime(2024, 1, 1, tzinfo=UTC)
    assert message.discrete_memory_extracted == "t"
    await rig.work()
    assert await rig.stored() == [], "what says it is done is not done again"
