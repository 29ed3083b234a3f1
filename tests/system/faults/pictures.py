"""Compare the Redis content of two runs, ignoring times and fences."""

from __future__ import annotations

from typing import Any

from agent_memory.features.sessions.codec import decode_entry
from agent_memory.foundation.core.task_kinds import DueKind
from tests.support.rig import Rig
from tests.system.faults.invariants import ENDING

# What the rig's `work` runs by itself.
WORKED = (DueKind.SESSION, DueKind.EXTRACTION, DueKind.MEMORY, DueKind.FOLLOW)
# The fields of hashes that are equal in each run.
_FIELDS = {
    "w": ("sid", "us", "ns", "mt", "ctx", "ct", "data"),
    "j": ("sid", "sq", "jb", "jp", "je"),
    "m": ("t", "u", "ns", "s", "ty", "st", "k", "tp"),
}


async def picture(rig: Rig) -> dict[str, Any]:
    """Return the Redis content, excluding values that differ between runs."""
    client, root = rig.rt.client, rig.keys.root
    seen: dict[str, Any] = {}
    for name in sorted(await rig.raw_keys()):
        kind, rest = name.split(":", 1) if ":" in name else (name, "")
        key = root + name
        if kind in ("wake", "cfg", "ix"):
            continue
        if kind in ("h", "hv"):
            # A version's name contains its time: replace it by its position among the memory's versions.
            memory = f"{kind}:{rest.partition('.')[0]}"
            position = sum(other.startswith(f"{memory}.") for other in seen)
            seen[f"{memory}.{position}"] = sorted(await client.hkeys(key))
        else:
            seen[name] = await _value(rig, kind, rest, key)
    return seen


async def _value(rig: Rig, kind: str, rest: str, key: str) -> Any:
    """Return the part of a key's content that is the same in every run, or only its type."""
    part = f"{kind}:{rest[-2:]}" if kind in ("w", "j") and rest[-2:] in (":m", ":i", ":l", ":o") else kind
    match part:
        case "w::m" | "j::l":
            return [_entry(raw.removeprefix(b"-")) for raw in await rig.rt.client.lrange(key, 0, -1)]
        case "w::i":
            return [(member.decode(), score) for member, score in await rig.rt.client.zrange(key, 0, -1, withscores=True)]
        case "mo" | "due" | "dead":
            return [member.decode() for member in await rig.rt.client.zrange(key, 0, -1)]
        case "j::o" | "v" | "try" | "why":
            return sorted(await rig.rt.client.hkeys(key))
        case _:
            return await _fields(rig, key, _FIELDS[kind]) if kind in _FIELDS else kind


async def texts(rig: Rig) -> list[tuple[str, str]]:
    """Return the types and texts of all memories, sorted."""
    return sorted((str(record.memory_type), record.text) for record in await rig.stored())


async def finished(rig: Rig, rounds: int = 60) -> None:
    """Run all pending work, ignoring leases and delays."""
    for _ in range(rounds):
        for kind in ENDING:
            await rig.make_due(kind)
        await rig.work(*WORKED)
        if not await waiting(rig):
            return
    raise AssertionError(f"the work does not end: {await waiting(rig)}")


async def waiting(rig: Rig) -> dict[str, dict[str, float]]:
    """Return all pending work except recurring work."""
    return {kind.value: marks for kind in ENDING if (marks := await rig.marks(kind))}


def _entry(raw: bytes) -> tuple[int, str, str]:
    stored = decode_entry(raw)
    return stored.seq, stored.message.id, stored.message.content


async def _fields(rig: Rig, key: str, names: tuple[str, ...]) -> dict[str, bytes]:
    values = await rig.rt.client.hmget(key, names)
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}
