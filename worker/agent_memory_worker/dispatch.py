"""The dispatcher: claims due marks from the outbox and hands them to docket, as many as its worker can take."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from time import monotonic

from docket import Docket, Execution

from agent_memory.errors import RedisUnavailable
from agent_memory.runtime import Runtime
from agent_memory.storage.lua import Claim, Claims
from agent_memory.tasks import DueKind, TaskName

log = logging.getLogger(__name__)

_IDLE_SECONDS = 1.0
TASK_OF = {
    DueKind.DELETION: TaskName.ERASE,
    DueKind.SESSION: TaskName.PROCESS_SESSION,
    DueKind.EXTRACTION: TaskName.EXTRACT_FACTS,
    DueKind.ORDER: TaskName.CARRY_OUT,
    DueKind.PERIODIC: TaskName.RUN_PERIODIC,
}
# Claims wait in the outbox, not in docket: a queue longer than this many rounds of work would let their leases run out.
_ROUNDS_AHEAD = 2
_FULL_SECONDS = 0.02
# Under load a round finds several sessions and memories, which are carried and embedded together; alone, one waits for nothing. The more
# there was in the last second or so, the longer is the time for more to come; where more is left than a round may take, it is the least.
_ROUND_SECONDS = 0.02
_LONGEST_ROUND_SECONDS = 0.04
_SECONDS_PER_CLAIM_A_SECOND = 0.001
_MEMORY_SECONDS = 1.0
_SESSIONS_TOGETHER = 8


class Dispatcher:
    """Runs until `stop` is set; any number of them share the work of one Redis."""

    def __init__(self, runtime: Runtime, docket: Docket, stop: asyncio.Event) -> None:
        self._runtime = runtime
        self._docket = docket
        self._stop = stop
        self._began = 0.0
        # In docket at most, as far as this dispatcher put it there: what was when it last asked, and what it added since.
        self._queued = math.inf
        # Claims in about the last second: each counts less as time goes by.
        self._lately = 0.0
        self._full = False

    async def run(self) -> None:
        while not self._stop.is_set():
            try:
                wait = await self._round()
                if wait > 0:
                    await self._runtime.outbox.wait(wait)
                await self._turn()
            except RedisUnavailable as error:
                log.warning("the dispatcher waits for Redis: %s", error)
                await self._pause(_IDLE_SECONDS)
            except Exception:
                # Whatever it was, the marks stand in Redis and other dispatchers may fare better; this one must not die.
                log.exception("the dispatcher failed; it goes on")
                await self._pause(_IDLE_SECONDS)

    async def _round(self) -> float:
        """Claims what is due of every kind; returns the seconds to wait for more."""
        before, self._began = self._began, monotonic()
        self._lately *= math.exp((before - self._began) / _MEMORY_SECONDS)
        settings = self._runtime.settings
        worker = settings.worker
        # Without credentials there is one tenant, who need leave no place to others.
        share = worker.tenant_share if settings.auth.required else 1.0
        if self._queued >= worker.concurrency * _ROUNDS_AHEAD:
            self._queued = await self._runtime.queued(self._docket)
            if self._queued >= worker.concurrency * _ROUNDS_AHEAD:
                await self._pause(_FULL_SECONDS)
                return 0.0
        wait = _IDLE_SECONDS
        limits = {kind: worker.index_batch * 2 if kind is DueKind.MEMORY else worker.concurrency for kind in DueKind}
        found = await self._runtime.outbox.claim_each(
            limits, lease_seconds=worker.lease_seconds, max_attempts=worker.max_attempts, share=share
        )
        self._full = False
        failed: Exception | None = None
        for kind, claims in found.items():
            if isinstance(claims, Exception):
                failed = claims
                continue
            if claims.given_up:
                log.error("%d marks of kind %s were given up after %d tries", claims.given_up, kind, worker.max_attempts)
            self._lately += len(claims.claims)
            self._full = self._full or len(claims.claims) >= limits[kind] * share
            await self._hand_over(kind, claims)
            if claims.wait_ms >= 0:
                wait = min(wait, claims.wait_ms / 1000)
        if failed is not None:
            raise failed
        return wait

    async def _hand_over(self, kind: DueKind, claims: Claims) -> None:
        worker = self._runtime.settings.worker
        if kind is DueKind.MEMORY:
            await self._together(kind, TaskName.INDEX_MEMORIES, claims, worker.index_batch)
        elif kind is DueKind.SESSION:
            await self._together(kind, TaskName.PROCESS_SESSIONS, claims, max(1, min(_SESSIONS_TOGETHER, worker.concurrency // 4)))
        else:
            for claim in claims.claims:
                await self._add(kind, TASK_OF[kind], claim)(claim.member, claim.lease, claim.attempt)

    async def _together(self, kind: DueKind, task: TaskName, claims: Claims, size: int) -> None:
        # What failed before goes alone, so that one bad memory or session holds up no other.
        first = [claim for claim in claims.claims if claim.attempt == 1]
        batches = [first[i : i + size] for i in range(0, len(first), size)]
        batches += [[claim] for claim in claims.claims if claim.attempt > 1]
        for batch in batches:
            await self._add(kind, task, batch[0])([c.member for c in batch], [c.lease for c in batch], [c.attempt for c in batch])

    def _add(self, kind: DueKind, task: TaskName, first: Claim) -> Callable[..., Awaitable[Execution]]:
        self._queued += 1
        # The lease makes the key new: docket refuses one that it still holds for a task that has just ended or whose worker died.
        return self._docket.add(task.value, key=f"{kind}:{first.member}:{first.lease}")

    async def _turn(self) -> None:
        """Waits until it is time for the next round."""
        seconds = round_seconds(self._lately, full=self._full)
        if (left := self._began + seconds - monotonic()) > 0:
            await self._pause(left)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return


def round_seconds(claims: float, *, full: bool) -> float:
    """How long a round lasts at least, after so many claims in about the last second; the least when the round took all that it may."""
    return _ROUND_SECONDS if full else min(max(claims * _SECONDS_PER_CLAIM_A_SECOND, _ROUND_SECONDS), _LONGEST_ROUND_SECONDS)
