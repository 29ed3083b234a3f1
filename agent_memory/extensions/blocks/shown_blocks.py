"""Choose which of several blocks with one label a prompt shows."""

from __future__ import annotations

from collections.abc import Iterable

from agent_memory.extensions.blocks.store import ShownBlock


def choose_blocks(candidates: Iterable[ShownBlock]) -> list[ShownBlock]:
    """Return one block per label, by label: the most specific, and an owned one before an attached one.

    More names are more specific; of equally many, the agent's win over the user's over the namespace's.
    """
    chosen: dict[str, ShownBlock] = {}
    for candidate in sorted(candidates, key=_specificity):
        chosen[candidate.block.label] = candidate
    return [chosen[label] for label in sorted(chosen)]


def _specificity(shown_block: ShownBlock) -> tuple[int, int, bool, str]:
    return shown_block.names.bit_count(), shown_block.names, not shown_block.attached, str(shown_block.block.owner)
