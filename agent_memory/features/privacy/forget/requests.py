"""Propose or perform deletions that users request in conversations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agent_memory.features.memories.changes.store import CONVERSATION, ChangeStore, StoredChange
from agent_memory.features.memories.commit import ChangeKind, ChangeOrigin, change_fields
from agent_memory.features.memories.records import StoredMemory, message_memory_id
from agent_memory.features.memories.steps import MemoryScripts
from agent_memory.features.privacy.forget.matching import Subject, subject_to_forget
from agent_memory.features.privacy.forget.service import ForgetService
from agent_memory.foundation.core.errors import Conflict
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory_client.models import MemoryMessage

FORGET = "forget"
_ORIGIN = ChangeOrigin(CONVERSATION, "the user asked to forget it")


class ForgetRequests:
    def __init__(self, scripts: MemoryScripts, changes: ChangeStore, forget: ForgetService, policy: str) -> None:
        """`policy` is "propose", "auto" or "off"."""
        self._scripts = scripts
        self._changes = changes
        self._forget = forget
        self._policy = policy

    async def answer(self, scope: Scope, ref: SessionRef, messages: Sequence[MemoryMessage]) -> None:
        """Propose or perform the deletions requested in these messages. Idempotent."""
        for message in messages if self._policy != "off" else ():
            subject = subject_to_forget(message)
            # Another person or a tool may have written a message with a name, so a human decides.
            of_user = message.own_fields.get("name") in (None, ref.user_id)
            if subject is not None and (self._policy == "propose" or not of_user):
                await self.propose(scope, ref, message.id, subject)
            elif subject is not None:
                await self._forget.forget_by_message(scope, ref, message.id, subject)

    async def propose(self, scope: Scope, ref: SessionRef, message_id: str, subject: Subject) -> None:
        name = message_memory_id(ref, message_id)
        memories, messages = await self._forget.propose_by_message(scope, ref, message_id, subject)
        if not memories or (await self._changes.load_changes(scope, [name]))[0] is not None:
            return
        fields = change_fields(scope.tenant, memories[0].record, ChangeKind.FORGET, _ORIGIN, name, "proposed")
        message_rows = [[where.session_id, where.namespace, where.user_id, name] for where, name in messages]
        of_memories = {cited for memory in memories for cited in memory.record.extracted_from or ()}
        ids = [*(memory.record.id for memory in memories), *(name for _, name in messages if name not in of_memories)]
        proposal = {FORGET: {"ids": ids, "memories": list(map(_as_proposed, memories)), "messages": message_rows}, "old": []}
        change = {"id": name, "fields": [*fields, "p", json.dumps(proposal)], "mids": [memory.mid for memory in memories]}
        await self._scripts.run_group(scope.tenant, change=change)

    async def approve(self, scope: Scope, change: StoredChange) -> dict[str, Any]:
        """Apply a proposal and return its receipt. Raises Conflict if a memory has changed."""
        assert change.proposal is not None
        proposal = change.proposal[FORGET]
        proposed = {memory["id"]: memory for memory in proposal["memories"]}
        messages = [(SessionRef(session, namespace, user), name) for session, namespace, user, name in proposal["messages"]]

        def is_as_proposed(memories: Sequence[StoredMemory]) -> bool:
            named = {memory.record.id: memory for memory in memories}
            return all(name in named and _as_proposed(named[name]) == proposed[name] for name in proposed)

        answer = await self._forget.forget_proposed(scope, list(proposed), messages, is_as_proposed)
        if not answer.forgotten:
            raise Conflict(f"change {change.id} is stale: a memory of it was changed or deleted since it was proposed; reject it")
        return {"receipt_id": answer.receipt_id, "undo_until": answer.undo_until}


def _as_proposed(memory: StoredMemory) -> dict[str, Any]:
    record = memory.record
    return {"id": record.id, "version": memory.version, "namespace": record.namespace, "user_id": record.user_id}
