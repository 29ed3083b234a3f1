"""Check that rebuilding profiles and timelines from the memories changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpx
from redis.asyncio import Redis

from agent_memory.foundation.storage.keyspace import Keys

_PARTS = ("pf:", "tl:")
# Moves, summaries and pending ones record events, not state.
_HISTORY = (":h", ":s", ":p")
# The version of a profile increases.
_COUNTERS = frozenset({b"v"})


async def order_rebuilds(url: str, owners: Iterable[dict[str, str]]) -> None:
    """Request profile and timeline rebuilds for these owners."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as http:
        for owner in owners:
            for what in ("profile", "timeline"):
                (await http.post(f"/v1/{what}/rebuild", params=owner)).raise_for_status()


async def derived_state(client: Redis) -> dict[str, Any]:
    """Return all stored profiles and timelines, by key."""
    root = Keys().root
    state: dict[str, Any] = {}
    for part in _PARTS:
        async for key in client.scan_iter(match=f"{root}{part}*", count=1000):
            name = key.decode().removeprefix(root)
            if name.endswith(_HISTORY):
                continue
            if await client.type(key) == b"hash":
                fields = {field: value for field, value in (await client.hgetall(key)).items() if field not in _COUNTERS}
                state |= {name: fields} if fields else {}
            else:
                state[name] = await client.zrange(key, 0, -1, withscores=True)
    return state


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [
        f"a rebuild changes {name}: only before {_only_in(before.get(name), after.get(name))}, only after "
        f"{_only_in(after.get(name), before.get(name))}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def _only_in(one: Any, other: Any) -> str:
    if not isinstance(one, dict | list) or not isinstance(other, dict | list):
        return str(one)[:1000]
    members, others = ([*state.items()] if isinstance(state, dict) else state for state in (one, other))
    return str([member for member in members if member not in others])[:1000]
