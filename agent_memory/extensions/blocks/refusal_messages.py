"""Create errors for rejected block changes."""

from __future__ import annotations

from agent_memory.extensions.blocks.store import MAX_BLOCKS, MAX_TARGET_BYTES, MAX_TARGETS, BlockReply
from agent_memory.foundation.core.errors import AgentMemoryError, Conflict, Forbidden, NotFound, VersionMismatch
from agent_memory.foundation.text.cleaning.control_characters import cut
from agent_memory_client.models.features.blocks import MAX_BLOCK_CHARS

_LINES, _PREVIEW = 3, 40
_NEAREST = 200


class BlockFull(Conflict):
    """The change would exceed the block's limit."""

    code = "block_full"


def no_block(label: str) -> NotFound:
    return NotFound(f"this owner has no block {label!r}: create it with PUT, or name another owner")


def refusal(label: str, reply: BlockReply, old_content: str = "") -> AgentMemoryError:
    """Return the error for a script's reply. `old_content` is the text to replace."""
    block = f"the block {label!r}"
    match reply.state:
        case "missing":
            return no_block(label)
        case "many":
            return Conflict(f"this owner already has {MAX_BLOCKS} blocks: delete one first", limit=MAX_BLOCKS)
        case "many_attached":
            return Conflict(f"this owner already has {MAX_BLOCKS} attached blocks: detach one first", limit=MAX_BLOCKS)
        case "targets":
            bounds = f"at most {MAX_TARGETS} owners, whose names may take {MAX_TARGET_BYTES:,} bytes in total"
            remedy = "detach one first, or attach it to a namespace or an agent that all of them share"
            return Conflict(f"{block} can be attached to {bounds}: {remedy}", limit=MAX_TARGETS)
        case "version":
            if reply.block is None:
                return VersionMismatch(f"there is no block {label!r} yet: omit If-Match")
            version = reply.block.version
            return VersionMismatch(f"{block} has version {version}: read it again and send its ETag", current=version)
        case "read_only":
            return Forbidden(f"{block} is read-only: only a PUT changes it")
        case "unknown":
            return _not_in_block(block, "" if reply.block is None else reply.block.value, old_content)
        case "ambiguous":
            return Conflict(f"{block} contains this text more than once: include more of the text around it", field="old_content")
        case "full" | "full_tokens":
            return _is_full(block, reply, "characters" if reply.state == "full" else "tokens")
        case "gone":
            return NotFound(f"{block} has no such change: see its history for the changes that can be undone")
        case _:
            return Conflict(f"later changes of {block} affected the same text or setting: undo them first")


def _is_full(block: str, reply: BlockReply, unit: str) -> BlockFull:
    size, limit, value = reply.size, reply.limit, "" if reply.block is None else reply.block.value
    longest = sorted(enumerate(value.split("\n"), 1), key=lambda line: -len(line[1]))[:_LINES]
    lines = [f"line {number} ({len(line):,} characters: {cut(line, _PREVIEW)!r})" for number, line in longest if line.strip()]
    examples = f" (you could delete {', '.join(lines)})" if lines else ""
    field = "limit" if unit == "characters" else "limit_tokens"
    message = f"{block} is full: it would have {size:,} {unit}, {size - limit:,} more than its limit of {limit:,}"
    return BlockFull(f"{message}: shorten the text{examples}, or raise `{field}`", field=field, size=size, limit=limit, unit=unit)


def _not_in_block(block: str, value: str, old_content: str) -> Conflict:
    number, line = nearest_line(value, old_content)
    if number == 0:
        return Conflict(f"{block} is empty: append instead of replacing", field="old_content")
    nearest = cut(line, _NEAREST)
    message = f"{block} does not contain this text. Line {number} is the most similar: {nearest}"
    return Conflict(message, field="old_content", nearest=nearest, line=number)


def nearest_line(value: str, target: str) -> tuple[int, str]:
    """Return the line most similar to `target`, as (line number, text).

    Line numbers start at 1. Similarity is the Dice coefficient of character pairs. Return (0, "")
    if `value` is blank.
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
