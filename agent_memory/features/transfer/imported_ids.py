"""Map ids of imported memories, changes and batches.

An import to another user or namespace is a copy with new ids, always the same ones. Sessions and messages keep theirs.
"""

from __future__ import annotations

from typing import Any, TypeVar

from agent_memory.foundation.storage.keyed_ids import KeyedIds
from agent_memory_client.models import Evidence, MemoryRecord

Piece = TypeVar("Piece", bound=Evidence)


class ImportedIds:
    def __init__(
        self,
        ids: KeyedIds,
        exported_owner: str | None,
        owner: str,
        exported_namespace: str | None,
        namespace: str | None,
        *,
        of_agent: bool,
    ) -> None:
        self._ids = ids
        self._parts = ("copy of an agent" if of_agent else "copy", exported_owner, owner, namespace)
        self.are_new = exported_owner != owner or (namespace is not None and namespace != exported_namespace)
        """Whether what comes is a copy."""

    def id_here(self, name: str) -> str:
        return self._ids.of(*self._parts, name) if self.are_new else name

    def renamed(self, record: MemoryRecord) -> MemoryRecord:
        """Return a record with mapped ids."""
        if not self.are_new:
            return record
        named: dict[str, Any] = {"id": self.id_here(record.id)}
        if record.supersedes is not None:
            named["supersedes"] = [self.id_here(memory_id) for memory_id in record.supersedes]
        if record.superseded_by is not None:
            named["superseded_by"] = self.id_here(record.superseded_by)
        if record.evidence is not None:
            named["evidence"] = [self.renamed_piece(piece) for piece in record.evidence]
        return record.model_copy(update=named)

    def renamed_piece(self, piece: Piece) -> Piece:
        return piece if piece.memory_id is None else piece.model_copy(update={"memory_id": self.id_here(piece.memory_id)})
