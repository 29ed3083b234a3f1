"""Create ids. Ids are random, but a repeated request with the same Idempotency-Key gets the same ids."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from itertools import count

from ulid import ULID


class _Seed:
    def __init__(self, seed: str) -> None:
        self.bytes = ULID.from_str(seed).bytes
        self.numbers = count()


_seed: ContextVar[_Seed | None] = ContextVar("seed", default=None)


@contextmanager
def repeatable(seed: str) -> Generator[None]:
    """Derive each id created in this context from `seed`, a ULID, and a counter. The ids keep the seed's timestamp."""
    token = _seed.set(_Seed(seed))
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
    rest = blake2b(b"%d" % next(current.numbers), digest_size=10, key=current.bytes).digest()
    return str(ULID.from_bytes(current.bytes[:6] + rest))
