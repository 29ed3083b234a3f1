"""Choose the block that a prompt shows when several blocks have the same label."""

from __future__ import annotations

from collections.abc import Iterable

from agent_memory.extensions.blocks.store import ShownBlock


def choose_blocks(candidates: Iterable[ShownBlock]) -> list[ShownBlock]:
    """Return one block per label, sorted by label.

    The block whose owner or attachment matches the most of the prompt's names (namespace, user, agent) wins. If the
    counts are equal, an agent outranks a user, and a user outranks a namespace. If the names are the same, an owned
    block wins over an attached block.
    """
    chosen: dict[str, ShownBlock] = {}
    for candidate in sorted(candidates, key=_specificity):
        chosen[candidate.block.label] = candidate
    return [chosen[label] for label in sorted(chosen)]


def _specificity(shown_block: ShownBlock) -> tuple[int, int, bool, str]:
    return shown_block.names.bit_count(), shown_block.names, not shown_block.attached, str(shown_block.block.owner)
