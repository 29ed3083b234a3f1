"""Sessions in Redis: written by one script each, read in one round trip, changed by background work only where nothing moved on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redisvl.query import FilterQuery

from agent_memory.features.memories.owners import one_owner_each, owner_name, with_session_owner
from agent_memory.features.sessions.agent_reach import permit_session_agents, reached_sessions
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
from agent_memory.features.sessions.scripts import JournalBatch, MessageIdsReused, SessionScripts, SessionStamp, queue_window
from agent_memory.features.sessions.session_write import REMEMBERED_IDS, SessionWrite, micros, write_arguments
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.input.work import json_work, memories_work, messages_work
from agent_memory.foundation.core.permissions import permit_owner, permit_session, reaches_session_of
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.llm.threads import aside
from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.erasures import Guard, guard_of
from agent_memory.foundation.storage.keyspace import Keys, SessionKeys, untag
from agent_memory.foundation.storage.scripts import Arg, compact
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import session_index_name
from agent_memory.foundation.storage.search.queries import search
from agent_memory.foundation.storage.search.results import Hit
from agent_memory.foundation.text.chat_messages import whole_window
from agent_memory.foundation.text.cleaning.context_blocks import ContextBlocks
from agent_memory_client.models import MemoryStrategyConfig, MemoryTypeEnum

# Messages that stay in a journal after they were worked off, as context for those that follow.
JOURNAL_CONTEXT = 10
# How often a message gets another id: what it got may be in use, too.
_OTHER_IDS = 8
_SHOWN = ("sid", "ns", "us", "ctx", "ag")
# How many messages before a window are looked at for the calls that its first ones answer.
_BEFORE = 16
_ALL_BEFORE = 2**31


@dataclass(slots=True)
class TokenWindow:
    """Tokens that the newest messages of a session may take, each with an `overhead`; None: the session's own window, else the default."""

    tokens: int | None
    default: int
    overhead: int = 0


@dataclass(frozen=True, slots=True)
class Journal:
    """What of a session waits for background work: `waiting` in order, a few messages `before` them, and its `own` memories by id."""

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
        """Whether `waiting` holds all that was written when it was read."""
        return self.start + len(self.waiting) >= self.end

    def without(self, blocks: ContextBlocks) -> Journal:
        """The journal as it is remembered: of its messages what stands outside of these blocks."""
        return replace(self, before=outside_blocks(self.before, blocks), waiting=outside_blocks(self.waiting, blocks))


@dataclass(frozen=True, slots=True)
class SessionEpoch:
    """One life of a session, from its making to its deletion; `sid` is its name in keys."""

    sid: str
    epoch: str
    namespace: str | None
    user_id: str | None


class SessionStore:
    """All reads and writes of sessions."""

    def __init__(self, client: Redis, keys: Keys, scripts: SessionScripts) -> None:
        self._client = client
        self._keys = keys
        self._scripts = scripts

    def _sid(self, scope: Scope, ref: SessionRef, *, write: bool = False) -> str:
        """The name of a session in keys. Raises Forbidden when it is out of the caller's reach."""
        permit_session(scope, ref, write=write)
        return self._keys.sid(scope.tenant, ref)

    async def write(self, scope: Scope, ref: SessionRef, change: SessionWrite) -> SessionStamp:
        """Replaces a session or appends to it, and marks the work that follows.

        The memories that it brings for promotion are checked as a creation of them would be: raises Forbidden for those that are out of
        reach, IdTaken for those whose id belongs to another owner; both name the field, and nothing is written. What the session holds
        unchanged already is not written again. Raises VersionMismatch, TooLarge, BadInput, RedisUnavailable.
        """
        k = self._keys.session(self._sid(scope, ref, write=True))
        await aside(lambda: permit_own(scope, ref, change), memories_work(change.memories))
        for _ in range(_OTHER_IDS):
            try:
                return await self._write(scope, ref, k, change)
            except MessageIdsReused as reused:
                for position in reused.positions:
                    new = change.messages[position]
                    new.message = with_other_id(new.message)
        raise BadInput("names other messages of the session: give each message an id of its own", field="messages")

    async def _write(self, scope: Scope, ref: SessionRef, k: SessionKeys, change: SessionWrite) -> SessionStamp:
        # Of several with one id the last one counts.
        promoted = {change.memories[position].id: position for position in change.waiting}

        def encode() -> tuple[list[Arg], dict[str, Any]]:
            arguments = write_arguments(scope, ref, change)
            arguments["fields"] |= self._own(scope, ref, change, promoted)
            return [part for new in change.messages for part in new.arguments()], arguments

        work = messages_work(new.message for new in change.messages) + memories_work(change.memories) + json_work(change.data)
        args, arguments = await aside(encode, work)
        user_waiting = self._user_waiting(scope.tenant, ref.user_id)
        guard = self._guard(scope, ref, change.agent_id)
        return await self._scripts.write_session(k, user_waiting, arguments, guard, args, list(promoted.values()), anew=change.anew)

    def _guard(self, scope: Scope, ref: SessionRef, agent_id: str | None = None) -> Guard:
        """What refuses a write to a session whose owner is being erased."""
        return guard_of(self._keys.root, scope.tenant, ref.namespace, ref.user_id, ref.session_id, agent_id)

    def _user_waiting(self, tenant: str, user_id: str | None) -> str | None:
        return None if user_id is None else self._keys.waiting(tenant, user_id)

    def _own(self, scope: Scope, ref: SessionRef, change: SessionWrite, promoted: Mapping[str, int]) -> dict[str, Any]:
        """What the script must know of the memories that a session holds, and of those that are to be promoted (id -> place)."""
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

    def queue_read(
        self, pipe: Pipeline, scope: Scope, ref: SessionRef, last: int | None, window: TokenWindow | None = None, before: int = _BEFORE
    ) -> Callable[[list[Any]], SessionState | None]:
        """Puts the read of a session with its last messages (None: all, or what fits into a window) on a pipeline; call the result with
        the next 3 replies."""
        k = self._keys.session(self._sid(scope, ref))
        pipe.hgetall(k.meta)
        if window is None:
            pipe.lrange(k.messages, -last if last else 0, -1)
        else:
            _queue_window(pipe, k, window, before)
        pipe.hmget(k.journal, ["jp", "je"])
        return lambda replies: _session(scope, replies, window)

    async def get(self, scope: Scope, ref: SessionRef, last: int | None = None, window: TokenWindow | None = None) -> SessionState | None:
        """The session with exactly this identity and its last messages (None: all of them, or those that fit into a window)."""
        state: SessionState | None = None
        for before in (_BEFORE, _ALL_BEFORE):
            parse: list[Callable[[list[Any]], SessionState | None]] = []
            replies = await read(self._client, lambda pipe, n=before, p=parse: p.append(self.queue_read(pipe, scope, ref, last, window, n)))
            state = parse[-1](replies)
            if state is None or not state.parted:
                break
        return state

    async def get_many(self, scope: Scope, refs: Sequence[SessionRef]) -> list[SessionState | None]:
        """The sessions with exactly these identities and all their messages, each None where there is none; one round trip."""
        parsers: list[Callable[[list[Any]], SessionState | None]] = []

        def build(pipe: Pipeline) -> None:
            parsers[:] = [self.queue_read(pipe, scope, ref, None) for ref in refs]

        replies = await read(self._client, build) if refs else []
        return [parse(replies[3 * index : 3 * index + 3]) for index, parse in enumerate(parsers)]

    def queue_turns(self, pipe: Pipeline, scope: Scope, ref: SessionRef, window: TokenWindow, before: int = _BEFORE) -> None:
        """Puts the read of what a prompt shows of a session on a pipeline; `parse_turns` takes the 2 replies."""
        k = self._keys.session(self._sid(scope, ref))
        pipe.execute_command("HMGET", k.meta, *_SHOWN)
        _queue_window(pipe, k, window, before)

    @staticmethod
    def parse_turns(scope: Scope, replies: Sequence[Any]) -> SessionTurns | None:
        """What `queue_turns` asked for; None when there is no such session for this caller."""
        (session, namespace, user, context, agent), (total, fit, *entries) = replies
        if session is None or not reaches_session_of(scope, None if agent is None else agent.decode()):
            return None
        ref = SessionRef(session.decode(), None if namespace is None else namespace.decode(), None if user is None else user.decode())
        turns, parted = whole_window(list(map(decode_turn, reversed(entries))), fit, total)
        return SessionTurns(ref, None if context is None else context.decode(), turns, total, parted)

    async def turns(self, scope: Scope, ref: SessionRef, window: TokenWindow) -> SessionTurns | None:
        """What a prompt shows of the session with exactly this identity."""
        state: SessionTurns | None = None
        for before in (_BEFORE, _ALL_BEFORE):
            state = self.parse_turns(scope, await read(self._client, lambda pipe, n=before: self.queue_turns(pipe, scope, ref, window, n)))
            if state is None or not state.parted:
                break
        return state

    async def procedural_memories(self, scope: Scope, ref: SessionRef) -> set[str]:
        """The ids of the session's own memories that are procedural."""
        meta = self._keys.session(self._sid(scope, ref)).meta
        (raw,) = await read(self._client, lambda pipe: pipe.hget(meta, "mems"))
        return {memory["id"] for memory in json.loads(raw or "[]") if memory["memory_type"] == MemoryTypeEnum.PROCEDURAL}

    async def find(self, scope: Scope, session_id: str, namespace: str | None, user_id: str | None) -> list[SessionRef]:
        """Up to two sessions of this id whose namespace and user are the given ones, where given."""
        clause = filters.session_where(scope, session_id=session_id, namespace=namespace, user_id=user_id)
        return (await self._search(clause, 0, 2))[1]

    async def list(self, scope: Scope, namespace: str | None, user_id: str | None, offset: int, limit: int) -> tuple[int, list[SessionRef]]:
        """How many sessions match, and a page of them, oldest first, without those of agents out of the caller's reach."""
        total, refs = await self._search(filters.session_where(scope, namespace=namespace, user_id=user_id), offset, limit)
        return total, await reached_sessions(self._client, self._keys, scope, refs)

    async def _search(self, clause: str, offset: int, limit: int) -> tuple[int, list[SessionRef]]:
        query = FilterQuery(clause, return_fields=["s", "ns", "u"], sort_by=("c", "ASC"))
        query.paging(offset, limit)
        hits = await search(self._client, session_index_name(self._keys), query)
        refs = [SessionRef(fields["s"], fields.get("ns"), fields.get("u")) for fields in map(_identity, hits.hits) if "s" in fields]
        return hits.total, refs

    async def set_data(self, scope: Scope, ref: SessionRef, data: dict[str, Any], if_match: str | None) -> int | None:
        """Replaces `data` alone; the new version, or None when there is no such session. Raises VersionMismatch."""
        return await self._write_data(scope, ref, data, if_match, merge=False)

    async def merge_data(self, scope: Scope, ref: SessionRef, patch: dict[str, Any], if_match: str | None) -> int | None:
        """Merges a patch (RFC 7396: null removes) into `data` in Redis, so that patches at the same time all take effect. As `set_data`."""
        return await self._write_data(scope, ref, patch, if_match, merge=True)

    async def _write_data(self, scope: Scope, ref: SessionRef, data: dict[str, Any], if_match: str | None, *, merge: bool) -> int | None:
        meta = self._keys.session(self._sid(scope, ref, write=True)).meta
        await permit_session_agents(self._client, self._keys, scope, ref)
        return await self._scripts.write_data(meta, self._guard(scope, ref), if_match, compact(data), merge=merge)

    async def delete(self, scope: Scope, ref: SessionRef, *, only_work: bool = False) -> bool:
        """Forgets a session (or `only_work`) and all pending work on it; what was promoted before stays. True when it was there."""
        k = self._keys.session(self._sid(scope, ref, write=True))
        await permit_session_agents(self._client, self._keys, scope, ref)
        return await self._scripts.delete_session(k, self._user_waiting(scope.tenant, ref.user_id), None, only_work=only_work)

    async def delete_life(self, scope: Scope, life: SessionEpoch) -> bool:
        """Forgets a session as `delete` does, if it is still the one that was seen: one that began anew stays."""
        k = self._keys.session(life.sid)
        return await self._scripts.delete_session(k, self._user_waiting(scope.tenant, life.user_id), life.epoch)

    def sid(self, scope: Scope, ref: SessionRef) -> str:
        """The name of a session in keys."""
        return self._keys.sid(scope.tenant, ref)

    async def waiting(self, scope: Scope, user_id: str) -> Sequence[str]:
        """The sessions of a user with work that waits, also those that have come to their end."""
        key = self._keys.waiting(scope.tenant, user_id)
        return [sid.decode() for sid in (await read(self._client, lambda pipe: pipe.zrange(key, 0, -1)))[0]]

    async def lives(self, scope: Scope, sids: Sequence[str]) -> list[SessionEpoch]:
        """Those of the sessions that are there, or of which something waits or was set aside."""
        names = ("tn", "ns", "us", "ep")

        def build(pipe: Pipeline) -> None:
            for sid in sids:
                pipe.hmget(self._keys.session(sid).meta, names)
                pipe.hmget(self._keys.session(sid).journal, names)
                pipe.smembers(self._keys.session(sid).aside)

        rows = await read(self._client, build) if sids else []
        epochs: list[SessionEpoch] = []
        for sid, meta, journal, batches in zip(sids, rows[::3], rows[1::3], rows[2::3], strict=True):
            seen = meta if meta[3] else journal
            if not seen[3] and batches:
                batch = self._keys.session(f"{sid}.{min(batches).decode()}").journal
                seen = (await read(self._client, lambda pipe, n=batch: pipe.hmget(n, names)))[0]
            tenant, namespace, user, epoch = (None if value is None else value.decode() for value in seen)
            if epoch is not None and tenant == scope.tenant:
                epochs.append(SessionEpoch(sid, epoch, namespace, user))
        return epochs

    # For background work: sessions by their name in keys.

    async def journal(self, sid: str, cursor: str, limit: int) -> Journal | None:
        """What waits behind a cursor ("jp": promotion, "je": extraction), at most `limit` messages; None when there is no journal."""
        raw, entries, own = await self._scripts.read_journal(self._keys.session(sid), cursor, limit, JOURNAL_CONTEXT)
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
            own=own,
            strategy=MemoryStrategyConfig.model_validate_json(raw["st"]) if "st" in raw else MemoryStrategyConfig(),
        )

    async def owner(self, sid: str) -> tuple[str, str | None] | None:
        """The tenant and the user of what waits of a session, None without a journal."""
        tenant, user = (await read(self._client, lambda pipe: pipe.hmget(self._keys.session(sid).journal, ["tn", "us"])))[0]
        return None if tenant is None else (tenant.decode(), None if user is None else user.decode())

    async def settle(self, sid: str, tenant: str, user_id: str | None, *, batch: str | None = None) -> None:
        """After work on a session: when nothing of it waits any more, nothing says so any more.

        With a `batch` that was set aside, that one ends first: it is extracted after all, or nobody wants it.
        """
        cursor = None if batch is None else batch.partition(".")[2]
        await self._scripts.settle_session(self._keys.session(sid), self._user_waiting(tenant, user_id), cursor)

    async def set_aside(self, sid: str, journal: Journal, count: int, reason: str = "") -> bool:
        """Takes the first `count` waiting messages out of extraction's way: they become a dead batch. False when the session moved on.

        Without a `reason` it is that of the last try.
        """
        batch = JournalBatch(journal.epoch, journal.start, journal.start + count, JOURNAL_CONTEXT)
        return await self._scripts.set_batch_aside(self._keys.session(sid), batch, reason[:1000] or None)

    async def by_sid(self, sid: str, last: int | None = None) -> tuple[str, SessionState] | None:
        """The tenant and the session of a name in keys, with its last messages (None: all of them)."""
        k = self._keys.session(sid)

        def build(pipe: Pipeline) -> None:
            pipe.hgetall(k.meta)
            pipe.lrange(k.messages, -last if last else 0, -1)
            pipe.hmget(k.journal, ["jp", "je"])

        meta, entries, cursors = await read(self._client, build)
        state = decode_session(meta, entries, cursors)
        return None if state is None else (meta[b"tn"].decode(), state)

    async def apply_summary(self, sid: str, fence: str, count: int, context: str, context_tokens: int) -> bool:
        """Drops the `count` oldest messages and sets the context that stands for them; False when the session moved on meanwhile."""
        k = self._keys.session(sid)
        return await self._scripts.apply_summary(k, fence, count, context, context_tokens, REMEMBERED_IDS)

    async def strike(self, scope: Scope, ref: SessionRef, epoch: str, fence: str, seqs: Sequence[int], *, drop_context: bool) -> bool:
        """Takes messages out of a session for good, with its summary if asked to; False when the session moved on since it was read."""
        k = self._keys.session(self._sid(scope, ref, write=True))
        return await self._scripts.strike_messages(k, epoch, fence, seqs, drop_summary=drop_context)


def _queue_window(pipe: Pipeline, k: SessionKeys, window: TokenWindow, before: int) -> None:
    queue_window(pipe, k, window=window.tokens, default_window=window.default, overhead=window.overhead, most_before=before)


def _session(scope: Scope, replies: Sequence[Any], window: TokenWindow | None) -> SessionState | None:
    """The session of the replies of `queue_read`, if the caller reaches its agent."""
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
    """Raises Forbidden or IdTaken, naming its field, for a memory of the session that its writer could not create."""
    placed = [(position, with_session_owner(ref, change.memories[position])) for position in change.waiting]
    for position, record in placed:
        permit_owner(scope, record, f"memories.{position}")
    one_owner_each(placed)


def outside_blocks(messages: Sequence[StoredMessage], blocks: ContextBlocks) -> list[StoredMessage]:
    """The messages with what stands outside of these blocks: what is remembered of them, or told in a summary."""
    return [_outside(stored, blocks) for stored in messages]


def _outside(stored: StoredMessage, blocks: ContextBlocks) -> StoredMessage:
    content = stored.message.content
    if (outside := blocks.outside(content)) is content:
        return stored
    return stored._replace(message=stored.message.model_copy(update={"content": outside}))


def _identity(hit: Hit) -> dict[str, str]:
    """The session, namespace and user of a document of the session index, by field."""
    return {name.decode(): untag(value.decode()) for name, value in hit.fields.items() if name in (b"s", b"ns", b"u")}
