"""Delete memories derived from a document."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agent_memory.features.memories.changes.store import ChangeStore
from agent_memory.features.memories.records import StoredMemory
from agent_memory.features.memories.upkeep.deletion import MemoryDeletion
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.features.privacy.forget.plan import evidence_messages
from agent_memory.features.privacy.forget.store import ForgetStore
from agent_memory.features.privacy.lineage import LineageMemory, LineageStore
from agent_memory.features.privacy.surviving_evidence import hand_on
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory_client.models import UserId

# The number of memories that one script deletes. Redis serves no other client while the script runs.
_BATCH = 100


async def delete_memories_of(services: Services, scope: Scope, ref: SessionRef, *, current: Collection[str] = ()) -> None:
    """Delete a document's memories, retired and proposed ones too, and the undo copies of its data. Idempotent.

    If `current` is set, delete only memories derived solely from messages that are not in it. A memory that another
    document also states becomes that document's memory.
    """
    await services[ChangeStore].end_session_proposals(scope, ref, current=current)
    memories = await load_lineages_of(services, scope, ref, current=current)
    await hand_on(services, scope, ref.session_id, [memory.now for memory in memories if memory.now is not None])
    await delete_lineages(services, scope, ref, memories)


async def delete_lineages(services: Services, scope: Scope, ref: SessionRef, memories: Sequence[LineageMemory]) -> None:
    """Delete these memories of a document, and the undo copies of the document's data. Idempotent."""
    for start in range(0, len(memories), _BATCH):
        records = [memory.versions[-1].record for memory in memories[start : start + _BATCH]]
        await services[MemoryDeletion].delete_records(scope, records)
    await services[ForgetStore].erase_session_copies(scope, ref)


async def load_memories_of(services: Services, scope: Scope, ref: SessionRef) -> list[StoredMemory]:
    """Return a document's memories, without retired ones."""
    return [memory.now for memory in await load_lineages_of(services, scope, ref) if memory.now is not None]


async def load_lineages_of(services: Services, scope: Scope, ref: SessionRef, *, current: Collection[str] = ()) -> list[LineageMemory]:
    """Return a document's memories, including retired ones. `current` works like in `delete_memories_of`."""
    current_messages = {(ref, message) for message in current}
    lineages: dict[str, LineageMemory] = {}
    selection = Selection.of(ref.namespace, ref.user_id, ref.session_id)
    if ref.user_id is None:
        selection = selection.model_copy(update={"user_id": UserId(exists=False)})
    async for page in services[LineageStore].pages(scope, selection):
        for memory in page:
            last = memory.versions[-1].record
            if SessionRef(last.session_id or "", last.namespace, last.user_id) != ref:
                continue
            messages = evidence_messages(memory) if current_messages else []
            if not current_messages or (messages and current_messages.isdisjoint(messages)):
                lineages[memory.mid] = memory
    return list(lineages.values())
