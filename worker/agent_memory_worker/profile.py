"""Rebuild profiles, and record when entries have lapsed."""

from __future__ import annotations

from agent_memory.extensions.profile.follower import ProfileFollower
from agent_memory.extensions.profile.store import ProfileOwner, ProfileStore
from agent_memory.features.jobs.order_store import JobOrder, OrderStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.runtime import Runtime

# Profiles per script call.
_AT_ONCE = 100


async def note_lapses(runtime: Runtime) -> int:
    """Record which profile entries have lapsed. Return the number of profiles that changed."""
    count = 0
    while noted := await runtime[ProfileStore].note_lapses(_AT_ONCE):
        count += noted
    return count


async def rebuild_profile(runtime: Runtime, order: JobOrder) -> None:
    """Rebuild the user's profile, and store the number of memories in the receipt."""
    scope = scope_of_work(order.tenant, order.namespaces, order.users)
    owner = ProfileOwner(order.tenant, order.arguments.get("namespace"), order.arguments.get("user_id") or "")
    count = await runtime[ProfileFollower].rebuild(scope, owner)
    await runtime[OrderStore].keep_receipt(order, {"memories": count})
