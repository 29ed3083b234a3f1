"""Move due work from the outbox to docket, within this worker's capacity."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic

from docket import Disposition, Docket, TaskCall

from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.task_kinds import DueKind, TaskName
from agent_memory.foundation.storage.connection import redis_errors
from agent_memory.foundation.storage.outbox import Claim, Claims
from agent_memory.runtime import Runtime

log = get_logger(__name__)

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
# Kinds whose tasks each take many marks.
_BATCHED = (DueKind.MEMORY, DueKind.FOLLOW, DueKind.ITEM)
# Rounds of tasks queued ahead. The other marks wait in the outbox, where erasures and other tenants can overtake them.
_ROUNDS_AHEAD = 2
_FULL_SECONDS = 0.02
# A round lasts at least this long, so that it collects several marks under load. A single mark does not wait for it.
_ROUND_SECONDS = 0.02
# Delay for a mark that was set while docket was ending that mark's previous task: docket refuses the new task.
_REFUSED_SECONDS = 0.05


class Relay:
    """Moves due work from the outbox to docket. Multiple relays can share one Redis."""

    def __init__(self, runtime: Runtime, docket: Docket, stop: asyncio.Event, full_kinds: Callable[[], Sequence[DueKind]]) -> None:
        """Create a relay that does not claim the kinds of work returned by `full_kinds`."""
        self._runtime = runtime
        self._full_kinds = full_kinds
        self._docket = docket
        self._stop = stop
        # Upper bound on queued tasks: the last count, plus the tasks that this relay added.
        self._queued = math.inf

    async def run(self) -> None:
        """Move due work to docket until stopped, and continue after failures."""
        while not self._stop.is_set():
            began = monotonic()
            try:
                wait = await self._round()
                if wait > 0:
                    await self._runtime.outbox.wait_for_due(wait)
                await pause(self._stop, began + _ROUND_SECONDS - monotonic())
            except RedisUnavailable as error:
                log.warning("relay is waiting for Redis", error=error.__cause__ or error)
                await pause(self._stop, _IDLE_SECONDS)
            except Exception:
                log.exception("relay failed; continuing", docket=self._docket.name)
                await pause(self._stop, _IDLE_SECONDS)

    async def _round(self) -> float:
        """Move all due work to docket. Return the seconds until the next round."""
        worker = self._runtime.settings.worker
        # Without authentication, the only tenant gets all places.
        share = worker.tenant_share if self._runtime.settings.auth.required else 1.0
        if self._queued >= worker.concurrency * _ROUNDS_AHEAD:
            self._queued = await self._runtime.queued(self._docket)
            if self._queued >= worker.concurrency * _ROUNDS_AHEAD:
                await pause(self._stop, _FULL_SECONDS)
                return 0.0
        limits = {kind: worker.index_batch * 2 if kind in _BATCHED else worker.concurrency for kind in DueKind}
        limits |= dict.fromkeys(self._full_kinds(), 0)
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
                hint = "see GET /v1/operations?state=dead"
                log.error("background work given up after too many attempts", kind=kind, items=claimed.given_up, hint=hint)
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
            # Make the marks due again now, before their leases end. A task that did arrive runs once: docket knows its
            # key.
            with suppress(RedisUnavailable):
                for _, kind, claimed in calls:
                    await self._put_back(kind, claimed)
            raise
        for execution, (_, kind, claimed) in zip(executions, calls, strict=True):
            if execution.disposition is Disposition.FAILED:
                log.warning("task not queued; retrying", kind=kind, error=execution.schedule_exception)
                await self._put_back(kind, claimed)
            elif execution.disposition is not Disposition.SCHEDULED:
                # An overdue mark's refused task still runs, or docket redelivers it: only the lease is renewed.
                await self._put_back(kind, [claim for claim in claimed if not claim.overdue])

    async def _put_back(self, kind: DueKind, claims: Sequence[Claim]) -> None:
        for claim in claims:
            await self._runtime.outbox.put_back(kind, claim, delay_seconds=_REFUSED_SECONDS)

    def _call(self, kind: DueKind, claim: Claim) -> TaskCall:
        """Return the task for claimed work. docket rejects a key that is already in use."""
        return self._docket.call(TASK_OF[kind].value, key=f"{kind}:{claim.member}")(claim.member, claim.lease, claim.attempt)

    def _batches(self, claims: Sequence[Claim]) -> list[list[Claim]]:
        """Group claims into batches, one per call. Each retry gets its own batch."""
        size = self._runtime.settings.worker.index_batch
        new = [claim for claim in claims if claim.attempt == 1]
        alone = [[claim] for claim in claims if claim.attempt > 1]
        return [new[i : i + size] for i in range(0, len(new), size)] + alone

    def _batch_call(self, kind: DueKind, batch: Sequence[Claim]) -> TaskCall:
        call = self._docket.call(TASK_OF[kind].value, key=f"{kind}:{batch[0].member}:{batch[0].lease}")
        return call([claim.member for claim in batch], [claim.lease for claim in batch], [claim.attempt for claim in batch])


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait for `seconds`, or until `stop` is set."""
    if seconds > 0:
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)
