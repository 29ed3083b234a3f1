"""Export, import, erase and purge file records."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection

from agent_memory.extensions.files.service import remove_derived
from agent_memory.extensions.files.store import FileRow, FileStore, ref_of
from agent_memory.features.privacy.derived_memories import load_memories_of
from agent_memory.foundation.api.principals import place_of
from agent_memory.foundation.core.feature import AgentOwner, ExportLine, Group, Owner, RestoreTarget, Services
from agent_memory.foundation.core.input.validation import validated
from agent_memory.foundation.core.permissions import permit_writing
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.storage.keyspace import tag
from agent_memory.foundation.text.normalization import is_turn
from agent_memory_client.models.features.files import StoredFile


class FileTransfer:
    kinds = ("file",)

    def __init__(self, services: Services, store: FileStore) -> None:
        self._services = services
        self._store = store

    async def export_lines(self, scope: Scope, owner: Owner | AgentOwner) -> AsyncIterator[ExportLine]:
        for file in await self._store.list_of(scope, owner):
            if file.passages:
                yield {"kind": "file", **file.model_dump(mode="json")}

    export_agent = export_lines

    async def restore_line(self, scope: Scope, target: RestoreTarget, line: ExportLine) -> str:
        """Store a record unless the file exists. Raises BadInput or Forbidden."""
        permit_writing(scope)
        read = validated(StoredFile, {name: value for name, value in line.items() if name not in ("op", "kind")})
        namespace, user_id = place_of(scope, target.namespace(read.namespace), target.user(read.user_id))
        owner = {"namespace": namespace, "user_id": user_id, "agent_id": target.agent(read.agent_id)}
        file = read.model_copy(update={**owner, "state": "ready", "reason": None, "operation_id": None})
        if await self._store.swap(scope, ref_of(file), FileRow(""), file, imported=tag(target.source)):
            return "new"
        existing_file = (await self._store.load(scope, ref_of(file))).file
        return "same" if existing_file is not None and existing_file.digest == file.digest else "other"

    async def undo_import(self, scope: Scope, owner: Owner | AgentOwner, source: str, *, dry_run: bool) -> Counter[str]:
        """Delete imported records that have not changed since the import."""
        counts: Counter[str] = Counter()
        for file in await self._store.list_of(scope, owner):
            row = await self._store.load(scope, ref_of(file))
            if row.imported == tag(source):
                counts["files"] += dry_run or await self._store.swap(scope, ref_of(file), row, None)
        return counts

    async def erase_owner(self, scope: Scope, owner: Owner | AgentOwner) -> Counter[str]:
        return Counter(files=sum([await self._erase(scope, ref_of(file)) for file in await self._store.list_of(scope, owner)]))

    erase_agent = erase_owner

    async def erase_session(self, scope: Scope, session: SessionRef) -> Counter[str]:
        return Counter(files=await self._erase(scope, session))

    async def purge_groups(self, scope: Scope, groups: Collection[Group], *, dry_run: bool) -> Counter[str]:
        """Correct passage counts and delete files that have no passages.

        A dry run does nothing.
        """
        counts: Counter[str] = Counter()
        for ref in () if dry_run else await self._recount(scope, groups):
            row = await self._store.load(scope, ref)
            if row.file is not None and not row.file.passages and await self._store.swap(scope, ref, row, None):
                await remove_derived(self._services, scope, ref)
                counts["files"] += 1
        return counts

    async def follow_forgetting(self, scope: Scope, groups: Collection[Group]) -> None:
        """Correct the passage counts of the groups' files."""
        await self._recount(scope, groups)

    async def _recount(self, scope: Scope, groups: Collection[Group]) -> list[SessionRef]:
        """Correct passage counts. Return the files that have no passages left."""
        empty: list[SessionRef] = []
        for namespace, user_id, session_id in {group[:3] for group in groups}:
            ref = SessionRef(session_id or "", namespace, user_id)
            row = await self._store.load(scope, ref)
            if row.file is None or row.file.state != "ready":
                continue
            memories = await load_memories_of(self._services, scope, ref)
            left = sum(is_turn(memory.record) for memory in memories)
            same = left == row.file.passages
            done = same or await self._store.swap(scope, ref, row, row.file.model_copy(update={"passages": left}), imported=row.imported)
            empty += [ref] if done and not left else []
        return empty

    async def _erase(self, scope: Scope, ref: SessionRef) -> int:
        row = await self._store.load(scope, ref)
        return int(row.file is not None and await self._store.swap(scope, ref, row, None))
