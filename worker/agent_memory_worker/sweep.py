"""Sweeping: memories whose time is over leave the place of current ones, and versions that were retired too early get their vector."""

from __future__ import annotations

from agent_memory.runtime import Runtime
from agent_memory.storage.lua import Claim
from agent_memory_worker.index import index_memories

_BATCH = 200


async def sweep(runtime: Runtime) -> int:
    """Moves what has ended and embeds what lacks its vector; returns how many memories that were. Reads never wait for it."""
    done = 0
    while ended := await runtime.memories.ended(_BATCH):
        moved = await runtime.memories.sweep(ended)
        done += moved
        if not moved:
            break
    while bare := await runtime.memories.bare(_BATCH):
        await index_memories(runtime, [Claim(name, 0, 1) for name in bare])
        await runtime.memories.no_longer_bare(bare)
        done += len(bare)
    return done
