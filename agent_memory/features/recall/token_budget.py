"""Divide a prompt's tokens among its parts, in order. Pure functions, no I/O."""

from __future__ import annotations

from collections.abc import Callable

# Each part's maximum share. Unused tokens go to the next part, and finally to the session's messages.
ALWAYS_SHARE = 0.1
"""Maximum combined share of blocks, pinned memories and the profile."""
SUMMARY_SHARE = 0.2
SECTION_SHARE = 0.4
"""Maximum combined share of facts and statements from long-term memory."""
RECALLED_SHARE = 0.1
"""Maximum combined share of procedures and the timeline."""
DEFAULT_FORMAT_TOKENS = 16_000


class TokenBudget:
    """Offers each part its share, plus the tokens that earlier parts left unused.

    If `total` is None, there is no limit. Unless `shared` is true, a part may take all remaining tokens.
    """

    def __init__(self, total: int | None, *, shared: bool) -> None:
        self._total = total
        self._shared = shared
        self._offered = 0.0
        self.left = total

    def offer(self, share: float) -> int | None:
        """Return how many tokens the next part may use, or None if there is no limit."""
        if self._total is None or self.left is None:
            return None
        self._offered += share
        spent = self._total - self.left
        return max(min(self.left, int(self._total * self._offered) - spent), 0) if self._shared else self.left

    def memory_share(self, window_tokens: int) -> float:
        """Return the share of tokens for memories, which is at least `SECTION_SHARE`."""
        spare = 1 - ALWAYS_SHARE - SUMMARY_SHARE - RECALLED_SHARE - window_tokens / max(self._total or 0, 1)
        return max(SECTION_SHARE, spare)

    def window_tokens(self) -> int | None:
        """Return how many tokens are reserved for session messages, or None if unlimited."""
        others = ALWAYS_SHARE + SUMMARY_SHARE + SECTION_SHARE + RECALLED_SHARE
        return None if self._total is None else int(self._total * (1 - others))

    def take(self, count_tokens: Callable[[], int]) -> None:
        """Deduct a part's tokens. Call `count_tokens` only if there is a limit."""
        if self.left is not None:
            self.left = max(self.left - count_tokens(), 0)
