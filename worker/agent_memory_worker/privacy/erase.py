"""Execute orders to erase the data of a session, user or agent."""

from __future__ import annotations

from collections import Counter

from agent_memory.features.access.tokens import TokenService
from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.memories.records import StoredMemory
from agent_memory.features.privacy.erasure_store import ErasureOrder, ErasureStore
from agent_memory.features.privacy.surviving_evidence import hand_on
from agent_memory.features.privacy.traces import TraceStore, is_order_of_agent, is_order_of_user
from agent_memory.features.sessions.agent_sessions import walk_sessions
from agent_memory.features.sessions.store import SessionEpoch, SessionStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import AgentMemoryError
from agent_memory.foundation.core.feature import AgentEraser, AgentOwner, Eraser, Owner, SessionEraser
from agent_memory.foundation.core.scope import Scope, SessionRef, Work, carrying_out
from agent_memory.runtime import Runtime
from agent_memory_client.models import PurgeRequest
from agent_memory_worker.privacy.purge import purge_source
from agent_memory_worker.privacy.unreadable import UnreadableRecords

_PAGE = 100
_MOST_ROUNDS = 20


class _OrderEnded(Exception):
    """Raised if another worker finished the order."""


async def erase(runtime: Runtime, name: str) -> int:
    """Execute an erasure order, and leave a receipt. Return the number of deletions.

    Idempotent. Each run deletes only versions that it read while the order was open.
    """
    order = await runtime[ErasureStore].load(name)
    if order is None:
        return 0
    erasing = _Erasing(runtime, scope_of_work(order.erasure.tenant), order)
    with carrying_out(Work(waits=False, erases=True)):
        try:
            await erasing.carry_out()
        except _OrderEnded:
            return erasing.counts.total()
    await runtime[ErasureStore].leave_receipt(order, +erasing.counts | erasing.unreadable.counts, erasing.unreadable.note)
    return erasing.counts.total()


class _Erasing:
    """Executes an order once. Unreadable records are skipped and listed in the operation."""

    def __init__(self, runtime: Runtime, scope: Scope, order: ErasureOrder) -> None:
        self._runtime = runtime
        self._scope = scope
        self._order = order
        self._erasure = order.erasure
        self.counts: Counter[str] = Counter()
        self.unreadable = UnreadableRecords()
        self._failure: Exception | None = None

    async def carry_out(self) -> None:
        """Erase in rounds until nothing is found. After the first round, delete other traces."""
        await self._round()
        await self._erase_traces()
        for _ in range(_MOST_ROUNDS):
            if not await self._round():
                break
        if self._failure is not None:
            raise self._failure

    async def _round(self) -> int:
        """Delete all data that one search finds. Return the number of deletions."""
        if self._erasure.agent_id is not None:
            erased = await self._erase_agent_sessions(self._erasure.agent_id)
            erased += await self._purge_agent(self._erasure.agent_id)
        else:
            erased = await self._erase_sessions() + await self._erase_memories()
        if self._erasure.session_id is not None:
            await self._runtime[TraceStore].forget_evidence(self._scope, self._erasure, self.unreadable.add)
        erased["versions"] += await self._runtime[TraceStore].forget_past(self._scope, self._erasure, self.unreadable.add)
        await self._require_standing()
        erased += await self._run_erasers()
        self.counts += erased
        return (+erased).total()

    async def _require_standing(self) -> None:
        """Raise _OrderEnded if the order has ended. Call this between reading data and deleting it."""
        if not await self._runtime[ErasureStore].is_open(self._order):
            raise _OrderEnded

    async def _erase_sessions(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        while sessions := await self._sessions():
            await self._require_standing()
            counts["sessions"] += sum([await self._runtime[SessionStore].delete_life(self._scope, life) for life in sessions])
        return counts

    async def _erase_memories(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        while memories := await self._runtime[ErasureStore].page(self._scope, self._erasure):
            await self._require_standing()
            for memory in memories:
                if memory.record is None:
                    self.unreadable.add(f"m:{memory.name}")
                elif self._erasure.session_id is not None:
                    with self.unreadable.passing_over(f"m:{memory.name}"):
                        stored = StoredMemory(memory.name, memory.version, memory.record)
                        await hand_on(self._runtime.services, self._scope, self._erasure.session_id, [stored])
            counts["memories"] += await self._runtime[TraceStore].drop_memories(self._scope, memories)
        return counts

    async def _sessions(self) -> list[SessionEpoch]:
        """Return a page of sessions to erase.

        If there are none, return ended sessions with pending work.
        """
        erasure, sessions = self._erasure, self._runtime[SessionStore]
        if erasure.session_id is not None:
            return await sessions.lives(
                self._scope, [sessions.sid(self._scope, SessionRef(erasure.session_id, erasure.namespace, erasure.user_id))]
            )
        _, refs = await sessions.list(self._scope, erasure.namespace, erasure.user_id, 0, _PAGE)
        lives = await sessions.lives(self._scope, [sessions.sid(self._scope, ref) for ref in refs])
        if lives or erasure.user_id is None:
            return lives
        waiting = await sessions.lives(self._scope, await sessions.waiting(self._scope, erasure.user_id))
        return [life for life in waiting if life.user_id == erasure.user_id and erasure.namespace in (None, life.namespace)]

    async def _erase_agent_sessions(self, agent_id: str) -> Counter[str]:
        counts: Counter[str] = Counter()
        client, keys = self._runtime.client, self._runtime.keys
        async for refs in walk_sessions(client, keys, self._scope, self._erasure.namespace, agent_id=agent_id):
            for ref in refs:
                await self._require_standing()
                # Place an order for each session: after its deletion, nothing else refers to its memories.
                erasure = Erasure(self._scope.tenant, ref.namespace, ref.user_id, ref.session_id)
                mark = await self._runtime[ErasureOrders].order_erasure(self._scope, erasure)
                await erase(self._runtime, mark.member)
                counts["sessions"] += 1
        return counts

    async def _purge_agent(self, agent_id: str) -> Counter[str]:
        await self._require_standing()
        where = (self._erasure.namespace, None)
        purged, _ = await purge_source(self._runtime, self._scope, PurgeRequest(agent_id=agent_id), where, self.unreadable)
        counts = Counter(memories=purged["matched"] + purged["inferred"], messages=purged["messages"])
        return counts + await self._erase_memories()

    async def _run_erasers(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for eraser in self._runtime.services.erasers:
            try:
                counts += await self._run_eraser(eraser)
            except AgentMemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - erase the rest first, then let the order fail
                self._failure = error
        return counts

    async def _run_eraser(self, eraser: Eraser) -> Counter[str]:
        erasure = self._erasure
        if erasure.agent_id is not None:
            owner = AgentOwner(erasure.namespace, erasure.agent_id)
            return await eraser.erase_agent(self._scope, owner) if isinstance(eraser, AgentEraser) else Counter()
        if erasure.session_id is not None:
            session = SessionRef(erasure.session_id, erasure.namespace, erasure.user_id)
            return await eraser.erase_session(self._scope, session) if isinstance(eraser, SessionEraser) else Counter()
        return await eraser.erase_owner(self._scope, Owner(erasure.namespace, erasure.user_id or ""))

    async def _erase_traces(self) -> None:
        """Delete traces in API keys, orders, cached responses and the append-only file."""
        traces, erasure, counts = self._runtime[TraceStore], self._erasure, self.counts
        await traces.forget_claims(self._scope)
        if erasure.session_id is not None:
            return
        name = erasure.user_id if erasure.agent_id is None else erasure.agent_id
        if erasure.namespace is None and name is not None:
            tokens, of_agent = self._runtime[TokenService], erasure.agent_id is not None
            forget, covers = (tokens.forget_agent, is_order_of_agent) if of_agent else (tokens.forget_user, is_order_of_user)
            counts["keys"] += await forget(self._scope.tenant, name)
            counts["orders"] += await traces.forget_orders(self._scope, lambda order: covers(order, name))
        if name is not None:
            # Do this last, because answers may have been cached in the meantime.
            counts["answers"] += await traces.forget_answers(self._scope, name)
        await traces.rewrite_log()
