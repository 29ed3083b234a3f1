"""Indexing: memories get their vector, and messages the words around them, in batches across sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_memory.access.embedding_budget import EmbeddingBudget
from agent_memory.access.tenant_models import TenantModels
from agent_memory.core.errors import BudgetSpent
from agent_memory.core.task_kinds import DueKind
from agent_memory.llm.base import Embedder
from agent_memory.llm.threads import aside
from agent_memory.memories.store import IndexEntry, IndexJob, MemoryStore
from agent_memory.runtime import Runtime
from agent_memory.storage.scripts import Claim
from agent_memory.text.retrieval_units import unit_terms, unit_vector

_SPENT_SECONDS = 300


async def index_memories(runtime: Runtime, claims: Sequence[Claim]) -> int:
    """Embeds the memories of these claims with one call of the embedder, and ends the claims; returns how many became findable.

    Those of a tenant whose budget of tokens is counted are embedded on it, in calls of their own; when it is spent, they wait.
    Raises ModelUnavailable and ModelAnswerInvalid; what was not stored until then is not.
    """
    leases = {claim.member: claim for claim in claims}
    jobs, gone = await runtime[MemoryStore].index_jobs(list(leases))
    for mid in gone:
        await runtime.outbox.end_claim(DueKind.MEMORY, leases[mid])
    by_tenant: dict[str, list[IndexJob]] = {}
    for job in jobs:
        by_tenant.setdefault(job.tenant if runtime[EmbeddingBudget].limits(job.tenant) else "", []).append(job)
    done = 0
    for tenant, jobs_of_tenant in by_tenant.items():
        try:
            done += await _index(runtime, runtime[TenantModels].embedder(tenant) if tenant else runtime.embedder, jobs_of_tenant, leases)
        except BudgetSpent as error:
            for job in jobs_of_tenant:
                await _put_off(runtime, leases[job.mid], error)
    return done


async def _index(runtime: Runtime, embedder: Embedder, jobs: Sequence[IndexJob], leases: Mapping[str, Claim]) -> int:
    texts = list(dict.fromkeys(text for job in jobs for text in _texts(job)))
    vectors = dict(zip(texts, await embedder.embed(texts), strict=True)) if texts else {}

    def entry(job: IndexJob) -> IndexEntry:
        return IndexEntry(
            mid=job.mid,
            version=job.version,
            lease=leases[job.mid].lease,
            vector=unit_vector(
                vectors[job.record.text], [vectors[near.text] for near in job.before], [vectors[near.text] for near in job.after]
            ),
            terms=unit_terms(job.record, job.before, job.after) if job.terms is None else job.terms,
            past=job.terms is not None,
        )

    items = await aside(lambda: [entry(job) for job in jobs], sum(map(len, texts)))
    return sum(await runtime[MemoryStore].write_index(items))


async def _put_off(runtime: Runtime, claim: Claim, spent: BudgetSpent) -> None:
    """Lets a memory wait for its vector until there are tokens again, and looks now and then, since a limit may be raised."""
    delay = min(spent.retry_after, _SPENT_SECONDS)
    await runtime.outbox.fail_claim(DueKind.MEMORY, claim, f"{type(spent).__name__}: {spent}", delay_seconds=delay, forgive=True)


def _texts(job: IndexJob) -> list[str]:
    """Everything whose vector goes into this memory's: neighbours are mostly in the same batch, or in the embedder's cache."""
    return [job.record.text, *(near.text for near in (*job.before, *job.after))]
