"""Queue memories with long texts, so that they do not block the worker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from time import monotonic

# A waiting memory becomes due again after this time, so that another worker takes it if this one dies.
WAIT_SECONDS = 60.0
# Passages that are embedded at the same time. A local model takes seconds for them; more would outlast the lease.
_PASSAGES = 256
_OLDEST_EVERY = 4


@dataclass(frozen=True, slots=True)
class LongText:
    """A long memory, its owner and its number of passages."""

    mid: str
    owner: tuple[str, str | None]
    passages: int


class LongTexts:
    """A queue that limits how many passages are embedded at the same time.

    Shorter texts go first, but every fourth round starts with the oldest text.
    """

    def __init__(self) -> None:
        self._free = _PASSAGES
        self._rounds = 0
        # In the order in which the texts began to wait.
        self._waiting: dict[str, tuple[LongText, float]] = {}

    def wait(self, text: LongText) -> None:
        """Add a text to the queue. `take` returns it when it fits."""
        self._waiting[text.mid] = (text, monotonic() + WAIT_SECONDS)

    def take(self) -> list[LongText]:
        """Remove and return the texts that fit now. Their passages are reserved until `free`."""
        # Another worker may have claimed memories that waited too long. Memories that return keep their place.
        long_ago = monotonic() - WAIT_SECONDS
        self._waiting = {mid: waiting for mid, waiting in self._waiting.items() if waiting[1] > long_ago}
        texts = self._fitting()
        self._rounds += bool(texts)
        for text in texts:
            del self._waiting[text.mid]
        self._free -= sum(text.passages for text in texts)
        return texts

    def free(self, texts: Iterable[LongText]) -> None:
        """Release the passages that `take` reserved for these texts."""
        self._free += sum(text.passages for text in texts)

    def _fitting(self) -> list[LongText]:
        """Return the texts that fit, shortest first and alternating between owners."""
        now = monotonic()
        waiting = [text for text, until in self._waiting.values() if until > now]
        places: dict[tuple[str, str | None], int] = defaultdict(int)
        order: list[tuple[int, LongText]] = []
        for text in sorted(waiting, key=lambda text: text.passages):
            order.append((places[text.owner], text))
            places[text.owner] += 1
        oldest = waiting[:1] if self._rounds % _OLDEST_EVERY == 0 else []
        turns = list(dict.fromkeys([*oldest, *(text for _, text in sorted(order, key=lambda entry: entry[0]))]))
        totals = accumulate(text.passages for text in turns)
        return [text for text, total in zip(turns, totals, strict=True) if total <= (self._free if [text] == oldest else self._free // 2)]
