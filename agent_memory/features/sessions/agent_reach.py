"""Filter sessions for callers limited to agents: they reach sessions without an agent or of one of theirs."""

from __future__ import annotations

from collections.abc import Sequence

from redis.asyncio import Redis

from agent_memory.foundation.core.errors import Forbidden
from agent_memory.foundation.core.permissions import reaches_session_of
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.keyspace import Keys


async def permit_session_agents(client: Redis, keys: Keys, scope: Scope, ref: SessionRef) -> None:
    """Raise Forbidden if a session names an agent out of the caller's reach."""
    if not await reached_sessions(client, keys, scope, [ref]):
        raise agent_refusal()


async def reached_sessions(client: Redis, keys: Keys, scope: Scope, refs: Sequence[SessionRef]) -> list[SessionRef]:
    """Return the sessions that name no agent out of the caller's reach."""
    if scope.agents is None or not refs:
        return list(refs)
    metas = [keys.session(keys.sid(scope.tenant, ref)).meta for ref in refs]
    agents = await read(client, lambda pipe: [pipe.hget(meta, "ag") for meta in metas])
    return [ref for ref, agent in zip(refs, agents, strict=True) if reaches_session_of(scope, None if agent is None else agent.decode())]


def agent_refusal() -> Forbidden:
    return Forbidden("these credentials do not reach the agent of this session", field="session_id")
