"""Create the errors for rejected changes to a block. Each message says what the caller can do instead.

`lua/block_change.lua` decides which changes to reject. `lua/full_block.lua` decides when a block is full.
"""

from __future__ import annotations

from agent_memory.foundation.core.errors import AgentMemoryError, Conflict, Forbidden, NotFound, VersionMismatch
from agent_memory.foundation.text.cleaning.control_characters import cut
from agent_memory_client.models.features.blocks import MAX_BLOCK_CHARS

_LINES, _PREVIEW = 3, 40
_NEAREST = 200


class BlockFull(Conflict):
    """The change would make the text longer than the block's limit."""

    code = "block_full"


def no_block(label: str) -> NotFound:
    return NotFound(f"there is no block {label!r} of this owner: create it with PUT, or name another owner")


def is_read_only(label: str) -> Forbidden:
    return Forbidden(f"the block {label!r} is read-only: only a PUT changes it")


def other_version(label: str, version: int | None) -> VersionMismatch:
    """Return the error for a failed If-Match or If-None-Match. `version` is None if there is no block."""
    if version is None:
        return VersionMismatch(f"there is no block {label!r} yet: send no If-Match")
    return VersionMismatch(f"the block {label!r} has version {version}: read it again and send its ETag", current=version)


def is_full(label: str, value: str, size: int, limit: int, unit: str) -> BlockFull:
    """Return the error for a block that would exceed its limit.

    `size` and `limit` are in `unit` (characters or tokens). The message lists the longest lines of the stored text.
    """
    longest = sorted(enumerate(value.split("\n"), 1), key=lambda line: -len(line[1]))[:_LINES]
    lines = [f"line {number} ({len(line):,} characters: {cut(line, _PREVIEW)!r})" for number, line in longest if line.strip()]
    could_go = f" What could go: {', '.join(lines)}." if lines else ""
    message = f"the block {label!r} is full: it would have {size:,} of {limit:,} {unit}, {size - limit:,} too many.{could_go}"
    return BlockFull(message, size=size, limit=limit, unit=unit)


def too_many(what: str, most: int) -> Conflict:
    return Conflict(f"there are {most} {what} already: delete one first", limit=most)


def too_many_targets(label: str, most: int, most_bytes: int) -> Conflict:
    """Return the error for a block that has too many attachments, or whose targets' names are too long in total."""
    bounds = f"{most} owners, whose names take {most_bytes:,} bytes together"
    remedy = "detach one first, or attach it to a namespace or an agent that all of them share"
    return Conflict(f"the block {label!r} can be attached to {bounds}: {remedy}", limit=most)


def not_in_block(label: str, value: str, old_content: str) -> Conflict:
    """Return the error if `old_content` is not in the block. The message quotes the nearest line."""
    number, line = nearest_line(value, old_content)
    if number == 0:
        return Conflict(f"the block {label!r} is empty: append instead of replacing", field="old_content")
    message = f"the block {label!r} does not hold this text. Nearest to it is line {number}: {cut(line, _NEAREST)}"
    return Conflict(message, field="old_content", nearest=cut(line, _NEAREST), line=number)


def is_ambiguous(label: str) -> Conflict:
    return Conflict(f"the block {label!r} holds this text more than once: give more of what stands around it", field="old_content")


def cannot_undo(label: str, state: str) -> AgentMemoryError:
    """Return the error for an undo that is impossible.

    The state "gone" means that the history no longer contains the change. Any other state means that a later change
    affected the same text or setting.
    """
    if state == "gone":
        return NotFound(f"there is no such change of the block {label!r}: its history has those that can be undone")
    return Conflict(f"what this change made of the block {label!r} has changed since: undo the later changes first")


def nearest_line(value: str, target: str) -> tuple[int, str]:
    """Return the number (from 1) and text of the line that is most similar to `target`, or (0, "") if `value` is blank.

    Similarity is the Dice coefficient of the two lines' character pairs.
    """
    pairs = _pairs(target[:MAX_BLOCK_CHARS])
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
