"""Test the entire worker against a real Redis: outbox, relay, docket and tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from docket import Disposition, Docket, Execution, TaskCall
from redis.exceptions import ConnectionError

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.errors import ModelAnswerInvalid
from agent_memory.foundation.core.feature import Feature
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind, TaskName
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.storage.outbox import Claims, Outbox
from agent_memory_client.models import CreateMemoryRecordRequest, SearchRequest
from agent_memory_worker import main, task_handlers
from agent_memory_worker.main import run_worker
from agent_memory_worker.retry_policy import backoff
from agent_memory_worker.task_handlers import Tasks
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig, claim_kind, gathered, record
from tests.support.waiting import wait_until

WORK = (DueKind.SESSION, DueKind.EXTRACTION, DueKind.MEMORY)
QUICK = {"WORKER_RETRY_BASE_SECONDS": 0.01, "WORKER_RETRY_MAX_SECONDS": 0.02, "WORKER_MAX_ATTEMPTS": 3, "EXTRACTION_DEBOUNCE_SECONDS": 0}


@asynccontextmanager
async def working(rig: Rig, count: int = 1) -> AsyncGenerator[asyncio.Event]:
    stop = asyncio.Event()
    rig.workers = [asyncio.create_task(run_worker(rig.rt, rig.settings, stop)) for _ in range(count)]
    try:
        yield stop
    finally:
        stop.set()
        await asyncio.gather(*rig.workers)


async def eventually(rig: Rig, condition: Callable[[], Awaitable[Any]], what: str) -> None:
    """Wait until `condition` is true. Fail if a worker stops."""

    async def checked() -> bool:
        return any(worker.done() for worker in rig.workers) or bool(await condition())

    await wait_until(checked, what)
    assert not any(worker.done() for worker in rig.workers), "a worker ended before its time"


async def rest(rig: Rig) -> None:
    async def nothing() -> bool:
        backlog = await rig.rt.outbox.backlog()
        return not any(one.pending for kind, one in backlog.items() if kind in WORK)

    await eventually(rig, nothing, "the workers' rest")


async def create(rig: Rig, *texts: str) -> None:
    body = CreateMemoryRecordRequest.model_validate({"memories": [{"id": text, "text": text} for text in texts]})
    await rig.rt[MemoryService].create(SCOPE, body)


async def found(rig: Rig, text: str, mode: str = "semantic") -> list[str]:
    answer = await rig.rt[SearchService].search(SCOPE, SearchRequest.model_validate({"text": text, "search_mode": mode, "limit": 100}))
    return [one.text for one in answer.memories]


@pytest.mark.parametrize("workers", [1, 3])
async def test_worker_does_all_work_exactly_once(make_rig: MakeRig, chat: OpenAIChat, workers: int) -> None:
    async with make_rig(chat, **QUICK) as rig, working(rig, workers):
        await gathered(rig.append(f"s{number}", f"Anna ate fig number {number}", "hello") for number in range(30))
        await create(rig, *(f"plum {number}" for number in range(100)))
        await rest(rig)
        stored = await rig.stored()
        kinds = [one.memory_type for one in stored]
        assert (kinds.count("message"), kinds.count("semantic")) == (30, 130)
        assert len({one.id for one in stored}) == len(stored)
        assert len(await found(rig, "plum")) == 100
        assert {kind: one.dead for kind, one in (await rig.rt.outbox.backlog()).items()} == dict.fromkeys(DueKind, 0)
        assert not {f"{what}:{kind}" for what in ("try", "why", "due", "dead") for kind in WORK} & await rig.raw_keys()


CALLS: list[str] = []


async def fail_once(runtime: Any, stop: asyncio.Event) -> None:
    CALLS.append("called")
    if len(CALLS) == 1:
        raise ValueError("the first call fails")
    try:
        await asyncio.Event().wait()
    finally:
        CALLS.append("canceled")


async def test_background_function_is_called_again_after_an_error_and_ends_with_the_worker(rig: Rig, monkeypatch: Any) -> None:
    monkeypatch.setattr(main, "FEATURES", (Feature("failing", background=(f"{__name__}:fail_once",)),))
    monkeypatch.setattr(main, "_RESTART_SECONDS", 0.01)
    CALLS.clear()

    async def is_called_again() -> bool:
        return len(CALLS) > 1

    async with working(rig):
        await eventually(rig, is_called_again, "the second call")
    assert CALLS == ["called", "called", "canceled"]


async def test_corrupt_memory_does_not_block_others(make_rig: MakeRig) -> None:
    async with make_rig(**QUICK) as rig:
        await create(rig, *(f"plum {number}" for number in range(10)))
        mid = rig.rt[MemoryStore].mid(SCOPE, "plum 3")
        await rig.rt.client.hset(rig.keys.memory(mid), "j", "{ this is no JSON")
        async with working(rig):
            await rest(rig)
        backlog = (await rig.rt.outbox.backlog())[DueKind.MEMORY]
        assert (backlog.pending, backlog.dead) == (0, 1)
        assert mid in await rig.rt.outbox.reasons(DueKind.MEMORY)
        assert await rig.rt.client.exists(*(rig.keys.vector(rig.rt[MemoryStore].mid(SCOPE, f"plum {n}")) for n in range(10))) == 9


async def test_dead_mark_that_is_set_again_starts_without_tries(make_rig: MakeRig) -> None:
    async with make_rig(**QUICK) as rig:
        await create(rig, "quince")
        mid = rig.rt[MemoryStore].mid(SCOPE, "quince")
        await rig.rt.client.hset(rig.keys.tries(DueKind.MEMORY), mid, "3 0")
        claim = partial(claim_kind, rig.rt.outbox, DueKind.MEMORY, limit=10, lease_seconds=60, max_attempts=3)
        assert (await claim()).given_up == 1
        await rig.rt.outbox.mark_due(DueKind.MEMORY, [mid])
        assert [(one.member, one.attempt) for one in (await claim()).claims] == [(mid, 1)]


async def test_broken_queue_of_one_kind_does_not_block_others(make_rig: MakeRig) -> None:
    async with make_rig(**QUICK) as rig:
        broken = rig.keys.due(DueKind.ORDER)
        await rig.rt.client.set(broken, "no marks")
        await create(rig, "the ferry to Elba")
        found = await rig.rt.outbox.claim_each(dict.fromkeys((DueKind.ORDER, DueKind.MEMORY), 10), lease_seconds=60, max_attempts=8)
        assert isinstance(found[DueKind.ORDER], Exception)
        claims = found[DueKind.MEMORY]
        assert isinstance(claims, Claims)
        for claim in claims.claims:
            await rig.rt.outbox.fail_claim(DueKind.MEMORY, claim, "given back", delay_seconds=0, forgive=True)
        async with working(rig):

            async def indexed() -> bool:
                return not await rig.marks(DueKind.MEMORY)

            await eventually(rig, indexed, "the vector")
            await rig.rt.client.delete(broken)
        assert len(claims.claims) == 1


async def test_indexing_resumes_after_an_embedder_outage(make_rig: MakeRig) -> None:
    async with make_rig(**QUICK) as rig, working(rig):
        rig.embedder.away = True
        await create(rig, "the ferry to Elba")
        await eventually(rig, lambda: rig.rt.outbox.reasons(DueKind.MEMORY), "the failure's reason")
        assert await found(rig, "ferry", "keyword") == ["the ferry to Elba"]
        rig.embedder.away = False

        async def indexed() -> bool:
            return not await rig.marks(DueKind.MEMORY)

        await eventually(rig, indexed, "the vector")
        assert await found(rig, "boat") == ["the ferry to Elba"]
        assert (await rig.rt.outbox.backlog())[DueKind.MEMORY].dead == 0


async def test_appends_during_a_slow_summary_are_processed_without_failures(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike
) -> None:
    """The next run processes the messages appended during the summary."""
    async with make_rig(chat, **QUICK) as rig, working(rig):
        long = [f"Turn {number}: somebody carried {number} baskets of figs to the harbour" for number in range(60)]
        lookalike.latency_seconds = 0.5
        try:
            await rig.append("s", *long, context_window_max=1000)
            await lookalike.wait_for_call("chat")
            for number in range(40):
                await rig.append("s", f"quick {number}", context_window_max=1000)
                await asyncio.sleep(0)
        finally:
            lookalike.latency_seconds = 0.0
        await rest(rig)
        assert {one.dead for one in (await rig.rt.outbox.backlog()).values()} == {0}
        assert len([one for one in await rig.stored() if one.memory_type == "message"]) == 100
        state = await rig.rt[SessionStore].get(SCOPE, SessionRef("s"))
        assert state is not None
        assert state.promoted_to == state.extracted_to == 100
        assert state.messages[-1].message.content == "quick 39"


async def test_shutdown_finishes_running_work_and_leaves_the_rest_due(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    async with make_rig(chat, **QUICK, INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY="false") as rig:
        lookalike.latency_seconds = 0.3
        try:
            async with working(rig):
                await rig.append("s", "Anna lives in Oslo")
                await lookalike.wait_for_call("chat")
        finally:
            lookalike.latency_seconds = 0.0
        assert [one.text for one in await rig.stored()] == ["User said: Anna lives in Oslo"]
        await rig.append("s", "Ben lives in Rome")
        async with working(rig):
            await rest(rig)
        assert len(await rig.stored()) == 2


async def test_work_of_a_dead_worker_is_done_by_another(make_rig: MakeRig) -> None:
    async with make_rig(**QUICK, WORKER_LEASE_SECONDS=1) as rig:
        await rig.append("s", "Anna lives in Oslo")
        (claim,) = await rig.claim(DueKind.SESSION, lease_seconds=1)
        await rig.begin(DueKind.SESSION, [claim], lease_seconds=1)
        async with working(rig):
            await rest(rig)
        assert [one.text for one in await rig.stored()] == ["Anna lives in Oslo"]


async def test_work_beyond_the_worker_concurrency_stays_in_the_outbox(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """In docket, the work would only wait until its leases expire and workers claim it again."""
    waiting = 0
    gate = asyncio.Event()
    promote = task_handlers.promote_session

    async def slow(runtime: Any, sid: str) -> int:
        nonlocal waiting
        waiting += 1
        await gate.wait()
        return await promote(runtime, sid)

    rounds: list[object] = []
    claim_each = Outbox.claim_each

    async def counted(outbox: Outbox, *args: Any, **more: Any) -> Any:
        rounds.append(args)
        return await claim_each(outbox, *args, **more)

    monkeypatch.setattr(Outbox, "claim_each", counted)
    monkeypatch.setattr(task_handlers, "promote_session", slow)
    async with make_rig(**QUICK, WORKER_CONCURRENCY=3) as rig:
        await gathered(rig.append(f"s{number}", f"fig {number}") for number in range(50))
        async with working(rig):

            async def busy() -> bool:
                return waiting == 2

            await eventually(rig, busy, "the first tasks")

            # The relay continues to request work, but hands over no more than this worker can process.
            before = len(rounds)

            async def asked_again() -> bool:
                return len(rounds) >= before + 5

            await eventually(rig, asked_again, "further rounds of the relay")
            assert len(await rig.rt.client.hvals(rig.keys.tries(DueKind.SESSION))) <= 12
            gate.set()
            await rest(rig)
        assert len(await rig.stored()) == 50


Schedule = Callable[[Docket, list[TaskCall]], Awaitable[list[Execution]]]


def fail_first_schedule(monkeypatch: pytest.MonkeyPatch, outcome: Schedule) -> list[int]:
    """Make docket's first scheduling call end with `outcome`. Return the number of its tasks."""
    add_many = Docket.add_many
    failed: list[int] = []

    async def schedule(docket: Docket, calls: Iterable[TaskCall], **more: Any) -> list[Execution]:
        if failed:
            return await add_many(docket, calls, **more)
        failed.append(len(calls := list(calls)))
        return await outcome(docket, calls)

    monkeypatch.setattr(Docket, "add_many", schedule)
    return failed


@pytest.mark.parametrize("arrives", [True, False])
async def test_failed_handover_to_docket_is_retried_before_the_lease_ends(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    add_many = Docket.add_many

    async def cut_off(docket: Docket, calls: list[TaskCall]) -> list[Execution]:
        if arrives:
            await add_many(docket, calls)
        raise ConnectionError("Connection closed by server.")

    async with make_rig(WORKER_LEASE_SECONDS=600) as rig:
        await rig.append("s", "Ana bought a house in Lisbon")
        failed = fail_first_schedule(monkeypatch, cut_off)
        async with working(rig):
            await eventually(rig, lambda: asyncio.sleep(0, bool(failed)), "a hand-over that was cut off")
            await rest(rig)
        assert failed == [1]
        assert [memory.text for memory in await rig.stored()] == ["Ana bought a house in Lisbon"]


@pytest.mark.parametrize("overdue", [True, False])
async def test_unscheduled_docket_tasks_are_retried_before_the_lease_ends(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch, overdue: bool
) -> None:
    """Covers all memories in a batch, including those whose earlier claim ended with its worker."""

    async def refuse(docket: Docket, calls: list[TaskCall]) -> list[Execution]:
        executions = [Execution(docket, call.function, call.args, call.kwargs, call.key, call.when, attempt=1) for call in calls]
        for execution in executions:
            execution.disposition = Disposition.FAILED
            execution.schedule_exception = ConnectionError("Connection closed by server.")
        return executions

    async with make_rig(WORKER_LEASE_SECONDS=600) as rig:
        await create(rig, "fig one", "fig two", "fig three")
        if overdue:
            claims = await rig.claim(DueKind.MEMORY, lease_seconds=0)
            assert len(claims) == 3
        failed = fail_first_schedule(monkeypatch, refuse)
        async with working(rig):
            await eventually(rig, lambda: asyncio.sleep(0, bool(failed)), "tasks that are refused")
            await rest(rig)
        assert sorted(await found(rig, "fig")) == ["fig one", "fig three", "fig two"]


async def test_redelivery_after_completion_does_not_block_the_next_task_of_its_key(rig: Rig) -> None:
    async with rig.rt.docket() as docket:
        Tasks(rig.rt).register(docket)
        call = docket.call(TaskName.PROCESS_SESSION.value, key="session:s")("s", 1, 1)
        await docket.add_many([call])
        run, delivered_again = (
            Execution(docket, call.function, call.args, call.kwargs, call.key, call.when, attempt=1, generation=1) for _ in range(2)
        )
        assert await run.claim("a worker that stood still for a while")
        await run.mark_as_completed()
        assert not await delivered_again.claim("a worker that dies at once")
        (following,) = await docket.add_many([call])
        assert following.disposition is Disposition.SCHEDULED


async def test_every_task_has_an_implementation(rig: Rig) -> None:
    async with rig.rt.docket() as docket:
        Tasks(rig.rt).register(docket)
        assert {name.value for name in TaskName} <= set(docket.tasks)
        with pytest.raises(AttributeError):
            Tasks.register(object(), docket)  # pyright: ignore[reportArgumentType]


async def test_failure_is_recorded_with_type_and_reason(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any) -> int:
        raise ModelAnswerInvalid("it talks nonsense", reason="not JSON")

    async def bug(*_: Any) -> int:
        raise KeyError("a defect of ours")

    async with make_rig(**QUICK) as rig:
        for work, reason in ((broken, "ModelAnswerInvalid: it talks nonsense (not JSON)"), (bug, "KeyError: 'a defect of ours'")):
            monkeypatch.setattr(task_handlers, "promote_session", work)
            await rig.append("s", f"fig {reason}")
            (claim,) = await rig.claim(DueKind.SESSION)
            await Tasks(rig.rt).process_session(claim.member, claim.lease, claim.attempt)
            assert (await rig.rt.outbox.reasons(DueKind.SESSION))[claim.member] == reason


async def test_failed_batch_is_retried_memory_by_memory(make_rig: MakeRig) -> None:
    async with make_rig(**QUICK) as rig:
        await rig.rt[MemoryStore].write(SCOPE, [record(f"plum {number}") for number in range(5)])
        claims = await rig.claim(DueKind.MEMORY)
        rig.embedder.away = True
        await Tasks(rig.rt).index_memories([c.member for c in claims], [c.lease for c in claims], [c.attempt for c in claims])
        rig.embedder.away = False
        assert len(await rig.rt.outbox.reasons(DueKind.MEMORY)) == 5
        await rig.make_due(DueKind.MEMORY)
        async with working(rig):
            await rest(rig)
        assert len(await found(rig, "plum")) == 5
        assert await rig.rt.outbox.reasons(DueKind.MEMORY) == {}


def test_backoff_doubles_with_jitter_up_to_the_maximum() -> None:
    for attempt in range(1, 200):
        whole = min(300.0, 1.0 * 2 ** min(attempt - 1, 30))
        assert whole / 2 <= backoff(attempt, 1.0, 300.0) <= whole
    assert backoff(0, 1.0, 300.0) <= 1.0
