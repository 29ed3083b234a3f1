"""Implement the outbox, where writes mark work as due and workers claim it.

The script that writes the data also adds the marks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.connection import Pipe, read, redis_errors, server_ms, write
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import NEVER_ENDED, Script, outbox_keys


@dataclass(frozen=True, slots=True)
class Claim:
    """A mark that a worker has claimed until `lease` (ms since 1970).

    `attempt` starts at 1. `overdue` is True if an earlier claim on the mark never ended.
    """

    member: str
    lease: int
    attempt: int
    overdue: bool = False


@dataclass(frozen=True, slots=True)
class Claims:
    """New claims. `wait_ms` is the time until the next mark is due, or -1 if there is none."""

    claims: list[Claim]
    given_up: int
    wait_ms: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """Pending marks and dead letters. `oldest_seconds` is the age of the oldest due mark."""

    pending: int
    dead: int
    oldest_seconds: float


def sum_backlogs(buckets: Sequence[dict[DueKind, Backlog]]) -> dict[DueKind, Backlog]:
    """Add up the backlogs of several buckets, using the greatest age."""
    return {
        kind: Backlog(
            sum(backlogs[kind].pending for backlogs in buckets),
            sum(backlogs[kind].dead for backlogs in buckets),
            max(backlogs[kind].oldest_seconds for backlogs in buckets),
        )
        for kind in DueKind
    }


class Outbox:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._claim = Script(client, "storage/due_claim")
        self._begin = Script(client, "storage/due_begin")
        self._done = Script(client, "storage/due_done")
        self._fail = Script(client, "storage/due_fail")

    async def wait_for_due(self, seconds: float) -> None:
        """Wait until a write signals that work is due, but no longer than `seconds`."""
        with redis_errors():
            await self._client.blpop([self._keys.wake], timeout=seconds)

    async def claim_each(
        self, limits: Mapping[DueKind, int], *, lease_seconds: float, max_attempts: int, share: float = 1.0
    ) -> dict[DueKind, Claims | Exception]:
        """Claim up to `limits` due marks of each kind in one round trip.

        An error only affects its own kind. After `max_attempts` attempts, a mark becomes a dead
        letter; extraction gets one more attempt. Except for deletions, each tenant gets at most the
        fraction `share` of the limit.
        """
        replies = await self._claim.each(
            [
                {
                    **self._script_keys(kind),
                    "root": self._keys.root,
                    "kind": str(kind),
                    "limit": limit,
                    "lease_ms": int(lease_seconds * 1000),
                    "max_attempts": _most(kind, max_attempts),
                    "exclusive": kind is not DueKind.MEMORY,
                    "share": math.ceil(limit * share) if share < 1.0 and kind is not DueKind.DELETION else 0,
                    "never_ended": NEVER_ENDED,
                }
                for kind, limit in limits.items()
            ]
        )
        claims = [reply if isinstance(reply, Exception) else _claims(reply) for reply in replies]
        return dict(zip(limits, claims, strict=True))

    async def end_claim(self, kind: DueKind, claim: Claim) -> bool:
        """End a successful claim. Return False if a newer write means the mark is still due."""
        return bool(await self._done(**self._script_keys(kind), member=claim.member, token=claim.lease))

    async def end_claims(self, kind: DueKind, claims: Sequence[Claim]) -> None:
        """End claims in one round trip. Raises the first error."""
        if not claims:
            return
        shared = self._script_keys(kind)
        for reply in await self._done.each([{**shared, "member": claim.member, "token": claim.lease} for claim in claims]):
            if isinstance(reply, Exception):
                raise reply

    async def begin_claims(self, kind: DueKind, members: Sequence[str], *, lease_seconds: float, max_attempts: int) -> list[Claim]:
        """Return claims for the members that still have a mark.

        Call this before starting work on the members. Attempts that never ended count toward
        `max_attempts`.
        """
        if not members:
            return []
        replies = await self._begin(
            **outbox_keys(self._keys, kind),
            lease_ms=int(lease_seconds * 1000),
            max_attempts=_most(kind, max_attempts),
            never_ended=NEVER_ENDED,
            members=members,
        )
        return [
            Claim(member, int(token), int(attempt)) for member, (token, attempt) in zip(members, replies, strict=True) if int(token) >= 0
        ]

    async def put_back(self, kind: DueKind, claim: Claim, *, delay_seconds: float) -> None:
        """Return a claim whose work did not start. The attempt does not count."""
        await self.fail_claim(kind, claim, "", delay_seconds=delay_seconds, forgive=True)

    async def fail_claim(self, kind: DueKind, claim: Claim, reason: str, *, delay_seconds: float, forgive: bool = False) -> None:
        """End a failed claim. The mark becomes due again after a delay.

        With `forgive`, the attempt does not count.
        """
        named = self._script_keys(kind)
        del named["dead"]
        await self._fail(
            **named,
            member=claim.member,
            token=claim.lease,
            delay_ms=int(delay_seconds * 1000),
            reason=reason[:1000],
            forgive=forgive,
        )

    def _script_keys(self, kind: DueKind) -> dict[str, str]:
        return {**outbox_keys(self._keys, kind), "wake": self._keys.wake}

    async def mark_due(self, kind: DueKind, members: list[str]) -> None:
        if not members:
            return
        due, wake, marks = self._keys.due(kind), self._keys.wake, dict.fromkeys(members, await server_ms(self._client))
        await write(self._client, lambda pipe: (pipe.zadd(due, marks, lt=True), pipe.lpush(wake, "1"), pipe.ltrim(wake, 0, 0)))

    async def backlog(self) -> dict[DueKind, Backlog]:
        kinds = list(DueKind)

        def build(pipe: Pipe) -> None:
            pipe.time()
            for kind in kinds:
                pipe.zcard(self._keys.due(kind))
                pipe.zcard(self._keys.dead(kind))
                pipe.zrange(self._keys.due(kind), 0, 0, withscores=True)

        (seconds, micros), *replies = await read(self._client, build)
        now = seconds + micros / 1e6
        backlogs: dict[DueKind, Backlog] = {}
        for kind, pending, dead, head in zip(kinds, replies[::3], replies[1::3], replies[2::3], strict=True):
            backlogs[kind] = Backlog(pending, dead, max(0.0, now - float(head[0][1]) / 1000) if head else 0.0)
        return backlogs

    async def reasons(self, kind: DueKind, limit: int = 100) -> dict[str, str]:
        """Return the latest failure reason for each of about `limit` marks, keyed by member."""
        ((_, reasons),) = await read(self._client, lambda pipe: pipe.hscan(self._keys.why(kind), 0, count=limit))
        return {member.decode(): reason.decode("utf-8", "replace") for member, reason in reasons.items()}


def _claims(reply: Any) -> Claims:
    wait_ms, given_up, rows = reply
    claims = [Claim(member.decode(), int(lease), int(attempt), bool(overdue)) for member, lease, attempt, overdue in rows]
    return Claims(claims, int(given_up), int(wait_ms))


def _most(kind: DueKind, max_attempts: int) -> int:
    # The last attempt of an extraction sets the batch aside, so that it does not block later messages in the session.
    return max_attempts + (kind is DueKind.EXTRACTION)
