"""Promote a session's messages to long-term memory verbatim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_memory.features.extraction.categories import nearest_categories
from agent_memory.features.extraction.rules import ExtractionRulesService, Rules
from agent_memory.features.memories.quarantine.service import screen_record
from agent_memory.features.memories.service import message_memory
from agent_memory.features.memories.store import Fence, MemoryStore
from agent_memory.features.privacy.forget.matching import subject_to_forget
from agent_memory.features.privacy.forget.requests import ForgetRequests
from agent_memory.features.sessions.codec import StoredMessage
from agent_memory.features.sessions.store import JOURNAL_CONTEXT, Journal, SessionStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import BadInput, IdTaken
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.text.cleaning.context_blocks import context_blocks
from agent_memory.foundation.text.statements import StatementFilter
from agent_memory.runtime import Runtime
from agent_memory_client.models import MemoryRecord, MemoryStrategyConfig
from agent_memory_worker.sessions.session_memories import store_own

# Memories per script call; each memory blocks Redis for about 0.2 ms.
_BATCH = 50


async def promote_session(runtime: Runtime, sid: str) -> list[str]:
    """Promote all of a session's pending messages. Return the mids of the new memories.

    The new memories do not have vectors yet. Writes are atomic and idempotent.
    """
    promoted: list[str] = []
    taken_ids: set[str] = set()
    longterm = runtime.settings.longterm
    while (journal := await runtime[SessionStore].journal(sid, "jp", _BATCH)) is not None:
        if not journal.waiting and not journal.own:
            break
        journal = journal.without(context_blocks(longterm.context_tags))
        scope = scope_of_work(journal.tenant)
        pending = dict(list(journal.own.items())[:_BATCH])
        rules = await rules_of(runtime, scope, journal.ref, journal.strategy)
        statement_filter = StatementFilter(rules.blocklist, longterm.redact_secrets)
        if pending and not await store_own(runtime, sid, journal, pending, statement_filter):
            continue
        journal = _up_to_request(journal)
        messages = journal.waiting if longterm.enabled and longterm.promote_messages else []
        asking = [stored.message for stored in journal.waiting if _asks(stored)]
        if longterm.enabled and asking:
            # Answer requests to forget before the cursor passes them: a repeat after a crash changes nothing.
            await runtime[ForgetRequests].answer(scope, journal.ref, asking)
            # When the journal is read again, forgotten messages are gone. The request itself never becomes a memory.
            request_ids = {message.id for message in asking}
            messages = [stored for stored in messages if stored.message.id not in request_ids]
        records = await _records_of(runtime, rules, statement_filter, journal, messages)
        # Another owner may have the same id, by chance or because ids can be computed. Use a different id then.
        records = [
            record.model_copy(update={"id": runtime.ids.instead_of(record.id)}) if record.id in taken_ids else record for record in records
        ]
        fence = Fence(
            sid=sid,
            epoch=journal.epoch,
            cursor="jp",
            start=journal.start,
            to=journal.start + len(journal.waiting),
            keep=JOURNAL_CONTEXT,
            both=not runtime.extracts,
            embeds=True,
        )
        try:
            states = await runtime[MemoryStore].write(scope, records, fence=fence, background=True)
        except IdTaken as error:
            taken_ids.update(error.ids)
            continue
        if states is None:
            continue  # Another worker was faster, or the session was deleted: read the journal again.
        promoted += [
            runtime[MemoryStore].mid(scope, record.id) for record, state in zip(records, states, strict=True) if state in ("new", "changed")
        ]
        if journal.complete and len(pending) == len(journal.own):
            break  # Messages that arrived in the meantime have marked the session again.
    return promoted


def _asks(stored: StoredMessage) -> bool:
    return stored.promote and subject_to_forget(stored.message) is not None


def _up_to_request(journal: Journal) -> Journal:
    """Truncate the journal before the next forget request, which may refer to earlier messages."""
    first = next((position for position, stored in enumerate(journal.waiting) if position and _asks(stored)), None)
    return journal if first is None else replace(journal, waiting=journal.waiting[:first])


async def _records_of(
    runtime: Runtime, rules: Rules, statement_filter: StatementFilter, journal: Journal, messages: Sequence[StoredMessage]
) -> list[MemoryRecord]:
    """Convert messages to memories.

    If no model extracts facts and embeddings are local, also assign the nearest categories.
    """

    def build() -> list[MemoryRecord]:
        texts = [(stored, statement_filter.text(stored.message)) for stored in messages if stored.promote]
        return [screen_record(runtime.settings, message_memory(journal.ref, stored.message, text)) for stored, text in texts if text]

    records = await run_in_thread(build, sum([len(stored.message.content) for stored in messages]))
    categories = await nearest_categories(runtime, [record.text for record in records], rules.categories)
    return [
        record if category is None or record.category is not None else record.model_copy(update={"category": category})
        for record, category in zip(records, categories, strict=True)
    ]


async def rules_of(runtime: Runtime, scope: Scope, ref: SessionRef, strategy: MemoryStrategyConfig) -> Rules:
    try:
        return await runtime[ExtractionRulesService].of_session(scope, ref, strategy)
    except BadInput:
        # The stored strategy is no longer valid, but promotion needs only its other rules.
        return await runtime[ExtractionRulesService].of_session(scope, ref, MemoryStrategyConfig())
