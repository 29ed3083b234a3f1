"""Embed items in batches."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.extensions.items.search import ItemSearch
from agent_memory.extensions.items.store import EmbedJob, ItemStore
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.foundation.core.errors import ModelAnswerInvalid
from agent_memory.runtime import Runtime
from agent_memory_worker.refused_texts import embed_singly

_BATCH = 500


async def embed_items(runtime: Runtime, iids: Sequence[str]) -> int:
    """Embed items. Return the number of items that are now searchable by meaning.

    Raises ModelUnavailable, ModelAnswerInvalid or BudgetSpent.
    """
    by_tenant: dict[str, list[EmbedJob]] = {}
    for job in await runtime[ItemStore].embed_jobs(iids) if iids else ():
        by_tenant.setdefault(job.tenant, []).append(job)
    done = 0
    for tenant, jobs in by_tenant.items():
        vectors = await runtime[TenantModels].embedder(tenant).embed([job.text for job in jobs])
        done += await runtime[ItemStore].store_vectors(jobs, vectors)
    return done


async def embed_missing(runtime: Runtime, limit: int) -> int:
    """Embed up to `limit` items that have no vector. Return the number processed.

    Items that the model rejects count as embedded until the model change is complete.
    """
    iids = await runtime[ItemSearch].list_unembedded(limit)
    try:
        return await embed_items(runtime, iids)
    except ModelAnswerInvalid:
        refused = await embed_singly(runtime.embedder, iids, lambda iid: embed_items(runtime, [iid]))
        await runtime[ItemStore].store_vectors(await runtime[ItemStore].embed_jobs(refused), [None] * len(refused))
    return len(iids)


async def mark_unembedded(runtime: Runtime) -> int:
    """Schedule items that have no current vector for embedding. Return the number scheduled."""
    iids = await runtime[ItemSearch].list_unembedded(_BATCH)
    if iids:
        await runtime[ItemStore].mark_unembedded(iids)
    return len(iids)
