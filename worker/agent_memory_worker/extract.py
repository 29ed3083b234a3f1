"""Extraction: a model is asked, some messages at a time, which facts they hold; the cursor moves with the facts it brought."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from agent_memory.analysis import carries_information
from agent_memory.llm.base import ChatModel
from agent_memory.llm.counting import TokenCounter
from agent_memory.prompts.escape import PromptMessage
from agent_memory.prompts.extract import ExtractedFact, ExtractionAnswer, extract_messages
from agent_memory.runtime import Runtime
from agent_memory.scope import SessionRef
from agent_memory.services.access import scope_of_work
from agent_memory.services.longterm import content_hash, fact_memory_id
from agent_memory.storage.codec import StoredMessage
from agent_memory.storage.memories import Fence
from agent_memory.storage.working import JOURNAL_CONTEXT, Journal
from agent_memory_client.models import ANSWER, MemoryRecord

BATCH = 60
# How much of a message before the new ones is shown.
_CONTEXT_TOKENS = 300


async def extract_facts(runtime: Runtime, sid: str) -> int:
    """Asks the model about all messages behind the cursor; returns how many facts that gave.

    Raises ModelUnavailable and ModelAnswerInvalid: the cursor then stays where it is and nothing is stored.
    """
    chat = runtime.chat
    made = 0
    while chat is not None and (journal := await runtime.sessions.journal(sid, "je", BATCH)) is not None and journal.waiting:
        batch = within(journal.waiting, runtime.settings.longterm.extraction_batch_tokens)
        told = [stored for stored in batch if stored.promote and carries_information(stored.message.content)]
        facts = await _ask(chat, runtime.counter, journal, told) if told else []
        records = [_record(journal.ref, fact, told) for fact in facts if _clean(fact.text)]
        fence = Fence(sid, journal.epoch, "je", journal.start, journal.start + len(batch), JOURNAL_CONTEXT)
        if await runtime.memories.write(scope_of_work(journal.tenant), records, fence=fence, late=True) is None:
            continue  # The session moved on: read again.
        made += len(records)
    return made


def within(messages: Sequence[StoredMessage], tokens: int) -> list[StoredMessage]:
    """The first messages that together have at most `tokens` tokens; the first one in any case."""
    taken: list[StoredMessage] = []
    for stored in messages:
        tokens -= stored.tokens
        if taken and tokens < 0:
            break
        taken.append(stored)
    return taken


async def _ask(chat: ChatModel, counter: TokenCounter, journal: Journal, told: Sequence[StoredMessage]) -> list[ExtractedFact]:
    before = [stored for stored in journal.before if stored.seq < told[0].seq]
    # A message of any length must fit, or the session would stop at it; what stands before is only there to be understood.
    new = _numbered(told, 1, lambda text: counter.truncate(text, chat.context_window // 3))
    context = _numbered(before, -len(before), lambda text: counter.truncate(text, min(_CONTEXT_TOKENS, chat.context_window // 60)))
    return (await chat.structured(extract_messages(new, context=context), ExtractionAnswer)).memories


def _numbered(messages: Sequence[StoredMessage], first: int, cut: Callable[[str], str]) -> list[PromptMessage]:
    """Messages as the prompt shows them; answers cite them by small numbers, which cannot be invented ids."""
    return [
        PromptMessage(number, stored.message.role, cut(stored.message.content), stored.message.created_at)
        for number, stored in enumerate(messages, start=first)
    ]


def _record(ref: SessionRef, fact: ExtractedFact, told: Sequence[StoredMessage]) -> MemoryRecord:
    """The memory of one fact. A fact that cites nothing usable is a fact of the whole batch."""
    cited = [told[number - 1] for number in dict.fromkeys(fact.messages) if 1 <= number <= len(told)] or list(told)
    text = _clean(fact.text)
    said = max(stored.message.created_at for stored in cited)
    record = MemoryRecord.model_validate(
        {
            "id": fact_memory_id(ref, text),
            "text": text,
            "namespace": ref.namespace,
            "user_id": ref.user_id,
            "session_id": ref.session_id,
            "memory_type": fact.type,
            "topics": [tag for tag in map(_clean, fact.topics) if tag],
            "entities": [tag for tag in map(_clean, fact.entities) if tag],
            "event_date": _date(fact.event_date),
            "created_at": said,
            "last_accessed": said,
            "persisted_at": datetime.now(UTC),
            "extracted_from": [stored.message.id for stored in cited],
            "extraction_strategy": "discrete",
            "discrete_memory_extracted": "t",
        },
        # The rules for callers are not for us: a message's id may hold a comma.
        context=ANSWER,
    )
    record.memory_hash = content_hash(record)
    return record


def _clean(text: str) -> str:
    """A model's text as ours: NFC, without control characters and lone surrogates."""
    valid = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode())
    return " ".join("".join(" " if unicodedata.category(c) == "Cc" else c for c in valid).split())


def _date(value: str | None) -> datetime | None:
    """An ISO date or time as an instant in UTC; None where the calendar ends."""
    if value is None:
        return None
    moment = datetime.fromisoformat(value)
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        return None
