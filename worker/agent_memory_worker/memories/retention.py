"""Forget memories according to the `FORGETTING_*` settings, tenant by tenant."""

from __future__ import annotations

from agent_memory.features.memories.retention.service import MAX_DELETIONS, Policy, RetentionService
from agent_memory.features.memories.upkeep.scan import MemoryScan, Selection
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.runtime import Runtime


async def forget_by_settings(runtime: Runtime) -> int:
    """Delete the memories selected by the retention policy. Return the number deleted."""
    rules = runtime.settings.forgetting
    policy = Policy(max_age_days=rules.max_age_days, max_inactive_days=rules.max_inactive_days, budget=rules.budget_keep_top_n)
    deleted_count = 0
    for tenant in await runtime[MemoryScan].memory_tenants():
        while True:
            answer = await runtime[RetentionService].forget_by_policy(
                scope_of_work(tenant), policy, Selection(), limit=MAX_DELETIONS, dry_run=False
            )
            deleted_count += answer.deleted
            # Memories that changed in the meantime stay, so a full page may delete fewer than the limit.
            if answer.deleted < MAX_DELETIONS:
                break
    return deleted_count
