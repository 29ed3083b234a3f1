"""Provide a circuit breaker for servers that are down."""

from __future__ import annotations

import time
from collections.abc import Callable

from agent_memory.foundation.core.errors import ModelUnavailable


class Breaker:
    """A circuit breaker: closed, open, or half-open (allows one probe).

    After `threshold` consecutive failures, it opens for `cooldown` seconds. Each failed probe
    doubles this time, up to `longest` seconds.
    """

    def __init__(
        self, name: str, *, threshold: int = 3, cooldown: float = 1.0, longest: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._threshold = threshold
        self._shortest = cooldown
        self._longest = longest
        self._clock = clock
        self._failures = 0
        self._wait = cooldown
        self._open_until: float | None = None
        self._probing = False

    @property
    def is_open(self) -> bool:
        """True if the next call would fail immediately."""
        return self._open_until is not None and (self._probing or self._clock() < self._open_until)

    def admit_call(self) -> None:
        """Admit a call, or raise ModelUnavailable if the breaker is open.

        After the call, use one of the `note_…` methods to record its outcome.
        """
        if self.is_open:
            left = max(1, round((self._open_until or 0.0) - self._clock()))
            raise ModelUnavailable(f"{self._name} does not answer: try again in {left} s", retry_after=left, reason="breaker_open")
        self._probing = self._open_until is not None

    def note_success(self) -> None:
        """Record that the server responded, whatever the response was."""
        self._failures = 0
        self._wait = self._shortest
        self._open_until = None
        self._probing = False

    def note_failure(self) -> None:
        """Record that the server did not respond or reported an internal error."""
        self._failures += 1
        if self._probing:
            self._wait = min(2 * self._wait, self._longest)
            self._open_until = self._clock() + self._wait
        elif self._open_until is None and self._failures >= self._threshold:
            self._open_until = self._clock() + self._wait
        self._probing = False

    def note_abandoned(self) -> None:
        """Record that a call ended without showing whether the server works."""
        self._probing = False
