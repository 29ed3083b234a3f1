"""Ask a model for the facts in new messages, batch by batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice, pairwise
from time import monotonic
from typing import Any

from agent_memory.features.access.context_limits import ContextLimits
from agent_memory.features.access.limits import MemoryLimit
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.extraction.fact_support import ExtractionMessage
from agent_memory.features.extraction.facts import Candidate, candidates
from agent_memory.features.extraction.prompts import (
    DOCUMENT_ROLE,
    VERSION,
    ExtractedFact,
    ExtractionAnswer,
    ExtractionTask,
    extract_messages,
    facts_before_the_end,
)
from agent_memory.features.extraction.rules import ExtractionRulesService, Rules
from agent_memory.features.extraction.thread_prompts import VERSION as THREAD_VERSION
from agent_memory.features.extraction.thread_prompts import ThreadSummary
from agent_memory.features.jobs.extraction_report import batch_report
from agent_memory.features.memories.annotations import annotations_of
from agent_memory.features.memories.commit import ChangeOrigin, CommitOutcome, Decision, MemoryCommits
from agent_memory.features.memories.quarantine.service import screen_record
from agent_memory.features.memories.steps import Fence
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.privacy.forget.matching import subject_to_forget
from agent_memory.features.sessions.codec import StoredMessage
from agent_memory.features.sessions.pictures import described_pictures
from agent_memory.features.sessions.store import JOURNAL_CONTEXT, Journal, SessionStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import Conflict, ContextExceeded, ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.base import ChatModel
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.text.cleaning.context_blocks import context_blocks
from agent_memory.foundation.text.data_fences import PromptMessage
from agent_memory.foundation.text.injection import suspicion
from agent_memory.foundation.text.languages.questions import is_bare_question
from agent_memory.foundation.text.prompt_marks import TOOL_ROLES
from agent_memory.foundation.text.statements import StatementFilter, worth_asking
from agent_memory.runtime import Runtime
from agent_memory_worker.extraction.batches import BATCH, LEAST_TOKENS, LINE_TOKENS, PromptShares, asks_less_after, less, size, within
from agent_memory_worker.extraction.dead_batches import move_oversized_batch
from agent_memory_worker.extraction.reconcile import decide
from agent_memory_worker.extraction.thread_strategy import summarize, thread_prompt

log = get_logger(__name__)

# The maximum number of tokens to show from an earlier message or a tool's message. An earlier message with fewer than
# `_LEAST_CONTEXT_TOKENS` is no useful context.
_CONTEXT_TOKENS = 300
_LEAST_CONTEXT_TOKENS = 24
# Maximum attempts to reconcile a batch. If the compared memories change, another attempt is necessary.
_ATTEMPTS = 5


async def extract_facts(runtime: Runtime, sid: str) -> int:
    """Extract facts from all messages after the cursor. Return the number of changed memories.

    If a batch fails, none of it is stored and the cursor does not advance. Raises ModelUnavailable,
    ModelAnswerInvalid, or TooMany at the tenant's memory limit.
    """
    changed, failed = 0, None
    while runtime.chat is not None and (journal := await runtime[SessionStore].journal(sid, "je", BATCH)) is not None and journal.waiting:
        journal = journal.without(context_blocks(runtime.settings.longterm.context_tags))
        chat = runtime[TenantModels].chat(journal.tenant)
        assert chat is not None
        # At the tenant's limit, messages wait in their journal, as their sender was promised.
        await runtime[MemoryLimit].room_for(journal.tenant, 1)
        await runtime[ContextLimits].load_learned(chat)
        scope = scope_of_work(journal.tenant)
        rules = await runtime[ExtractionRulesService].of_session(scope, journal.ref, journal.strategy)
        for guide in runtime.services.guides:
            added = await guide.extraction_instructions(scope, journal.ref.namespace)
            rules = replace(rules, instructions=(*rules.instructions, *added))
        most = runtime.settings.longterm.extraction_batch_tokens
        shares = _shares(chat, journal, rules)
        if shares is None:
            await move_oversized_batch(runtime, sid, journal, len(within(journal.waiting, most)), chat.context.no_room())
            continue
        if failed is not None:
            shares = replace(shares, messages=less(shares.messages, failed))
        batch = within(journal.waiting, most, shares.messages)
        fence = Fence(sid, journal.epoch, "je", journal.start, journal.start + len(batch), JOURNAL_CONTEXT)
        try:
            outcome = await _extract(runtime, chat, scope, journal, rules, batch, fence, shares)
        except ContextExceeded as error:
            await runtime[ContextLimits].save_learned(chat)
            failed = min(shares.messages, size(batch))
            if failed < 2 * LEAST_TOKENS:
                await move_oversized_batch(runtime, sid, journal, len(batch), error)
                failed = None
            continue
        except ModelUnavailable as error:
            if not asks_less_after(error, chat, min(shares.messages, size(batch))):
                raise
            await runtime[ContextLimits].save_learned(chat)
            log.info("model is slow; limiting the messages of each request", model=chat.model, tokens=chat.context.request_limit)
            continue
        failed = None
        if chat.context.learn_answer(size(batch)):
            await runtime[ContextLimits].save_learned(chat)
        # Fenced: the session changed in the meantime, so read it again.
        changed += 0 if outcome.fenced else sum(state in ("new", "changed", "done") for state in outcome.states)
    return changed


def _shares(chat: ChatModel, journal: Journal, rules: Rules) -> PromptShares | None:
    """Return the token shares, or None if the context is known to be full."""
    if rules.strategy == "summary":
        return PromptShares.of_summary(chat, thread_prompt(None, [], rules, rules.summary_words), ThreadSummary)
    task = _task_of(rules, journal, journal.waiting[0].message.created_at, chat.model)
    return PromptShares.of(chat, extract_messages([], task=task), ExtractionAnswer)


async def _extract(
    runtime: Runtime,
    chat: ChatModel,
    scope: Scope,
    journal: Journal,
    rules: Rules,
    batch: Sequence[StoredMessage],
    fence: Fence,
    shares: PromptShares,
) -> CommitOutcome:
    statement_filter = StatementFilter(rules.blocklist, runtime.settings.longterm.redact_secrets)
    summary = rules.strategy == "summary"
    pictures = await described_pictures(runtime.services, fence.sid, {stored.message.id for stored in (*journal.before, *batch)})
    if pictures:
        pictures = _fitting_pictures(runtime, pictures, shares.before // 2)
        shares = replace(shares, before=shares.before - shares.before // 2)
    characters = sum(len(stored.message.content) for stored in (*batch, *journal.before))
    messages, before, is_worth_it = await run_in_thread(
        lambda: _read_batch(statement_filter, batch, journal.before, pictures, questions=summary), characters
    )
    origin = ChangeOrigin("extraction", strategy=rules.strategy, model=chat.model, prompt_version=THREAD_VERSION if summary else VERSION)
    if not is_worth_it:
        return await runtime[MemoryCommits].commit(scope, [], origin, fence=fence, background=True)

    # Truncate each message to fit, because extraction could otherwise never get past it. Context gets less room.
    most = max(shares.messages - LINE_TOKENS, LEAST_TOKENS // 2)

    def shorten(message: ExtractionMessage) -> str:
        return runtime.counter.shorten(message.text, most if message.states else min(most, _CONTEXT_TOKENS))

    new = await run_in_thread(lambda: _prompt_messages(messages, 1, shorten), characters)
    began, refused = monotonic(), list[str]()
    facts: list[Candidate] = []
    if not summary:
        context = await run_in_thread(lambda: _context(runtime, before, shares.before), characters)
        task = _task_of(rules, journal, messages[-1].stated_at, chat.model)
        extracted = await _facts_of(chat, new, context, task, refused)
        more: dict[str, Any] = {"before": before, "model": chat.model, "clean": statement_filter.clean}
        facts = await run_in_thread(
            lambda: _screen(runtime, candidates(journal.ref, rules, extracted, messages, **more), messages), characters
        )
    for _ in range(_ATTEMPTS):
        if summary:
            decisions: list[Decision] = await summarize(
                runtime, chat, scope, journal.ref, rules, messages, new, shares=shares, clean=statement_filter.clean
            )
        else:
            facts = await _under_free_ids(runtime, scope, facts)
            decisions = await decide(runtime, chat, scope, facts)
        review = rules.review or runtime.settings.longterm.review_supersessions
        report = batch_report(len(batch), monotonic() - began, refused)
        outcome = await runtime[MemoryCommits].commit(
            scope, decisions, origin, fence=replace(fence, report=report), background=True, review=review
        )
        if not outcome.moved:
            return outcome
        log.info("memories changed while new facts were compared; retrying", tenant=scope.tenant, session_id=journal.ref.session_id)
    raise Conflict("the memories that new facts are compared with keep changing")


async def _facts_of(
    chat: ChatModel,
    new: Sequence[PromptMessage],
    context: Sequence[PromptMessage],
    task: ExtractionTask,
    refused: list[str],
    *,
    halved: bool = False,
) -> list[ExtractedFact]:
    """Return the facts in new messages. Add the reasons for rejected facts to `refused`.

    `halved` is true if the model's previous response was cut off. Raises ModelUnavailable or
    ModelAnswerInvalid.
    """
    try:
        answer = await chat.structured(extract_messages(new, context=context, task=task), ExtractionAnswer)
        refused += answer.refused
        return answer.memories
    except ModelAnswerInvalid as error:
        if isinstance(error, ContextExceeded) or not error.cut_off:
            raise
        half = 0 if halved else len(new) // 2
        if half:
            halves = (new[:half], new[half:])
            return [fact for part in halves for fact in await _facts_of(chat, part, context, task, refused, halved=True)]
        whole = facts_before_the_end(error.cut_off)
        if whole is None:
            raise
        log.warning("answer of the model was truncated; storing its complete facts", model=chat.model, facts=len(whole.memories))
        refused += whole.refused
        return whole.memories


async def _under_free_ids(runtime: Runtime, scope: Scope, facts: Sequence[Candidate]) -> list[Candidate]:
    taken_ids = set(await runtime[MemoryStore].taken_ids(scope, [fact.record for fact in facts]))
    others = {name: runtime.ids.instead_of(name) for name in taken_ids}
    return [
        replace(fact, record=fact.record.model_copy(update={"id": others[fact.record.id]})) if fact.record.id in others else fact
        for fact in facts
    ]


def _fitting_pictures(runtime: Runtime, pictures: Mapping[str, Sequence[str]], tokens: int) -> dict[str, list[str]]:
    count = min(sum(map(len, pictures.values())), tokens // _LEAST_CONTEXT_TOKENS)
    each = min(_CONTEXT_TOKENS, tokens // max(count, 1))
    pairs = islice(((name, text) for name, texts in pictures.items() for text in texts), count)
    fitting: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in pairs:
        fitting[name].append(runtime.counter.truncate(text, each))
    return fitting


def _read_batch(
    statement_filter: StatementFilter,
    batch: Sequence[StoredMessage],
    earlier: Sequence[StoredMessage],
    pictures: Mapping[str, Sequence[str]],
    *,
    questions: bool,
) -> tuple[list[ExtractionMessage], list[ExtractionMessage], bool]:
    """Return the new messages, the earlier messages, and whether a model call is worthwhile.

    `pictures` maps message ids to image descriptions.
    """

    def read(stored_messages: Iterable[StoredMessage]) -> list[ExtractionMessage]:
        messages: list[ExtractionMessage] = []
        for stored in stored_messages:
            message, text = stored.message, statement_filter.text_for_model(stored.message)
            descriptions = tuple(pictures.get(message.id, ())) if text or not message.content.strip() else ()
            # A request to forget is hidden, because it would become a fact.
            if (text or descriptions) and subject_to_forget(message) is None:
                annotations = annotations_of(message) if message.role in TOOL_ROLES else None
                messages.append(ExtractionMessage(stored, text or "", descriptions, bool(annotations and annotations.document)))
        return messages

    # A picture without words is not promoted.
    messages = read(stored for stored in batch if stored.promote or not stored.message.content.strip())
    before = read(stored for stored in earlier if stored.seq < batch[0].seq)
    return messages, before, _worth_it(messages, before, questions=questions)


def _context(runtime: Runtime, before: Sequence[ExtractionMessage], tokens: int) -> list[PromptMessage]:
    """Return the most recent earlier messages that fit into `tokens`."""
    latest = before[-(tokens // (_LEAST_CONTEXT_TOKENS + LINE_TOKENS)) :] if tokens >= _LEAST_CONTEXT_TOKENS + LINE_TOKENS else []
    each = min(_CONTEXT_TOKENS, tokens // max(len(latest), 1) - LINE_TOKENS)
    return _prompt_messages(latest, -len(latest), lambda message: runtime.counter.truncate(message.text, each))


def _screen(runtime: Runtime, facts: Sequence[Candidate], messages: Sequence[ExtractionMessage]) -> list[Candidate]:
    """Quarantine facts that look like instructions or come from messages that do."""
    settings = runtime.settings
    if not settings.longterm.quarantine:
        return list(facts)
    doubtful = {message.id for message in messages if suspicion(message.text, of_user=message.role == "user")}
    return [
        replace(fact, record=screen_record(settings, fact.record, derived=not doubtful.isdisjoint(fact.evidence.message_ids)))
        for fact in facts
    ]


def _worth_it(messages: Sequence[ExtractionMessage], before: Sequence[ExtractionMessage], *, questions: bool) -> bool:
    """True if the messages may contain facts.

    Unless `questions` is true, questions are ignored.
    """
    spoken = [message for message in messages if message.states]
    if any(worth_asking(message.text) and (questions or not is_bare_question(message.text)) for message in spoken):
        return True
    turns = [*[message for message in before if message.states][-1:], *spoken]
    return any(
        asking.role == "assistant" and answer.role != "assistant" and asking.text.rstrip().endswith(("?", "？"))
        for asking, answer in pairwise(turns)
    )


def _prompt_messages(messages: Sequence[ExtractionMessage], first: int, cut: Callable[[ExtractionMessage], str]) -> list[PromptMessage]:
    """Number the messages, so that the model can cite numbers instead of ids."""
    return [
        PromptMessage(number, DOCUMENT_ROLE if message.is_document else message.role, cut(message), message.stated_at, message.pictures)
        for number, message in enumerate(messages, start=first)
    ]


def _task_of(rules: Rules, journal: Journal, stated_at: datetime, model: str) -> ExtractionTask:
    ref = journal.ref
    names = {
        "message": "the new messages below",
        "context": "the context messages below",
        "current_datetime": stated_at.astimezone(rules.zone).isoformat(timespec="seconds"),
        "session_id": ref.session_id,
        "namespace": ref.namespace or "none",
        "user_id": ref.user_id or "none",
        "model_name": model,
        "topics": "`topics`",
        "entities": "`entities`",
    }
    return ExtractionTask(
        strategy=rules.strategy,
        instructions=rules.instructions,
        categories=[(category.name, category.description) for category in rules.categories],
        phrases=rules.phrases,
        zone=rules.zone,
        language=rules.language,
        custom=rules.custom_prompt if rules.strategy == "custom" else None,
        names=names,
    )
