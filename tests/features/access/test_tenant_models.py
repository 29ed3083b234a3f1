"""Test that embeddings count toward a tenant's daily model tokens (row S7).

Memories survive even after the budget is spent.
"""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.access.limits import LimitStore
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.jobs.operation_store import Mark
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import BudgetSpent, ModelUnavailable
from agent_memory.foundation.core.settings import LimitSettings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.profiles import ModelProfile
from agent_memory.foundation.llm.wrappers.caching import CachingEmbedder
from agent_memory.foundation.llm.wrappers.profiled import ProfiledEmbedder
from agent_memory_client.models import OperationState, SearchRequest
from tests.support.rig import MakeRig, Rig, record

BUSY, CALM = scope_of_work("busy"), scope_of_work("calm")
DAY = 24 * 3600


def _models(rig: Rig, most: int = 100) -> TenantModels:
    settings = LimitSettings.model_validate({"model_tokens_per_day": most})
    embedder = ProfiledEmbedder(CachingEmbedder(rig.embedder, entries=100), ModelProfile())
    return TenantModels(settings, LimitStore(rig.rt.client, rig.keys), None, embedder, paid=True)


async def _spent(rig: Rig) -> int:
    return (await LimitStore(rig.rt.client, rig.keys).spend("busy", 0)).tokens


async def test_cached_vectors_cost_no_tokens(rig: Rig) -> None:
    embedder = _models(rig).embedder("busy")
    for number in range(20):
        await embedder.embed([f"number {number:02d}"])  # two tokens each
        await embedder.embed([f"number {number:02d}"])  # cached: none
    assert await _spent(rig) == 40


async def test_spent_budget_refuses_new_embeddings_but_serves_cached_ones(rig: Rig) -> None:
    embedder = _models(rig, most=10).embedder("busy")
    known = await embedder.embed(["x" * 40])
    with pytest.raises(BudgetSpent) as spent:
        await embedder.embed(["another"])
    assert 0 < spent.value.retry_after <= DAY
    assert (await embedder.embed(["x" * 40]) == known).all()
    await rig.rt.client.hset(rig.keys.spent("busy"), "d", "1")  # the next day
    await embedder.embed(["another"])


async def test_budget_counts_what_other_processes_spend(rig: Rig) -> None:
    here, elsewhere = (_models(rig, most=4).embedder("busy") for _ in range(2))
    await here.embed(["number 1"])
    await elsewhere.embed(["number 2"])
    for embedder in (here, elsewhere):
        with pytest.raises(BudgetSpent):
            await embedder.embed(["number 3"])


async def test_failed_embedding_call_costs_no_tokens(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig.embedder, "away", True)
    with pytest.raises(ModelUnavailable):
        await _models(rig).embedder("busy").embed(["one"])
    assert await _spent(rig) == 0


async def test_tenant_without_limit_or_local_model_is_not_metered(rig: Rig) -> None:
    settings = LimitSettings.model_validate({"tenants": {"busy": {"model_tokens_per_day": 1}}})
    store = LimitStore(rig.rt.client, rig.keys)
    embedder = ProfiledEmbedder(CachingEmbedder(rig.embedder, entries=0), ModelProfile())
    for paid, tenant in ((True, "calm"), (False, "busy")):
        assert TenantModels(settings, store, None, embedder, paid=paid).embedder(tenant) is embedder


async def test_spent_budget_defers_vectors_and_search_falls_back_to_keywords(make_rig: MakeRig) -> None:
    own = {"busy": {"model_tokens_per_day": 20}}
    async with make_rig(LIMIT_TENANTS=own, EMBEDDING_PROVIDER="openai") as rig:

        async def search(scope: Any, text: str) -> Any:
            return await rig.rt[SearchService].search(scope, SearchRequest(text=text))

        async def vectors(*ids: str) -> int:
            return await rig.rt.client.exists(*(rig.keys.vector(rig.rt[MemoryStore].mid(BUSY, each)) for each in ids))

        # As with a language model, the call that spends the rest of the budget completes.
        await rig.rt[MemoryService].store(BUSY, [record(f"Anna lives in Oslo since {year}.", f"m{year}") for year in range(2000, 2010)])
        await rig.work()
        assert await vectors("m2000", "m2009") == 2
        await rig.rt[MemoryService].store(BUSY, [record("Bertil keeps bees.", "bees")])
        await rig.rt[MemoryService].store(CALM, [record("Cecilia paints doors.", "doors")])
        await rig.work()
        (mark,) = await rig.marks(DueKind.MEMORY)
        assert mark == rig.rt[MemoryStore].mid(BUSY, "bees")
        operation = await rig.rt[OperationService].get_operation(BUSY, Mark(DueKind.MEMORY, mark).operation_id)
        assert (operation.state, operation.attempts) == (OperationState.RETRYING, 0)
        assert "LIMIT_MODEL_TOKENS_PER_DAY" in (operation.reason or "")
        found = await search(BUSY, "who keeps bees?")
        assert [one.id for one in found.memories][:1] == ["bees"]
        assert "LIMIT_MODEL_TOKENS_PER_DAY" in str(found.notices)
        assert not (await search(CALM, "who paints doors?")).notices
        # On the next day, nothing is lost.
        await rig.rt.client.hset(rig.keys.spent("busy"), "d", "1")
        await rig.make_due(DueKind.MEMORY)
        await rig.work()
        assert await rig.marks(DueKind.MEMORY) == {}
        assert await vectors("bees") == 1
        assert not (await search(BUSY, "who keeps bees?")).notices
