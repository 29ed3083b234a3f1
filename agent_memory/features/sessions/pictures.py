"""Report whether images are remembered by description or only by the surrounding text."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.notices import add_notice
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.storage.keyed_ids import KeyedIds
from agent_memory.foundation.text.pictures import pictures_of
from agent_memory_client.models import MemoryMessage, WorkingMemoryResponse

MOST_PICTURES = 20
"""Maximum number of images to describe per message."""


def notice_pictures(messages: Sequence[MemoryMessage], described: bool) -> None:
    """Add a notice for each message with images. Descriptions follow if `described` is true."""
    later = "until a model has described them; read the session to see" if described else "because no model extracts facts"
    for position, message in enumerate(messages):
        if pictures_of(message.content_parts):
            add_notice(f"messages.{position}.content: its images are remembered by words only {later}")


class PictureMemories:
    """Finds the memories that describe images."""

    def __init__(self, memories: MemoryStore, ids: KeyedIds) -> None:
        self._memories = memories
        self._ids = ids

    def memory_id(self, ref: SessionRef, address: str) -> str:
        """Return the id of an image's description, derived from its address and owner."""
        return self._ids.of("picture", ref.namespace, ref.user_id, None if ref.user_id else ref.session_id, address)

    async def described(self, scope: Scope, memory_ids: Sequence[str]) -> set[str]:
        """Return the subset of `memory_ids` that have a stored description."""
        memories = await self._memories.find(scope, memory_ids)
        return {memory_id for memory_id, memory in zip(memory_ids, memories, strict=True) if memory is not None}

    async def descriptions(self, scope: Scope, ref: SessionRef, messages: Sequence[MemoryMessage]) -> dict[str, list[str]]:
        """Return descriptions of the messages' images by message id, except quarantined ones."""
        ids = {
            message.id: [self.memory_id(ref, address) for address in addresses[:MOST_PICTURES]]
            for message in messages
            if (addresses := pictures_of(message.content_parts))
        }
        names = list(dict.fromkeys(memory_id for each in ids.values() for memory_id in each))
        memories_by_name = zip(names, await self._memories.find(scope, names), strict=True) if names else ()
        texts = {name: memory.record.text for name, memory in memories_by_name if memory is not None and memory.record.quarantine is None}
        return {message_id: own_texts for message_id, each in ids.items() if (own_texts := [texts[name] for name in each if name in texts])}

    async def mark(self, scope: Scope, session: WorkingMemoryResponse) -> None:
        """Set `content_pictures` in each message that has images."""
        ref = SessionRef(session.session_id, session.namespace, session.user_id)
        ids = {
            position: [self.memory_id(ref, address) for address in addresses]
            for position, message in enumerate(session.messages)
            if (addresses := pictures_of(message.content_parts))
        }
        described_ids = await self.described(scope, [memory_id for each in ids.values() for memory_id in each]) if ids else set[str]()
        for position, each in ids.items():
            message = session.messages[position]
            session.messages[position] = message.model_copy(
                update={"content_pictures": "described" if described_ids.issuperset(each) else "words only"}
            )


async def mark_pictures(services: Services, scope: Scope, session: WorkingMemoryResponse) -> None:
    """Set `content_pictures` in each message that has images."""
    if any(pictures_of(message.content_parts) for message in session.messages):
        await services[PictureMemories].mark(scope, session)


async def described_pictures(services: Services, sid: str, message_ids: Collection[str]) -> dict[str, list[str]]:
    """Return descriptions of the images in a session's messages, by message id."""
    sid, store = sid.partition(".")[0], services[SessionStore]  # A set-aside batch is named after its session.
    read = await store.by_sid(sid, last=1)
    if read is None or read[1].pictures_seen_to is None or (read := await store.by_sid(sid)) is None:
        return {}
    tenant, state = read
    messages = [stored.message for stored in state.messages if stored.message.id in message_ids]
    return await services[PictureMemories].descriptions(scope_of_work(tenant), state.ref, messages)
