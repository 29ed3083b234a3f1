"""Purge a source: permanently delete its memories and the memories derived from them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from dataclasses import dataclass, field

from agent_memory.features.access import audit
from agent_memory.features.jobs.order_store import JobOrder, OrderStore
from agent_memory.features.memories.changes.store import ChangeStore, StoredChange
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.features.privacy.forget.store import ForgetStore
from agent_memory.features.privacy.lineage import LineageMemory, LineageStore, delete_versions
from agent_memory.features.privacy.purge import request_of
from agent_memory.features.privacy.purge_policy import PurgeSource, PurgeVerdict, cites, judge, made_of, matches, whole_import
from agent_memory.features.transfer.import_progress import ImportProgress
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import Conflict
from agent_memory.foundation.core.feature import Group
from agent_memory.foundation.core.scope import Scope
from agent_memory.runtime import Runtime
from agent_memory_client.models import ANSWER, Evidence, MemoryRecord, PurgeRequest
from agent_memory_worker.privacy.changed_imports import changed_imports, import_owners, undo_imported_objects
from agent_memory_worker.privacy.purge_sessions import SourceMessages, resolve_source, strike
from agent_memory_worker.privacy.unreadable import UnreadableRecords

_MOST_ROUNDS = 20
_BATCH = 100
_MOST_PROPOSALS = 10_000
_MOST_NAMED = 100
_COUNTED = ("matched", "inferred", "restored", "evidence", "proposals", "summaries", "messages", "contexts", "sessions")


async def purge(runtime: Runtime, order: JobOrder) -> None:
    """Execute a purge order and leave a receipt. A dry run deletes nothing."""
    scope = scope_of_work(order.tenant, order.namespaces, order.users)
    dry = order.arguments.get("dry_run") is not None
    owner = (order.arguments["namespace"], order.arguments["user_id"])
    unreadable = UnreadableRecords()
    request = request_of(order)
    counts, named = await purge_source(runtime, scope, request, owner, unreadable, dry=dry)
    if not dry and (name := whole_import(request)) is not None:
        await runtime[ImportProgress].forget(scope, name, await import_owners(runtime, scope, name, owner))
    receipt = {name: counts[name] for name in _COUNTED} | +counts | unreadable.counts
    await runtime[OrderStore].keep_receipt(order, receipt, named if dry else (), note=unreadable.note)
    if runtime.settings.server.audit_log:
        ids = {"operation_id": f"order-{order.name}"} | {
            name: value for name in ("namespace", "user_id") if (value := order.arguments[name])
        }
        audit.record(
            operation="purge (dry run)" if dry else "purge",
            status=None,
            tenant=order.tenant,
            actor=None,
            ids=ids,
            request_id=None,
            counts=receipt,
        )


async def purge_source(
    runtime: Runtime,
    scope: Scope,
    request: PurgeRequest,
    owner: tuple[str | None, str | None],
    unreadable: UnreadableRecords,
    *,
    dry: bool = False,
) -> tuple[Counter[str], list[str]]:
    """Delete a source's data, or just count it if `dry` is true.

    Return the counts and the ids of some memories. Unreadable records are skipped and added
    to `unreadable`.
    """
    selection = Selection.of(*owner)
    source = await resolve_source(runtime, scope, request, owner)
    counts: Counter[str] = Counter()
    named: list[str] = []
    touched: set[Group] = set()
    source_messages = SourceMessages(source)
    for _ in range(_MOST_ROUNDS):
        run = _Run(runtime, scope, source, selection, dry, source_messages, unreadable)
        done = await run.carry_out()
        struck, sessions = await strike(runtime, scope, source, owner, source_messages, unreadable, dry=dry)
        counts += run.counts + struck
        touched |= run.touched | sessions
        named += run.named[: _MOST_NAMED - len(named)]
        # Until it was fenced, background work may have stored memories made from the struck messages.
        if dry or not (done or struck):
            break
    counts += await undo_imported_objects(runtime, scope, source, owner, dry=dry)
    for purger in runtime.services.purgers:
        counts += await purger.purge_groups(scope, touched, dry_run=dry)
    if not dry:
        counts += await _purge_undo_copies(runtime, scope, source, owner, source_messages.mids)
    return counts, named


async def _purge_undo_copies(
    runtime: Runtime, scope: Scope, source: PurgeSource, owner: tuple[str | None, str | None], tainted: set[str]
) -> Counter[str]:
    lineage = runtime[LineageStore]

    def is_from_source(record: MemoryRecord, imported: str | None) -> bool:
        return matches(source, record, imported) or any(
            cites(source, record, piece) or not tainted.isdisjoint(lineage.sources(scope, record, piece)) for piece in record.evidence or ()
        )

    return await runtime[ForgetStore].purge_source(scope, owner, is_from_source)


@dataclass(slots=True)
class _Run:
    """A pass over all selected memories, including the resulting deletions."""

    runtime: Runtime
    scope: Scope
    source: PurgeSource
    selection: Selection
    dry: bool
    source_messages: SourceMessages
    unreadable: UnreadableRecords
    counts: Counter[str] = field(default_factory=Counter[str])
    touched: set[Group] = field(default_factory=set[Group])
    named: list[str] = field(default_factory=list[str])

    async def carry_out(self) -> bool:
        """Run the pass. Return True if it found something to delete or change."""
        rounds = await self._rounds()
        tainted = {mid for mids in rounds for mid in mids}
        self.source_messages.mids |= tainted
        await self._reject(tainted)
        done = bool(tainted)
        judged_mids: set[str] = set()
        async for verdict in self._verdicts(tainted):
            if not verdict.goes and not verdict.idle and verdict.memory.mid not in judged_mids:
                judged_mids.add(verdict.memory.mid)
                with self.unreadable.passing_over(f"m:{verdict.memory.mid}"):
                    done = await self._mend(verdict) or done
        for mids in reversed(rounds):
            for start in range(0, len(mids), _BATCH):
                await self._remove(mids[start : start + _BATCH], tainted)
        return done

    async def _rounds(self) -> list[list[str]]:
        """Return the mids to delete in rounds: first the source's memories, then derived ones."""
        rounds: list[list[str]] = []
        tainted: set[str] = set()
        while True:
            fresh: dict[str, None] = {}
            async for verdict in self._verdicts(tainted):
                if verdict.goes and verdict.memory.mid not in tainted:
                    fresh[verdict.memory.mid] = None
            if not fresh:
                return rounds
            rounds.append(list(fresh))
            tainted.update(fresh)

    async def _verdicts(self, tainted: Collection[str]) -> AsyncIterator[PurgeVerdict]:
        async for page in self.runtime[LineageStore].pages(self.scope, self.selection, self.unreadable.add):
            for verdict in await self._judge_page(page, tainted):
                yield verdict

    async def _judge_page(self, page: list[LineageMemory], tainted: Collection[str]) -> list[PurgeVerdict]:
        names = list(dict.fromkeys(name for memory in page for name in memory.changes))
        loaded = dict(zip(names, await self.runtime[ChangeStore].load_changes(self.scope, names), strict=True))
        changes = {memory.mid: [change for name in memory.changes if (change := loaded[name]) is not None] for memory in page}
        if self.source.unchanged:
            changed = await changed_imports(self.runtime, self.scope, self.source, page, changes, tainted)
            page = [memory for memory in page if memory.mid not in changed]
        return await asyncio.to_thread(self._judge, page, tainted, changes)

    def _judge(self, page: list[LineageMemory], tainted: Collection[str], changes: dict[str, list[StoredChange]]) -> list[PurgeVerdict]:
        verdicts: list[PurgeVerdict] = []
        for memory in page:
            with self.unreadable.passing_over(f"m:{memory.mid}"):
                verdicts.append(judge(self.source, memory, tainted, changes[memory.mid], self._sources))
        return verdicts

    def _sources(self, about: MemoryRecord, piece: Evidence) -> list[str]:
        return self.runtime[LineageStore].sources(self.scope, about, piece)

    async def _reject(self, tainted: Collection[str]) -> None:
        """End proposals to store memories derived from the source."""
        where = {"st": "proposed"}
        where |= {
            name: name_filter.eq
            for name, name_filter in (("ns", self.selection.namespace), ("u", self.selection.user_id))
            if name_filter and name_filter.eq
        }
        _, names = await self.runtime[ChangeStore].find_changes(self.scope, where, 0, _MOST_PROPOSALS)
        for change in await self.runtime[ChangeStore].load_changes(self.scope, names):
            if change is None or change.proposal is None or "record" not in change.proposal:
                continue
            is_made_of = False
            with self.unreadable.passing_over(f"ch:{change.id}"):
                record = MemoryRecord.model_validate(change.proposal["record"], context=ANSWER)
                is_made_of = made_of(self.source, record, tainted, self._sources)
            if is_made_of:
                self.counts["proposals"] += 1
                if not self.dry:
                    with suppress(Conflict):  # A caller has just approved or rejected it; the next pass finds the result.
                        await self.runtime[ChangeStore].end_proposal(self.scope, change)

    async def _mend(self, verdict: PurgeVerdict) -> bool:
        """Remove the source's contribution to a memory that is not deleted. Always returns True."""
        memory, lineage, scope = verdict.memory, self.runtime[LineageStore], self.scope
        self._note(verdict)
        if self.dry:
            self._count(verdict)
            return True
        if verdict.back is not None and not await lineage.take_back(scope, memory, verdict.back):
            return True  # The memory changed in the meantime: the next pass reads it again.
        versions = list(verdict.versions)
        if verdict.record is not None and memory.now is not None:
            if await self.runtime[MemoryStore].release_memory(scope, memory.now, verdict.record) != "changed":
                return True
            versions.append(memory.now.version)
        if verdict.fields:
            await lineage.forget_evidence(scope, memory, verdict.fields, verdict.names)
        if versions:
            await delete_versions(self.runtime.client, self.runtime.keys, [f"{memory.mid}.{version}" for version in versions])
        self._count(verdict)
        return True

    async def _remove(self, mids: list[str], tainted: Collection[str]) -> None:
        """Delete memories that have not changed since they were judged."""
        judged = await self._judge_page(await self.runtime[LineageStore].read(self.scope, mids, self.unreadable.add), tainted)
        verdicts = [verdict for verdict in judged if verdict.goes]
        for verdict in verdicts:
            self._note(verdict)
            self.named += [verdict.memory.versions[-1].record.id]
        removed = [True] * len(verdicts)
        if not self.dry:
            items = [
                (verdict.memory.versions[-1].record, None if verdict.memory.now is None else verdict.memory.now.version)
                for verdict in verdicts
            ]
            await self.runtime[LineageStore].forget_names(self.scope, [verdict.memory for verdict in verdicts])
            dropped = await self.runtime[MemoryStore].drop_records(self.scope, items)
            removed = [ok or verdict.memory.now is None for ok, verdict in zip(dropped, verdicts, strict=True)]
        for verdict in (verdict for verdict, ok in zip(verdicts, removed, strict=True) if ok):
            self.counts["matched" if verdict.matched else "inferred"] += 1

    def _count(self, verdict: PurgeVerdict) -> None:
        self.counts["restored"] += int(verdict.back is not None)
        self.counts["evidence"] += verdict.pieces

    def _note(self, verdict: PurgeVerdict) -> None:
        for version in verdict.memory.versions:
            self.source_messages.note(version.record)
            record = version.record
            self.touched.add(Group(record.namespace, record.user_id, record.session_id, str(record.memory_type)))
