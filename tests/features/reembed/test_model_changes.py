"""Test embedding model changes, including processes that miss part of a change.

An OpenAI-compatible server computes the vectors. A runtime with `begin=False` does not follow the
change, as if it were asleep. `look` wakes it up.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.reindex import Reindexer
from agent_memory.features.reembed import command, switch
from agent_memory.features.reembed import store as reembed_store
from agent_memory.features.reembed.embedding_choice import EmbeddingChoice
from agent_memory.features.reembed.service import ReembedService
from agent_memory.foundation.core.errors import BadInput, Conflict, ModelUnavailable, StartupError
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm import profiles
from agent_memory.interfaces.cli.app import app
from agent_memory_client.models import EditMemoryRecordRequest, OperationState, ReembedRequest, SearchModeEnum, SearchRequest
from agent_memory_worker import reembed
from agent_memory_worker.memories.expiry import sweep
from agent_memory_worker.privacy.erase import erase
from tests.support.lookalike import Lookalike
from tests.support.model_changes import FIRST, SECOND, Store, act, fields, filling, reach, start, store, uses
from tests.support.rig import SCOPE, Rig, record
from tests.support.stack import stack
from tests.support.waiting import wait_until

__all__ = ["store"]


async def by_meaning(rig: Rig, text: str) -> list[str]:
    request = SearchRequest(text=text, search_mode=SearchModeEnum.SEMANTIC, limit=20)
    return [memory.id for memory in (await rig.rt[SearchService].search(SCOPE, request)).memories]


@pytest.mark.parametrize("dry_run", [True, False])
async def test_unknown_local_model_is_refused_with_the_known_ones(store: Store, dry_run: bool, tmp_path: Path) -> None:
    rig = await store.open()
    with pytest.raises(BadInput, match="must be a directory, or one of multilingual-e5-small, ") as refused:
        await start(rig, ReembedRequest(model="status", provider="local", dry_run=dry_run))
    assert refused.value.field == "model"
    with pytest.raises(BadInput, match="cannot use this model: "):
        await start(rig, ReembedRequest(model=str(tmp_path), provider="local", dry_run=dry_run))
    assert (await rig.rt[ReembedService].read_status()).phase == "none"


async def test_failure_to_follow_a_change_is_logged_only_when_it_changes(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    rig = await store.open(begin=False)
    follower = rig.rt.switch
    assert follower is not None
    failures = iter(["no file", "no file", "no memory", "", "no memory"])

    async def look(*, other: bool = True) -> None:
        if failure := next(failures):
            raise StartupError(failure)

    follower.look = look
    for _ in range(5):
        await follower.follow()
    logged = [str(vars(entry)["error"]) for entry in caplog.records if "cannot follow" in entry.getMessage()]
    assert logged == ["no file", "no memory", "no memory"]


async def test_reembed_command_watches_a_change_until_searches_use_the_new_model(
    lookalike: Lookalike, make_settings: Callable[..., Any], redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(reembed, "_IDLE_SECONDS", 0.02)
    monkeypatch.setattr(reembed, "_SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(command, "_LOOK_SECONDS", 0.02)
    openai = {"EMBEDDING_PROVIDER": "openai", "EMBEDDING_BASE_URL": lookalike.url, "EMBEDDING_MODEL": "first", "EMBEDDING_DIMENSIONS": 64}
    async with stack(make_settings(**openai), redis_url) as url:
        watched = await asyncio.to_thread(CliRunner().invoke, app, ["reembed", "second", "--watch", "--json", "--url", url])
        assert watched.exit_code == 0, watched.output
        assert json.loads(watched.stdout)["phase"] == "swapped"
        text = await asyncio.to_thread(CliRunner().invoke, app, ["reembed", "--url", url])
        assert text.stdout.startswith("phase: swapped\nmodel: second\nother: first\n")


async def test_write_of_a_process_that_missed_the_switch_is_found(store: Store) -> None:
    awake, asleep = await store.open(), await store.open(begin=False)
    await awake.remember(record("a ferry to the island"))
    await start(awake)
    async with filling(awake.rt):
        await reach(awake, "swapped")
        await uses(awake, "second")
        await asleep.remember(record("tax forms"), record("a ferry to the island", "changed"))

        async def found() -> bool:
            return {"tax forms", "a ferry to the island"} <= set(await by_meaning(awake, "tax forms and a ferry to the island"))

        await wait_until(found, "the vectors of the new model")


async def test_process_that_slept_through_the_change_uses_the_new_model(store: Store) -> None:
    awake, asleep = await store.open(), await store.open(begin=False)
    await awake.remember(record("a ferry to the island"))
    await start(awake)
    async with filling(awake.rt):
        await reach(awake, "swapped")
        await uses(awake, "second")
        await act(awake, "confirm")
        await reach(awake, "none")
    # Its unfinished work adds no vector of the former model.
    await replace(asleep, rt=asleep.rt.current).remember(record("tax forms"))
    assert list(await fields(awake)) == [awake.rt.current.spec.field]
    assert asleep.rt.switch is not None
    await asleep.rt.switch.look()
    assert asleep.rt.current.spec == awake.rt.current.spec
    assert await by_meaning(asleep, "a ferry") == ["a ferry to the island"]


async def test_sleeping_process_adds_no_vector_after_the_end_of_a_change(store: Store) -> None:
    rig = await store.open()
    await rig.remember(record("a ferry to the island"))
    await start(rig)
    async with filling(rig.rt):
        await reach(rig, "swapped")
        await uses(rig, "second")
        second, mid = rig.rt.current, rig.rt[MemoryStore].mid(SCOPE, "a ferry to the island")
        await act(rig, "rollback")
        await reach(rig, "none")
    await reembed.fill_vectors(second, [mid])
    assert list(await fields(rig)) == [rig.rt.spec.field]


@pytest.mark.parametrize("action", ["confirm", "rollback", "abort"])
async def test_worker_that_starts_at_the_end_deletes_the_other_vectors(store: Store, action: Any) -> None:
    rig = await store.open()
    await rig.remember(record("a ferry to the island"), record("tax forms"))
    await start(rig, SECOND.model_copy(update={"rate": 2 if action == "abort" else 0}))
    async with filling(rig.rt):
        await reach(rig, "filling" if action == "abort" else "swapped", done=1)
    await act(rig, action)
    late = await store.open()
    async with filling(late.rt):
        await reach(late, "none")
    await uses(late, "second" if action == "confirm" else "first")
    assert await fields(late) == {late.rt.current.spec.field: 2}
    assert len(await by_meaning(late, "a ferry and tax forms")) == 2


async def test_worker_that_restarts_before_the_confirmation_embeds_nothing_again(store: Store) -> None:
    rig = await store.open()
    await rig.rt[Reindexer].reindex_for_model()
    await rig.remember(record("a ferry to the island"))
    await start(rig)
    async with filling(rig.rt):
        await reach(rig, "swapped")
        late = await store.open()
        await uses(late, "second")
        assert await late.rt[Reindexer].reindex_for_model() == 0
        await act(rig, "rollback")
        await reach(rig, "none")
    await uses(late, "first")
    assert await late.rt[Reindexer].reindex_for_model() == 0


async def test_confirmation_waits_for_live_processes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    rig, slow = await store.open(), await store.open(begin=False)
    assert slow.rt.switch is not None
    await start(rig)
    await slow.rt.switch.look()
    async with filling(rig.rt):
        await reach(rig, "swapped")
        await uses(rig, "second")

        async def refused() -> str:
            try:
                await rig.rt[ReembedService].act("confirm")
            except Conflict as error:
                return error.message
            return "confirmed"

        assert "1 processes do not use second yet" in await wait_until(refused, "an answer")
        # A process that wakes up late uses the first model until it looks.
        assert await by_meaning(slow, "a ferry") == []
        monkeypatch.setattr(reembed_store, "_LIVE_SECONDS", 0.0)
        assert await refused() == "confirmed"
        await reach(rig, "none")


async def test_change_starts_only_with_dimensions_of_the_model_server(store: Store, lookalike: Lookalike) -> None:
    rig = await store.open()
    lookalike.set_fault("500", endpoint="embeddings")
    with pytest.raises(ModelUnavailable):
        await start(rig)
    lookalike.set_fault(None)
    lookalike.set_fault("wrong_dimension", endpoint="embeddings")
    with pytest.raises(BadInput, match="cannot use this model"):
        await start(rig)
    lookalike.set_fault(None)
    await start(rig, ReembedRequest(model="second"))
    state = await rig.rt[reembed_store.ReembedStore].load_state()
    assert state is not None
    assert state.second == ("openai", "second", lookalike.dimensions)


async def test_second_model_has_its_own_least_similarity(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(profiles.PROFILES, "second", profiles.ModelProfile(least=0.42))
    rig = await store.open()
    first = rig.rt.settings.search.min_similarity
    await start(rig)
    async with filling(rig.rt):
        await reach(rig, "swapped")
    await uses(rig, "second")
    assert rig.rt.current.settings.search.min_similarity == 0.42 != first


async def test_time_left_is_measured_from_the_last_resumption(store: Store) -> None:
    rig = await store.open()
    await rig.remember(*(record(f"note {number}") for number in range(8)))
    await start(rig)
    key = f"{rig.keys.root}re"
    now = (await rig.rt.client.time())[0]
    await rig.rt.client.hset(key, mapping={"total": 8})
    await rig.rt.client.sadd(f"{rig.keys.root}re:todo", "a", "b")
    await act(rig, "pause")
    await act(rig, "resume")
    await rig.rt.client.hset(key, mapping={"since": now - 100})
    await rig.rt.client.srem(f"{rig.keys.root}re:todo", "a")
    status = await rig.rt[ReembedService].read_status()
    assert status.done == 7
    assert status.seconds_left is not None
    assert status.seconds_left == pytest.approx(100, abs=10)


@pytest.mark.parametrize("action", ["confirm", "rollback"])
async def test_each_phase_finds_new_memories_and_deletes_all_vectors_of_deleted_ones(store: Store, action: Any) -> None:
    rig, kept = await store.open(), set[str]()

    async def use(phase: str, word: str) -> None:
        assert (await rig.rt[ReembedService].read_status()).phase == phase
        records = [
            record(f"the {word} ferry", user_id="ada"),
            record(f"a {word} bus", user_id="ada"),
            record(f"a {word} train", user_id=word),
        ]
        await rig.rt[MemoryStore].write(SCOPE, records)
        await rig.work()
        kept.add(f"the {word} ferry")
        assert set(await by_meaning(rig, f"{word} ferry bus train")) == {*kept, f"a {word} bus", f"a {word} train"}
        await rig.rt[MemoryService].delete(SCOPE, [f"a {word} bus"])
        mark = await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, word, None))
        await erase(rig.rt, mark.member)
        await rig.work(DueKind.DELETION)
        assert set(await by_meaning(rig, f"{word} ferry bus train")) == kept

    await use("none", "red")
    await start(rig)
    await use("filling", "green")
    await act(rig, "pause")
    await use("paused", "blue")
    await act(rig, "resume")
    async with filling(rig.rt):
        await reach(rig, "swapped")
        await uses(rig, "second")
        await use("swapped", "white")

        async def is_filled() -> bool:
            return not await rig.rt.client.exists(f"{rig.keys.root}re:todo")

        await wait_until(is_filled, "both vectors of all memories")
    assert sorted((await fields(rig)).values()) == [len(kept)] * 2
    await act(rig, action)
    await uses(rig, model := "second" if action == "confirm" else "first")
    await use("ending", "black")
    async with filling(rig.rt):
        await reach(rig, "none")
    await use("none", "brown")
    assert rig.rt.current.spec.model == model
    assert await fields(rig) == {rig.rt.current.spec.field: len(kept)}
    documents = Counter(name[0] for name in await rig.raw_keys() if name.startswith(("m:", "v:", "h:", "p:")))
    assert documents == {"m": len(kept), "v": len(kept)}


@pytest.mark.parametrize("action", ["confirm", "rollback"])
async def test_text_that_the_new_model_refuses_delays_neither_switch_nor_end(store: Store, lookalike: Lookalike, action: Any) -> None:
    rig = await store.open()
    lookalike.refused = ("second", "forbidden")
    long = "The forbidden ship left the harbor at dawn. " * 60
    await rig.remember(record("a ferry to the island"), record("a forbidden ferry"), record(long, "long"), record("a forbidden bus", "bus"))
    # A former version with a refused text.
    await rig.rt[MemoryService].patch(SCOPE, "bus", EditMemoryRecordRequest(text="a bus to the harbor"))
    await rig.index()
    await start(rig)
    async with filling(rig.rt):
        await reach(rig, "swapped")
        await uses(rig, "second")
        status = await rig.rt[ReembedService].read_status()
        assert (status.refused, sorted(status.refused_ids), status.done) == (3, ["a forbidden ferry", "long"], status.texts)
        assert sorted(await by_meaning(rig, "a ferry and a bus")) == ["a ferry to the island", "bus"]
        found = await rig.rt[SearchService].search(SCOPE, SearchRequest(text="forbidden ferry", search_mode=SearchModeEnum.KEYWORD))
        assert "a forbidden ferry" in [memory.id for memory in found.memories]
        await act(rig, action)
        await reach(rig, "none")
    assert {name.count("v_") for name in await fields(rig)} == {1}
    # As for a new text that a model refuses: workers retry, and then give up.
    await rig.work()
    (state,) = await rig.rt[OperationService].load_states(SCOPE, [rig.rt[OperationService].memory_marks(SCOPE, ["a forbidden ferry"])])
    assert state == {OperationState.RETRYING if action == "confirm" else OperationState.DONE}
    lookalike.refused = None
    await rig.make_due(DueKind.MEMORY)
    await rig.work()
    assert sorted(await by_meaning(rig, "a ferry and a bus")) == ["a ferry to the island", "a forbidden ferry", "bus", "long"]


async def test_refused_text_of_a_former_version_delays_no_upkeep(store: Store, lookalike: Lookalike) -> None:
    rig = await store.open()
    await rig.rt[MemoryStore].write(SCOPE, [record("a forbidden bus", "bus"), record("a slow train", "train")])
    for name in ("bus", "train"):
        await rig.rt[MemoryService].patch(SCOPE, name, EditMemoryRecordRequest(text=f"a {name} to the harbor"))
    lookalike.refused = ("first", "forbidden")
    assert await sweep(rig.rt) == 2
    assert await sweep(rig.rt) == 0
    assert len([name for name in await rig.raw_keys() if name.startswith("h:")]) == 2
    assert sum((await fields(rig)).values()) == 1


async def test_model_that_refuses_every_text_is_not_used(store: Store, lookalike: Lookalike) -> None:
    rig = await store.open()
    await rig.remember(record("a ferry to the island"))
    await start(rig)
    lookalike.refused = ("second", "")
    async with filling(rig.rt):

        async def is_refused() -> bool:
            return "content policy" in ((await rig.rt[ReembedService].read_status()).error or "")

        await wait_until(is_refused, "a refusal")
        calls = lookalike.calls["embeddings"]
        await lookalike.wait_for_call("embeddings", calls + 6)
        assert (await rig.rt[ReembedService].read_status()).phase == "filling"
        lookalike.refused = None
        await reach(rig, "swapped")


@pytest.mark.parametrize("action", ["confirm", "rollback"])
async def test_change_ends_while_a_vector_is_always_missing(store: Store, monkeypatch: pytest.MonkeyPatch, action: Any) -> None:
    rig, pick, numbers = await store.open(), reembed_store.ReembedStore.pick, itertools.count()

    async def busy(self: Any, *arguments: Any) -> Any:
        picked = await pick(self, *arguments)
        await replace(rig, rt=rig.rt.current).remember(record(f"note {next(numbers)}"))
        return picked

    monkeypatch.setattr(reembed_store.ReembedStore, "pick", busy)
    await rig.remember(record("a ferry to the island"))
    await start(rig)
    async with filling(rig.rt):
        await reach(rig, "swapped")
        await uses(rig, "second")
        await act(rig, action)
        await reach(rig, "none")
    await uses(rig, "second" if action == "confirm" else "first")
    await wait_until(lambda: has_one_vector_each(rig), "no other vectors")


async def has_one_vector_each(rig: Rig) -> bool:
    counts = Counter(name[0] for name in await rig.raw_keys() if name.startswith(("m:", "v:")))
    return counts["m"] == counts["v"] and await fields(rig) == {rig.rt.current.spec.field: counts["v"]}


async def test_start_of_a_model_change_delays_no_writes(store: Store) -> None:
    rig = await store.open()
    await rig.remember(record("a ferry to the island"))
    before = await pauses(rig)
    await start(rig)
    async with filling(rig.rt):
        await reach(rig, "swapped")
    assert await pauses(rig) == before


async def pauses(rig: Rig) -> int:
    return (await rig.rt.client.info("commandstats")).get("cmdstat_client|pause", {"calls": 0})["calls"]


async def test_rollback_waits_for_processes_that_use_the_new_model(store: Store) -> None:
    rig, slow = await store.open(), await store.open(begin=False)
    assert slow.rt.switch is not None
    await start(rig)
    async with filling(rig.rt):
        await reach(rig, "swapped")
        await slow.rt.switch.look()
        await act(rig, "rollback")
        await uses(rig, "first")
        assert await by_meaning(slow, "a ferry") == []
        assert (await rig.rt[ReembedService].read_status()).phase == "ending"
        await slow.rt.switch.look()
        await slow.rt.switch.look()
        await reach(rig, "none")


async def test_change_back_to_the_former_model_reports_no_missing_index(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    rig = await store.open()
    await rig.remember(record("a ferry to the island"))
    async with filling(rig.rt):
        for request in (SECOND, FIRST):
            await start(rig, request)
            await reach(rig, "swapped")
            await uses(rig, request.model)
            assert await by_meaning(rig, "a ferry") == ["a ferry to the island"]
            await act(rig, "confirm")
            await reach(rig, "none")
    assert not [entry for entry in caplog.records if "is gone" in str(vars(entry))]


async def test_process_starts_before_the_other_index_is_complete(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = await store.open()
    await start(rig)
    monkeypatch.setattr(switch, "_LOOK_SECONDS", 3600)
    late = await store.open()
    assert late.rt.switch is not None
    assert late.rt.switch.find(EmbeddingChoice("openai", SECOND.model, SECOND.dimensions), 0) is None
    assert await by_meaning(late, "a ferry") == []
