"""Summarize and remove the oldest messages of a session that exceeds its window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from functools import partial

from agent_memory.features.access.context_limits import ContextLimits
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.sessions.codec import SessionState, StoredMessage
from agent_memory.features.sessions.prompts import SummaryAnswer, summarize_messages
from agent_memory.features.sessions.service import fitting
from agent_memory.features.sessions.store import SessionStore, outside_blocks
from agent_memory.foundation.core.errors import ContextExceeded, ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.llm.base import ChatModel, is_declined
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.text.cleaning.context_blocks import context_blocks
from agent_memory.foundation.text.data_fences import PromptMessage
from agent_memory.foundation.text.extractive_summary import SpokenMessage, statements_of, statements_of_summary, summarize
from agent_memory.foundation.text.injection import suspicion
from agent_memory.foundation.text.passages.sentences import split_sentences
from agent_memory.foundation.text.prompt_marks import PROGRAM_ROLES, TOOL_ROLES
from agent_memory.runtime import Runtime
from agent_memory_worker.extraction.batches import LEAST_TOKENS, LINE_TOKENS, PromptShares, asks_less_after, less, size, within
from agent_memory_worker.sessions.pictures import describe_pictures

log = get_logger(__name__)

_ATTEMPTS = 3
_NOTHING = "(greetings only)"


async def summarize_session(runtime: Runtime, sid: str, *, plainly: bool = False) -> bool:
    """Summarize a session if its messages exceed its window. Return True if it was summarized.

    If `plainly` is true, no language model is used. Raises ModelUnavailable or ModelAnswerInvalid
    without changing the session.
    """
    rules = runtime.settings.working
    if not rules.summarize:
        return False
    # Most sessions have room, and this check costs little.
    read = await runtime[SessionStore].by_sid(sid, last=1)
    for _ in range(_ATTEMPTS):
        if read is None or read[1].message_tokens <= int(_window(runtime, read[1]) * rules.summarization_threshold):
            return False
        read = await runtime[SessionStore].by_sid(sid)
        if read is None:
            return False
        tenant, state = read
        window = _window(runtime, state)
        stay = fitting(state.messages, int(window * rules.summarization_keep))
        leaving = state.messages[: len(state.messages) - len(stay)]
        if not leaving:
            return False  # The last message alone is larger than the window: nothing can be removed.
        if not plainly and any(stored.message.content_parts for stored in leaving):
            await describe_pictures(runtime, sid)  # A summary cannot show them.
        messages = await run_in_thread(
            partial(outside_blocks, leaving, context_blocks(runtime.settings.longterm.context_tags)),
            sum(len(stored.message.content) for stored in leaving),
        )
        budget = summary_tokens(window)
        chat = None if plainly else runtime[TenantModels].chat(tenant)
        telling = _model_summary(runtime, chat, state, messages, budget) if chat else _sentence_summary(runtime, state, messages, budget)
        try:
            summary = await telling
        except ContextExceeded as error:
            # The messages will never fit the model's context, so summarize without the model instead of waiting.
            session_id = state.ref.session_id
            log.warning("summarizing a session without the model", tenant=tenant, session_id=session_id, error=error)
            summary = await _sentence_summary(runtime, state, messages, budget)
        if await runtime[SessionStore].apply_summary(sid, state.fence, len(leaving), summary, runtime.counter.count(summary)):
            return True
        log.info("session changed during its summary; retrying", tenant=tenant, session_id=state.ref.session_id)
    return False


def _window(runtime: Runtime, state: SessionState) -> int:
    return state.window or runtime.settings.models.default_context_window


def summary_tokens(window: int) -> int:
    """Return the token limit for a summary: 1/8 to 1/20 of the window, at most 2,048."""
    share = 8 if window < 10_000 else 10 if window < 50_000 else 20
    return max(64, min(window // share, 2048))


async def _model_summary(runtime: Runtime, chat: ChatModel, state: SessionState, leaving: Sequence[StoredMessage], budget: int) -> str:
    """Use the language model to extend the old summary, chunk by chunk.

    If QUARANTINE is on, omit suspicious messages and reject suspicious summaries.
    """
    # Tool calls and pictures have no text.
    left = await run_in_thread(
        lambda: [stored for stored in leaving if stored.message.content.strip() and not _reads_like_an_order(runtime, stored)],
        sum(len(stored.message.content) for stored in leaving),
    )
    summary, failed = state.context or "", None
    while left:
        await runtime[ContextLimits].load_learned(chat)
        shares = PromptShares.of_summary(chat, summarize_messages(None, [], max_words=budget), SummaryAnswer)
        if shares is None:
            raise chat.context.no_room()
        former = runtime.counter.shorten(summary, shares.before)
        planned = shares.beside(runtime.counter.count(former))
        room = planned if failed is None else less(planned, failed)
        run = within(left, room, room)
        try:
            summary = await _next_summary(runtime, chat, former, run, room, min(budget, shares.answer // 2))
        except ContextExceeded:
            await runtime[ContextLimits].save_learned(chat)
            failed = min(room, size(run))
            if failed < 2 * LEAST_TOKENS:
                raise
            continue
        except ModelUnavailable as error:
            if not asks_less_after(error, chat, min(room, size(run))):
                raise
            await runtime[ContextLimits].save_learned(chat)
            continue
        left, failed = left[len(run) :], None
    return summary or _NOTHING


async def _next_summary(runtime: Runtime, chat: ChatModel, former: str, run: Sequence[StoredMessage], room: int, budget: int) -> str:
    """Update the summary with a chunk of messages.

    Raises ModelUnavailable or ModelAnswerInvalid.
    """
    most = max(room - LINE_TOKENS, LEAST_TOKENS // 2)
    prompt_messages = await run_in_thread(
        lambda: [_prompt_message(runtime, number, stored, most) for number, stored in enumerate(run, start=1)],
        sum(len(stored.message.content) for stored in run),
    )
    answer = await chat.structured(summarize_messages(former, prompt_messages, max_words=max(budget * 3 // 4, 16)), SummaryAnswer)
    text = answer.summary.strip()
    if is_declined(text):
        raise ModelAnswerInvalid("the model gave no summary", reason="declined")
    if runtime.settings.longterm.quarantine and suspicion(text, of_user=True):
        raise ModelAnswerInvalid("the model's summary reads like an order to a model", reason="suspicious")
    # A model may ignore its word limit, but its summary must not fill the window.
    return runtime.counter.truncate(text, 2 * budget)


def _reads_like_an_order(runtime: Runtime, stored: StoredMessage) -> bool:
    message = stored.message
    of_user = message.role not in TOOL_ROLES and message.role != "assistant"
    return runtime.settings.longterm.quarantine and suspicion(message.content, of_user=of_user) is not None


def _prompt_message(runtime: Runtime, number: int, stored: StoredMessage, room: int) -> PromptMessage:
    message = stored.message
    content = message.content if stored.tokens <= room else runtime.counter.shorten(message.content, room)
    return PromptMessage(number, message.role, content, message.created_at)


async def _sentence_summary(runtime: Runtime, state: SessionState, leaving: Sequence[StoredMessage], budget: int) -> str:
    """Summarize without a model by picking the most informative statements.

    If QUARANTINE is on, omit suspicious messages.
    """
    longest = max(budget // 2, 16)

    def write() -> str:
        spoken = [
            SpokenMessage(stored.message.content, stored.message.role, stored.message.created_at)
            for stored in leaving
            if stored.message.role not in PROGRAM_ROLES and not _reads_like_an_order(runtime, stored)
        ]
        statements = statements_of_summary(state.context or "", split_sentences, leaving[0].message.created_at)
        statements += statements_of(spoken, split_sentences)
        short = [replace(each, text=_shortened(runtime, " ".join(each.text.split()), longest)) for each in statements]
        return summarize(short, budget, runtime.counter.count, UTC)

    text = await run_in_thread(write, sum(len(stored.message.content) for stored in leaving))
    return text or state.context or _NOTHING


def _shortened(runtime: Runtime, text: str, tokens: int) -> str:
    """Truncate text to `tokens`, at a word boundary if possible."""
    cut = runtime.counter.truncate(text, tokens)
    return cut if len(cut) == len(text) or text[len(cut)] == " " else cut.rpartition(" ")[0] or cut
