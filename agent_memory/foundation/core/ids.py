"""Generate random ids that are reproduced if a request is retried with its Idempotency-Key."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from itertools import count

from ulid import ULID

_seed: ContextVar[tuple[bytes, Iterator[int]] | None] = ContextVar("seed", default=None)
"""The bytes of the seed and an iterator that numbers the ids."""


@contextmanager
def repeatable(seed: str) -> Generator[None]:
    """Derive all ids in this `with` block from `seed` (a ULID) and a counter."""
    token = _seed.set((ULID.from_str(seed).bytes, count()))
    try:
        yield
    finally:
        _seed.reset(token)


def is_repeatable() -> bool:
    return _seed.get() is not None


def made_id() -> str:
    """Return a new ULID."""
    current = _seed.get()
    if current is None:
        return str(ULID())
    seed, numbers = current
    rest = blake2b(b"%d" % next(numbers), digest_size=10, key=seed).digest()
    return str(ULID.from_bytes(seed[:6] + rest))
