"""The token budget of a prompt: which share of it each part gets, one after the other, and what becomes of what a part leaves (pure)."""

from __future__ import annotations

from collections.abc import Callable

# Of a prompt's tokens, what each part gets at most while there is more to say. What a part leaves goes to the next one, and in the end to
# the session's messages.
ALWAYS_SHARE = 0.1
"""What always holds: blocks, pinned memories, the profile."""
SUMMARY_SHARE = 0.2
"""The summary of the session."""
SECTION_SHARE = 0.4
"""Facts and what was said, together."""
RECALLED_SHARE = 0.1
"""What else was recalled: procedures, the timeline."""
DEFAULT_FORMAT_TOKENS = 16_000
"""The tokens of a prompt in a format, where its request names none."""


class TokenBudget:
    """Tokens for parts: each is offered its share of all, and what those before it have left of theirs.

    Without a limit (None) each part gets as much as there is; where nothing else follows (not `shared`), it is offered all that is left.
    """

    def __init__(self, total: int | None, *, shared: bool) -> None:
        self._total = total
        self._shared = shared
        self._offered = 0.0
        self.left = total

    def offer(self, share: float) -> int | None:
        """What the next part gets at most."""
        if self._total is None or self.left is None:
            return None
        self._offered += share
        taken = self._total - self.left
        return max(min(self.left, int(self._total * self._offered) - taken), 0) if self._shared else self.left

    def memory_share(self, window_tokens: int) -> float:
        """The share of the memories: their own, and what the session's messages, of so many tokens, leave of theirs."""
        spare = 1 - ALWAYS_SHARE - SUMMARY_SHARE - RECALLED_SHARE - window_tokens / max(self._total or 0, 1)
        return max(SECTION_SHARE, spare)

    def take(self, count_tokens: Callable[[], int]) -> None:
        """The part has used so many; they are counted only where there is a limit."""
        if self.left is not None:
            self.left = max(self.left - count_tokens(), 0)
