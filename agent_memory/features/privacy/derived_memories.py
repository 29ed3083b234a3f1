"""Delete memories that are derived from a document."""

from __future__ import annotations

from collections.abc import Collection

from agent_memory.features.memories.records import StoredMemory
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.followers import MemoryFollowers
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.features.privacy.forget.plan import evidence_messages
from agent_memory.features.privacy.lineage import LineageStore
from agent_memory.features.privacy.surviving_evidence import hand_on
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory_client.models import UserId

# The number of memories that one script deletes. Redis serves no other client while the script runs.
_BATCH = 100


async def delete_memories_of(services: Services, scope: Scope, ref: SessionRef, *, current: Collection[str] = ()) -> None:
    """Delete a document's memories. Idempotent.

    With `current`, keep memories that come from one of these messages or from no message. A memory that another
    document also states becomes that document's memory.
    """
    to_delete = await load_memories_of(services, scope, ref, current=current)
    mids, memories = list(to_delete), list(to_delete.values())
    for start in range(0, len(memories), _BATCH):
        batch = memories[start : start + _BATCH]
        await hand_on(services, scope, ref.session_id, batch)
        await services[MemoryStore].delete_records(scope, [memory.record for memory in batch])
        await services[MemoryFollowers].follow(mids[start : start + _BATCH])


async def load_memories_of(services: Services, scope: Scope, ref: SessionRef, *, current: Collection[str] = ()) -> dict[str, StoredMemory]:
    """Return a document's memories by mid. `current` works as in `delete_memories_of`."""
    current_messages = {(ref, message) for message in current}
    to_delete: dict[str, StoredMemory] = {}
    selection = Selection.of(ref.namespace, ref.user_id, ref.session_id)
    if ref.user_id is None:
        selection = selection.model_copy(update={"user_id": UserId(exists=False)})
    async for page in services[LineageStore].pages(scope, selection):
        for memory in page:
            now = memory.now
            if now is None or SessionRef(now.record.session_id or "", now.record.namespace, now.record.user_id) != ref:
                continue
            messages = evidence_messages(memory) if current_messages else []
            if not current_messages or (messages and current_messages.isdisjoint(messages)):
                to_delete[memory.mid] = now
    return to_delete
