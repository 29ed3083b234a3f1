"""Divide a prompt's tokens among its parts, in their order. Pure functions, no I/O."""

from __future__ import annotations

from collections.abc import Callable

# The maximum share of each part. Unused tokens go to the next part, and finally to the session's messages.
ALWAYS_SHARE = 0.1
"""Blocks, pinned memories and the profile together."""
SUMMARY_SHARE = 0.2
SECTION_SHARE = 0.4
"""Facts and statements of long-term memory together."""
RECALLED_SHARE = 0.1
"""Procedures and the timeline together."""
DEFAULT_FORMAT_TOKENS = 16_000


class TokenBudget:
    """Offers each part its share, and the tokens that earlier parts left.

    `total` None means no limit. Unless `shared`, a part may take all tokens that are left.
    """

    def __init__(self, total: int | None, *, shared: bool) -> None:
        self._total = total
        self._shared = shared
        self._offered = 0.0
        self.left = total

    def offer(self, share: float) -> int | None:
        """Return how many tokens the next part may take. None means no limit."""
        if self._total is None or self.left is None:
            return None
        self._offered += share
        spent = self._total - self.left
        return max(min(self.left, int(self._total * self._offered) - spent), 0) if self._shared else self.left

    def memory_share(self, window_tokens: int) -> float:
        """Return the share of the memories: their own share, and what the session's messages do not need."""
        spare = 1 - ALWAYS_SHARE - SUMMARY_SHARE - RECALLED_SHARE - window_tokens / max(self._total or 0, 1)
        return max(SECTION_SHARE, spare)

    def take(self, count_tokens: Callable[[], int]) -> None:
        """Deduct the tokens of a part. They are counted only if there is a limit."""
        if self.left is not None:
            self.left = max(self.left - count_tokens(), 0)
