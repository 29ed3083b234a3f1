"""What stands in Redis, without what differs from one run to the next (times, fences): two runs with the same effect look the same."""

from __future__ import annotations

from typing import Any

from agent_memory.core.work import DueKind
from agent_memory.sessions.codec import decode_entry
from tests.support.rig import Rig
from tests.system.faults.invariants import ENDING

# What the rig's `work` does by itself.
WORKED = (DueKind.SESSION, DueKind.EXTRACTION, DueKind.MEMORY)


async def picture(rig: Rig) -> dict[str, Any]:
    """Sessions, journals, memories, vectors, order, tombstones, and what is due, had failed or was given up."""
    client, root = rig.rt.client, rig.keys.root
    seen: dict[str, Any] = {}
    for name in sorted(await rig.raw_keys()):
        kind, rest = name.split(":", 1) if ":" in name else (name, "")
        key = root + name
        if kind in ("wake", "cfg", "ix"):
            continue
        if kind == "w" and rest.endswith(":m"):
            seen[name] = [_entry(raw) for raw in await client.lrange(key, 0, -1)]
        elif kind == "w" and rest.endswith(":i"):
            seen[name] = [(member.decode(), score) for member, score in await client.zrange(key, 0, -1, withscores=True)]
        elif kind == "w":
            seen[name] = await _fields(rig, key, ("sid", "us", "ns", "mt", "ctx", "ct", "data"))
        elif kind == "j" and rest.endswith(":l"):
            seen[name] = [_entry(raw.removeprefix(b"-")) for raw in await client.lrange(key, 0, -1)]
        elif kind == "j" and rest.endswith(":o"):
            seen[name] = sorted(await client.hkeys(key))
        elif kind == "j":
            seen[name] = await _fields(rig, key, ("sid", "sq", "jb", "jp", "je"))
        elif kind in ("h", "hv"):
            # A version is named by its time: here by its place among the memory's.
            memory = f"{kind}:{rest.partition('.')[0]}"
            place = sum(other.startswith(f"{memory}.") for other in seen)
            seen[f"{memory}.{place}"] = sorted(await client.hkeys(key))
        elif kind == "m":
            seen[name] = await _fields(rig, key, ("t", "u", "ns", "s", "ty", "st", "k", "tp"))
        elif kind == "v":
            seen[name] = sorted(await client.hkeys(key))
        elif kind in ("mo", "due", "dead"):
            seen[name] = [member.decode() for member in await client.zrange(key, 0, -1)]
        elif kind in ("try", "why"):
            seen[name] = sorted(await client.hkeys(key))
        else:
            seen[name] = kind
    return seen


async def texts(rig: Rig) -> list[tuple[str, str]]:
    """Type and text of every memory, sorted."""
    return sorted((str(record.memory_type), record.text) for record in await rig.stored())


async def finished(rig: Rig, rounds: int = 60) -> None:
    """Works, with every mark due at once whatever its lease or delay, until nothing is left to do."""
    for _ in range(rounds):
        for kind in ENDING:
            await rig.make_due(kind)
        await rig.work(*WORKED)
        if not await waiting(rig):
            return
    raise AssertionError(f"the work does not end: {await waiting(rig)}")


async def waiting(rig: Rig) -> dict[str, dict[str, float]]:
    """What waits for workers, but for what recurs."""
    return {kind.value: marks for kind in ENDING if (marks := await rig.marks(kind))}


def _entry(raw: bytes) -> tuple[int, str, str]:
    stored = decode_entry(raw)
    return stored.seq, stored.message.id, stored.message.content


async def _fields(rig: Rig, key: str, names: tuple[str, ...]) -> dict[str, bytes]:
    values = await rig.rt.client.hmget(key, names)
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}
