"""Find sessions by owner and agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from redis.asyncio import Redis

from agent_memory.foundation.core.errors import Forbidden
from agent_memory.foundation.core.permissions import access_denied, reaches_session_of
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import session_index_name
from agent_memory.foundation.storage.search.pagination import walk

_NAMES = ("sid", "ns", "us", "ag")


async def walk_sessions(
    client: Redis, keys: Keys, scope: Scope, namespace: str | None, user_id: str | None = None, *, agent_id: str | None = None
) -> AsyncIterator[list[SessionRef]]:
    """Yield pages of sessions, oldest first. Tolerates concurrent deletions.

    If `agent_id` is None, yield sessions of all agents.
    """
    clause = filters.session_where(scope, namespace=namespace, user_id=user_id)
    async for sids in walk(client, session_index_name(keys), clause, "c"):
        rows = await read(client, lambda pipe, sids=sids: [pipe.hmget(keys.session(sid).meta, _NAMES) for sid in sids])
        names = [[None if value is None else value.decode() for value in row] for row in rows]
        yield [SessionRef(session_id, ns, user) for session_id, ns, user, agent in names if session_id and agent_id in (None, agent)]


async def permit_session_agents(client: Redis, keys: Keys, scope: Scope, ref: SessionRef) -> None:
    """Raise Forbidden if the session's agent is outside the caller's scope."""
    if not await reached_sessions(client, keys, scope, [ref]):
        raise agent_refusal()


async def reached_sessions(client: Redis, keys: Keys, scope: Scope, refs: Sequence[SessionRef]) -> list[SessionRef]:
    """Return the sessions whose agents are within the caller's scope."""
    if scope.agents is None or not refs:
        return list(refs)
    metas = [keys.session(keys.sid(scope.tenant, ref)).meta for ref in refs]
    agents = await read(client, lambda pipe: [pipe.hget(meta, "ag") for meta in metas])
    return [ref for ref, agent in zip(refs, agents, strict=True) if reaches_session_of(scope, None if agent is None else agent.decode())]


def agent_refusal() -> Forbidden:
    return access_denied("the agent of this session", "session_id")
