"""Ask a model to describe a session's images, and store the descriptions as memories."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from datetime import UTC, datetime

from agent_memory.features.access.context_limits import ContextLimits
from agent_memory.features.access.limits import MemoryLimit
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.extraction.rules import Rules
from agent_memory.features.memories.quarantine.service import screen_record
from agent_memory.features.memories.service import content_hash, speaker_of
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.sessions.codec import SessionState, StoredMessage
from agent_memory.features.sessions.pictures import MOST_PICTURES, PictureMemories
from agent_memory.features.sessions.prompts import PictureDescription, describe_messages
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import ContextExceeded, ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.llm.base import ChatModel
from agent_memory.foundation.text.pictures import pictures_of
from agent_memory.foundation.text.statements import StatementFilter
from agent_memory.runtime import Runtime
from agent_memory_client.models import ANSWER, MemoryRecord, MemoryTypeEnum
from agent_memory_worker.sessions.promote import rules_of

log = get_logger(__name__)

_SIDE = 64  # pixels; vision models refuse much smaller pictures
_ANSWER_TOKENS = 1000


async def describe_pictures(runtime: Runtime, sid: str) -> int:
    """Describe the images that no model has seen yet. Return the number of new memories.

    A retry continues where the last attempt ended. Raises ModelUnavailable, or TooMany at the
    tenant's memory limit.
    """
    read = await runtime[SessionStore].by_sid(sid, last=1) if runtime.extracts and runtime.settings.longterm.enabled else None
    if read is None or read[1].pictures_seen_to is None or not read[1].messages or read[1].messages[-1].seq <= read[1].pictures_seen_to:
        return 0
    read = await runtime[SessionStore].by_sid(sid)
    chat = None if read is None else runtime[TenantModels].chat(read[0])
    if read is None or chat is None:
        return 0
    tenant, state = read
    new = [stored for stored in state.messages if stored.seq > (state.pictures_seen_to or 0)]
    rules = await rules_of(runtime, scope_of_work(tenant), state.ref, state.strategy)
    made = 0
    for stored in new:
        if addresses := pictures_of(stored.message.content_parts)[:MOST_PICTURES]:
            made += await _describe_message(runtime, chat, (tenant, sid, state), rules, stored, addresses)
            await runtime[SessionStore].note_pictures(sid, state.epoch, stored.seq)
    if new:
        await runtime[SessionStore].note_pictures(sid, state.epoch, new[-1].seq)
    return made


async def _describe_message(
    runtime: Runtime,
    chat: ChatModel,
    place: tuple[str, str, SessionState],
    rules: Rules,
    stored: StoredMessage,
    addresses: list[str],
) -> int:
    """Describe a message's images. Return the number of new memories.

    `place` contains the tenant, the session's key name, and the session.
    """
    tenant, sid, state = place
    scope, pictures = scope_of_work(tenant), runtime[PictureMemories]
    clean = StatementFilter(rules.blocklist, runtime.settings.longterm.redact_secrets).clean
    by_id = {pictures.memory_id(state.ref, address): address for address in addresses}
    described_ids = await pictures.described(scope, list(by_id))
    made = 0
    for memory_id, address in by_id.items():
        if memory_id in described_ids:
            continue
        await runtime[MemoryLimit].room_for(tenant, 1)
        text = await _description(runtime, chat, address, rules.language)
        if text is None or rules.blocklist.holds(text):
            continue
        # The message may have been deleted or forgotten while the model ran.
        now = await runtime[SessionStore].by_sid(sid)
        if now is None or now[1].epoch != state.epoch or all(stored.seq != other.seq for other in now[1].messages):
            break
        record = screen_record(runtime.settings, _memory(state, stored, memory_id, clean(text), chat.model))
        made += len(await runtime[MemoryStore].write(scope, [record], background=True) or ())
        now = await runtime[SessionStore].by_sid(sid, last=1)
        if now is None or now[1].epoch != state.epoch:  # The session was deleted during the write.
            await runtime[MemoryStore].delete_records(scope, [record])
            break
    return made


def _memory(state: SessionState, stored: StoredMessage, memory_id: str, text: str, model: str) -> MemoryRecord:
    message, ref = stored.message, state.ref
    speaker = speaker_of(message)
    record = MemoryRecord.model_validate(
        {
            "id": memory_id,
            # A prompt must not claim that the speaker said this.
            "text": f"Picture from {speaker.get('name', message.role)}, as a model describes it: {text}",
            "namespace": ref.namespace,
            "user_id": ref.user_id,
            "session_id": ref.session_id,
            "memory_type": MemoryTypeEnum.SEMANTIC,
            "created_at": message.created_at,
            "last_accessed": message.created_at,
            "persisted_at": datetime.now(UTC),
            "extracted_from": [message.id],
            "extraction_strategy": "picture",
            "discrete_memory_extracted": "t",
            "source_class": "inference",
            "metadata": {"model": model},
        },
        context=ANSWER,
    )
    record.memory_hash = content_hash(record)
    return record


async def _description(runtime: Runtime, chat: ChatModel, address: str, language: str | None) -> str | None:
    """Describe an image, or return None if the model cannot. Raises ModelUnavailable."""
    if await runtime[ContextLimits].is_blind(chat):
        return None
    try:
        answer = await chat.structured(describe_messages(address, language), PictureDescription, max_tokens=_ANSWER_TOKENS)
    except (ModelAnswerInvalid, ModelUnavailable) as error:
        if not _may_be_about_picture(error):
            if isinstance(error, ModelUnavailable):
                raise
            log.warning("picture was not described", model=chat.model, error=error)
            return None
        await _find_cause(runtime, chat, language)
        return None
    return answer.description.strip() or None if answer.seen else None


def _may_be_about_picture(error: ModelAnswerInvalid | ModelUnavailable) -> bool:
    return not isinstance(error, ContextExceeded) and error.data.get("reason") in ("refused", "too_long", "server_error", "not_found")


async def _find_cause(runtime: Runtime, chat: ChatModel, language: str | None) -> None:
    """Check whether the model rejects all images, and save the result.

    Raises ModelUnavailable or ModelAnswerInvalid if the model also rejects text.
    """
    for address in (None, _plain_picture()):
        try:
            await chat.structured(describe_messages(address, language), PictureDescription, max_tokens=_ANSWER_TOKENS)
        except (ModelAnswerInvalid, ModelUnavailable) as error:
            if not _may_be_about_picture(error):
                if isinstance(error, ModelUnavailable):
                    raise
                continue  # The model gave a useless answer, but the server accepted the request.
            if address is None:
                raise
            log.warning("model does not accept pictures; they are not described", model=chat.model, error=error)
            await runtime[ContextLimits].save_blind(chat)
            return
    log.warning("model accepts pictures, but refused one, which was not described", model=chat.model)


def _plain_picture() -> str:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + b"\x80" * _SIDE) * _SIDE)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 0, 0, 0, 0))
    png = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return f"data:image/png;base64,{b64encode(png).decode()}"
