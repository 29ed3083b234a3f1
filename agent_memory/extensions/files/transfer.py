"""Export, import and erase file records. The text of the files is in sessions and memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from agent_memory.extensions.files.store import FileRow, FileStore, ref_of
from agent_memory.foundation.api.principals import place_of
from agent_memory.foundation.core.feature import AgentOwner, ExportLine, Owner, RestoreTarget
from agent_memory.foundation.core.input.validation import validated
from agent_memory.foundation.core.permissions import permit_writing
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory_client.models.features.files import StoredFile


class FileTransfer:
    kinds = ("file",)

    def __init__(self, store: FileStore) -> None:
        self._store = store

    async def export_lines(self, scope: Scope, owner: Owner | AgentOwner) -> AsyncIterator[ExportLine]:
        """Yield the files whose text is stored."""
        for file in await self._store.list_of(scope, owner):
            if file.passages:
                yield {"kind": "file", **file.model_dump(mode="json")}

    export_agent = export_lines

    async def restore_line(self, scope: Scope, target: RestoreTarget, line: ExportLine) -> str:
        """Store a file's record unless the file already exists. Raises BadInput, Forbidden."""
        permit_writing(scope)
        read = validated(StoredFile, {name: value for name, value in line.items() if name not in ("op", "kind")})
        namespace, user_id = place_of(scope, target.namespace(read.namespace), target.user(read.user_id))
        owner = {"namespace": namespace, "user_id": user_id, "agent_id": target.agent(read.agent_id)}
        file = read.model_copy(update={**owner, "state": "ready", "reason": None, "operation_id": None})
        if await self._store.swap(scope, ref_of(file), FileRow(""), file):
            return "new"
        here = (await self._store.load(scope, ref_of(file))).file
        return "same" if here is not None and here.digest == file.digest else "other"

    async def erase_owner(self, scope: Scope, owner: Owner | AgentOwner) -> Counter[str]:
        return Counter(files=sum([await self._erase(scope, ref_of(file)) for file in await self._store.list_of(scope, owner)]))

    erase_agent = erase_owner

    async def erase_session(self, scope: Scope, session: SessionRef) -> Counter[str]:
        return Counter(files=await self._erase(scope, session))

    async def _erase(self, scope: Scope, ref: SessionRef) -> int:
        row = await self._store.load(scope, ref)
        return int(row.file is not None and await self._store.swap(scope, ref, row, None))
