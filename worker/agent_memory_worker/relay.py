"""Hand due marks of the outbox to docket, as many as its worker can take."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic

from docket import Disposition, Docket, TaskCall

from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.task_kinds import DueKind, TaskName
from agent_memory.foundation.storage.connection import redis_errors
from agent_memory.foundation.storage.outbox import Claim, Claims
from agent_memory.runtime import Runtime

log = logging.getLogger(__name__)

_IDLE_SECONDS = 1.0
TASK_OF = {
    DueKind.DELETION: TaskName.ERASE,
    DueKind.SESSION: TaskName.PROCESS_SESSION,
    DueKind.EXTRACTION: TaskName.EXTRACT_FACTS,
    DueKind.MEMORY: TaskName.INDEX_MEMORIES,
    DueKind.FOLLOW: TaskName.FOLLOW_MEMORIES,
    DueKind.ITEM: TaskName.INDEX_ITEMS,
    DueKind.ORDER: TaskName.CARRY_OUT,
}
# Kinds of which one task takes many marks.
_BATCHED = (DueKind.MEMORY, DueKind.FOLLOW, DueKind.ITEM)
# Rounds queued ahead; more waits in the outbox, where erasures and other tenants overtake it.
_ROUNDS_AHEAD = 2
_FULL_SECONDS = 0.02
# A round's least duration: under load it collects several marks; alone, a mark does not wait.
_ROUND_SECONDS = 0.02
# Delay of a mark set while docket still ends its task, which docket refuses.
_REFUSED_SECONDS = 0.05


class Relay:
    """Run until `stop` is set; any number of relays share one Redis."""

    def __init__(self, runtime: Runtime, docket: Docket, stop: asyncio.Event) -> None:
        self._runtime = runtime
        self._docket = docket
        self._stop = stop
        # Upper bound of queued tasks: the last count, and what this relay added.
        self._queued = math.inf

    async def run(self) -> None:
        """Hand over until stopped. After any failure the marks stay in Redis, so it continues."""
        while not self._stop.is_set():
            began = monotonic()
            try:
                wait = await self._round()
                if wait > 0:
                    await self._runtime.outbox.wait_for_due(wait)
                await self._pause(began + _ROUND_SECONDS - monotonic())
            except RedisUnavailable as error:
                log.warning("the relay waits for Redis: %s", error.__cause__ or error)
                await self._pause(_IDLE_SECONDS)
            except Exception:
                log.exception("the relay failed; it goes on")
                await self._pause(_IDLE_SECONDS)

    async def _round(self) -> float:
        """Hand over due marks of every kind; return the seconds to wait for more."""
        worker = self._runtime.settings.worker
        # Without credentials there is one tenant, who gets everything.
        share = worker.tenant_share if self._runtime.settings.auth.required else 1.0
        if self._queued >= worker.concurrency * _ROUNDS_AHEAD:
            self._queued = await self._runtime.queued(self._docket)
            if self._queued >= worker.concurrency * _ROUNDS_AHEAD:
                await self._pause(_FULL_SECONDS)
                return 0.0
        limits = {kind: worker.index_batch * 2 if kind in _BATCHED else worker.concurrency for kind in DueKind}
        claims = await self._runtime.outbox.claim_each(
            limits, lease_seconds=worker.lease_seconds, max_attempts=worker.max_attempts, share=share
        )
        await self._hand_over({kind: claimed for kind, claimed in claims.items() if isinstance(claimed, Claims)})
        for claimed in claims.values():
            if isinstance(claimed, Exception):
                raise claimed
        waits = [claimed.wait_ms / 1000 for claimed in claims.values() if isinstance(claimed, Claims) and claimed.wait_ms >= 0]
        return min([_IDLE_SECONDS, *waits])

    async def _hand_over(self, claims: Mapping[DueKind, Claims]) -> None:
        calls: list[tuple[TaskCall, DueKind, Sequence[Claim]]] = []
        for kind, claimed in claims.items():
            if claimed.given_up:
                log.error("%d marks of kind %s were given up after too many tries", claimed.given_up, kind)
            if kind in _BATCHED:
                calls += [(self._batch_call(kind, batch), kind, batch) for batch in self._batches(claimed.claims)]
            else:
                calls += [(self._call(kind, claim), kind, [claim]) for claim in claimed.claims]
        if not calls:
            return
        self._queued += len(calls)
        try:
            with redis_errors():
                executions = await self._docket.add_many([call for call, _, _ in calls])
        except RedisUnavailable:
            # Due again at once, before the lease ends. Tasks that did arrive run once: docket knows their keys.
            with suppress(RedisUnavailable):
                for _, kind, claimed in calls:
                    await self._put_back(kind, claimed)
            raise
        for execution, (_, kind, claimed) in zip(executions, calls, strict=True):
            if execution.disposition is Disposition.FAILED:
                log.warning("a task of kind %s was not handed over and comes again: %s", kind, execution.schedule_exception)
                await self._put_back(kind, claimed)
            elif execution.disposition is not Disposition.SCHEDULED:
                # An overdue refused task still runs, or docket redelivers it: only its lease is new.
                await self._put_back(kind, [claim for claim in claimed if not claim.overdue])

    async def _put_back(self, kind: DueKind, claims: Sequence[Claim]) -> None:
        for claim in claims:
            await self._runtime.outbox.put_back(kind, claim, delay_seconds=_REFUSED_SECONDS)

    def _call(self, kind: DueKind, claim: Claim) -> TaskCall:
        """Return a mark's task; docket refuses the key of a task that waits or runs."""
        return self._docket.call(TASK_OF[kind].value, key=f"{kind}:{claim.member}")(claim.member, claim.lease, claim.attempt)

    def _batches(self, claims: Sequence[Claim]) -> list[list[Claim]]:
        """Group marks for one embedding call; retries run alone, so that a bad one blocks no other."""
        size = self._runtime.settings.worker.index_batch
        new = [claim for claim in claims if claim.attempt == 1]
        alone = [[claim] for claim in claims if claim.attempt > 1]
        return [new[i : i + size] for i in range(0, len(new), size)] + alone

    def _batch_call(self, kind: DueKind, batch: Sequence[Claim]) -> TaskCall:
        call = self._docket.call(TASK_OF[kind].value, key=f"{kind}:{batch[0].member}:{batch[0].lease}")
        return call([claim.member for claim in batch], [claim.lease for claim in batch], [claim.attempt for claim in batch])

    async def _pause(self, seconds: float) -> None:
        if seconds <= 0:
            return
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return
