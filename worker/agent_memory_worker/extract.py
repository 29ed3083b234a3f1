"""Extraction: a model is asked, some messages at a time, which facts they hold; the cursor moves with the facts it brought."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent_memory.errors import Conflict
from agent_memory.llm.base import ChatModel
from agent_memory.prompts.escape import PromptMessage
from agent_memory.prompts.extract import VERSION, ExtractionAnswer, Wanted, extract_messages
from agent_memory.prompts.thread import VERSION as THREAD_VERSION
from agent_memory.runtime import Runtime
from agent_memory.scope import Scope
from agent_memory.services.access import scope_of_work
from agent_memory.services.extraction_rules import Rules
from agent_memory.services.quarantine import screened
from agent_memory.storage.codec import StoredMessage
from agent_memory.storage.decisions import Decision, Origin, Outcome
from agent_memory.storage.steps import Fence
from agent_memory.storage.working import JOURNAL_CONTEXT, Journal
from agent_memory.suspicion import suspicion
from agent_memory_worker.facts import Candidate, Told, candidates
from agent_memory_worker.heard import Hearing, worth_asking
from agent_memory_worker.reconcile import decide
from agent_memory_worker.thread import summarize

log = logging.getLogger(__name__)

BATCH = 60
# How much of a message before the new ones, and of what a tool fetched, is shown.
_CONTEXT_TOKENS = 300
# How often a batch is decided again because what it was decided about changed meanwhile.
_ATTEMPTS = 5


async def extract_facts(runtime: Runtime, sid: str) -> int:
    """Asks the model about all messages behind the cursor; returns how many memories that made or changed.

    One call takes the facts out of a batch, at most one more decides what they do to what is remembered. Raises ModelUnavailable and
    ModelAnswerInvalid, and TooMany when the tenant keeps as many memories as it may: the cursor then stays where it is, nothing is stored.
    """
    made = 0
    while runtime.chat is not None and (journal := await runtime.sessions.journal(sid, "je", BATCH)) is not None and journal.waiting:
        chat = runtime.chat_of(journal.tenant)
        assert chat is not None
        # Facts that there is no room for wait; what was promised to the messages' sender is kept in their journal.
        await runtime.memory_limit.room_for(journal.tenant, 1)
        batch = within(journal.waiting, runtime.settings.longterm.extraction_batch_tokens)
        scope = scope_of_work(journal.tenant)
        rules = await runtime.extraction_rules.of_session(scope, journal.ref, journal.strategy)
        fence = Fence(sid, journal.epoch, "je", journal.start, journal.start + len(batch), JOURNAL_CONTEXT)
        outcome = await _extract(runtime, chat, scope, journal, rules, batch, fence)
        # Fenced: the session moved on; read again.
        made += 0 if outcome.fenced else sum(state in ("new", "changed", "done") for state in outcome.states)
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


async def _extract(
    runtime: Runtime, chat: ChatModel, scope: Scope, journal: Journal, rules: Rules, batch: Sequence[StoredMessage], fence: Fence
) -> Outcome:
    hearing = Hearing(rules.blocklist, runtime.settings.longterm.redact_secrets)
    told = [Told(stored, text) for stored in batch if stored.promote and (text := hearing.said(stored.message))]
    before = [Told(stored, text) for stored in journal.before if stored.seq < batch[0].seq and (text := hearing.said(stored.message))]
    summary = rules.strategy == "summary"
    origin = Origin("extraction", strategy=rules.strategy, model=chat.model, prompt_version=THREAD_VERSION if summary else VERSION)
    if not _worth_it(told, before):
        return await runtime.decisions.commit(scope, [], origin, fence=fence, late=True)

    def cut(most: int) -> Callable[[Told], str]:
        # A message of any length must fit, or the session would stop at it; what only helps to understand gets less room.
        whole, part = min(most, chat.context_window // 3), min(_CONTEXT_TOKENS, chat.context_window // 60)
        return lambda one: runtime.counter.truncate(one.text, whole if one.states else part)

    new = _numbered(told, 1, cut(chat.context_window))
    found: list[Candidate] | None = None
    for _ in range(_ATTEMPTS):
        if summary:
            decisions: list[Decision] = await summarize(runtime, chat, scope, journal.ref, rules, told, new, clean=hearing.clean)
        else:
            if found is None:
                context = _numbered(before, -len(before), cut(_CONTEXT_TOKENS))
                wanted = _wanted(rules, journal, told, chat.model)
                answer = await chat.structured(extract_messages(new, context=context, wanted=wanted), ExtractionAnswer)
                found = candidates(journal.ref, rules, answer.memories, told, model=chat.model, clean=hearing.clean)
                found = _screened(runtime, found, told)
            decisions = await decide(runtime, chat, scope, found)
        review = rules.review or runtime.settings.longterm.review_supersessions
        outcome = await runtime.decisions.commit(scope, decisions, origin, fence=fence, late=True, review=review)
        if not outcome.moved:
            return outcome
        log.info("what the facts of a session were compared with changed meanwhile; once more")
    raise Conflict("the memories that new facts are compared with are being changed all the time")


def _screened(runtime: Runtime, found: Sequence[Candidate], told: Sequence[Told]) -> list[Candidate]:
    """The facts with those in quarantine that read like instructions, or come from a message that does."""
    settings = runtime.settings
    if not settings.longterm.quarantine:
        return list(found)
    doubtful = {one.id for one in told if suspicion(one.text, of_user=one.role == "user")}
    return [replace(one, record=screened(settings, one.record, derived=not doubtful.isdisjoint(one.evidence.message_ids))) for one in found]


def _worth_it(told: Sequence[Told], before: Sequence[Told]) -> bool:
    """The gate: whether the messages could hold a fact at all. Assent is one when it answers a question."""
    spoken = [one for one in told if one.states]
    if any(worth_asking(one.text) for one in spoken):
        return True
    asked = [one for one in before if one.states][-1:]
    return bool(spoken and asked and asked[0].role == "assistant" and asked[0].text.rstrip().endswith(("?", "？")))


def _numbered(messages: Sequence[Told], first: int, cut: Callable[[Told], str]) -> list[PromptMessage]:
    """Messages as the prompt shows them; answers cite them by small numbers, which cannot be invented ids."""
    return [PromptMessage(number, one.role, cut(one), one.said) for number, one in enumerate(messages, start=first)]


def _wanted(rules: Rules, journal: Journal, told: Sequence[Told], model: str) -> Wanted:
    ref = journal.ref
    names = {
        "message": "the new messages below",
        "context": "the context messages below",
        "current_datetime": told[-1].said.astimezone(rules.zone).isoformat(timespec="seconds"),
        "session_id": ref.session_id,
        "namespace": ref.namespace or "none",
        "user_id": ref.user_id or "none",
        "model_name": model,
        "topics": "`topics`",
        "entities": "`entities`",
    }
    return Wanted(
        strategy=rules.strategy,
        instructions=rules.instructions,
        categories=[(category.name, category.description) for category in rules.categories],
        phrases=rules.phrases,
        zone=rules.zone,
        language=rules.language,
        custom=rules.custom_prompt if rules.strategy == "custom" else None,
        names=names,
    )
