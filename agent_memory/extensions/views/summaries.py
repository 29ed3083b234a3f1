"""Compute a partition of a summary view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from time import monotonic

from agent_memory.extensions.views.filters import selection_of, within
from agent_memory.extensions.views.prompts import ViewSummary, summarize_group
from agent_memory.extensions.views.store import Partition
from agent_memory.features.memories.upkeep.scan import MemoryScan, StoredMemory
from agent_memory.foundation.core.errors import ContextExceeded, ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.base import ChatModel, is_declined
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.storage.keyspace import digest
from agent_memory.foundation.text.data_fences import PromptMessage
from agent_memory.foundation.text.extractive_summary import Statement, most_telling
from agent_memory_client.models import MemoryTypeEnum, SummaryView, SummaryViewPartitionResult

log = get_logger(__name__)

NO_MODEL = "no language model is configured: the summary lists the most informative memories"
# A summary covers only the newest memories, at most this many. `memory_count` includes all memories.
_MOST_MEMORIES = 500
_PROMPT_TOKENS = 16_000
_MEMORY_TOKENS = 1_000
# A prompt needs this many tokens for a memory in addition to its text.
_SHOWN_TOKENS = 40
_SUMMARY_WORDS = 400
_ANSWER_TOKENS = _SUMMARY_WORDS * 4
_LEAST_TOKENS = 96
_SUMMARY_TOKENS = 600
_LINE_TOKENS = 120


class ViewSummarizer:
    """Computes partitions, but does not store them."""

    def __init__(self, survey: MemoryScan, chat_of: Callable[[str], ChatModel | None], counter: TokenCounter) -> None:
        """Create a summarizer. `chat_of` returns a tenant's language model, or None."""
        self._survey = survey
        self._chat_of = chat_of
        self._counter = counter

    async def compute_partition(
        self, scope: Scope, view: SummaryView, group: Mapping[str, str], *, seconds: float | None = None, stored: Partition | None = None
    ) -> Partition:
        """Compute a partition. The model may take at most `seconds`.

        Return `stored` if its inputs are unchanged, or if a model wrote it but is failing now. If
        there is no usable answer, list the most informative memories and set `degraded` to the
        reason.
        """
        selection = within(selection_of(view, datetime.now(UTC)), group)
        total, memories = (0, []) if selection is None else await self._survey.load_newest(scope, selection, _MOST_MEMORIES)
        made = partial(SummaryViewPartitionResult, view_id=view.id, group=dict(group), memory_count=total)
        if not memories:
            return Partition(made(empty=True, empty_reason="no_matching_memories"), "empty")
        chat = self._chat_of(scope.tenant)
        chat = chat.with_model(view.model_name) if chat is not None and view.model_name else chat
        made_of = [part for memory in memories for part in (memory.mid, str(memory.version))]
        mids = [memory.mid for memory in memories]
        fingerprint = digest("partition", view.prompt, None if chat is None else chat.model, str(total), *made_of)
        if stored is not None and stored.fingerprint == fingerprint:
            return stored
        reason = NO_MODEL
        if chat is not None:
            try:
                summary = await self._summary_by_model(chat, view, group, memories, seconds)
                return Partition(made(summary=summary), fingerprint, mids)
            except (ModelUnavailable, ModelAnswerInvalid) as error:
                log.warning("model did not summarize a partition", tenant=scope.tenant, view_id=view.id, model=chat.model, error=error)
                if stored is not None and stored.result.summary and stored.result.degraded is None:
                    return stored
                reason = f"the answer of the language model is unusable ({error.code}): the summary lists the most informative memories"
                fingerprint = "degraded"
        summary = await run_in_thread(lambda: self._most_telling(memories), sum(len(memory.record.text) for memory in memories))
        return Partition(made(summary=summary, degraded=reason), fingerprint, mids)

    async def _summary_by_model(
        self, chat: ChatModel, view: SummaryView, group: Mapping[str, str], memories: Sequence[StoredMemory], seconds: float | None
    ) -> str:
        """Summarize the newest memories that fit. Raises ModelUnavailable or ModelAnswerInvalid."""
        deadline = None if seconds is None else monotonic() + seconds
        most: int | None = None
        characters = sum(len(memory.record.text) for memory in memories)
        while True:
            left = chat.room(summarize_group([], group, instructions=view.prompt, max_words=_SUMMARY_WORDS), ViewSummary)
            if left < _LEAST_TOKENS and chat.context.limit.certain:
                raise chat.context.no_room()
            answer = min(_ANSWER_TOKENS, max(left // 3, _LEAST_TOKENS))
            room = max(min(_PROMPT_TOKENS, left - answer, most or _PROMPT_TOKENS), _LEAST_TOKENS)
            prompt_messages = await run_in_thread(partial(self._prompt_messages, memories, room), characters)
            request_messages = summarize_group(prompt_messages, group, instructions=view.prompt, max_words=min(_SUMMARY_WORDS, answer // 2))
            timeout = None if deadline is None else max(deadline - monotonic(), 0.0)
            try:
                summary = (await chat.structured(request_messages, ViewSummary, max_tokens=answer, timeout=timeout)).summary.strip()
            except ContextExceeded:
                used = min(room, sum(self._counter.count(memory.content) + _SHOWN_TOKENS for memory in prompt_messages))
                if used < 2 * _LEAST_TOKENS:
                    raise
                most = used // 2
                continue
            if is_declined(summary):
                raise ModelAnswerInvalid("the model gave no summary", reason="declined")
            return summary

    def _prompt_messages(self, memories: Sequence[StoredMemory], room: int) -> list[PromptMessage]:
        """Return the newest memories that fit into `room` tokens, but at least one."""
        prompt_messages: list[PromptMessage] = []
        for number, memory in enumerate(memories, start=1):
            record = memory.record
            text = self._counter.truncate(record.text, max(min(_MEMORY_TOKENS, room - _SHOWN_TOKENS), 1))
            room -= self._counter.count(text) + _SHOWN_TOKENS
            if prompt_messages and room < 0:
                break
            message_role = record.metadata.get("role") if record.memory_type is MemoryTypeEnum.MESSAGE else None
            # Memories come newest first. The number keeps their order where times are equal.
            role = message_role if isinstance(message_role, str) else record.memory_type.value
            prompt_messages.append(PromptMessage(len(memories) - number, role, text, record.event_date or record.created_at))
        return prompt_messages

    def _most_telling(self, memories: Sequence[StoredMemory]) -> str:
        """Return the most informative memories, one per line, sorted by time."""
        candidates = sorted(memories, key=lambda memory: (memory.record.created_at, memory.record.id))
        texts = [self._counter.truncate(" ".join(memory.record.text.split()), _LINE_TOKENS) for memory in candidates]
        dates = [memory.record.event_date or memory.record.created_at for memory in candidates]
        lines = [f"[{date:%Y-%m-%d}] {text}" for date, text in zip(dates, texts, strict=True)]
        sizes = [self._counter.count(line) + 1 for line in lines]
        statements = [Statement(text, "", date) for text, date in zip(texts, dates, strict=True)]
        newest = list(reversed(range(len(lines))))
        chosen: list[int] = []
        left = _SUMMARY_TOKENS
        for index in most_telling(statements, _SUMMARY_TOKENS, self._counter.count) or newest:
            if sizes[index] <= left:
                chosen.append(index)
                left -= sizes[index]
        return "\n".join(lines[index] for index in sorted(chosen))
