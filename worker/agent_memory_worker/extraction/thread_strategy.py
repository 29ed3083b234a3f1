"""Implement the "summary" strategy, which maintains one memory per session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256

from agent_memory.features.extraction.fact_support import ExtractionMessage
from agent_memory.features.extraction.facts import clean_text
from agent_memory.features.extraction.rules import Rules
from agent_memory.features.extraction.thread_prompts import VERSION, ThreadSummary, summarize_thread
from agent_memory.features.memories.commit import Add, Decision, Update
from agent_memory.features.memories.quarantine.service import screen_record
from agent_memory.features.memories.records import TRUST, StoredMemory, join_writers, trust_of
from agent_memory.features.memories.service import content_hash
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.llm.base import ChatMessage, ChatModel
from agent_memory.foundation.text.data_fences import PromptMessage
from agent_memory.foundation.text.prompt_marks import TOOL_ROLES
from agent_memory.runtime import Runtime
from agent_memory_client.models import ANSWER, Evidence, MemoryRecord
from agent_memory_worker.extraction.batches import LEAST_TOKENS, PromptShares

# The archived server uses these names.
_TOPIC = "thread-summary"
_SUMMARY_VERSION = "thread-summary-v1"
_MOST_CITED = 1000
_LEAST_WORDS = 24


def thread_memory_id(ref: SessionRef) -> str:
    """Return the id of a session's summary, which is the same as on the archived server."""
    parts = f"{ref.namespace or ''}|{ref.user_id or ''}|{ref.session_id}"
    return "thread_summary_" + sha256(parts.encode()).hexdigest()[:24]


async def summarize(
    runtime: Runtime,
    chat: ChatModel,
    scope: Scope,
    ref: SessionRef,
    rules: Rules,
    messages: Sequence[ExtractionMessage],
    prompt_messages: Sequence[PromptMessage],
    *,
    shares: PromptShares,
    clean: Callable[[str], str],
) -> list[Decision]:
    """Update a session's summary, and return the decision that stores it.

    Return an empty list if the stored summary is pinned, or if the new one is empty or blocked.
    Raises ModelUnavailable or ModelAnswerInvalid.
    """
    memory_id, summary = await _standing(runtime, scope, ref)
    if summary is not None and summary.record.pinned:
        return []
    words = max(min(rules.summary_words, shares.answer * 3 // 4), _LEAST_WORDS)
    former = None if summary is None else runtime.counter.shorten(summary.record.text, max(shares.before, LEAST_TOKENS))
    answer = await chat.structured(thread_prompt(former, prompt_messages, rules, words), ThreadSummary)
    text = runtime.counter.truncate(clean(answer.summary.strip()), words * 3)
    if not clean_text(text) or rules.blocklist.holds(text):
        return []
    record = _record(ref, memory_id, rules, text, answer.topics, messages, chat.model, None if summary is None else summary.record)
    record = screen_record(runtime.settings, record)
    return [Add(record, dedupe=False) if summary is None else Update(summary, record)]


async def _standing(runtime: Runtime, scope: Scope, ref: SessionRef) -> tuple[str, StoredMemory | None]:
    names = [thread_memory_id(ref), runtime.ids.instead_of(thread_memory_id(ref))]
    owner = (ref.namespace, ref.user_id, None)
    for name, summary in zip(names, await runtime[MemoryStore].find(scope, names), strict=True):
        if summary is not None and (summary.record.namespace, summary.record.user_id, summary.record.agent_id) == owner:
            return name, summary
    free = MemoryRecord(id=names[0], text="-", namespace=ref.namespace, user_id=ref.user_id)
    return names[1 if await runtime[MemoryStore].taken_ids(scope, [free]) else 0], None


def thread_prompt(former: str | None, prompt_messages: Sequence[PromptMessage], rules: Rules, words: int) -> list[ChatMessage]:
    return summarize_thread(
        former, prompt_messages, max_words=words, instructions=rules.instructions, zone=rules.zone, language=rules.language
    )


def _record(
    ref: SessionRef,
    memory_id: str,
    rules: Rules,
    text: str,
    topics: Sequence[str],
    messages: Sequence[ExtractionMessage],
    model: str,
    old: MemoryRecord | None,
) -> MemoryRecord:
    cited = list(dict.fromkeys([*((old and old.extracted_from) or ()), *(message.id for message in messages)]))[-_MOST_CITED:]
    former = dict(old.metadata) if old is not None else {}
    first, last = min(message.stated_at for message in messages), max(message.stated_at for message in messages)
    count = former.get("message_count", 0)
    metadata = former | {
        "source_session_id": ref.session_id,
        "message_count": (count if isinstance(count, int) else 0) + len(messages),
        "source_message_ids": cited,
        "source_created_at_min": min(str(former.get("source_created_at_min") or first.isoformat()), first.isoformat()),
        "source_created_at_max": max(str(former.get("source_created_at_max") or last.isoformat()), last.isoformat()),
        "source_message_fingerprint": sha256("\0".join(cited).encode()).hexdigest(),
        "summary_version": _SUMMARY_VERSION,
    }
    now = datetime.now(UTC)
    trust = min(
        TRUST["tool" if message.role in TOOL_ROLES else "assistant" if message.role == "assistant" else "user"] for message in messages
    )
    fields = {
        "text": text,
        "topics": list(dict.fromkeys([*rules.topics, *map(clean_text, topics), _TOPIC])),
        "extracted_from": cited,
        "metadata": metadata,
        "updated_at": now,
        "model": model,
        "prompt_version": VERSION,
        "evidence": [Evidence(session_id=ref.session_id, message_ids=cited, at=last)],
        "written_by": join_writers([old and old.written_by, *(message.stored.message.written_by for message in messages)]),
    }
    if old is not None:
        record = old.model_copy(update=fields | {"trust": min(trust_of(old), trust)})
    else:
        placed = {
            "id": memory_id,
            "namespace": ref.namespace,
            "user_id": ref.user_id,
            "session_id": ref.session_id,
            "memory_type": "semantic",
            "created_at": first,
            "last_accessed": last,
            "persisted_at": now,
            "extraction_strategy": "summary",
            "discrete_memory_extracted": "t",
            "source_class": "inference",
            "trust": trust,
        }
        record = MemoryRecord.model_validate(placed | fields, context=ANSWER)
    record.memory_hash = content_hash(record)
    return record
