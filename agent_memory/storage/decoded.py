"""What was decoded lately, by the bytes it was decoded from.

A user's turns bring the same messages and the same memories again and again. Redis says each time which they are and what they hold; only
reading the same JSON anew is saved. Nothing here can be out of date: other bytes are another key.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Generic, TypeVar

# Entries of a generation, how large the bytes of one may be, and how long a generation stays the young one. What nobody asks for is
# forgotten after two, which end when something new is decoded: a process that is asked for nothing keeps what it has.
_MOST = 4096
_LARGEST = 4096
_SECONDS = 60.0

Value = TypeVar("Value")


class Decoded(Generic[Value]):
    """A function of bytes that keeps what it said, in two generations: when the young one is full or a minute old, the old one goes.

    What it gives belongs to all who ask for it: they must not change it.
    """

    __slots__ = ("_decode", "_old", "_until", "_young")

    def __init__(self, decode: Callable[[bytes], Value]) -> None:
        self._decode = decode
        self._young: dict[bytes, Value] = {}
        self._old: dict[bytes, Value] = {}
        self._until = monotonic() + _SECONDS

    def __call__(self, raw: bytes) -> Value:
        """What these bytes say. Raises what decoding raises."""
        value = self._young.get(raw)
        if value is not None:
            return value
        value = self._old.pop(raw, None)
        if value is None:
            value = self._decode(raw)
            if len(raw) > _LARGEST:
                return value
        now = monotonic()
        if len(self._young) >= _MOST or now > self._until:
            self._old, self._young, self._until = self._young, {}, now + _SECONDS
        self._young[raw] = value
        return value
