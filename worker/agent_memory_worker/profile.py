"""Profiles in the background: making one anew, and telling the model that takes facts which slots a profile shows."""

from __future__ import annotations

from dataclasses import replace

from agent_memory.access.principals import scope_of_work
from agent_memory.core.scope import Scope
from agent_memory.extraction.rules import Rules
from agent_memory.jobs.order_store import JobOrder, OrderStore
from agent_memory.profile.follower import ProfileFollower
from agent_memory.profile.schema import slots_instruction
from agent_memory.profile.store import ProfileOwner, ProfileStore
from agent_memory.runtime import Runtime


async def with_profile_slots(runtime: Runtime, scope: Scope, namespace: str | None, rules: Rules) -> Rules:
    """The rules with the slots of the namespace's own schema, or of the tenant's; the same rules where there is none."""
    schema = await runtime[ProfileStore].load_schema(scope.tenant, namespace)
    return rules if schema is None else replace(rules, instructions=(*rules.instructions, slots_instruction(schema)))


async def rebuild_profile(runtime: Runtime, order: JobOrder) -> None:
    """Makes the profile of an order's user anew, and says of how many memories."""
    scope = scope_of_work(order.tenant, order.namespaces, order.users)
    owner = ProfileOwner(order.tenant, order.arguments.get("namespace"), order.arguments.get("user_id") or "")
    count = await runtime[ProfileFollower].rebuild(scope, owner)
    await runtime[OrderStore].keep_receipt(order, {"memories": count})
