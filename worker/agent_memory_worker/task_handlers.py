"""Handlers for the tasks defined in `foundation/core/task_kinds.py`.

Each task claims its pending work, and completes it or records a failure.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from time import monotonic
from typing import Any, cast

from docket import CurrentExecution, Docket, Execution, Timeout

from agent_memory.feature_list import FEATURES
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.errors import AgentMemoryError, ModelAnswerInvalid, RedisUnavailable
from agent_memory.foundation.core.feature import import_name
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Work, carrying_out
from agent_memory.foundation.core.task_kinds import DueKind, TaskName
from agent_memory.foundation.storage.outbox import Claim
from agent_memory.runtime import Runtime
from agent_memory_worker.extraction.dead_batches import move_failed_batch
from agent_memory_worker.extraction.extract import extract_facts
from agent_memory_worker.memories.indexing import index_memories
from agent_memory_worker.memories.long_texts import LongText, LongTexts
from agent_memory_worker.order_runner import carry_out
from agent_memory_worker.periodic_runner import register_jobs
from agent_memory_worker.privacy.erase import erase
from agent_memory_worker.retry_policy import is_outage, seconds_until_retry
from agent_memory_worker.sessions.pictures import describe_pictures
from agent_memory_worker.sessions.promote import promote_session
from agent_memory_worker.sessions.summarize import summarize_session

log = get_logger(__name__)

# After this many failed tries, a session is summarized without the model.
_PATIENCE = 3
# Delay for an unknown task, so that a worker that knows it can take it.
_PARKED_SECONDS = 1.0
# This is much longer than any session's work takes. A task that hangs must not block its mark forever.
_TIMEOUT = Timeout(timedelta(hours=1))
# Seconds that running embeddings get to finish when a worker stops.
_CLOSE_SECONDS = 3.0
# Groups of tasks that may wait long for a model, and the share of a worker's places that each group may use. The rest
# stays free for erasures.
_MODEL_TASKS = {
    **dict.fromkeys((DueKind.MEMORY, DueKind.ITEM), "embedding"),
    **dict.fromkeys((DueKind.SESSION, DueKind.EXTRACTION, DueKind.ORDER), "other"),
}
_SHARES = {"embedding": 0.25, "other": 0.9}
# Delay for work that found no place. The relay passes on little of it.
_FULL_SECONDS = 0.1
_DUE_WORK = {kind: function for feature in FEATURES for kind, function in feature.due_work.items()}


class Tasks:
    """Implements all tasks for one runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._opened = runtime
        self._embedding: set[asyncio.Task[None]] = set()
        self._long_texts = LongTexts()
        self._running = Counter[str]()

    @property
    def _runtime(self) -> Runtime:
        """The runtime for a single task, so that its embedding model stays the same."""
        return self._opened.current

    def full_kinds(self) -> list[DueKind]:
        """Return the kinds of tasks that have no free slots."""
        return [kind for kind, group in _MODEL_TASKS.items() if self._is_full(group)]

    def _is_full(self, group: str) -> bool:
        return self._running[group] >= max(1, int(self._opened.settings.worker.concurrency * _SHARES[group]))

    async def close(self, seconds: float = _CLOSE_SECONDS) -> None:
        """Wait up to `seconds` for running embeddings to finish, and then cancel the rest."""
        end = monotonic() + seconds
        # When an embedding ends, it may start the next one.
        while self._embedding and monotonic() < end:
            await asyncio.wait(self._embedding, timeout=end - monotonic(), return_when=asyncio.FIRST_COMPLETED)
        for task in self._embedding:
            task.cancel()

    def register(self, docket: Docket) -> None:
        """Register all tasks and periodic jobs. Fails if a task is not implemented."""
        for name in TaskName:
            docket.register(getattr(self, name.value), names=[name.value])
        register_jobs(self._opened, docket)

    async def erase(self, member: str, lease: int, attempt: int) -> None:
        async with self._begun(DueKind.DELETION, [member]) as claims:
            for claim in claims:
                await erase(self._runtime, claim.member)

    async def process_session(self, member: str, lease: int, attempt: int, timeout: Timeout = _TIMEOUT) -> None:
        """Promote, embed and, if necessary, summarize a session's messages."""
        async with self._begun_in_place(DueKind.SESSION, Claim(member, lease, attempt)) as claims:
            for claim in claims:
                self._embed_beside(await promote_session(self._runtime, member))
                await summarize_session(self._runtime, member, plainly=claim.attempt > _PATIENCE)
                await _settle(self._runtime, member)

    async def extract_facts(self, member: str, lease: int, attempt: int, timeout: Timeout = _TIMEOUT) -> None:
        async with self._begun_in_place(DueKind.EXTRACTION, Claim(member, lease, attempt)) as claims:
            for claim in claims:
                if claim.attempt <= self._runtime.settings.worker.max_attempts or not await move_failed_batch(self._runtime, member):
                    await self._extract(member)
                await _settle(self._runtime, member)

    async def _extract(self, member: str) -> None:
        failure: AgentMemoryError | None = None
        try:
            await describe_pictures(self._runtime, member)
        except AgentMemoryError as error:
            failure = error
        await extract_facts(self._runtime, member)
        if failure is not None:
            raise failure

    async def index_memories(self, members: list[str], leases: list[int], attempts: list[int], timeout: Timeout = _TIMEOUT) -> None:
        async with self._place(DueKind.MEMORY, map(Claim, members, leases, attempts)) as place:
            if place:
                await self._embed(members)

    async def follow_memories(self, members: list[str], leases: list[int], attempts: list[int], timeout: Timeout = _TIMEOUT) -> None:
        async with self._begun(DueKind.FOLLOW, members) as claims:
            for follower in self._runtime.services.followers if claims else ():
                await follower.follow_memories([claim.member for claim in claims])

    async def index_items(self, members: list[str], leases: list[int], attempts: list[int], timeout: Timeout = _TIMEOUT) -> None:
        async with self._place(DueKind.ITEM, map(Claim, members, leases, attempts)) as place:
            if place:
                async with self._begun(DueKind.ITEM, members) as claims:
                    await import_name(_DUE_WORK[DueKind.ITEM])(self._runtime, [claim.member for claim in claims])

    async def carry_out(self, member: str, lease: int, attempt: int) -> None:
        async with self._begun_in_place(DueKind.ORDER, Claim(member, lease, attempt)) as claims:
            for claim in claims:
                await carry_out(self._runtime, claim.member)

    async def unknown(
        self,
        *arguments: Any,
        execution: Execution = CurrentExecution(),  # noqa: B008 - docket's way to hand it over
        **_: Any,
    ) -> None:
        """Release the work of an unknown task without counting an attempt."""
        log.warning("task left for a newer version of the worker", task=execution.function_name)
        if len(arguments) < 3:
            return  # Not one of our tasks. If it refers to a mark anyway, the mark's lease expires.
        # This version may not know the kind either. In keys, the kind is only a word.
        kind = cast("DueKind", execution.key.split(":", 1)[0])
        columns = [part if isinstance(part, list) else [part] for part in arguments[:3]]
        for member, lease, attempt in zip(*columns, strict=True):
            reason = f"left for a worker that supports the task {execution.function_name}"
            claim = Claim(str(member), int(lease), int(attempt))
            await self._runtime.outbox.fail_claim(kind, claim, reason, delay_seconds=_PARKED_SECONDS, forgive=True)

    def _embed_beside(self, members: Sequence[str]) -> None:
        """Embed memories in the background. Do nothing if too many embeddings are running."""
        if members and len(self._embedding) < self._runtime.settings.worker.concurrency:
            self._start(self._embed(members))

    def _start(self, embedding: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(embedding)
        self._embedding.add(task)
        task.add_done_callback(self._embedded)

    def _embedded(self, task: asyncio.Task[None]) -> None:
        self._embedding.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.warning("memories not embedded yet", error=error)

    async def _embed(self, members: Sequence[str]) -> None:
        size = self._runtime.settings.worker.index_batch
        for start in range(0, len(members), size):
            async with self._begun(DueKind.MEMORY, members[start : start + size], ends=False) as claims:
                await index_memories(self._runtime, claims, self._long_texts)
            self._embed_waiting()

    def _embed_waiting(self) -> None:
        while texts := self._long_texts.take():
            self._start(self._embed_long(texts))

    async def _embed_long(self, texts: Sequence[LongText]) -> None:
        try:
            async with self._begun(DueKind.MEMORY, [text.mid for text in texts], ends=False) as claims:
                await index_memories(self._runtime, claims)
        finally:
            self._long_texts.free(texts)
        self._embed_waiting()

    @asynccontextmanager
    async def _place(self, kind: DueKind, claims: Iterable[Claim]) -> AsyncGenerator[bool]:
        """Reserve a slot and yield True. If no slot is free, put the work back and yield False."""
        group = _MODEL_TASKS[kind]
        if self._is_full(group):
            for claim in claims:
                await self._runtime.outbox.put_back(kind, claim, delay_seconds=_FULL_SECONDS)
            yield False
            return
        self._running[group] += 1
        try:
            yield True
        finally:
            self._running[group] -= 1

    @asynccontextmanager
    async def _begun_in_place(self, kind: DueKind, claim: Claim) -> AsyncGenerator[list[Claim]]:
        """Like `_begun`, but yield no claims if no slot is free."""
        async with self._place(kind, [claim]) as place:
            if not place:
                yield []
                return
            async with self._begun(kind, [claim.member]) as claims:
                yield claims

    @asynccontextmanager
    async def _begun(self, kind: DueKind, members: Sequence[str], *, ends: bool = True) -> AsyncGenerator[list[Claim]]:
        """Yield claims for members with pending work, and end the claims afterward.

        If the work fails, make it due again and record the reason.
        """
        outbox, worker = self._runtime.outbox, self._runtime.settings.worker
        claims = await outbox.begin_claims(kind, members, lease_seconds=worker.lease_seconds, max_attempts=worker.max_attempts)
        if len(claims) < len(members):
            log.info("background work was already done or given up", kind=kind, items=len(members) - len(claims))
        try:
            # The work may have read data that is deleted by an erasure ordered later. `since` lets such an erasure
            # refuse the work's writes.
            since = min((claim.lease for claim in claims), default=0) - int(worker.lease_seconds * 1000)
            with carrying_out(Work(since=since, waits=False)):
                yield claims
            if ends:
                await outbox.end_claims(kind, claims)
        except Exception as error:  # noqa: BLE001 - see below
            # All background work ends here: record any failure with the mark. The outbox retries or gives up.
            await self._failed(kind, claims, error)

    async def _failed(self, kind: DueKind, claims: Sequence[Claim], error: Exception) -> None:
        expected = isinstance(error, AgentMemoryError)
        level = logging.WARNING if expected else logging.ERROR
        log.log(level, "background work failed", kind=kind, items=len(claims), error=error, exc_info=None if expected else error)
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, ModelAnswerInvalid):
            reason += f" ({error.data.get('reason', '')})"
        for claim in claims:
            delay = seconds_until_retry(error, claim.attempt, self._runtime.settings.worker)
            try:
                await self._runtime.outbox.fail_claim(kind, claim, reason, delay_seconds=delay, forgive=is_outage(error))
            except RedisUnavailable as second:
                log.warning("cannot record a failure; the lease will expire", kind=kind, error=second)


async def _settle(runtime: Runtime, member: str) -> None:
    """Clear the record of a session or set-aside batch if no messages are pending."""
    sid, batch, _ = member.partition(".")
    owner = await runtime[SessionStore].owner(member)
    if owner is None:
        return
    if batch:
        journal = await runtime[SessionStore].journal(member, "je", 1)
        if journal is None or journal.waiting:
            return
    await runtime[SessionStore].settle(sid, *owner, batch=member if batch else None)
