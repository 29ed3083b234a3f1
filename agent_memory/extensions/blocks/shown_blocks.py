"""Which of several blocks with one label a prompt shows (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from agent_memory.extensions.blocks.store import ShownBlock


def choose_blocks(shown: Iterable[ShownBlock]) -> list[ShownBlock]:
    """Of all that a prompt may show, one of each label, by label: the most specific, and its owner's before one that is attached.

    More names are more specific; of as many the agent's counts before the user's, and that before the namespace's.
    """
    chosen: dict[str, ShownBlock] = {}
    for candidate in sorted(shown, key=_specificity):
        chosen[candidate.block.label] = candidate
    return [chosen[label] for label in sorted(chosen)]


def _specificity(shown: ShownBlock) -> tuple[int, int, bool, str]:
    return shown.names.bit_count(), shown.names, not shown.attached, str(shown.block.owner)
