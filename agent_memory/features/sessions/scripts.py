"""Call the Lua scripts for sessions.

Each script that writes makes one atomic change and marks its follow-up work as due.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from agent_memory.features.sessions.agent_sessions import agent_refusal
from agent_memory.foundation.core.errors import BadInput, IdTaken, TooLarge, VersionMismatch
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.connection import Pipe
from agent_memory.foundation.storage.erasures import Guard
from agent_memory.foundation.storage.keyspace import Keys, SessionKeys
from agent_memory.foundation.storage.lua_files import load
from agent_memory.foundation.storage.scripts import NEVER_ENDED, Arg, Script, outbox_keys

_WINDOW = load("sessions/session_window")
_RECENT = load("sessions/recent_messages")


@dataclass(slots=True)
class SessionStamp:
    """A session after a write. `epoch` identifies the session from creation to deletion. `created` is in µs.

    `said_created` is the creation time given by the caller (ISO 8601). `kept_beside` lists the positions of messages
    sent as text alone, each with the stored content beside its text, which stays.
    """

    version: int
    tokens: int
    messages: int
    added: int
    epoch: str
    created: int
    said_created: str | None = None
    kept_beside: Sequence[tuple[int, bytes]] = ()


@dataclass(frozen=True, slots=True)
class JournalBatch:
    """A batch of messages that extraction has given up on, between two cursors of a journal."""

    epoch: str
    cursor: int
    cursor_end: int
    context: int


def queue_window(pipe: Pipeline, k: SessionKeys, *, window: int | None, default_window: int, overhead: int, most_before: int) -> None:
    """Queue the read of the newest messages that fit into a window. See `session_window.lua`."""
    sizes = {"window": window, "default_window": default_window, "overhead": overhead, "most_before": most_before}
    pipe.execute_command(*_WINDOW.read_only(k, **sizes))


def queue_recent(
    pipe: Pipe, user_waiting: str, journal_prefix: str, excluded_sid: str, limits: Mapping[str, int], namespaces: Collection[str]
) -> None:
    """Queue the read of a user's newest unpromoted messages. See `recent_messages.lua`."""
    command = _RECENT.read_only(
        user_waiting=user_waiting, journal_prefix=journal_prefix, excluded_sid=excluded_sid, **limits, namespaces=namespaces
    )
    pipe.execute_command(*command)


class MessageIdsReused(Exception):
    """The messages at `positions` have the ids of other messages in the session."""

    def __init__(self, positions: Sequence[int]) -> None:
        super().__init__("ids of messages are reused")
        self.positions = positions


class SessionScripts:
    def __init__(self, client: Redis, keys: Keys, *, fsync: bool = False) -> None:
        """If `fsync` is true, changes made by callers are on disk before the reply."""
        self._keys = keys
        self._outboxes = [key for kind in (DueKind.SESSION, DueKind.EXTRACTION) for key in outbox_keys(keys, kind).values()]
        self._write = Script(client, "sessions/session_write", fsync=fsync)
        self._data = Script(client, "sessions/session_data", fsync=fsync)
        self._delete = Script(client, "sessions/session_delete", fsync=fsync)
        self._settle = Script(client, "sessions/session_settle")
        self._set_aside = Script(client, "sessions/session_set_aside")
        self._journal = Script(client, "sessions/session_journal")
        self._summary = Script(client, "sessions/session_summary")
        self._strike = Script(client, "sessions/session_strike", fsync=fsync)

    async def write_session(
        self,
        k: SessionKeys,
        user_waiting: str | None,
        change: Mapping[str, Any],
        guard: Guard,
        messages: Sequence[Arg],
        promoted: Sequence[int],
        *,
        anew: bool = False,
    ) -> SessionStamp:
        """Write a session with `session_write.lua`.

        `change` contains the script's arguments; `guard` identifies the owner.

        `promoted` lists the positions of memories to promote. If `anew` is true, the messages replace the session and
        its pending work in one step. Raises ErasureUnderWay, MessageIdsReused, VersionMismatch, IdTaken, TooLarge,
        BadInput or Forbidden.
        """
        reply = await self._write(
            k,
            session_due=self._keys.due(DueKind.SESSION),
            extraction_due=self._keys.due(DueKind.EXTRACTION),
            wake=self._keys.wake,
            user_waiting=user_waiting or k.meta,
            set_aside=k.set_aside,
            outboxes=self._outboxes if anew else (),
            root=self._keys.root,
            guard=guard,
            new_messages=messages,
            **change,
        )
        _refuse_mismatch(reply)
        if reply[0] == b"agent":
            raise agent_refusal()
        if reply[0] == b"reused":
            raise MessageIdsReused(list(map(int, reply[1:])))
        if reply[0] == b"taken":
            raise IdTaken([], field=f"memories.{promoted[int(reply[1])]}.id")
        if reply[0] == b"full":
            most = change["max_messages"]
            message = (
                f"messages: a session holds {most} messages at most (MAX_SESSION_MESSAGES), this one has {int(reply[1])}: begin another"
            )
            raise TooLarge(message, field="messages", limit=most)
        if reply[0] == b"empty":
            raise BadInput(
                "must not be blank: give at least one character that is not white space", field=f"messages.{int(reply[1])}.content"
            )
        _, version, tokens, count, added, epoch, created, said_created, restored = reply
        kept_beside = list(zip(map(int, restored[::2]), restored[1::2], strict=True))
        return SessionStamp(
            int(version), int(tokens), int(count), int(added), epoch.decode(), int(created), said_created.decode() or None, kept_beside
        )

    async def merge_data(self, meta: str, guard: Guard, if_match: str | None, patch: str) -> int | None:
        """Merge a patch into a session's data. Return the new version, or None if the session is missing.

        Raises VersionMismatch or ErasureUnderWay.
        """
        reply = await self._data(meta=meta, guard=guard, if_match=if_match, json=patch)
        _refuse_mismatch(reply)
        return None if reply[0] == b"missing" else int(reply[1])

    async def delete_session(self, k: SessionKeys, user_waiting: str | None, epoch: str | None, *, only_work: bool = False) -> bool:
        """Delete a session and its pending work, or only the work if `only_work` is true.

        Return True if the session existed. If an `epoch` is given and the session now has another epoch, delete nothing
        and return False.
        """
        reply = await self._delete(
            k,
            set_aside=k.set_aside,
            user_waiting=user_waiting or k.meta,
            outboxes=self._outboxes,
            epoch=epoch,
            only_work=only_work,
        )
        return bool(reply)

    async def settle_session(self, k: SessionKeys, user_waiting: str | None, batch: str | None) -> bool:
        """End the set-aside batch with this cursor, if given.

        Then delete the record of pending work if no work is left.

        Return True if no work is left.
        """
        reply = await self._settle(
            k, set_aside=k.set_aside, user_waiting=user_waiting or k.meta, **outbox_keys(self._keys, DueKind.EXTRACTION), batch=batch
        )
        return bool(reply)

    async def set_batch_aside(self, k: SessionKeys, batch: JournalBatch, reason: str | None) -> bool:
        """Set aside a batch that extraction has given up on. Return False if the session changed."""
        own = self._keys.session(f"{k.sid}.{batch.cursor}")
        due, _, reasons, dead = outbox_keys(self._keys, DueKind.EXTRACTION).values()
        reply = await self._set_aside(
            k,
            batch_journal=own.journal,
            batch_list=own.journal_list,
            set_aside=k.set_aside,
            due=due,
            reasons=reasons,
            dead=dead,
            wake=self._keys.wake,
            epoch=batch.epoch,
            cursor=batch.cursor,
            cursor_end=batch.cursor_end,
            context=batch.context,
            reason=reason,
            never_ended=NEVER_ENDED,
        )
        return bool(reply)

    async def read_journal(
        self, k: SessionKeys, cursor: str, limit: int, context: int
    ) -> tuple[dict[str, str], list[bytes], dict[str, str]]:
        """Return the journal's fields, its entries from `context` messages before the cursor, and its memories."""
        fields, entries, own = await self._journal(k, cursor=cursor, limit=limit, context=context)
        return _pairs(fields), entries, _pairs(own)

    async def apply_summary(self, k: SessionKeys, fence: str, count: int, context: str, context_tokens: int, remembered_ids: int) -> bool:
        """Replace the `count` oldest messages with a summary. Return False if the session changed."""
        reply = await self._summary(
            k, fence=fence, count=count, context=context, context_tokens=context_tokens, remembered_ids=remembered_ids
        )
        return bool(reply)

    async def strike_messages(self, k: SessionKeys, epoch: str, fence: str, numbers: Sequence[int], *, drop_summary: bool) -> bool:
        """Remove messages, and also the summary if `drop_summary` is true. Return False if the session changed."""
        reply = await self._strike(k, epoch=epoch, fence=fence, drop_summary=drop_summary, numbers=numbers)
        return bool(reply)


def _pairs(flat: Sequence[bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in zip(flat[::2], flat[1::2], strict=True)}


def _refuse_mismatch(reply: Any) -> None:
    if reply[0] == b"mismatch":
        current = int(reply[1])
        raise VersionMismatch(f"If-Match names another version than the stored one ({current or 'none'})", current=current)
