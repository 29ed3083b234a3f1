"""Embed items in batches."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.extensions.items.search import ItemSearch
from agent_memory.extensions.items.store import EmbedJob, ItemStore
from agent_memory.features.access.embedding_budget import TenantModels
from agent_memory.runtime import Runtime

_BATCH = 500


async def embed_items(runtime: Runtime, iids: Sequence[str]) -> int:
    """Embed items with one call per tenant. Return the number of items that became searchable by meaning.

    Raises ModelUnavailable, ModelAnswerInvalid and BudgetSpent.
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
    """Embed at most `limit` items that have no vector from the runtime's model. Return the number of embedded items."""
    iids = await runtime[ItemSearch].list_unembedded(limit)
    return await embed_items(runtime, iids) if iids else 0


async def mark_unembedded(runtime: Runtime) -> int:
    """Mark items without a vector from the current model as due for embedding. Return the number of items."""
    iids = await runtime[ItemSearch].list_unembedded(_BATCH)
    if iids:
        await runtime[ItemStore].mark_unembedded(iids)
    return len(iids)
