"""Running Lua: `Script` is one script, `Scripts` has those of memories, sessions and the outbox as typed functions.

Nothing else of ours calls EVALSHA; stores with a script of their own make a `Script` of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError, RedisError

from agent_memory.errors import AgentMemoryError, BadInput, IdTaken, RedisUnavailable, TooLarge, VersionMismatch
from agent_memory.plain_json import plain_json
from agent_memory.storage import memory_scripts, outbox_scripts, owner_scripts, scripts, session_scripts, upkeep_scripts
from agent_memory.storage.connection import redis_errors
from agent_memory.storage.wire import command, exchange

Arg = str | bytes | int | float

_FSYNC_MS = 3000


class Script:
    """One Lua script, run by its digest and loaded again when Redis has forgotten it."""

    def __init__(self, client: Redis, source: str, *, fsync: bool = False, flags: str = "") -> None:
        """With `fsync`, a call returns when Redis has the change on its disk (`WAITAOF 1 0`). `flags` are Redis' own, e.g. `no-writes`.

        The first line makes Redis look at those before it begins. Without it, whether a script runs in a full Redis depends on which of
        its writes comes first: after one that frees memory, all others are let through.
        """
        self._client = client
        self._source = f"#!lua flags={flags}\n{source}" if flags else f"#!lua\n{source}"
        self._script = client.register_script(self._source)
        self._fsync = fsync

    async def __call__(self, keys: Sequence[str], args: Sequence[Arg]) -> Any:
        with redis_errors():
            if self._fsync:
                return await self._on_disk(keys, args)
            try:
                return await command(self._client, "EVALSHA", self._script.sha, len(keys), *keys, *args)
            except NoScriptError:
                return await command(self._client, "EVAL", self._source, len(keys), *keys, *args)

    async def several(self, calls: Sequence[tuple[Sequence[str], Sequence[Arg]]]) -> list[Any]:
        """The replies of several calls in one round trip, an error in the place of each that failed. Raises what befalls all of them."""
        with redis_errors():
            replies = await exchange(self._client, [("EVALSHA", self._script.sha, len(keys), *keys, *args) for keys, args in calls])
        found: list[Any] = []
        for reply, (keys, args) in zip(replies, calls, strict=True):
            try:
                with redis_errors():
                    if isinstance(reply, NoScriptError):
                        found.append(await self(keys, args))
                    elif isinstance(reply, Exception):
                        raise reply
                    else:
                        found.append(reply)
            except (AgentMemoryError, RedisError) as error:
                found.append(error)
        return found

    async def _on_disk(self, keys: Sequence[str], args: Sequence[Arg]) -> Any:
        """Script and WAITAOF on one connection: it speaks of the writes of its own connection only. Raises RedisUnavailable."""
        for name, script in (("EVALSHA", self._script.sha), ("EVAL", self._source)):
            call = (name, script, len(keys), *keys, *args)
            reply, waited = await exchange(self._client, [call, ("WAITAOF", 1, 0, _FSYNC_MS)])
            if isinstance(reply, NoScriptError):
                continue
            for answer in (reply, waited):
                if isinstance(answer, Exception):
                    raise answer
            if int(waited[0]) < 1:
                raise RedisUnavailable(f"written, but not on disk within {_FSYNC_MS} ms: try again", retry_after=1)
            return reply
        raise AssertionError("EVAL cannot lack its script")


def compact(value: Any) -> str:
    """JSON without blanks; NaN is refused."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _header(values: dict[str, Any]) -> bytes:
    """A script's header. What is None is left out: in Lua, JSON's null counts as true.

    Strings, finite numbers, truth values and lists of them alone.
    """
    return plain_json({name: value for name, value in values.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Written:
    """What a session is after a write. `epoch` names this life of it, `created` is in µs since 1970, `said_created` is ISO 8601.

    `kept` holds what stands beside the text of those of the messages (by their place in the request) that came without it and kept it.
    """

    version: int
    tokens: int
    messages: int
    added: int
    epoch: str
    created: int
    said_created: str | None = None
    kept: Sequence[tuple[int, bytes]] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """A mark that this worker works on until `lease` (ms since 1970); `attempt` counts from 1."""

    member: str
    lease: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Claims:
    """What a claim brought: the claims, how many marks were given up, and the ms until the next mark is due (-1: none)."""

    claims: list[Claim]
    given_up: int
    wait_ms: int


@dataclass(frozen=True, slots=True)
class DueClaim:
    """The arguments of a claim of one kind; see the script."""

    keys: Sequence[str]
    kind: str
    root: str
    limit: int
    lease_ms: int
    most: int
    exclusive: bool
    share: int


class Scripts:
    """All scripts over one client."""

    def __init__(self, client: Redis, *, fsync: bool = False, neighbours_ms: int = 0) -> None:
        """With `fsync`, what a caller's request changes is on Redis' disk before it is acknowledged.

        `neighbours_ms`: how long after a message those around it are due to be indexed again.
        """
        self.neighbours_ms = neighbours_ms
        # What frees memory, and what notes how work ended, is done in a full Redis, too.
        self._session_write = Script(client, scripts.SESSION_WRITE, fsync=fsync)
        self._session_data = Script(client, session_scripts.SESSION_DATA, fsync=fsync)
        self._session_delete = Script(client, session_scripts.SESSION_DELETE, fsync=fsync, flags="allow-oom")
        self._session_settle = Script(client, session_scripts.SESSION_SETTLE, flags="allow-oom")
        self._session_aside = Script(client, session_scripts.SESSION_ASIDE)
        self._session_journal = Script(client, scripts.SESSION_JOURNAL, flags="no-writes")
        self._session_summary = Script(client, scripts.SESSION_SUMMARY)
        self._session_strike = Script(client, session_scripts.SESSION_STRIKE, fsync=fsync, flags="allow-oom")
        self._memory_commit = Script(client, memory_scripts.MEMORY_COMMIT, fsync=fsync)
        self._memory_owners = Script(client, owner_scripts.MEMORY_OWNERS, flags="no-writes")
        self._memory_index = Script(client, upkeep_scripts.MEMORY_INDEX)
        self._memory_sweep = Script(client, upkeep_scripts.MEMORY_SWEEP)
        self._memory_delete = Script(client, upkeep_scripts.MEMORY_DELETE, fsync=fsync, flags="allow-oom")
        self._due_claim = Script(client, outbox_scripts.DUE_CLAIM)
        self._due_begin = Script(client, outbox_scripts.DUE_BEGIN)
        self._due_done = Script(client, outbox_scripts.DUE_DONE, flags="allow-oom")
        self._due_renew = Script(client, outbox_scripts.DUE_RENEW, flags="allow-oom")
        self._due_fail = Script(client, outbox_scripts.DUE_FAIL, flags="allow-oom")

    async def session_write(self, keys: Sequence[str], header: dict[str, Any], messages: Sequence[Arg]) -> Written:
        """Writes a session. Raises VersionMismatch, IdTaken, TooLarge for more messages than it may have, and BadInput for an empty one."""
        reply = await self._session_write(keys, [_header(header), *messages])
        _refuse_mismatch(reply)
        if reply[0] == b"taken":
            raise IdTaken([], field=f"memories.{header['places'][int(reply[1])]}.id")
        if reply[0] == b"full":
            most = header["mm"]
            message = (
                f"messages: a session holds {most} messages at most (MAX_SESSION_MESSAGES), this one has {int(reply[1])}: begin another"
            )
            raise TooLarge(message, field="messages", limit=most)
        if reply[0] == b"empty":
            raise BadInput(
                "must not be blank: give at least one character that is not white space", field=f"messages.{int(reply[1])}.content"
            )
        kept = list(zip(map(int, reply[8][::2]), reply[8][1::2], strict=True))
        return Written(
            int(reply[1]), int(reply[2]), int(reply[3]), int(reply[4]), reply[5].decode(), int(reply[6]), reply[7].decode() or None, kept
        )

    async def session_data(self, meta: str, if_match: str | None, data: str, *, merge: bool) -> int | None:
        """Replaces a session's data, or merges a patch into it; the new version, None without such a session. Raises VersionMismatch."""
        reply = await self._session_data([meta], [_header({"im": if_match, "merge": merge}), data])
        _refuse_mismatch(reply)
        return None if reply[0] == b"missing" else int(reply[1])

    async def session_delete(self, keys: Sequence[str], sid: str, epoch: str) -> bool:
        return bool(await self._session_delete(keys, [sid, epoch]))

    async def session_settle(self, keys: Sequence[str], args: Sequence[Arg]) -> bool:
        return bool(await self._session_settle(keys, args))

    async def session_aside(self, keys: Sequence[str], args: Sequence[Arg]) -> bool:
        return bool(await self._session_aside(keys, args))

    async def session_journal(
        self, keys: Sequence[str], cursor: str, limit: int, before: int
    ) -> tuple[dict[str, str], list[bytes], dict[str, str]]:
        """The journal's fields, its entries from `before` messages before the cursor, and its memories by id."""
        fields, entries, own = await self._session_journal(keys, [cursor, limit, before])
        return _pairs(fields), entries, _pairs(own)

    async def session_summary(self, keys: Sequence[str], fence: str, count: int, context: str, tokens: int, remember: int) -> bool:
        return bool(await self._session_summary(keys, [fence, count, context, tokens, remember]))

    async def session_strike(self, keys: Sequence[str], args: Sequence[Arg]) -> bool:
        return bool(await self._session_strike(keys, args))

    async def memory_commit(self, keys: Sequence[str], header: dict[str, Any], args: Sequence[Arg]) -> list[str]:
        """The reply of the script, see there: its first word, then a state per step."""
        return [word.decode() for word in await self._memory_commit(keys, [plain_json(header), *args])]

    async def memory_owners(self, key: str, args: Sequence[Arg]) -> list[str | None]:
        """Whose ids (mids, after the root of all keys) are, as `owner_scripts.owner_name` names them; None for those that are free."""
        return [None if owner == b"-" else owner.decode() for owner in await self._memory_owners([key], args)]

    async def memory_sweep(self, keys: Sequence[str], args: Sequence[Arg]) -> int:
        return int(await self._memory_sweep(keys, args))

    async def memory_index(self, keys: Sequence[str], args: Sequence[Arg]) -> list[bool]:
        return [bool(done) for done in await self._memory_index(keys, args)]

    async def memory_delete(self, keys: Sequence[str], args: Sequence[Arg]) -> list[bool]:
        return [bool(gone) for gone in await self._memory_delete(keys, args)]

    async def due_claim(self, asked: Sequence[DueClaim]) -> list[Claims | Exception]:
        """What each kind's marks brought, in one round trip; or why it brought nothing."""
        replies = await self._due_claim.several(
            [
                (
                    one.keys,
                    [one.limit, one.lease_ms, one.most, int(one.exclusive), outbox_scripts.NEVER_ENDED, one.share, one.root, one.kind],
                )
                for one in asked
            ]
        )
        return [reply if isinstance(reply, Exception) else _claims(reply) for reply in replies]

    async def due_begin(self, keys: Sequence[str], lease_ms: int, claims: Sequence[Claim]) -> list[Claim]:
        args: list[Arg] = [lease_ms]
        for claim in claims:
            args += [claim.member, claim.lease]
        leases = [int(lease) for lease in await self._due_begin(keys, args)]
        return [Claim(claim.member, lease, claim.attempt) for claim, lease in zip(claims, leases, strict=True) if lease >= 0]

    async def due_done(self, keys: Sequence[str], member: str, lease: int) -> bool:
        return bool(await self._due_done(keys, [member, lease]))

    async def due_renew(self, keys: Sequence[str], member: str, lease: int, more_ms: int) -> int | None:
        renewed = int(await self._due_renew(keys, [member, lease, more_ms]))
        return None if renewed < 0 else renewed

    async def due_fail(self, keys: Sequence[str], member: str, lease: int, delay_ms: int, reason: str, forgive: bool) -> bool:
        return bool(await self._due_fail(keys, [member, lease, delay_ms, reason, int(forgive)]))


def _claims(reply: Any) -> Claims:
    wait, dead, found = reply
    return Claims([Claim(m.decode(), int(lease), int(n)) for m, lease, n in found], int(dead), int(wait))


def _pairs(flat: Sequence[bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in zip(flat[::2], flat[1::2], strict=True)}


def _refuse_mismatch(reply: Any) -> None:
    if reply[0] == b"mismatch":
        current = int(reply[1])
        raise VersionMismatch(f"If-Match names another version than the stored one ({current or 'there is none'})", current=current)
