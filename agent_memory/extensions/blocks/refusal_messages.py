"""How a refused change of a block is told: in words from which the one who asked can go on (pure). Each text is read once.

When a change is refused is decided in `lua/block_change.lua`, and when a block is full in `lua/full_block.lua`.
"""

from __future__ import annotations

from agent_memory.foundation.core.errors import AgentMemoryError, Conflict, Forbidden, NotFound, VersionMismatch
from agent_memory_client.models.features.blocks import MAX_BLOCK_CHARS

_LINES, _PREVIEW = 3, 40
_NEAREST = 200


class BlockFull(Conflict):
    """The text would be longer than its block may be."""

    code = "block_full"


def no_block(label: str) -> NotFound:
    """There is no such block."""
    return NotFound(f"there is no block {label!r} of this owner: make it with PUT, or say whose is meant")


def is_read_only(label: str) -> Forbidden:
    """Edits are refused."""
    return Forbidden(f"the block {label!r} is read-only: only a PUT changes it")


def other_version(label: str, version: int | None) -> VersionMismatch:
    """If-Match, or If-None-Match, wants another version; None where there is no block."""
    if version is None:
        return VersionMismatch(f"there is no block {label!r} yet: send no If-Match")
    return VersionMismatch(f"the block {label!r} has version {version}: read it again and send its ETag", current=version)


def is_full(label: str, value: str, size: int, limit: int, unit: str) -> BlockFull:
    """The text would have `size` characters or tokens (`unit`), of `limit`. Names the longest lines of the text that is there."""
    longest = sorted(enumerate(value.split("\n"), 1), key=lambda line: -len(line[1]))[:_LINES]
    lines = [f"line {number} ({len(line):,} characters: {_cut(line, _PREVIEW)!r})" for number, line in longest if line.strip()]
    could_go = f" What could go: {', '.join(lines)}." if lines else ""
    message = f"the block {label!r} is full: it would have {size:,} of {limit:,} {unit}, {size - limit:,} too many.{could_go}"
    return BlockFull(message, size=size, limit=limit, unit=unit)


def too_many(what: str, most: int) -> Conflict:
    """An owner has as many blocks, or attachments, as there may be."""
    return Conflict(f"there are {most} {what} already: delete one first", limit=most)


def too_many_targets(label: str, most: int, most_bytes: int) -> Conflict:
    """A block is attached to as many owners as it may be, or their names are too long together."""
    bounds = f"{most} owners, whose names take {most_bytes:,} bytes together"
    remedy = "detach one first, or attach it to a namespace or an agent that all of them share"
    return Conflict(f"the block {label!r} can be attached to {bounds}: {remedy}", limit=most)


def not_in_block(label: str, value: str, wanted: str) -> Conflict:
    """The text to replace is not there. Names the line that is nearest to it."""
    number, line = nearest_line(value, wanted)
    if number == 0:
        return Conflict(f"the block {label!r} is empty: append instead of replacing", field="old_content")
    message = f"the block {label!r} does not hold this text. Nearest to it is line {number}: {_cut(line, _NEAREST)}"
    return Conflict(message, field="old_content", nearest=_cut(line, _NEAREST), line=number)


def is_ambiguous(label: str) -> Conflict:
    """The text to replace stands there more than once."""
    return Conflict(f"the block {label!r} holds this text more than once: give more of what stands around it", field="old_content")


def cannot_undo(label: str, state: str) -> AgentMemoryError:
    """The change is not kept any more ("gone"), or what it made has changed since."""
    if state == "gone":
        return NotFound(f"there is no such change of the block {label!r}: its history has those that can be undone")
    return Conflict(f"what this change made of the block {label!r} has changed since: undo the later changes first")


def nearest_line(value: str, wanted: str) -> tuple[int, str]:
    """The line of a text that shares most with what is wanted, and its number from 1; (0, "") for a text without words.

    Compared are pairs of neighbouring letters, of which a block has no more than letters.
    """
    pairs = _pairs(wanted[:MAX_BLOCK_CHARS])
    best, best_share = (0, ""), -1.0
    for number, line in enumerate(value.split("\n"), 1):
        if not line.strip():
            continue
        of_line = _pairs(line)
        share = 2 * len(pairs & of_line) / (len(pairs) + len(of_line) or 1)
        if share > best_share:
            best, best_share = (number, line), share
    return best


def _pairs(text: str) -> set[str]:
    folded = text.lower()
    return {folded[at : at + 2] for at in range(len(folded) - 1)} or {folded}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
