"""Quarantine texts that read like instructions to a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from redis.asyncio import Redis
from ulid import ULID

from agent_memory.features.memories.changes.store import DELETED, ChangeStore
from agent_memory.features.memories.commit import ChangeOrigin
from agent_memory.features.memories.records import StoredMemory, source_of, text_digest
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.foundation.api.principals import administering, list_place_of, writing
from agent_memory.foundation.core.errors import Conflict, NotFound
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import VectorSpec, history_index_name
from agent_memory.foundation.storage.search.queries import name_query, search
from agent_memory.foundation.storage.search.syntax import all_of
from agent_memory.foundation.text.injection import Rule, rules_for, suspicion
from agent_memory.foundation.text.normalization import is_turn
from agent_memory_client.models import AckResponse, MemoryRecord, QuarantineListResponse

DERIVED = "derived"
# Responses also contain ids, and a long id can contain an instruction.
_LONG_ID = 40
_USERS = ("user", "client")
_TRIES = 16


def rules_of(settings: Settings, records: Iterable[MemoryRecord]) -> Sequence[Rule]:
    """Return the suspicion rules that could match any of the records."""
    if not settings.longterm.quarantine:
        return ()
    texts, of_user = list[str](), True
    for record in records:
        texts.append(record.text)
        if len(record.id) > _LONG_ID:
            texts.append(record.id)
            of_user = False
        of_user = of_user and source_of(record) in _USERS
    return rules_for(texts, of_user=of_user)


def screen_record(settings: Settings, record: MemoryRecord, rules: Sequence[Rule] | None = None, *, derived: bool = False) -> MemoryRecord:
    """Quarantine a record if it is suspicious or derived from a suspicious message."""
    reason = None
    # An approval is the digest of the approved text, so a changed text needs a new approval.
    if settings.longterm.quarantine and (record.approved is None or record.approved != text_digest(record.text)):
        rules = rules_of(settings, (record,)) if rules is None else rules
        reason = suspicion(record.text, of_user=source_of(record) in _USERS, rules=rules) if rules else None
        if rules and not reason and len(record.id) > _LONG_ID:
            reason = suspicion(record.id, of_user=False, rules=rules)
    reason = reason or (DERIVED if derived else None)
    return record if record.quarantine == reason else record.model_copy(update={"quarantine": reason})


def screen_caller_record(settings: Settings, record: MemoryRecord, rules: Sequence[Rule] | None = None) -> MemoryRecord:
    """Screen a caller's record, ignoring its `quarantine` and `approved` values."""
    if record.approved is not None:
        record = record.model_copy(update={"approved": None})
    return screen_record(settings, record, rules)


class QuarantineService:
    def __init__(self, client: Redis, keys: Keys, spec: VectorSpec, memories: MemoryStore, changes: ChangeStore) -> None:
        self._client = client
        # Quarantined memories are in the history index, which searches ignore by default.
        self._index = history_index_name(keys, spec)
        self._memories = memories
        self._changes = changes

    async def list_quarantined(
        self, scope: Scope, namespace: str | None, user_id: str | None, offset: int, limit: int
    ) -> QuarantineListResponse:
        """Return a page of quarantined memories, newest first. Raises Forbidden."""
        namespace, user_id = list_place_of(scope, namespace, user_id)
        clause = all_of(filters.where(scope, Selection.of(namespace, user_id)), filters.IN_QUARANTINE)
        hits = await search(self._client, self._index, name_query(clause, offset, limit, sort_by=("c", "DESC")))
        records = await self._memories.fetch_records(scope, [hit.mid for hit in hits.hits])
        memories = [record for record in records if record is not None and record.quarantine is not None]
        next_offset = offset + limit if offset + limit < hits.total else None
        return QuarantineListResponse(memories=memories, total=hits.total, next_offset=next_offset)

    async def approve_memory(self, scope: Scope, memory_id: str) -> MemoryRecord:
        """Release a memory from quarantine. If its slot is taken, the memory loses the slot.

        Raises Forbidden, NotFound or Conflict.
        """
        origin = ChangeOrigin(administering(scope).actor, "released from quarantine")
        for _ in range(_TRIES):
            memory = await self._waiting(scope, memory_id)
            approved = {"quarantine": None, "approved": text_digest(memory.record.text)}
            new = memory.record.model_copy(update={**approved, "updated_at": datetime.now(UTC), "recorded_at": None})
            state = await self._memories.release_memory(scope, memory, new, origin=origin)
            if state.startswith("slot"):
                new = new.model_copy(update={"slot": None})
                state = await self._memories.release_memory(scope, memory, new, origin=origin)
            if state == "changed":
                return new
        raise Conflict(f"Memory with ID {memory_id} is constantly being changed by other requests: try again")

    async def reject_memory(self, scope: Scope, memory_id: str) -> AckResponse:
        """Permanently delete a quarantined memory. Raises NotFound or Conflict."""
        memory = await self._waiting(writing(scope), memory_id)
        record = memory.record
        if not (await self._memories.drop_records(scope, [(record, memory.version)]))[0]:
            raise Conflict(f"Memory with ID {memory_id} was changed in the meantime: read it again")
        owner, counts = (record.namespace, record.user_id), {"messages" if is_turn(record) else "facts": 1}
        about: dict[str, Any] = {"reason": "deleted from quarantine", DELETED: [record.id]}
        await self._changes.record_forgetting(scope, owner, str(ULID()), counts, None, **about)
        return AckResponse(status="ok")

    async def _waiting(self, scope: Scope, memory_id: str) -> StoredMemory:
        memory = (await self._memories.find(scope, [memory_id]))[0]
        if memory is None or memory.record.quarantine is None:
            raise NotFound(f"there is no memory {memory_id} in quarantine", field="memory_id")
        return memory
