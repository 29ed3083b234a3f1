"""Helpers that migrate an old Redis into a rig and describe the result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent_memory.features.sessions.store import SessionStore
from agent_memory.features.transfer.archived_server.layout import OldPrefixes, open_old
from agent_memory.features.transfer.archived_server.migration import MigrationService, MoveOptions, OnProgress, Report
from agent_memory.features.transfer.imports import ImportService
from tests.registrations import registrations
from tests.support.rig import SCOPE, Rig

VOLATILE = {"last_accessed", "updated_at", "persisted_at"}


async def move(
    rig: Rig,
    url: str,
    told: OnProgress | None = None,
    prefixes: OldPrefixes | None = None,
    others: bool = True,
    source: str | None = None,
    **options: Any,
) -> Report:
    """Run a migration. Without `others`, skip the data that features import themselves."""
    async with open_old(url, url, prefixes or OldPrefixes(), ours=rig.keys.root, command_timeout=30) as old:
        old.source = source or old.source
        imports = rig.rt[ImportService] if others else replace(rig.rt[ImportService], others=())
        service = MigrationService(old, imports, rig.rt.embedder, rig.rt.spec)
        return await service.run(SCOPE, MoveOptions(**{"dry_run": False, **options}), told)


async def picture(rig: Rig) -> dict[str, Any]:
    """Return all memories, vector owners, sessions and feature data in a rig."""
    shown: dict[str, Any] = {}
    for one in await rig.stored():
        # A memory without a time of its own got the time of the migration.
        shown[f"memory {one.id}"] = one.model_dump(mode="json", exclude=VOLATILE if one.id in UNDATED else set())
        if one.id in UNDATED:
            shown[f"memory {one.id}"].pop("created_at")
    for ref in (await rig.rt[SessionStore].list(SCOPE, None, None, 0, 1000))[1]:
        state = await rig.rt[SessionStore].get(SCOPE, ref)
        assert state is not None
        body = [stored.message.model_dump(mode="json") for stored in state.messages]
        shown[f"session {ref}"] = (state.context, state.data, state.memories, state.strategy, state.ttl_seconds, state.client_tokens, body)
        if ref.session_id not in UNDATED:
            shown[f"times of {ref}"] = (state.created_at, state.updated_at, state.last_accessed)
    for one in registrations():
        shown |= await one.show_moved(rig)
    return shown


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return each difference between two pictures as one line."""
    return [f"{name}: {one.get(name)} != {other.get(name)}" for name in one.keys() | other.keys() if one.get(name) != other.get(name)]


UNDATED = {"bare", "no such type", "not utf-8", "bad json", "tags", "other model", "no number", "long", "numbers"} | {
    "{*} @user:(a|b) 'quoted' \"id\" 日本"
}


async def content_of(url: str) -> dict[bytes, bytes]:
    """Return the `DUMP` of every key in Redis."""
    from redis.asyncio import Redis

    client = Redis.from_url(url)
    try:
        return {key: await client.dump(key) async for key in client.scan_iter(count=1000)}
    finally:
        await client.aclose()
