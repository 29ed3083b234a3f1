"""Forgetting by settings: what `FORGETTING_*` gives up, tenant by tenant, over everything that is stored."""

from __future__ import annotations

from agent_memory.features.memories.retention.service import MAX_DELETIONS, Policy, RetentionService
from agent_memory.features.memories.upkeep.scan import MemoryScan, Selection
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.runtime import Runtime


async def forget_by_settings(runtime: Runtime) -> int:
    """Deletes what the settings' policy gives up; returns how many memories went. The budget is one per tenant."""
    rules = runtime.settings.forgetting
    policy = Policy(max_age_days=rules.max_age_days, max_inactive_days=rules.max_inactive_days, budget=rules.budget_keep_top_n)
    gone = 0
    for tenant in await runtime[MemoryScan].memory_tenants():
        while True:
            answer = await runtime[RetentionService].forget_by_policy(
                scope_of_work(tenant), policy, Selection(), limit=MAX_DELETIONS, dry_run=False
            )
            gone += answer.deleted
            # What was changed while it was looked at stays until the next time, so less than all may have gone.
            if answer.deleted < MAX_DELETIONS:
                break
    return gone
