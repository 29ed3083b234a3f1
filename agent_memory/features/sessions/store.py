"""Store sessions in Redis. Each write runs as one script.

Fences prevent late background tasks from overwriting changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redisvl.query import FilterQuery

from agent_memory.features.memories.records import message_memory_id, one_owner_each, owner_name, with_session_owner
from agent_memory.features.sessions.agent_sessions import permit_session_agents, reached_sessions
from agent_memory.features.sessions.codec import (
    SessionState,
    SessionTurns,
    StoredMessage,
    content_mark,
    decode_entry,
    decode_session,
    decode_turn,
    encode_own,
)
from agent_memory.features.sessions.message_ids import with_other_id
from agent_memory.features.sessions.session_write import (
    IMPORT_FIELD,
    REMEMBERED_IDS,
    MessageIdsReused,
    MessagesRemembered,
    SessionStamp,
    SessionWrite,
    micros,
    read_stamp,
    refuse_mismatch,
    write_arguments,
)
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.input.work import json_work, memories_work, messages_work
from agent_memory.foundation.core.permissions import permit_owner, permit_session, reaches_session_of
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.erasures import Guard, guard_of
from agent_memory.foundation.storage.keyspace import Keys, SessionKeys, untag
from agent_memory.foundation.storage.lua_files import load
from agent_memory.foundation.storage.scripts import NEVER_ENDED, Arg, Script, compact, outbox_keys
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import session_index_name
from agent_memory.foundation.storage.search.queries import search
from agent_memory.foundation.storage.search.results import Hit
from agent_memory.foundation.text.chat_messages import whole_window
from agent_memory.foundation.text.cleaning.context_blocks import ContextBlocks
from agent_memory_client.models import MemoryStrategyConfig, MemoryTypeEnum

_WINDOW = load("sessions/session_window")
# How many processed messages a journal keeps as context.
JOURNAL_CONTEXT = 10
# How many other ids to try, because a new id may also be in use.
_OTHER_IDS = 8
_SHOWN_FIELDS = ("sid", "ns", "us", "ctx", "ag")
# How many messages to read before a window, because they may contain tool calls that the window answers.
_BEFORE = 16
_ALL_BEFORE = 2**31


@dataclass(slots=True)
class TokenWindow:
    """A token limit for a session's newest messages. Each message costs `overhead` extra tokens.

    If `tokens` is None, the session's own window applies, or the default if it has none.
    """

    tokens: int | None
    default: int
    overhead: int = 0


@dataclass(frozen=True, slots=True)
class Journal:
    """A session's pending work.

    `before` contains earlier messages for context. `own` maps ids to the JSON of memories to promote.
    """

    tenant: str
    ref: SessionRef
    epoch: str
    start: int
    end: int
    before: list[StoredMessage]
    waiting: list[StoredMessage]
    own: dict[str, str]
    strategy: MemoryStrategyConfig

    @property
    def complete(self) -> bool:
        """True if `waiting` contains all pending messages."""
        return self.start + len(self.waiting) >= self.end

    def without(self, blocks: ContextBlocks) -> Journal:
        """Return the journal stripped of text in `blocks`."""
        return replace(self, before=outside_blocks(self.before, blocks), waiting=outside_blocks(self.waiting, blocks))


@dataclass(frozen=True, slots=True)
class SessionEpoch:
    """A session's identity from creation to deletion."""

    sid: str
    epoch: str
    namespace: str | None
    user_id: str | None


class SessionStore:
    def __init__(self, client: Redis, keys: Keys, *, fsync: bool = False) -> None:
        """If `fsync` is true, changes are written to disk before the reply."""
        self._client = client
        self._keys = keys
        self._outboxes = [key for kind in (DueKind.SESSION, DueKind.EXTRACTION) for key in outbox_keys(keys, kind).values()]
        self._write_script = Script(client, "sessions/session_write", fsync=fsync)
        self._data_script = Script(client, "sessions/session_data", fsync=fsync)
        self._delete_script = Script(client, "sessions/session_delete", fsync=fsync)
        self._settle_script = Script(client, "sessions/session_settle")
        self._dead_batch_script = Script(client, "sessions/session_dead_batch")
        self._journal_script = Script(client, "sessions/session_journal")
        self._summary_script = Script(client, "sessions/session_summary")
        self._pictures_script = Script(client, "sessions/session_pictures")
        self._strike_script = Script(client, "sessions/session_strike", fsync=fsync)

    def _sid(self, scope: Scope, ref: SessionRef, *, write: bool = False) -> str:
        """Return a session's key name. Raises Forbidden."""
        permit_session(scope, ref, write=write)
        return self._keys.sid(scope.tenant, ref)

    async def write(self, scope: Scope, ref: SessionRef, change: SessionWrite) -> SessionStamp:
        """Replace a session or append to it, and schedule the follow-up work.

        Unchanged memories are not promoted again. If Forbidden or IdTaken is raised, nothing is
        written. Also raises VersionMismatch, BadInput or RedisUnavailable.
        """
        k = self._keys.session(self._sid(scope, ref, write=True))
        await run_in_thread(lambda: permit_own(scope, ref, change), memories_work(change.memories))
        for _ in range(_OTHER_IDS):
            try:
                return await self._write(scope, ref, k, change)
            except MessageIdsReused as reused:
                for position in reused.positions:
                    new = change.messages[position]
                    new.message = with_other_id(new.message)
            except MessagesRemembered as remembered:
                assert change.compare is not None
                await change.compare([change.messages[position] for position in remembered.positions])
        raise BadInput("names other messages of the session: give each message an id of its own", field="messages")

    async def _write(self, scope: Scope, ref: SessionRef, k: SessionKeys, change: SessionWrite) -> SessionStamp:
        # If several memories have the same id, the last one wins.
        promoted = {change.memories[position].id: position for position in change.waiting}

        def encode() -> tuple[list[Arg], dict[str, Any]]:
            arguments = write_arguments(scope, ref, change)
            arguments["fields"] |= self._own(scope, ref, change, promoted)
            if change.compare is not None:
                names = [None if new.is_compared else message_memory_id(ref, new.message.id) for new in change.messages]
                arguments["fields"]["mids"] = ["" if name is None else self._keys.mid(scope.tenant, name) for name in names]
            return [part for new in change.messages for part in new.arguments()], arguments

        work = messages_work(new.message for new in change.messages) + memories_work(change.memories) + json_work(change.data)
        args, arguments = await run_in_thread(encode, work)
        reply = await self._write_script(
            k,
            session_due=self._keys.due(DueKind.SESSION),
            extraction_due=self._keys.due(DueKind.EXTRACTION),
            wake=self._keys.wake,
            user_waiting=self._user_waiting(k, scope.tenant, ref.user_id),
            dead_batches=k.dead_batches,
            outboxes=self._outboxes if change.replaces else (),
            root=self._keys.root,
            guard=self._guard(scope, ref, change.agent_id),
            new_messages=args,
            **arguments,
        )
        return read_stamp(reply, list(promoted.values()))

    def _guard(self, scope: Scope, ref: SessionRef, agent_id: str | None = None) -> Guard:
        return guard_of(self._keys.root, scope.tenant, ref.namespace, ref.user_id, ref.session_id, agent_id)

    def _user_waiting(self, k: SessionKeys, tenant: str, user_id: str | None) -> str:
        return k.meta if user_id is None else self._keys.waiting(tenant, user_id)

    def _own(self, scope: Scope, ref: SessionRef, change: SessionWrite, promoted: Mapping[str, int]) -> dict[str, Any]:
        """Return script arguments for the memories to promote. `promoted` maps ids to positions."""
        own: list[str] = []
        for name, position in promoted.items():
            record = change.memories[position]
            created = micros(record.created_at) if "created_at" in record.model_fields_set else ""
            own += [
                name,
                encode_own(record, scope),
                self._keys.mid(scope.tenant, name),
                owner_name(with_session_owner(ref, record)),
                created,
            ]
        memories = [part for record in change.memories for part in (record.id, content_mark(record), micros(record.created_at))]
        return {"to_promote": own, "memories": memories}

    async def get(self, scope: Scope, ref: SessionRef, last: int | None = None, window: TokenWindow | None = None) -> SessionState | None:
        """Return a session with its `last` messages or, if None, as many as `window` allows."""
        k, state = self._keys.session(self._sid(scope, ref)), None
        for before in (_BEFORE, _ALL_BEFORE):
            replies = await read(self._client, lambda pipe, n=before: _queue_read(pipe, k, last, window, n))
            state = _session(scope, replies, window)
            if state is None or not state.parted:
                break
        return state

    async def get_many(self, scope: Scope, refs: Sequence[SessionRef]) -> list[SessionState | None]:
        """Return sessions with all their messages, or None for each missing session."""
        keys = [self._keys.session(self._sid(scope, ref)) for ref in refs]
        replies = await read(self._client, lambda pipe: [_queue_read(pipe, k, None) for k in keys])
        return [_session(scope, replies[start : start + 3], None) for start in range(0, len(replies), 3)]

    def queue_turns(self, pipe: Pipeline, scope: Scope, ref: SessionRef, window: TokenWindow, before: int = _BEFORE) -> None:
        """Queue a read for a prompt. Pass the two replies to `parse_turns`."""
        k = self._keys.session(self._sid(scope, ref))
        pipe.execute_command("HMGET", k.meta, *_SHOWN_FIELDS)
        _queue_window(pipe, k, window, before)

    @staticmethod
    def parse_turns(scope: Scope, replies: Sequence[Any]) -> SessionTurns | None:
        """Parse `queue_turns` replies. Return None if the session is missing or not accessible."""
        (session, namespace, user, context, agent), (total, fit, *entries) = replies
        if session is None or not reaches_session_of(scope, None if agent is None else agent.decode()):
            return None
        ref = SessionRef(session.decode(), None if namespace is None else namespace.decode(), None if user is None else user.decode())
        turns, parted = whole_window(list(map(decode_turn, reversed(entries))), fit, total)
        return SessionTurns(ref, None if context is None else context.decode(), turns, total, parted)

    async def turns(self, scope: Scope, ref: SessionRef, window: TokenWindow) -> SessionTurns | None:
        """Return the part of a session shown in a prompt."""
        state: SessionTurns | None = None
        for before in (_BEFORE, _ALL_BEFORE):
            state = self.parse_turns(scope, await read(self._client, lambda pipe, n=before: self.queue_turns(pipe, scope, ref, window, n)))
            if state is None or not state.parted:
                break
        return state

    async def procedural_memories(self, scope: Scope, ref: SessionRef) -> set[str]:
        meta = self._keys.session(self._sid(scope, ref)).meta
        (raw,) = await read(self._client, lambda pipe: pipe.hget(meta, "mems"))
        return {memory["id"] for memory in json.loads(raw or "[]") if memory["memory_type"] == MemoryTypeEnum.PROCEDURAL}

    async def find(self, scope: Scope, session_id: str, namespace: str | None, user_id: str | None) -> list[SessionRef]:
        """Return up to two sessions with this id. A namespace or user of None matches any value."""
        clause = filters.session_where(scope, session_id=session_id, namespace=namespace, user_id=user_id)
        return (await self._search(clause, 0, 2))[1]

    async def find_only(self, scope: Scope, ref: SessionRef) -> SessionRef | None:
        """Return the only session that `find` returns, or None if there are zero or several."""
        refs = await self.find(scope, ref.session_id, ref.namespace, ref.user_id)
        return refs[0] if len(refs) == 1 else None

    async def list(self, scope: Scope, namespace: str | None, user_id: str | None, offset: int, limit: int) -> tuple[int, list[SessionRef]]:
        """Return the number of matching sessions and a page of accessible sessions, oldest first."""
        total, refs = await self._search(filters.session_where(scope, namespace=namespace, user_id=user_id), offset, limit)
        return total, await reached_sessions(self._client, self._keys, scope, refs)

    async def _search(self, clause: str, offset: int, limit: int) -> tuple[int, list[SessionRef]]:
        query = FilterQuery(clause, return_fields=["s", "ns", "u"], sort_by=("c", "ASC"))
        query.paging(offset, limit)
        hits = await search(self._client, session_index_name(self._keys), query)
        refs = [SessionRef(fields["s"], fields.get("ns"), fields.get("u")) for fields in map(_identity, hits.hits) if "s" in fields]
        return hits.total, refs

    async def merge_data(self, scope: Scope, ref: SessionRef, patch: dict[str, Any], if_match: str | None) -> int | None:
        """Atomically apply a merge patch (RFC 7396) to `data`.

        Return the new version, or None if the session is missing. Raises VersionMismatch.
        """
        meta = self._keys.session(self._sid(scope, ref, write=True)).meta
        await permit_session_agents(self._client, self._keys, scope, ref)
        reply = await self._data_script(meta=meta, guard=self._guard(scope, ref), if_match=if_match, json=compact(patch))
        refuse_mismatch(reply)
        return None if reply[0] == b"missing" else int(reply[1])

    async def delete(self, scope: Scope, ref: SessionRef, *, only_work: bool = False) -> bool:
        """Delete a session and its pending work, or just the work if `only_work` is true.

        Return True if the session existed. Promoted memories are kept.
        """
        sid = self._sid(scope, ref, write=True)
        await permit_session_agents(self._client, self._keys, scope, ref)
        return await self._delete(scope, sid, ref.user_id, None, only_work=only_work)

    async def delete_life(self, scope: Scope, life: SessionEpoch) -> bool:
        """Delete a session. Return False if it has been deleted and recreated since."""
        return await self._delete(scope, life.sid, life.user_id, life.epoch)

    async def _delete(self, scope: Scope, sid: str, user_id: str | None, epoch: str | None, *, only_work: bool = False) -> bool:
        k = self._keys.session(sid)
        user_waiting = self._user_waiting(k, scope.tenant, user_id)
        more = {"dead_batches": k.dead_batches, "user_waiting": user_waiting, "outboxes": self._outboxes}
        return bool(await self._delete_script(k, **more, epoch=epoch, only_work=only_work))

    def sid(self, scope: Scope, ref: SessionRef) -> str:
        return self._keys.sid(scope.tenant, ref)

    async def waiting(self, scope: Scope, user_id: str) -> Sequence[str]:
        """Return the key names of a user's sessions with pending work, including deleted ones."""
        key = self._keys.waiting(scope.tenant, user_id)
        return [sid.decode() for sid in (await read(self._client, lambda pipe: pipe.zrange(key, 0, -1)))[0]]

    async def lives(self, scope: Scope, sids: Sequence[str]) -> list[SessionEpoch]:
        """Return the given sessions that exist or have pending or set-aside work."""
        names = ("tn", "ns", "us", "ep")

        def build(pipe: Pipeline) -> None:
            for sid in sids:
                pipe.hmget(self._keys.session(sid).meta, names)
                pipe.hmget(self._keys.session(sid).journal, names)
                pipe.smembers(self._keys.session(sid).dead_batches)

        rows = await read(self._client, build) if sids else []
        epochs: list[SessionEpoch] = []
        for sid, meta, journal, batches in zip(sids, rows[::3], rows[1::3], rows[2::3], strict=True):
            fields = meta if meta[3] else journal
            if not fields[3] and batches:
                batch = self._keys.session(f"{sid}.{min(batches).decode()}").journal
                fields = (await read(self._client, lambda pipe, n=batch: pipe.hmget(n, names)))[0]
            tenant, namespace, user, epoch = (None if value is None else value.decode() for value in fields)
            if epoch is not None and tenant == scope.tenant:
                epochs.append(SessionEpoch(sid, epoch, namespace, user))
        return epochs

    async def journal(self, sid: str, cursor: str, limit: int) -> Journal | None:
        """Return the journal with up to `limit` messages after a cursor, or None if it is missing.

        The cursor is "jp" for promotion and "je" for extraction.
        """
        k = self._keys.session(sid)
        fields, entries, own = await self._journal_script(k, cursor=cursor, limit=limit, context=JOURNAL_CONTEXT)
        raw = _pairs(fields)
        if not raw:
            return None
        start = int(raw[cursor])
        messages = [decode_entry(entry) for entry in entries]
        return Journal(
            tenant=raw["tn"],
            ref=SessionRef(raw["sid"], raw.get("ns"), raw.get("us")),
            epoch=raw["ep"],
            start=start,
            end=int(raw["sq"]),
            before=[m for m in messages if m.seq <= start],
            waiting=[m for m in messages if m.seq > start],
            own=_pairs(own),
            strategy=MemoryStrategyConfig.model_validate_json(raw["st"]) if "st" in raw else MemoryStrategyConfig(),
        )

    async def owner(self, sid: str) -> tuple[str, str | None] | None:
        """Return a journal's tenant and user, or None if it does not exist."""
        tenant, user = (await read(self._client, lambda pipe: pipe.hmget(self._keys.session(sid).journal, ["tn", "us"])))[0]
        return None if tenant is None else (tenant.decode(), None if user is None else user.decode())

    async def settle(self, sid: str, tenant: str, user_id: str | None, *, batch: str | None = None) -> None:
        """Delete the set-aside `batch`, and the record of pending work if no work is left."""
        cursor = None if batch is None else batch.partition(".")[2]
        k = self._keys.session(sid)
        user_waiting = self._user_waiting(k, tenant, user_id)
        outbox = outbox_keys(self._keys, DueKind.EXTRACTION)
        await self._settle_script(k, dead_batches=k.dead_batches, user_waiting=user_waiting, **outbox, batch=cursor)

    async def move_to_dead_batch(self, sid: str, journal: Journal, count: int, reason: str = "") -> bool:
        """Move the first `count` messages to a dead batch. Return False if the session changed.

        If `reason` is empty, the last attempt's reason is kept.
        """
        k, own = self._keys.session(sid), self._keys.session(f"{sid}.{journal.start}")
        reply = await self._dead_batch_script(
            k,
            batch_journal=own.journal,
            batch_list=own.journal_list,
            dead_batches=k.dead_batches,
            **outbox_keys(self._keys, DueKind.EXTRACTION),
            wake=self._keys.wake,
            epoch=journal.epoch,
            cursor=journal.start,
            cursor_end=journal.start + count,
            context=JOURNAL_CONTEXT,
            reason=reason[:1000] or None,
            never_ended=NEVER_ENDED,
        )
        return bool(reply)

    async def by_sid(self, sid: str, last: int | None = None) -> tuple[str, SessionState] | None:
        """Return a session's tenant and state by key name.

        If `last` is set, include only that many of the newest messages.
        """
        meta, entries, cursors = await read(self._client, lambda pipe: _queue_read(pipe, self._keys.session(sid), last))
        state = decode_session(meta, entries, cursors)
        return None if state is None else (meta[b"tn"].decode(), state)

    async def apply_summary(self, sid: str, fence: str, count: int, context: str, context_tokens: int) -> bool:
        """Replace the `count` oldest messages with a summary. Return False if the session changed."""
        k = self._keys.session(sid)
        sizes = {"count": count, "context_tokens": context_tokens, "remembered_ids": REMEMBERED_IDS}
        return bool(await self._summary_script(k, fence=fence, context=context, **sizes))

    async def note_pictures(self, sid: str, epoch: str, seen_to: int) -> bool:
        """Record that images up to the message `seen_to` have been seen.

        Return False if the session was replaced.
        """
        return bool(await self._pictures_script(meta=self._keys.session(sid).meta, epoch=epoch, seen_to=seen_to))

    async def import_sources(self, scope: Scope, refs: Sequence[SessionRef]) -> list[str | None]:
        """Return each session's import source, or None if the session is missing.

        The source is "" if the session was not imported or has changed since.
        """
        metas = [self._keys.session(self.sid(scope, ref)).meta for ref in refs]
        rows = await read(self._client, lambda pipe: [pipe.hmget(meta, ["v", IMPORT_FIELD]) for meta in metas]) if metas else []
        return [None if version is None else "" if mark is None else untag(mark.decode()) for version, mark in rows]

    async def strike(self, scope: Scope, ref: SessionRef, epoch: str, fence: str, seqs: Sequence[int], *, drop_context: bool) -> bool:
        """Remove messages, and the summary if `drop_context` is true.

        Return False if the session changed.
        """
        k = self._keys.session(self._sid(scope, ref, write=True))
        more = {"dead_batches": k.dead_batches, "epoch": epoch, "fence": fence}
        return bool(await self._strike_script(k, **more, drop_summary=drop_context, numbers=seqs))


def _queue_read(pipe: Pipeline, k: SessionKeys, last: int | None, window: TokenWindow | None = None, before: int = _BEFORE) -> None:
    """Queue the commands that read a session. They return three replies."""
    pipe.hgetall(k.meta)
    if window is None:
        pipe.lrange(k.messages, -last if last else 0, -1)
    else:
        _queue_window(pipe, k, window, before)
    pipe.hmget(k.journal, ["jp", "je"])


def _queue_window(pipe: Pipeline, k: SessionKeys, window: TokenWindow, before: int) -> None:
    sizes = {"window": window.tokens, "default_window": window.default, "overhead": window.overhead, "most_before": before}
    pipe.execute_command(*_WINDOW.read_only(k, **sizes))


def _pairs(flat: Sequence[bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in zip(flat[::2], flat[1::2], strict=True)}


def _session(scope: Scope, replies: Sequence[Any], window: TokenWindow | None) -> SessionState | None:
    """Parse these replies. Return None if the session is missing or not accessible."""
    entries = replies[1] if window is None else replies[1][:1:-1]
    state = decode_session(replies[0], entries, replies[2])
    if state is None or not reaches_session_of(scope, state.agent_id):
        return None
    if window is None:
        return state
    total, fit = replies[1][:2]
    messages, parted = whole_window(state.messages, fit, total)
    return replace(state, messages=messages, parted=parted)


def permit_own(scope: Scope, ref: SessionRef, change: SessionWrite) -> None:
    """Raise Forbidden or IdTaken unless the writer can create all memories to promote."""
    placed = [(position, with_session_owner(ref, change.memories[position])) for position in change.waiting]
    for position, record in placed:
        permit_owner(scope, record, f"memories.{position}")
    one_owner_each(placed)


def outside_blocks(messages: Sequence[StoredMessage], blocks: ContextBlocks) -> list[StoredMessage]:
    """Return the messages stripped of text in `blocks`, which must not become memories."""
    return [_outside(stored, blocks) for stored in messages]


def _outside(stored: StoredMessage, blocks: ContextBlocks) -> StoredMessage:
    content = stored.message.content
    if (outside := blocks.outside(content)) is content:
        return stored
    return stored._replace(message=stored.message.model_copy(update={"content": outside}))


def _identity(hit: Hit) -> dict[str, str]:
    return {name.decode(): untag(value.decode()) for name, value in hit.fields.items() if name in (b"s", b"ns", b"u")}
