"""Test memories, search, prompts and operations with both clients against a real server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from ulid import ULID

from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.runtime import Runtime
from agent_memory_client import MemoryAPIClient
from agent_memory_client.errors import MemoryConflictError, MemoryNotFoundError, MemoryServerError
from agent_memory_client.models import (
    ClientMemoryRecord,
    ForgetPolicy,
    MemoryRecord,
    MemoryTypeEnum,
    RecencyConfig,
    SearchRequest,
    UserId,
    WorkingMemory,
)
from tests.support.rig import claim_kind

FACTS = {
    "tea": "Ada drinks green tea every morning.",
    "bees": "Ada keeps three hives of bees behind the shed.",
    "ferry": "Ada takes the ferry to the observatory on Fridays.",
}


async def remember(memory: MemoryAPIClient, user_id: str = "ada") -> dict[str, str]:
    """Store the facts, wait until they are searchable, and return their ids by name."""
    records = {name: ClientMemoryRecord(text=text, user_id=user_id, topics=[name]) for name, text in FACTS.items()}
    done = await memory.create_long_term_memory(list(records.values()), wait=20)
    assert (done.status, done.searchable) == ("ok", True)
    return {name: record.id for name, record in records.items()}


async def test_memories_are_stored_read_changed_and_deleted(memory: MemoryAPIClient) -> None:
    ids = await remember(memory)
    stored = await memory.get_long_term_memory(ids["tea"])
    assert (stored.text, stored.namespace, stored.user_id) == (FACTS["tea"], memory.config.default_namespace, "ada")
    edited = await memory.edit_long_term_memory(ids["tea"], {"text": "Ada gave up tea.", "event_date": datetime(2026, 1, 2, tzinfo=UTC)})
    assert (edited.text, edited.event_date) == ("Ada gave up tea.", datetime(2026, 1, 2, tzinfo=UTC))
    assert (await memory.edit_long_term_memory(ids["tea"], {"event_date": None})).event_date is None
    assert (await memory.delete_long_term_memories([ids["tea"], "unknown"])).status == "ok, deleted 1 memories"
    with pytest.raises(MemoryNotFoundError):
        await memory.get_long_term_memory(ids["tea"])


async def test_memory_can_be_read_as_of_a_date_and_given_a_slot(memory: MemoryAPIClient) -> None:
    years = [datetime(year, 1, 1, tzinfo=UTC) for year in (2020, 2022, 2024)]
    names = ("Turin", "Oslo", "Rome")
    ids: dict[str, str] = {}
    for name, year in zip(names, years, strict=True):
        record = ClientMemoryRecord(text=f"Ada lives in {name}", user_id="ada", memory_type="semantic", valid_from=year)
        ids[name] = record.id
        # The client's searches are semantic: they find a memory only after it has a vector.
        assert (await memory.create_long_term_memory([record], wait=20)).searchable
    for name in ("Turin", "Rome", "Oslo"):  # the last fact gets a time between the others
        edited = await memory.edit_long_term_memory(ids[name], {"slot": "home_city"})
        assert edited.slot == "home_city"
    answer = await memory.search_long_term_memory("Ada lives in", user_id={"eq": "ada"})
    assert [one.text for one in answer.memories] == ["Ada lives in Rome"]
    slot = {"eq": "home_city"}
    then = await memory.search_long_term_memory("Ada lives in", user_id={"eq": "ada"}, slot=slot, as_of=years[0] + timedelta(days=9))
    assert [one.text for one in then.memories] == ["Ada lives in Turin"]
    ever = await memory.search_long_term_memory("Ada lives in", filter={"slot": slot}, history=True, source_class={"eq": "client"})
    assert {one.text for one in ever.memories} == {f"Ada lives in {name}" for name in names}
    ends = [(await memory.get_long_term_memory(ids[name])).valid_to for name in names]
    assert ends == [*years[1:], None]
    for name, year in zip(names, years, strict=True):
        assert (await memory.get_long_term_memory(ids[name], as_of=year + timedelta(days=9))).text == f"Ada lives in {name}"
    with pytest.raises(MemoryNotFoundError):
        await memory.get_long_term_memory(ids["Turin"], as_of=years[2])
    first = (await memory.get_memory_history(ids["Oslo"])).versions[-1].recorded_at
    assert first is not None
    assert (await memory.get_long_term_memory(ids["Oslo"], as_of=years[2], known_at=first)).slot is None
    assert (await memory.get_long_term_memory(ids["Oslo"], history=True)).valid_to == years[2]
    put_between = (await memory.list_changes(ids["Oslo"])).changes[0]
    await memory.undo_change_batch(put_between.batch_id)
    assert (await memory.get_long_term_memory(ids["Oslo"])).slot is None
    assert (await memory.get_long_term_memory(ids["Turin"])).valid_to == years[2]


async def test_client_returns_procedural_memory_type(memory: MemoryAPIClient) -> None:
    how = ClientMemoryRecord(text="To prune a hive, wait for a cold morning.", memory_type="procedural")
    assert (await memory.create_long_term_memory([how], wait=20)).searchable
    assert (await memory.get_long_term_memory(how.id)).memory_type == "procedural"
    assert [one.memory_type for one in (await memory.search_long_term_memory("prune a hive")).memories] == ["procedural"]
    assert (await memory.search_long_term_memory("prune a hive", memory_type={"eq": "semantic"})).memories == []
    await memory.put_working_memory("own", WorkingMemory(session_id="own", memories=[how]))
    assert [one.memory_type for one in (await memory.get_or_create_working_memory("own"))[1].memories] == ["procedural"]


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
async def test_search_finds_memories_in_every_mode(memory: MemoryAPIClient, mode: str) -> None:
    ids = await remember(memory)
    page = await memory.search_long_term_memory("hives of bees", search_mode=mode, user_id=UserId(eq="ada"), limit=2)
    assert page.memories[0].id == ids["bees"]
    with pytest.raises(MemoryServerError, match="hybrid_alpha"):
        await memory.search_long_term_memory("x", search_mode=mode, hybrid_alpha=7.0)


async def test_search_accepts_filters_recency_and_query_optimization(memory: MemoryAPIClient) -> None:
    ids = await remember(memory)
    page = await memory.search_long_term_memory(
        "what does she drink?",
        topics={"any": ["tea", "bees"]},
        created_at={"gte": datetime(2020, 1, 1, tzinfo=UTC)},
        memory_type={"in_": ["message", "semantic"]},
        recency=RecencyConfig(recency_boost=True, half_life_created_days=30),
        distance_threshold=1.5,
        optimize_query=True,
    )
    assert {hit.id for hit in page.memories} == {ids["tea"], ids["bees"]}
    assert (await memory.search_long_term_memory("tea", user_id={"eq": "nobody"})).memories == []


async def test_search_excludes_memories_below_min_trust(memory: MemoryAPIClient) -> None:
    records = [ClientMemoryRecord(text="Ada likes tea."), ClientMemoryRecord(text="A page says Ada hates tea.", source_class="tool")]
    await memory.create_long_term_memory(records, wait=20)
    assert len((await memory.search_long_term_memory("")).memories) == 2
    assert [one.text for one in (await memory.search_long_term_memory("", min_trust=0.5)).memories] == ["Ada likes tea."]


async def test_search_explains_its_ranking(memory: MemoryAPIClient) -> None:
    ids = await remember(memory)
    page = await memory.search_long_term_memory("hives of bees", explain=True, timezone="Europe/Lisbon", reference_time=datetime.now(UTC))
    assert page.memories[0].explanation
    assert page.memories[0].explanation.rank == 1
    why = await memory.explain_long_term_memory(ids["tea"], {"text": "hives of bees", "user_id": {"eq": "eve"}})
    assert (why.returned, why.reason, why.filters) == (False, "filtered", ["user_id"])
    why = await memory.explain_long_term_memory(ids["bees"], SearchRequest(text="hives of bees"))
    assert (why.returned, why.rank) == (True, 1)


async def test_memories_are_forgotten_by_a_policy(memory: MemoryAPIClient) -> None:
    namespace = memory.config.default_namespace
    old = ClientMemoryRecord(
        text="Ada had a cold.", user_id="ada", created_at=datetime(2020, 1, 1, tzinfo=UTC), last_accessed=datetime(2020, 1, 1, tzinfo=UTC)
    )
    spared = old.model_copy(update={"id": str(ULID()), "text": "Ada broke her leg."})
    young = ClientMemoryRecord(text="Ada is well.", user_id="ada")
    await memory.create_long_term_memory([old, spared, young])
    policy = ForgetPolicy(max_age_days=365)
    dry = await memory.forget_long_term_memories(policy, namespace=namespace, user_id="ada", dry_run=True, pinned_ids=[spared.id])
    assert (dry.scanned, dry.deleted, dry.deleted_ids, dry.dry_run) == (3, 1, [old.id], True)
    done = await memory.forget_long_term_memories(policy, namespace=namespace, user_id="ada", pinned_ids=[spared.id])
    assert (done.deleted, done.deleted_ids, done.dry_run) == (1, [old.id], False)
    with pytest.raises(MemoryNotFoundError):
        await memory.get_long_term_memory(old.id)
    assert (await memory.get_long_term_memory(spared.id)).text == spared.text


async def test_compact_merges_duplicates(memory: MemoryAPIClient) -> None:
    for _ in range(2):
        record = ClientMemoryRecord(text="Ada has a red bicycle.", user_id="ada", memory_type=MemoryTypeEnum.SEMANTIC)
        await memory.create_long_term_memory([record], deduplicate=False, wait=20)
    merged = await memory.compact_long_term_memories(memory.config.default_namespace, "ada")
    assert (merged.status, merged.pending) == ("ok, 1 memories remaining after compaction", False)
    assert merged.operation_id


async def test_search_all_reads_every_page(memory: MemoryAPIClient) -> None:
    ids = await remember(memory)
    found = [hit.id async for hit in memory.search_all_long_term_memories("", user_id={"eq": "ada"}, batch_size=2)]
    assert sorted(found) == sorted(ids.values())
    first = await memory.search_long_term_memory("", limit=2)
    assert (first.total, first.next_offset) == (3, 2)


async def test_bulk_create_stores_memories_in_batches(memory: MemoryAPIClient) -> None:
    records = [ClientMemoryRecord(text=f"Locker {number} belongs to team {number}.") for number in range(5)]
    answers = await memory.bulk_create_long_term_memories([records], batch_size=2, delay_between_batches=0)
    assert [answer.status for answer in answers] == ["ok"] * 3
    assert {(await memory.get_long_term_memory(record.id)).text for record in records} == {record.text for record in records}


async def test_prompt_contains_session_and_memories(memory: MemoryAPIClient) -> None:
    await remember(memory)
    await memory.append_messages("chat", [{"role": "user", "content": "Good morning!"}], user_id="ada")
    prompt = await memory.memory_prompt(
        "What does Ada drink?", session_id="chat", user_id="ada", long_term_search={"user_id": {"eq": "ada"}, "limit": 1}
    )
    said = prompt.to_openai()
    assert said[-1] == {"role": "user", "content": "What does Ada drink?"}
    assert any("Good morning!" in message["content"] for message in said)
    assert prompt.long_term_memories
    assert prompt.long_term_memories[0].text == FACTS["tea"]
    hydrated = await memory.hydrate_memory_prompt("hives", user_id={"eq": "ada"}, limit=1, recency_boost=False)
    assert [found.text for found in hydrated.long_term_memories or []] == [FACTS["bees"]]


async def test_idempotency_key_identifies_one_request(memory: MemoryAPIClient) -> None:
    key = f"import-{ULID()}"
    record = ClientMemoryRecord(text="Written under a key.")
    assert (await memory.create_long_term_memory([record], idempotency_key=key)).status == "ok"
    await memory.delete_long_term_memories([record.id])
    assert (await memory.create_long_term_memory([record], idempotency_key=key)).status == "ok", "the first answer again"
    with pytest.raises(MemoryNotFoundError):
        await memory.get_long_term_memory(record.id)
    with pytest.raises(MemoryServerError, match="Idempotency-Key"):
        await memory.create_long_term_memory([ClientMemoryRecord(text="Something else.")], idempotency_key=key)


async def give_up(runtime: Runtime) -> None:
    """Give up all pending memory work, as if it had failed too often."""
    await claim_kind(runtime.outbox, DueKind.MEMORY, limit=1000, lease_seconds=60, max_attempts=0)


async def test_operations_can_be_listed_read_replayed_and_dropped(waiting: tuple[MemoryAPIClient, Runtime]) -> None:
    memory, runtime = waiting
    record = MemoryRecord(id=str(ULID()), text="Nobody has embedded this yet.")
    stored = await memory.create_long_term_memory([record], wait=0.1)
    assert stored.searchable is False

    async def of_the_record(state: str) -> str | None:
        offset: int | None = 0
        while offset is not None:
            page = await memory.list_operations(state, "memory", limit=100, offset=offset)
            found = [operation.id for operation in page.operations if operation.memory_id == record.id]
            if found:
                return found[0]
            offset = page.next_offset
        return None

    operation_id = await of_the_record("pending")
    assert operation_id
    assert (await memory.get_operation(operation_id)).state == "pending"
    with pytest.raises(MemoryConflictError, match="not dead"):
        await memory.replay_operation(operation_id)
    await give_up(runtime)
    assert await of_the_record("dead") == operation_id
    assert (await memory.replay_operation(operation_id)).state == "pending"
    await give_up(runtime)
    assert (await memory.drop_operation(operation_id)).status == "ok"
    assert await of_the_record("dead") is None
    assert (await memory.get_long_term_memory(record.id)).text == record.text
    with pytest.raises(MemoryNotFoundError):
        await memory.get_operation("memory-nothing")


async def test_expired_wait_returns_pending(waiting: tuple[MemoryAPIClient, Runtime]) -> None:
    memory, _ = waiting
    await memory.append_messages("slow", [{"role": "user", "content": "Nobody reads this."}])
    assert (await memory.flush_working_memory("slow", wait=0.1)).status == "pending"
    assert (await memory.delete_user("nobody-yet", wait=0.1)).status == "pending"
