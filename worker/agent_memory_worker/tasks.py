"""The tasks: each at most 15 lines, takes ids, calls policy, and ends its claims well or badly."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from docket import CurrentExecution, Docket, Execution

from agent_memory.errors import AgentMemoryError, ModelAnswerInvalid, ModelUnavailable, RedisUnavailable, TooMany, UnknownWork
from agent_memory.runtime import Runtime
from agent_memory.storage.lua import Claim
from agent_memory.tasks import DueKind, TaskName
from agent_memory_worker.aside import set_aside, settle
from agent_memory_worker.erase import erase
from agent_memory_worker.extract import extract_facts
from agent_memory_worker.index import index_memories
from agent_memory_worker.orders import carry_out
from agent_memory_worker.promote import promote_session
from agent_memory_worker.schedule import run_job
from agent_memory_worker.summarize import summarize_session

log = logging.getLogger(__name__)

# A model that answers unusably this often is not asked again for this session's summary; sentences are chosen instead.
_PATIENCE = 3
# How long a task that nobody here knows waits for a worker that does.
_PARKED_SECONDS = 1.0


class Tasks:
    """The implementations of the task contract over one runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._sessions = asyncio.Semaphore(runtime.settings.worker.concurrency)

    def register(self, docket: Docket) -> None:
        """Binds every name of the contract; a name without an implementation fails here, at start."""
        for name in TaskName:
            docket.register(getattr(self, name.value), names=[name.value])

    async def erase(self, member: str, lease: int, attempt: int) -> None:
        """Carries out an order to delete."""
        async with self._claimed(DueKind.DELETION, [Claim(member, lease, attempt)]) as held:
            for claim in held:
                await erase(self._runtime, claim.member)

    async def process_session(self, member: str, lease: int, attempt: int) -> None:
        """Promotes what a session holds, then summarizes it if it outgrew its window."""
        async with self._claimed(DueKind.SESSION, [Claim(member, lease, attempt)]) as held:
            for claim in held:
                await promote_session(self._runtime, claim.member)
                await summarize_session(self._runtime, claim.member, plainly=attempt > _PATIENCE)
                await settle(self._runtime, claim.member)

    async def process_sessions(self, members: list[str], leases: list[int], attempts: list[int]) -> None:
        """The same for several, each by itself: what carries one task costs as much as promoting a message."""

        async def one(member: str, lease: int, attempt: int) -> None:
            async with self._sessions:
                await self.process_session(member, lease, attempt)

        ended = await asyncio.gather(*map(one, members, leases, attempts), return_exceptions=True)
        for error in filter(None, ended):
            raise error

    async def extract_facts(self, member: str, lease: int, attempt: int) -> None:
        """Asks a model for the facts in a session's new messages."""
        async with self._claimed(DueKind.EXTRACTION, [Claim(member, lease, attempt)]) as held:
            for claim in held:
                if attempt <= self._runtime.settings.worker.max_attempts or not await set_aside(self._runtime, claim.member):
                    await extract_facts(self._runtime, claim.member)
                await settle(self._runtime, claim.member)

    async def index_memories(self, members: list[str], leases: list[int], attempts: list[int]) -> None:
        """Makes memories findable by vector. Ends its claims by itself, each in the step that makes the memory findable."""
        claims = [Claim(*parts) for parts in zip(members, leases, attempts, strict=True)]
        async with self._claimed(DueKind.MEMORY, claims, ends=False) as held:
            await index_memories(self._runtime, held)

    async def carry_out(self, member: str, lease: int, attempt: int) -> None:
        """Does what an order asks for."""
        async with self._claimed(DueKind.ORDER, [Claim(member, lease, attempt)]) as held:
            for claim in held:
                await carry_out(self._runtime, claim.member)

    async def run_periodic(self, member: str, lease: int, attempt: int) -> None:
        """Runs a periodic job and marks it for its next time."""
        async with self._claimed(DueKind.PERIODIC, [Claim(member, lease, attempt)]) as held:
            for claim in held:
                await run_job(self._runtime, claim.member)

    async def unknown(
        self,
        *arguments: Any,
        execution: Execution = CurrentExecution(),  # noqa: B008 - docket's way to hand it over
        **_: Any,
    ) -> None:
        """Run for a task whose name only a newer version knows: its claims go back, for a worker of that version. No try is counted."""
        log.warning("left for a newer version: the task %s", execution.function_name)
        if len(arguments) < 3:
            return  # not one of ours; if it carried a claim all the same, its lease ends
        # The kind may be as new as the task; in keys it is only a word.
        kind = cast("DueKind", execution.key.split(":", 1)[0])
        columns = [part if isinstance(part, list) else [part] for part in arguments[:3]]
        for member, lease, attempt in zip(*columns, strict=True):
            reason = f"left for a worker that knows the task {execution.function_name}"
            claim = Claim(str(member), int(lease), int(attempt))
            await self._runtime.outbox.failed(kind, claim, reason, delay_seconds=_PARKED_SECONDS, forgive=True)

    @asynccontextmanager
    async def _claimed(self, kind: DueKind, claims: Sequence[Claim], *, ends: bool = True) -> AsyncGenerator[list[Claim]]:
        """The claims that still hold, renewed while the work goes on; done at the end, or due again later with the reason."""
        outbox = self._runtime.outbox
        lease = self._runtime.settings.worker.lease_seconds
        held = {claim.member: claim for claim in await outbox.begin(kind, claims, lease_seconds=lease)}
        # A claim is ended by the lease that was last written: not while a renewal is on its way.
        renewal = asyncio.Lock()
        renewing = asyncio.create_task(self._renew(kind, held, renewal)) if ends and held else None
        try:
            yield list(held.values())
            async with renewal:
                for claim in held.values() if ends else ():
                    await outbox.done(kind, claim)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - see below
            # The border of all background work: whatever it was, it is recorded with the mark and tried again, or given up by the outbox.
            async with renewal:
                await self._failed(kind, list(held.values()), error)
        finally:
            if renewing:
                renewing.cancel()

    async def _renew(self, kind: DueKind, held: dict[str, Claim], renewal: asyncio.Lock) -> None:
        seconds = self._runtime.settings.worker.lease_seconds
        while True:
            await asyncio.sleep(seconds / 3)
            async with renewal:
                for member, claim in list(held.items()):
                    try:
                        held[member] = await self._runtime.outbox.renew(kind, claim, lease_seconds=seconds) or claim
                    except RedisUnavailable as error:
                        log.warning("cannot renew a lease: %s", error)

    async def _failed(self, kind: DueKind, claims: Sequence[Claim], error: Exception) -> None:
        expected = isinstance(error, AgentMemoryError)
        log.log(logging.WARNING if expected else logging.ERROR, "%s work failed: %s", kind, error, exc_info=None if expected else error)
        # A model that is away, or a limit, is nobody's fault here: the work waits as long as it takes. Unusable answers have their tries.
        away = isinstance(error, ModelUnavailable | RedisUnavailable | UnknownWork | TooMany)
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, ModelAnswerInvalid):
            reason += f" ({error.data.get('reason', '')})"
        for claim in claims:
            delay = backoff(
                claim.attempt, self._runtime.settings.worker.retry_base_seconds, self._runtime.settings.worker.retry_max_seconds
            )
            if isinstance(error, ModelUnavailable | TooMany):
                delay = max(min(delay, 30.0), float(min(error.retry_after, 300)))
            try:
                await self._runtime.outbox.failed(kind, claim, reason, delay_seconds=delay, forgive=away)
            except RedisUnavailable as second:
                log.warning("cannot record a failure, the lease will end by itself: %s", second)


def backoff(attempt: int, base: float, most: float) -> float:
    """Seconds until the next try: doubling from `base`, at most `most`, with equal jitter.

    "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """
    whole = min(most, base * 2 ** min(attempt - 1, 30))
    return whole / 2 + random.uniform(0, whole / 2)
