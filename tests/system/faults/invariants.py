"""Compare the data in Redis with the journal."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from redis.asyncio import Redis

from agent_memory.extensions.blocks.owners import BlockKeys, BlockOwner
from agent_memory.features.memories.records import decode_memory, message_memory_id
from agent_memory.features.sessions.codec import decode_entry, decode_session, message_identity
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search.indexes import VectorSpec, memory_index_name, session_index_name, vector_index_name
from agent_memory_client.models import MemoryRecord
from tests.registrations import registrations
from tests.support.key_spaces import key_names
from tests.system.faults.block_actors import LABEL
from tests.system.faults.journal import Expected, Said, SessionModel, expected, read

TENANT = "default"
ENDING = tuple(DueKind)


def known_layout(prefix: str) -> re.Pattern[str]:
    """Return a pattern for all keys that may exist once all work is done."""
    ours = "|".join(re.sub(r"<\w+>", "[^:]+", re.escape(name).replace("…", ".*")) for name in key_names())
    name = re.escape(prefix)
    return re.compile(rf"{name}:\{{0\}}:({ours})|\{{?{name}:agent-memory\}}?:.*")


@dataclass
class Findings:
    """Violations by kind, and counts of the checked objects."""

    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    resurrected: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    explained: list[str] = field(default_factory=list)
    """Dead letters, with their reasons."""
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def violations(self) -> list[str]:
        return [f"{kind}: {what}" for kind in ("lost", "duplicated", "resurrected", "wrong") for what in getattr(self, kind)]


class Checker:
    """Checks all data in Redis. Run it only after all background work is done."""

    def __init__(self, client: Redis, journal: Path, spec: VectorSpec, *, prefix: str = "am") -> None:
        self._client = client
        self._keys = Keys(prefix)
        self._known = known_layout(prefix)
        self._spec = spec
        self._expected = expected(read(journal))
        self._found = Findings()
        self._memories: dict[str, MemoryRecord] = {}
        self._facts: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._verbatim: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._all: set[str] = set()

    @property
    def expected(self) -> Expected:
        return self._expected

    async def check(self) -> Findings:
        self._all = {key.decode() async for key in self._client.scan_iter(match=f"*{self._keys.prefix}:*", count=1000)}
        await self._read_memories()
        await self._check_outbox()
        for session in self._expected.sessions.values():
            await self._check_session(session)
        for key, said in self._expected.keyed.items():
            await self._check_keyed(key, said)
        self._check_memories()
        for one in registrations():
            await one.check_faults(self._client, self._keys, self._expected.of_features.get(one, {}), self._all, self._found)
        await self._check_blocks()
        await self._check_vectors()
        await self._check_indexes()
        self._check_keys()
        return self._found

    def _sid(self, session: SessionModel) -> str:
        return self._keys.sid(TENANT, self._ref(session))

    @staticmethod
    def _ref(session: SessionModel) -> SessionRef:
        session_id, namespace, user = session.key.split("\n")
        return SessionRef(session_id, namespace or None, user or None)

    async def _read_memories(self) -> None:
        prefix = self._keys.memory_prefix
        names = sorted(key for key in self._all if key.startswith(prefix))
        for start in range(0, len(names), 500):
            some = names[start : start + 500]
            async with self._client.pipeline(transaction=False) as pipe:
                for name in some:
                    pipe.hget(name, "j")
                for name, raw in zip(some, await pipe.execute(), strict=True):
                    if raw is None:
                        self._found.wrong.append(f"{name} has no record")
                        continue
                    record = decode_memory(raw)
                    if self._keys.memory(self._keys.mid(TENANT, record.id)) != name:
                        self._found.wrong.append(f"{name} holds the memory {record.id}")
                    self._memories[record.id] = record
                    place = "\n".join((record.session_id or "", record.namespace or "", record.user_id or ""))
                    if record.extraction_strategy == "discrete":
                        self._facts[place, record.text].append(record.id)
                    elif record.extraction_strategy == "message":
                        self._verbatim[place, record.text].append(record.id)
        self._found.counts["memories"] = len(self._memories)

    async def _check_outbox(self) -> None:
        for kind in ENDING:
            due = await self._client.zcard(self._keys.due(kind))
            dead = [member.decode() for member in await self._client.zrange(self._keys.dead(kind), 0, -1)]
            why = {member.decode(): reason.decode() for member, reason in (await self._client.hgetall(self._keys.why(kind))).items()}
            # Dead letters keep their count.
            tries = {member.decode() for member in await self._client.hkeys(self._keys.tries(kind))}.difference(dead)
            if due:
                self._found.wrong.append(f"{due} marks of {kind} are still due")
            for member in dead:
                self._found.counts[f"dead {kind}"] += 1
                self._found.explained.append(f"{kind} {member}: {why.pop(member, 'no reason')}")
            if why:
                self._found.wrong.append(f"reasons of {kind} without a dead letter: {list(why.items())[:3]}")
            if tries:
                self._found.wrong.append(f"{len(tries)} counts of tries of {kind} are left: {sorted(tries)[:3]}")

    async def _check_session(self, session: SessionModel) -> None:
        sid = self._sid(session)
        k = self._keys.session(sid)
        meta = await self._client.hgetall(k.meta)
        entries = await self._client.lrange(k.messages, 0, -1)
        journal = await self._client.hgetall(k.journal)
        name = session.key.replace("\n", "/")
        if not meta:
            left = [key for key in (k.meta, k.messages, k.ids, k.doc, k.journal, k.journal_list, f"{k.journal}:o") if key in self._all]
            if session.alive:
                self._found.lost.append(f"session {name} is not there")
            if left:
                self._found.resurrected.append(f"session {name} is deleted, but there are {left}")
        else:
            self._found.counts["sessions"] += 1
            if not session.alive and session.lists == [[]]:
                self._found.resurrected.append(f"session {name} is back with {len(entries)} messages")
            else:
                await self._check_life(session, name, meta, entries)
            self._check_journal(name, journal)
        for message in session.said.values():
            self._check_remembered(session, name, message)

    async def _check_life(self, session: SessionModel, name: str, meta: dict[bytes, bytes], entries: list[bytes]) -> None:
        state = decode_session(meta, entries, [None, None])
        assert state is not None
        stored = [decode_entry(entry) for entry in entries]
        ids = [one.message.id for one in stored]
        self._found.counts["messages"] += len(ids)
        self._found.counts["summaries"] += state.context is not None
        for double in [one for one, count in Counter(ids).items() if count > 1]:
            self._found.duplicated.append(f"session {name} holds message {double} {ids.count(double)} times")
        if [one.seq for one in stored] != sorted({one.seq for one in stored}):
            self._found.wrong.append(f"session {name}: the server's numbers do not grow: {[one.seq for one in stored]}")
        for one in stored:
            if (said := session.said.get(one.message.id)) is None or one.message.content != said.text:
                self._found.wrong.append(f"session {name}: message {one.message.id} is not what was written: {one.message.content[:80]!r}")
        if state.message_tokens != sum(one.tokens for one in stored):
            self._found.wrong.append(
                f"session {name} counts {state.message_tokens} tokens, its messages have {sum(one.tokens for one in stored)}"
            )
        known = await self._client.zmscore(self._keys.session(self._sid(session)).ids, [self._identity(one) for one in stored] or ["-"])
        if stored and [int(score or -1) for score in known] != [one.seq for one in stored]:
            self._found.wrong.append(f"session {name}: the numbers of its messages are not those that it remembers")
        if session.shared:
            for writer, lists in session.by_writer.items():
                own = {one for sent in lists for one in sent}
                self._check_order(f"{name} by {writer}", [one for one in ids if one in own], lists, state.context)
        else:
            self._check_order(name, ids, session.lists, state.context)
            counter = (state.data or {}).get("k")
            if counter not in session.counters:
                self._found.lost.append(f"session {name} has data k={counter}, acknowledged was {session.counters}")

    @staticmethod
    def _identity(one: Any) -> str:
        return message_identity(one.message)

    def _check_order(self, name: str, ids: list[str], lists: list[list[str]], context: str | None) -> None:
        """Check that messages are in order and that only summarized ones are missing."""
        if any(one[len(one) - len(ids) :] == ids and (len(one) == len(ids) or context) for one in lists):
            return
        closest = lists[0]
        missing = [one for one in closest if one not in ids]
        if set(ids) - set(closest):
            strange = sorted(set(ids) - set(closest))
            self._found.resurrected.append(f"session {name} holds {strange[:5]}, which were replaced or never written")
        elif missing:
            self._found.lost.append(f"session {name} lacks {missing[:5]} ({len(missing)} of {len(closest)}, summary: {bool(context)})")
        else:
            self._found.wrong.append(f"session {name} has another order: {ids[-8:]}, acknowledged was {closest[-8:]}")

    def _check_journal(self, name: str, journal: dict[bytes, bytes]) -> None:
        cursors = {cursor: int(journal.get(cursor, b"-1")) for cursor in (b"sq", b"jp", b"je")} if journal else {}
        if len(set(cursors.values())) > 1:
            self._found.wrong.append(f"session {name}: its journal is not worked off: {cursors}")

    def _check_remembered(self, session: SessionModel, name: str, message: Said) -> None:
        ref = self._ref(session)
        memory = self._memories.get(message_memory_id(ref, message.id))
        facts = self._facts.get((session.key, f"{message.role.capitalize()} said: {message.text}"), []) if message.informative else []
        if not message.informative:
            if memory is not None:
                self._found.wrong.append(f"session {name}: small talk {message.id} became a memory")
            return
        if memory is not None and (memory.text != message.text or memory.user_id != ref.user_id or memory.namespace != ref.namespace):
            self._found.wrong.append(f"session {name}: the memory of {message.id} says {memory.text[:60]!r} of {memory.user_id}")
        self._fate(f"the memory of message {message.id} in {name}", 0 if memory is None else 1, message.verbatim)
        self._fate(f"the fact of message {message.id} in {name}", len(facts), message.fact)

    def _fate(self, what: str, count: int, fate: str) -> None:
        if count > 1:
            self._found.duplicated.append(f"{what}: {count} times")
        if count and fate == "gone":
            self._found.resurrected.append(what)
        if not count and fate == "must":
            self._found.lost.append(what)

    async def _check_keyed(self, key: str, said: list[tuple[str, str]]) -> None:
        """Check that a session contains each sent message once, in order.

        A text sent twice on the same day becomes one memory that cites both messages.
        """
        session_id, _, user = key.split("\n")
        k = self._keys.session(self._keys.sid(TENANT, SessionRef(session_id, None, user)))
        state = decode_session(await self._client.hgetall(k.meta), await self._client.lrange(k.messages, 0, -1), [None, None])
        texts = [text for _, text in said]
        there = [one.message.content for one in state.messages] if state else []
        self._found.counts["sessions"] += 1
        self._found.counts["messages"] += len(there)
        if texts[len(texts) - len(there) :] != there or (len(there) < len(texts) and not (state and state.context)):
            kind = self._found.duplicated if Counter(there) - Counter(texts) else self._found.lost
            kind.append(f"session {session_id} holds {there[-6:]} ({len(there)}), acknowledged was {texts[-6:]} ({len(texts)})")
        for (role, text), times in Counter(said).items():
            verbatim = self._verbatim.pop((key, text), [])
            for what, found, wanted in (
                ("memory", verbatim, 1),
                ("fact", self._facts.get((key, f"{role.capitalize()} said: {text}"), []), 1),
            ):
                if len(found) != wanted:
                    kind = self._found.lost if len(found) < wanted else self._found.duplicated
                    kind.append(f"the {what} of {text[:40]!r} in {session_id}: {len(found)} times, not {wanted}")
            cited = [await self._client.hlen(self._keys.evidence(self._keys.mid(TENANT, memory))) for memory in verbatim]
            if cited and max(cited) < times - 1:
                self._found.lost.append(f"who said {text[:40]!r} again in {session_id}: {max(cited)} of {times - 1} are known")

    async def _check_blocks(self) -> None:
        keys = BlockKeys(self._keys.root)
        for user, possible in self._expected.blocks.items():
            raw = await self._client.hget(keys.blocks(keys.name(TENANT, BlockOwner(None, user, None))), LABEL)
            text = None if raw is None else json.loads(raw)["val"]
            if text in possible:
                self._found.counts["blocks"] += text is not None
            elif possible == {None}:
                self._found.resurrected.append(f"the block of {user} is back: {text!r}")
            else:
                self._found.lost.append(f"the block of {user} says {text!r}, acknowledged was {possible}")

    def _check_memories(self) -> None:
        for memory_id, possible in self._expected.memories.items():
            memory = self._memories.get(memory_id)
            text = None if memory is None else memory.text
            if text in possible:
                continue
            if text is None:
                self._found.lost.append(f"memory {memory_id} is not there")
            elif possible == {None}:
                self._found.resurrected.append(f"memory {memory_id} is back: {text!r}")
            else:
                self._found.lost.append(f"memory {memory_id} says {text!r}, acknowledged was {possible}")

    async def _check_vectors(self) -> None:
        names = [self._keys.mid(TENANT, memory_id) for memory_id in self._memories]
        size = self._spec.dimensions * np.dtype(self._spec.numpy_type).itemsize
        for start in range(0, len(names), 500):
            some = names[start : start + 500]
            async with self._client.pipeline(transaction=False) as pipe:
                for mid in some:
                    pipe.hget(self._keys.vector(mid), self._spec.field)
                for mid, raw in zip(some, await pipe.execute(), strict=True):
                    if raw is None or len(raw) != size:
                        self._found.wrong.append(f"memory {mid} has {'no vector' if raw is None else f'a vector of {len(raw)} bytes'}")
                        continue
                    length = float(np.linalg.norm(np.frombuffer(raw, self._spec.numpy_type).astype(np.float32)))
                    if not 0.98 < length < 1.02:
                        self._found.wrong.append(f"the vector of memory {mid} has the length {length}")
        strays = {key.rsplit(":", 1)[-1] for key in self._all if key.startswith(self._keys.vector_prefix)} - set(names)
        if strays:
            self._found.resurrected.append(f"{len(strays)} vectors of memories that are not there: {sorted(strays)[:3]}")

    async def _check_indexes(self) -> None:
        k = self._keys
        for index, prefix in (
            (session_index_name(k), k.session_doc_prefix),
            (memory_index_name(k), k.memory_prefix),
            (vector_index_name(k, self._spec), k.vector_prefix),
        ):
            raw = await self._client.execute_command("FT.INFO", index)
            info = raw if isinstance(raw, dict) else dict(zip(raw[::2], raw[1::2], strict=False))
            there = sum(key.startswith(prefix) for key in self._all)
            found = await self._client.execute_command("FT.SEARCH", index, "*", "LIMIT", 0, 0, "DIALECT", 2)
            total = int(found[b"total_results"] if isinstance(found, dict) else found[0])
            if total != there or int(info[b"num_docs"]) != there:
                self._found.wrong.append(f"index {index} finds {total} and counts {info[b'num_docs']} documents, there are {there}")
            failures = int(info[b"hash_indexing_failures"])
            if failures:
                self._found.wrong.append(f"index {index} refused {failures} documents")

    def _check_keys(self) -> None:
        strange = sorted(key for key in self._all if not self._known.fullmatch(key))
        if strange:
            self._found.wrong.append(f"{len(strange)} keys outside the known layout: {strange[:5]}")
        sessions = {self._sid(session) for session in self._expected.sessions.values()}
        for key in self._expected.keyed:
            session_id, _, user = key.split("\n")
            sessions.add(self._keys.sid(TENANT, SessionRef(session_id, None, user)))
        for part in ("w", "wd", "j"):
            there = {key.split(":")[3].split(".")[0] for key in self._all if key.startswith(f"{self._keys.root}{part}:")}
            if there - sessions:
                self._found.wrong.append(f"{part}: keys of sessions that nobody wrote: {sorted(there - sessions)[:3]}")
        known = set(self._expected.memories) | {
            message_memory_id(self._ref(session), name) for session in self._expected.sessions.values() for name in session.said
        }
        sessions_ = self._expected.sessions.values()
        facts = {(session.key, f"{m.role.capitalize()} said: {m.text}") for session in sessions_ for m in session.said.values()}
        facts |= {(key, f"{role.capitalize()} said: {text}") for key, said in self._expected.keyed.items() for role, text in said}
        facts |= {(key, text) for key, said in self._expected.keyed.items() for _, text in said}
        for memory in self._memories.values():
            place = "\n".join((memory.session_id or "", memory.namespace or "", memory.user_id or ""))
            if memory.id not in known and (place, memory.text) not in facts:
                self._found.wrong.append(f"memory {memory.id} comes from nowhere: {memory.text[:80]!r} in {place!r}")
