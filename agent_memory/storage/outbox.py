"""The outbox: marks of what is due, set by the write that makes it due, claimed by workers, given up after too many tries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from agent_memory.storage.connection import redis_errors
from agent_memory.storage.keys import Keys
from agent_memory.storage.lua import Claim, Claims, DueClaim, Scripts
from agent_memory.tasks import DueKind

# Erasures wait for nobody's share, and what recurs is no tenant's.
_EVERYBODYS = frozenset({DueKind.DELETION, DueKind.PERIODIC})


@dataclass(frozen=True, slots=True)
class Backlog:
    """One kind of pending work: marks, marks given up, and the age (s) of the oldest mark that is due (0.0: none is late)."""

    pending: int
    dead: int
    oldest_seconds: float


def summed(found: Sequence[dict[DueKind, Backlog]]) -> dict[DueKind, Backlog]:
    """The work of several buckets as one."""
    return {
        kind: Backlog(
            sum(one[kind].pending for one in found), sum(one[kind].dead for one in found), max(one[kind].oldest_seconds for one in found)
        )
        for kind in DueKind
    }


class Outbox:
    """What is due, by kind."""

    def __init__(self, client: Redis, keys: Keys, scripts: Scripts) -> None:
        self._client = client
        self._keys = keys
        self._scripts = scripts

    async def wait(self, seconds: float) -> None:
        """Returns when a write announced something due, and after `seconds` at the latest."""
        with redis_errors():
            await self._client.blpop([self._keys.wake], timeout=seconds)

    async def claim(self, kind: DueKind, *, limit: int, lease_seconds: float, max_attempts: int, share: float = 1.0) -> Claims:
        """Takes up to `limit` due marks for `lease_seconds`; a mark with `max_attempts` tries behind it becomes a dead letter.

        With a `share` below 1 no tenant has more than that part of `limit` at a time, whoever claimed it.

        Extraction is claimed once more: that try sets the batch aside, so that the session's later messages are not held up.
        """
        found = await self.claim_each({kind: limit}, lease_seconds=lease_seconds, max_attempts=max_attempts, share=share)
        claims = found[kind]
        if isinstance(claims, Exception):
            raise claims
        return claims

    async def claim_each(
        self, limits: Mapping[DueKind, int], *, lease_seconds: float, max_attempts: int, share: float = 1.0
    ) -> dict[DueKind, Claims | Exception]:
        """The same for several kinds in one round trip. What was claimed of one kind stays claimed when another one's claim failed."""
        k = self._keys
        asked = [
            DueClaim(
                keys=[k.due(kind), k.tries(kind), k.why(kind), k.dead(kind), k.wake],
                kind=str(kind),
                root=k.root,
                limit=limit,
                lease_ms=int(lease_seconds * 1000),
                most=max_attempts + (kind is DueKind.EXTRACTION),
                exclusive=kind is not DueKind.MEMORY,
                share=0 if share >= 1.0 or kind in _EVERYBODYS else math.ceil(limit * share),
            )
            for kind, limit in limits.items()
        ]
        return dict(zip(limits, await self._scripts.due_claim(asked), strict=True))

    async def done(self, kind: DueKind, claim: Claim) -> bool:
        """Ends a claim well; False when the mark was set again meanwhile and so stays due."""
        k = self._keys
        keys = [k.due(kind), k.tries(kind), k.why(kind), k.dead(kind), k.wake]
        return await self._scripts.due_done(keys, claim.member, claim.lease)

    async def begin(self, kind: DueKind, claims: Sequence[Claim], *, lease_seconds: float) -> list[Claim]:
        """Those of the claims that still are what they were, with new leases: not done, given up, claimed again, or begun before.

        What was begun and did not end has failed; what nobody began, because workers were busy, has not.
        """
        if not claims:
            return []
        keys = [self._keys.due(kind), self._keys.tries(kind)]
        return await self._scripts.due_begin(keys, int(lease_seconds * 1000), claims)

    async def renew(self, kind: DueKind, claim: Claim, *, lease_seconds: float) -> Claim | None:
        """The claim with a new lease, or None when the mark was set again or taken meanwhile."""
        keys = [self._keys.due(kind), self._keys.tries(kind)]
        lease = await self._scripts.due_renew(keys, claim.member, claim.lease, int(lease_seconds * 1000))
        return None if lease is None else Claim(claim.member, lease, claim.attempt)

    async def failed(self, kind: DueKind, claim: Claim, reason: str, *, delay_seconds: float, forgive: bool = False) -> None:
        """Ends a claim badly: due again after a delay. `forgive` does not count the try (the cause lies outside, e.g. a model away)."""
        k = self._keys
        keys = [k.due(kind), k.tries(kind), k.why(kind), k.wake]
        await self._scripts.due_fail(keys, claim.member, claim.lease, int(delay_seconds * 1000), reason[:1000], forgive)

    async def mark(self, kind: DueKind, members: list[str]) -> None:
        """Marks members as due now."""
        if not members:
            return
        with redis_errors():
            async with self._client.pipeline(transaction=False) as pipe:
                pipe.zadd(self._keys.due(kind), dict.fromkeys(members, 0.0), lt=True)
                pipe.zadd(self._keys.due(kind), dict.fromkeys(members, 0.0), nx=True)
                pipe.lpush(self._keys.wake, "1")
                pipe.ltrim(self._keys.wake, 0, 0)
                await pipe.execute()

    async def backlog(self) -> dict[DueKind, Backlog]:
        """How much is due of each kind."""
        kinds = list(DueKind)
        with redis_errors():
            async with self._client.pipeline(transaction=False) as pipe:
                pipe.time()
                for kind in kinds:
                    pipe.zcard(self._keys.due(kind))
                    pipe.zcard(self._keys.dead(kind))
                    pipe.zrange(self._keys.due(kind), 0, 0, withscores=True)
                replies = await pipe.execute()
        seconds, micros = replies[0]
        now = seconds + micros / 1e6
        return {kind: _backlog(now, *replies[1 + 3 * i : 4 + 3 * i]) for i, kind in enumerate(kinds)}

    async def reasons(self, kind: DueKind, limit: int = 100) -> dict[str, str]:
        """Members whose last try failed, with the reason."""
        with redis_errors():
            reply: Any = await self._client.hscan(self._keys.why(kind), 0, count=limit)
        found: dict[bytes, bytes] = reply[1]
        return {member.decode(): reason.decode("utf-8", "replace") for member, reason in found.items()}


def _backlog(now: float, pending: int, dead: int, head: list[Any]) -> Backlog:
    oldest = max(0.0, now - float(head[0][1]) / 1000) if head else 0.0
    return Backlog(pending, dead, oldest)
