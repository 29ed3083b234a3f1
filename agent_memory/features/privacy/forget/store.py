"""Apply deletion plans atomically, and store receipts for undo."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from typing import Any, Literal, NamedTuple

from redis.asyncio import Redis

from agent_memory.features.memories.changes.store import CONVERSATION, ChangeStore, proposed_record
from agent_memory.features.memories.records import decode_memory, encode_memory
from agent_memory.features.memories.service import message_memory
from agent_memory.features.memories.steps import order_of
from agent_memory.features.memories.store import MemoryStore, evidence_positions
from agent_memory.features.privacy.forget.plan import Plan
from agent_memory.features.privacy.lineage import LineageMemory
from agent_memory.features.sessions.codec import decode_entry
from agent_memory.foundation.core.feature import AgentOwner, Owner
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.connection import Pipe, read, redis_errors
from agent_memory.foundation.storage.erasures import guard_of
from agent_memory.foundation.storage.keyspace import Keys, digest, tag, untag
from agent_memory.foundation.storage.scripts import Script, compact, outbox_keys
from agent_memory.foundation.text.retrieval_units import REACH, unit_terms
from agent_memory_client.models import ANSWER, Evidence, MemoryMessage, MemoryRecord

Clean = Callable[[LineageMemory, Evidence], Evidence]
IsFromSource = Callable[[MemoryRecord, str | None], bool]
"""Returns True if a memory comes from a source. The second argument is its import's name."""


class ReceiptHeader(NamedTuple):
    """A deletion's owner, time, actor and undo deadline."""

    namespace: str | None
    user_id: str | None
    at: datetime
    until: datetime
    actor: str | None


@dataclass(slots=True)
class ForgottenData:
    """The data saved for an undo or, if `undone` is true, the restored data."""

    header: ReceiptHeader
    undone: bool = False
    memories: list[MemoryRecord] = field(default_factory=list[MemoryRecord])
    messages: list[tuple[SessionRef, MemoryMessage]] = field(default_factory=list[tuple[SessionRef, MemoryMessage]])
    proposed: list[MemoryRecord] = field(default_factory=list[MemoryRecord])
    """Memories that the saved proposals would store."""
    summaries: list[tuple[SessionRef, str]] = field(default_factory=list[tuple[SessionRef, str]])
    imports: dict[str, str] = field(default_factory=dict[str, str])
    """Import names by memory id."""
    kept_newer: int = 0


class ForgetStore:
    def __init__(
        self, client: Redis, keys: Keys, memories: MemoryStore, changes: ChangeStore, *, undo_seconds: int, fsync: bool = False
    ) -> None:
        """Keep undo copies for `undo_seconds`, or keep none if it is 0."""
        self._client = client
        self._memories = memories
        self._keys = keys
        self._changes = changes
        self._undo_seconds = undo_seconds
        self._take = Script(client, "privacy/forget_take", fsync=fsync)
        self._undo = Script(client, "privacy/forget_undo", fsync=fsync)
        self._show = Script(client, "privacy/forget_show")
        self._drop_receipt = Script(client, "privacy/forget_drop", fsync=fsync)

    async def take(
        self, scope: Scope, owner: tuple[str | None, str | None], name: str, plan: Plan, clean: Clean, proposals: Sequence[str] = ()
    ) -> datetime | bool | None:
        """Apply a plan atomically. Return the undo deadline, or None if undo is disabled.

        Return False and change nothing if the data has changed since it was read.

        `owner` is the receipt's namespace and user. `proposals` lists the ids of proposed changes
        to delete.
        """
        positions = await self._positions(scope, plan)
        body = {
            "gone": [
                {
                    "mid": memory.mid,
                    "expect": _expect(memory),
                    "order": order_of(self._keys, scope.tenant, memory.versions[-1].record) or "",
                    "positions": positions[memory.mid],
                }
                for memory in plan.removed_memories.values()
            ],
            "dropped": [
                {"mid": each.memory.mid, "expect": _expect(each.memory), "versions": [str(version.version) for version in each.versions]}
                for each in plan.dropped
            ],
            "fields": [*await self._fields(plan, clean), *await self._terms(scope, plan, positions)],
            "proposals": list(proposals),
            "sessions": plan.sessions,
        }
        now = datetime.now(UTC)
        until = now + timedelta(seconds=self._undo_seconds) if self._undo_seconds else None
        namespace, user_id = owner
        header = {"t": tag(scope.tenant), "by": scope.actor or CONVERSATION}
        header |= {"at": now.isoformat(), "un": "" if until is None else until.isoformat()}
        header |= {name: value for name, value in (("ns", namespace), ("u", user_id)) if value is not None}
        if namespace is None and scope.namespaces is not None:
            header["nss"] = json.dumps(sorted(scope.namespaces))
        reply = await self._take(
            **outbox_keys(self._keys, DueKind.MEMORY),
            session_due=self._keys.due(DueKind.SESSION),
            wake=self._keys.wake,
            receipt=self._keys.forgetting(name),
            receipts=self._keys.forgettings(digest("forgettings", scope.tenant, user_id)),
            root=self._keys.root,
            reach=REACH,
            keeps=until is not None,
            name=name,
            undo_seconds=self._undo_seconds,
            header=[part for pair in header.items() for part in pair],
            plan=body,
        )
        return until if reply[0] == b"ok" else False

    async def _positions(self, scope: Scope, plan: Plan) -> dict[str, str]:
        memories = list(plan.removed_memories.values())
        pieces = await read(self._client, lambda pipe: [pipe.hgetall(self._keys.evidence(each.mid)) for each in memories])
        return {
            memory.mid: evidence_positions(self._keys, scope.tenant, memory.versions[-1].record, evidence)
            for memory, evidence in zip(memories, pieces, strict=True)
        }

    async def _fields(self, plan: Plan, clean: Clean) -> list[list[str]]:
        """Return the updated fields of memories whose evidence quotes deleted text."""
        fields: list[list[str]] = []
        for memory in plan.quoting:
            names = [f"m:{memory.mid}", f"h:{memory.mid}", *(f"h:{memory.mid}.{version.version}" for version in memory.past)]

            def build(pipe: Pipe, mid: str = memory.mid, names: Sequence[str] = names) -> None:
                pipe.hgetall(self._keys.evidence(mid))
                for name in names:
                    pipe.hget(self._keys.root + name, "j")

            evidence, *rows = await read(self._client, build)
            fields += await asyncio.to_thread(_cleaned, memory, evidence, [*zip(names, rows, strict=True)], clean)
        return fields

    async def _terms(self, scope: Scope, plan: Plan, positions: Mapping[str, str]) -> list[list[str]]:
        """Return index terms, without words from neighbors, for messages next to removed ones."""
        touched = list(plan.removed_memories.values())
        order_positions = [
            (order, memory.mid) for memory in touched if (order := order_of(self._keys, scope.tenant, memory.versions[-1].record))
        ]
        order_positions += [
            (order, mid) for lines in positions.values() for order, _, mid in (line.partition(" ") for line in lines.splitlines())
        ]

        ranks = await read(self._client, lambda pipe: [pipe.zrank(order, mid) for order, mid in order_positions])
        spans = [(order, rank) for (order, _), rank in zip(order_positions, ranks, strict=True) if rank is not None]

        def around(pipe: Pipe) -> None:
            for order, rank in spans:
                pipe.zrange(order, max(rank - REACH, 0), rank + REACH)

        names = {name.decode() for row in (await read(self._client, around) if spans else []) for name in row}
        others = list(names)
        # If a message became another memory's evidence, that memory is the neighbor in its place.
        aliases = await read(self._client, lambda pipe: [pipe.get(self._keys.alias(mid)) for mid in others]) if others else []
        names |= {raw.split(b" ", 1)[0].decode() for raw in aliases if raw is not None}
        mids = sorted(names - {memory.mid for memory in touched})
        rows = await read(self._client, lambda pipe: [pipe.hmget(self._keys.memory(mid), ["j", "k"]) for mid in mids]) if mids else []
        neighbor_rows = [(mid, raw, terms) for mid, (raw, terms) in zip(mids, rows, strict=True) if raw is not None and terms is not None]
        return await asyncio.to_thread(
            lambda: [[f"m:{mid}", "k", terms.decode(), unit_terms(decode_memory(raw), (), ())] for mid, raw, terms in neighbor_rows]
        )

    async def undo(self, scope: Scope, name: str) -> tuple[int, int, int] | None:
        """Restore a receipt's data. Idempotent. Raises ErasureUnderWay.

        Return how many memories and messages were restored, and how many memories were skipped
        because newer data replaced them. Return None if the receipt is missing, expired or not
        accessible.
        """
        header = await self._header(scope, name)
        if header is None:
            return None
        reply = await self._undo(
            **outbox_keys(self._keys, DueKind.MEMORY),
            session_due=self._keys.due(DueKind.SESSION),
            wake=self._keys.wake,
            receipt=self._keys.forgetting(name),
            root=self._keys.root,
            reach=REACH,
            guard=guard_of(self._keys.root, scope.tenant, header.namespace, header.user_id),
        )
        if reply[0] == b"gone":
            return None
        memories, messages, left = map(int, reply[1].split())
        return memories, messages, left

    async def show(self, scope: Scope, name: str) -> ForgottenData | None:
        """Return a receipt's data or, after an undo, the restored data that still exists.

        Return None in the same cases as `undo`. Raises ErasureUnderWay.
        """
        header = await self._header(scope, name)
        if header is None:
            return None
        guard = guard_of(self._keys.root, scope.tenant, header.namespace, header.user_id)
        state, *reply_parts = await self._show(receipt=self._keys.forgetting(name), root=self._keys.root, guard=guard)
        if state == b"gone":
            return None
        if state == b"undone":
            data = await self._restored(scope, header, reply_parts[0].decode().splitlines())
            data.kept_newer = int(reply_parts[1].split()[2])
            return data
        rows = [[None if value is None else value.decode() for value in row] for row in reply_parts[0]]
        return await asyncio.to_thread(_decode_receipt, header, rows)

    async def _header(self, scope: Scope, name: str) -> ReceiptHeader | None:
        """Return a receipt's header, or None if the caller may not undo it."""
        names = ["t", "ns", "u", "nss", "at", "un", "by"]
        row = (await read(self._client, lambda pipe: pipe.hmget(self._keys.forgetting(name), names)))[0]
        tenant, namespace, user, spaces, at, until, actor = (None if value is None else value.decode() for value in row)
        covers = scope.namespaces is None or namespace in scope.namespaces
        if not covers and spaces is not None and scope.namespaces is not None:
            covers = scope.namespaces.issuperset(json.loads(spaces))
        if tenant != tag(scope.tenant) or not covers or (scope.users is not None and user not in scope.users) or scope.agents is not None:
            return None
        return ReceiptHeader(namespace, user, datetime.fromisoformat(at or ""), datetime.fromisoformat(until or ""), actor)

    async def _restored(self, scope: Scope, header: ReceiptHeader, names: Sequence[str]) -> ForgottenData:
        data = ForgottenData(header, undone=True)
        lines = [name.split() for name in names]
        memories = await self._memories.find_by_mids(scope, [line[1] for line in lines if line[0] == "m"])
        data.memories += [memory.record for memory in memories if memory is not None]
        sids = list(dict.fromkeys(line[1] for line in lines if line[0] in "sc"))

        def build(pipe: Pipe) -> None:
            for sid in sids:
                pipe.hmget(self._keys.session(sid).meta, ["tn", "sid", "ns", "us", "ctx"])
                pipe.lrange(self._keys.session(sid).messages, 0, -1)

        rows = await read(self._client, build) if sids else []
        for sid, meta, entries in zip(sids, rows[::2], rows[1::2], strict=True):
            tenant, session, namespace, user, summary = (None if value is None else value.decode() for value in meta)
            if tenant != scope.tenant or session is None or not scope.reaches(namespace, user):
                continue
            ref, digests = SessionRef(session, namespace, user), {line[2] for line in lines if line[:2] == ["s", sid]}
            data.messages += [
                (ref, decode_entry(raw).message) for raw in entries if sha1(raw, usedforsecurity=False).hexdigest() in digests
            ]
            data.summaries += [(ref, summary)] if summary and ["c", sid] in lines else []
        return data

    async def erase_owner(self, scope: Scope, owner: Owner) -> Counter[str]:
        """Delete a user's undo copies and forget-request records.

        If the owner has a namespace, copies that cover all namespaces are deleted too.
        """
        await self._changes.erase_forgettings(scope, owner.namespace, owner.user_id)
        names = await self._names(scope, owner.user_id)
        rows = await read(self._client, lambda pipe: [pipe.hget(self._keys.forgetting(name), "ns") for name in names]) if names else []
        own_receipts = [
            name
            for name, namespace in zip(names, rows, strict=True)
            if owner.namespace is None or namespace is None or namespace.decode() == owner.namespace
        ]
        return await self._drop(scope, owner.user_id, own_receipts)

    async def erase_session(self, scope: Scope, session: SessionRef) -> Counter[str]:
        """Delete undo copies that contain the session's data, and end proposals made of it."""
        return await self._changes.end_session_proposals(scope, session) + await self.erase_session_copies(scope, session)

    async def erase_session_copies(self, scope: Scope, session: SessionRef) -> Counter[str]:
        """Delete undo copies that contain the session's data."""
        names = await self._names(scope, session.user_id)
        space = {} if session.namespace is None else {"ns": tag(session.namespace)}
        holder = {
            "fields": {"s": tag(session.session_id)} | space,
            "words": _spellings("session_id", session.session_id),
            "names": [self._keys.sid(scope.tenant, session)],
        }
        return await self._drop(scope, session.user_id, names, holder)

    async def erase_matching(self, scope: Scope, user_id: str | None, matches: Callable[[MemoryRecord], bool]) -> Counter[str]:
        """Delete the undo copies that contain a matching memory or message.

        If `user_id` is None, check the copies of all users. Raises ErasureUnderWay.
        """
        if user_id is None:
            names = [name async for page in self._changes.forgettings(scope) for name in page]
        else:
            names = await self._names(scope, user_id)
        counts: Counter[str] = Counter()
        for name in names:
            data = await self.show(Scope(scope.tenant), name)
            if data is not None and any(map(matches, _records_of(data))):
                counts += await self._drop(scope, data.header.user_id, [name])
        return counts

    async def erase_agent(self, scope: Scope, owner: AgentOwner) -> Counter[str]:
        """Delete all undo copies that contain the agent's data. This scans all receipts."""
        space = {} if owner.namespace is None else {"ns": tag(owner.namespace)}
        holder = {"fields": {"ag": tag(owner.agent_id)} | space, "words": _spellings("agent_id", owner.agent_id), "names": []}
        counts: Counter[str] = Counter()
        async for name, user in self._receipts():
            counts += await self._drop(scope, user, [name], holder)
        return counts

    async def purge_source(self, scope: Scope, owner: tuple[str | None, str | None], is_from_source: IsFromSource) -> Counter[str]:
        """Delete undo copies that contain data from a purged source. This scans all receipts.

        `owner` is a namespace and user, where None matches any value. Raises ErasureUnderWay.
        """
        namespace, user_id = owner
        counts: Counter[str] = Counter()
        async for name, user in self._receipts():
            data = await self.show(scope, name) if user_id in (None, user) else None
            if data is None or data.undone:
                continue
            if any(namespace in (None, each.namespace) and is_from_source(each, data.imports.get(each.id)) for each in _records_of(data)):
                counts += await self._drop(scope, user, [name])
        return counts

    async def _receipts(self) -> AsyncIterator[tuple[str, str | None]]:
        prefix = self._keys.forgetting("")
        with redis_errors():
            async for key in self._client.scan_iter(match=prefix.replace("{", "\\{") + "*", count=500):
                name = key.decode().removeprefix(prefix)
                receipt = self._keys.forgetting(name)
                user = (await read(self._client, lambda pipe, receipt=receipt: pipe.hget(receipt, "u")))[0]
                yield name, None if user is None else user.decode()

    async def _names(self, scope: Scope, user_id: str | None) -> list[str]:
        key = self._keys.forgettings(digest("forgettings", scope.tenant, user_id))
        return [name.decode() for name in (await read(self._client, lambda pipe: pipe.zrange(key, 0, -1)))[0]]

    async def _drop(self, scope: Scope, user_id: str | None, names: Sequence[str], holder: dict[str, Any] | None = None) -> Counter[str]:
        """Delete the receipts in `names`. If `holder` is given, skip receipts without its data."""
        receipts = self._keys.forgettings(digest("forgettings", scope.tenant, user_id))
        about: dict[str, Any] = {"receipts": receipts, "root": self._keys.root, "tenant": tag(scope.tenant), "holder": holder}
        removed = [await self._drop_receipt(receipt=self._keys.forgetting(name), name=name, **about) for name in names]
        return +Counter(forgettings=sum(removed))


def _spellings(name: str, value: str) -> list[str]:
    """Return a member of a JSON object as memories (without a space) and proposals spell it."""
    return [f'"{name}":{compact(value)}', f'"{name}": {json.dumps(value)}']


def _records_of(data: ForgottenData) -> list[MemoryRecord]:
    # The text does not matter here, and some messages have none.
    return [*data.memories, *data.proposed, *(message_memory(ref, message, "-") for ref, message in data.messages)]


def _decode_receipt(header: ReceiptHeader, rows: Sequence[Sequence[str | None]]) -> ForgottenData:
    data = ForgottenData(header)
    for kind, value, *place in rows:
        assert value is not None
        if kind == "memory":
            data.memories.append(decode_memory(value.encode()))
            if place[0] is not None:
                data.imports[data.memories[-1].id] = untag(place[0])
            continue
        if kind == "proposal":
            record = proposed_record(json.loads(value))
            data.proposed += [] if record is None else [record]
            continue
        session, namespace, user = place
        ref = SessionRef(session or "", namespace, user)
        if kind == "message":
            data.messages.append((ref, decode_entry(value.encode()).message))
        elif kind == "summary":
            data.summaries.append((ref, value))
        else:
            owner = {"session_id": ref.session_id, "namespace": namespace, "user_id": user}
            records = [json.loads(value)["record"]] if kind == "waiting" else _removed_memories(*json.loads(value))
            data.memories += [MemoryRecord.model_validate({**record, **owner}, context=ANSWER) for record in records]
    return data


def _removed_memories(before: str, after: str | Literal[False]) -> list[dict[str, Any]]:
    left = {record["id"] for record in json.loads(after or "[]")}
    return [record for record in json.loads(before) if record["id"] not in left]


def _cleaned(
    memory: LineageMemory, evidence: Mapping[bytes, bytes], records: Sequence[tuple[str, bytes | None]], clean: Clean
) -> list[list[str]]:
    """Return (key, field, old value, new value) for each field that quotes removed text."""
    fields: list[list[str]] = []
    for name, raw in evidence.items():
        piece = Evidence.model_validate_json(raw)
        if (cleaned := clean(memory, piece)) != piece:
            fields.append([f"ev:{memory.mid}", name.decode(), raw.decode(), cleaned.model_dump_json(exclude_none=True)])
    versions = {f"h:{memory.mid}.{version.version}": version for version in memory.past}
    for name, raw in records:
        version = versions.get(name, memory.now)
        if raw is None or version is None or not version.record.evidence:
            continue
        cleaned = [clean(memory, piece) for piece in version.record.evidence]
        if cleaned != version.record.evidence:
            record = version.record.model_copy(update={"evidence": cleaned})
            fields.append([name, "j", raw.decode(), encode_memory(record).decode()])
    return fields


def _expect(memory: LineageMemory) -> str:
    return "" if memory.now is None else str(memory.now.version)
