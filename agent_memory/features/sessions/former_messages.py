"""Compare appended messages with memories from a deleted session."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.records import message_memory_id
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.sessions.message_ids import with_other_id
from agent_memory.features.sessions.session_write import NewMessage
from agent_memory.foundation.core.errors import NotFound
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.text.blocked_phrases import Blocklist
from agent_memory.foundation.text.cleaning.context_blocks import context_blocks
from agent_memory.foundation.text.statements import StatementFilter
from agent_memory_client.models import MemoryMessage


class FormerMessages:
    def __init__(self, settings: Settings, memories: MemoryStore, history: HistoryService) -> None:
        self._settings = settings
        self._memories = memories
        self._history = history

    async def compare(self, scope: Scope, ref: SessionRef, messages: Sequence[NewMessage]) -> None:
        """Assign a new id to each message that differs from the memory with the same id.

        Other messages that have no time get the memory's time.
        """
        ids = [message_memory_id(ref, new.message.id) for new in messages]
        for new, memory_id, memory in zip(messages, ids, await self._memories.find(scope, ids), strict=True):
            text = self._text_of(new.message)
            is_same = memory is not None and text == memory.record.text
            if not is_same and text not in await self._former_texts(scope, memory_id):
                new.message = with_other_id(new.message)
                continue
            new.is_compared, new.promote = True, new.promote and is_same
            if memory is not None and "created_at" not in new.message.model_fields_set:
                new.message = new.message.model_copy(update={"created_at": memory.record.created_at})

    async def _former_texts(self, scope: Scope, memory_id: str) -> set[str]:
        with suppress(NotFound):
            return {version.record.text for version in (await self._history.read_history(scope, memory_id)).versions}
        return set()

    def _text_of(self, message: MemoryMessage) -> str | None:
        """Return the text that a worker would store for a message."""
        longterm = self._settings.longterm
        inside = message.model_copy(update={"content": context_blocks(longterm.context_tags).outside(message.content)})
        return StatementFilter(Blocklist(()), longterm.redact_secrets).text(inside)
