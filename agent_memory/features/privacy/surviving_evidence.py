"""Save evidence from other sessions as memories before a session is deleted."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.features.memories.changes.store import ChangeStore
from agent_memory.features.memories.commit import ChangeOrigin, MemoryCommits, Succeed
from agent_memory.features.memories.records import StoredEvidence, StoredMemory
from agent_memory.features.memories.service import message_memory
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.write_decisions import remove_details
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.text.normalization import is_turn
from agent_memory_client.models import Evidence, MemoryMessage, MemoryRecord

_ORIGIN = ChangeOrigin("erasure", "what it stood for was deleted")


async def hand_on(services: Services, scope: Scope, session_id: str, memories: Sequence[StoredMemory]) -> None:
    """Turn statements repeated in other sessions into memories of those sessions. Idempotent.

    Call this before you delete the session's memories.
    """
    for memory, ledger in zip(memories, await services[ChangeStore].load_ledgers([memory.mid for memory in memories]), strict=True):
        if ledger.aliases:
            await _hand_on(services, scope, session_id, memory, ledger.aliases)


async def _hand_on(services: Services, scope: Scope, session_id: str, old: StoredMemory, names: Sequence[str]) -> None:
    """Replace `old` with its oldest aliased fact, or with its oldest message if there is none."""
    pieces = await services[ChangeStore].load_evidence(old.mid)
    quoted = await _without_first_details(services, scope, old)
    ledgers = await services[ChangeStore].load_ledgers(names)
    versions = [(name, ledger.versions[-1]) for name, ledger in zip(names, ledgers, strict=True) if ledger.versions]
    former = dict(zip((name for name, _ in versions), await services[ChangeStore].load_versions(scope, versions), strict=True))
    left: list[tuple[str, str, MemoryRecord]] = []
    for name in names:
        field, piece = next(
            ((field, piece) for field, piece in pieces.items() if _names(services, scope, field, piece) == name), ("", None)
        )
        before = former.get(name)
        record = before.record if before is not None else None if piece is None else _memory_of_evidence(quoted, piece)
        if record is not None and record.session_id != session_id:
            left.append((name, field, record))
    rests = {field: piece for field, piece in pieces.items() if piece.times is not None and piece.session_id != session_id}
    if not left:
        left = [entry for piece in rests.values() if (entry := _last_of(services, scope, quoted, piece)) is not None]
    if left:
        left.sort(key=lambda entry: (is_turn(entry[2]), entry[2].created_at, entry[2].id))
        (_, _, heir), *rest = left
        fields = [*(field for _, field, _ in rest if field), *rests]
        heir_name = services[MemoryStore].mid(scope, heir.id)
        evidence_mids = [
            mid for field, piece in rests.items() for mid in services[MemoryStore].message_mids(scope, old.record, field, piece)
        ]
        moved = dict.fromkeys([*(name for name, _, _ in rest), *(mid for mid in evidence_mids if mid in names)])
        moved.pop(heir_name, None)
        await services[MemoryCommits].commit(scope, [Succeed(old, heir, fields, list(moved))], _ORIGIN)


async def _without_first_details(services: Services, scope: Scope, memory: StoredMemory) -> MemoryRecord:
    """Return the memory without the tags and metadata of its first version, which another session did not state."""
    (ledger,) = await services[ChangeStore].load_ledgers([memory.mid])
    versions = await services[ChangeStore].load_versions(scope, [(memory.mid, version) for version in ledger.versions[:1]])
    first = next((version for version in versions if version is not None), memory)
    return remove_details(memory.record, first.record)


def _last_of(services: Services, scope: Scope, old: MemoryRecord, piece: StoredEvidence) -> tuple[str, str, MemoryRecord] | None:
    record = _memory_of_evidence(old, piece.model_copy(update={"message_ids": piece.message_ids[-1:]}))
    return None if record is None else (services[MemoryStore].mid(scope, record.id), "", record)


def _names(services: Services, scope: Scope, field: str, piece: Evidence) -> str | None:
    if field.startswith("m"):
        return field[1:]
    return None if piece.memory_id is None else services[MemoryStore].mid(scope, piece.memory_id)


def _memory_of_evidence(old: MemoryRecord, piece: Evidence) -> MemoryRecord | None:
    if piece.at is None:
        return None
    if piece.session_id and piece.message_ids:
        ref = SessionRef(piece.session_id, old.namespace, old.user_id)
        text = piece.quote or old.text
        message = MemoryMessage(role=piece.role or "user", content=text, id=piece.message_ids[0], created_at=piece.at)
        return message_memory(ref, message, text)
    if piece.memory_id is None:
        return None
    update = {
        "id": piece.memory_id,
        "session_id": piece.session_id,
        "created_at": piece.at,
        "source_class": piece.source,
        "extracted_from": None,
        "evidence": None,
        "model": None,
        "prompt_version": None,
        "memory_hash": None,
    }
    return old.model_copy(update=update)
