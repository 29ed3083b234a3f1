"""Embed memories in batches across sessions. Messages are embedded with their neighbors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.memories.records import named_days
from agent_memory.features.memories.store import IndexEntry, IndexJob, MemoryStore
from agent_memory.foundation.core.errors import BudgetSpent
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.base import Embedder
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.storage.outbox import Claim
from agent_memory.foundation.text.passages.splitting import beginning, split_passages
from agent_memory.foundation.text.retrieval_units import needs_context, passage_terms, unit_terms, unit_vector
from agent_memory.runtime import Runtime
from agent_memory_worker.memories.long_texts import WAIT_SECONDS, LongText, LongTexts
from agent_memory_worker.memories.message_kinds import act_on_kinds, kinds_of, with_question_mark

_SPENT_SECONDS = 300


async def index_memories(runtime: Runtime, claims: Sequence[Claim], long_texts: LongTexts | None = None) -> int:
    """Embed the claimed memories and end the claims. Return how many are now searchable.

    If `long_texts` is given, long texts are queued there instead. Raises ModelUnavailable or
    ModelAnswerInvalid.
    """
    leases = {claim.member: claim for claim in claims}
    jobs, missing = await runtime[MemoryStore].index_jobs(list(leases))
    for mid in missing:
        await runtime.outbox.end_claim(DueKind.MEMORY, leases[mid])
    passages = await run_in_thread(lambda: {job.mid: _passages(job) for job in jobs}, _characters(jobs))
    if long_texts is None:
        return await _index_by_tenant(runtime, jobs, leases, passages)
    for job in jobs:
        if passages[job.mid]:
            reason = "long texts wait for each other"
            await runtime.outbox.fail_claim(DueKind.MEMORY, leases[job.mid], reason, delay_seconds=WAIT_SECONDS, forgive=True)
            long_texts.wait(LongText(job.mid, (job.tenant, job.record.user_id), len(passages[job.mid])))
    return await _index_by_tenant(runtime, [job for job in jobs if not passages[job.mid]], leases, passages)


async def _index_by_tenant(
    runtime: Runtime, jobs: Sequence[IndexJob], leases: Mapping[str, Claim], passages: Mapping[str, Sequence[str]]
) -> int:
    models = runtime[TenantModels]
    by_tenant: dict[str, list[IndexJob]] = {}
    for job in jobs:
        limited = models.embedder(job.tenant) is not runtime.embedder
        by_tenant.setdefault(job.tenant if limited else "", []).append(job)
    done = 0
    for tenant, jobs_of_tenant in by_tenant.items():
        try:
            embedder = models.embedder(tenant) if tenant else runtime.embedder
            done += await _index(runtime, embedder, jobs_of_tenant, leases, passages)
        except BudgetSpent as error:
            for job in jobs_of_tenant:
                await _put_off(runtime, leases[job.mid], error)
    return done


async def _index(
    runtime: Runtime,
    embedder: Embedder,
    jobs: Sequence[IndexJob],
    leases: Mapping[str, Claim],
    passages: Mapping[str, Sequence[str]],
) -> int:
    vectors = await _embed(embedder, jobs, passages)
    kinds = kinds_of(embedder.model, jobs, vectors)
    dropped = await act_on_kinds(runtime, jobs, kinds)

    def entry(job: IndexJob) -> IndexEntry:
        made = _entry(job, vectors, passages[job.mid], leases[job.mid].lease)
        return replace(made, marked=with_question_mark(job.record)) if kinds.get(job.mid) == "asks" else made

    items = await run_in_thread(lambda: [entry(job) for job in jobs if job.mid not in dropped], _characters(jobs))
    return sum(await runtime[MemoryStore].write_index(items))


def _entry(job: IndexJob, vectors: Mapping[str, NDArray[np.float32]], passages: Sequence[str], lease: int = 0) -> IndexEntry:
    return IndexEntry(
        mid=job.mid,
        version=job.version,
        lease=lease,
        vector=unit_vector(
            vectors[beginning(job.record.text)],
            [vectors[beginning(near.text)] for near in job.before],
            [vectors[beginning(near.text)] for near in job.after],
            needs_context(beginning(job.record.text)),
        ),
        terms=unit_terms(job.record, job.before, job.after) if job.terms is None else job.terms,
        past=job.terms is not None,
        passages=[(passage_terms(job.record, text), vectors[text]) for text in passages],
        days=named_days(job.record) if job.terms is None else (),
    )


async def embed_jobs(embedder: Embedder, jobs: Sequence[IndexJob]) -> list[IndexEntry]:
    """Embed memories and versions without storing anything.

    Raises ModelUnavailable or ModelAnswerInvalid.
    """
    passages = await run_in_thread(lambda: {job.mid: _passages(job) for job in jobs}, _characters(jobs))
    vectors = await _embed(embedder, jobs, passages)
    return await run_in_thread(lambda: [_entry(job, vectors, passages[job.mid]) for job in jobs], _characters(jobs))


async def _embed(embedder: Embedder, jobs: Sequence[IndexJob], passages: Mapping[str, Sequence[str]]) -> dict[str, NDArray[np.float32]]:
    texts = list(dict.fromkeys(text for job in jobs for text in (*_context(job), *passages[job.mid])))
    return dict(zip(texts, await embedder.embed(texts), strict=True)) if texts else {}


async def _put_off(runtime: Runtime, claim: Claim, spent: BudgetSpent) -> None:
    """Delay embedding until the budget has tokens again, for at most 300 seconds."""
    delay = min(spent.retry_after, _SPENT_SECONDS)
    await runtime.outbox.fail_claim(DueKind.MEMORY, claim, f"{type(spent).__name__}: {spent}", delay_seconds=delay, forgive=True)


def _characters(jobs: Sequence[IndexJob]) -> int:
    return sum(len(record.text) for job in jobs for record in (job.record, *job.before, *job.after))


def _context(job: IndexJob) -> list[str]:
    return [beginning(job.record.text), *(beginning(near.text) for near in (*job.before, *job.after))]


def _passages(job: IndexJob) -> list[str]:
    text = job.record.text
    return [] if job.terms is not None else [text[start:end] for start, end in split_passages(text)]
