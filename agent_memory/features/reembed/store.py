"""Store the state of an embedding model change and the second model's vectors.

Both models' vectors are in the same documents, so they are deleted together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from redis.asyncio import Redis
from redisvl.schema import IndexSchema

from agent_memory.features.memories.records import decode_memory
from agent_memory.features.memories.store import IndexEntry
from agent_memory.features.reembed.embedding_choice import EmbeddingChoice
from agent_memory.foundation.core.errors import Conflict
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.connection import Pipe, read, redis_errors, write
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Arg, Script
from agent_memory.foundation.storage.search.indexes import VectorSpec

Phase = Literal["filling", "paused", "swapped", "ending"]
# The number of memories that a worker embeds in one step, which takes a local model a second or two. Searches may
# switch if no more vectors are missing: a semantic search finds these memories a moment later, like all new memories.
MOST_MISSING = 64
VECTORS_MISSING = "vectors of the other model are missing for the newest memories: try again in a moment"
_SCAN = 1000
_SAMPLE = 300
_TURN_MS = 15_000
# A process that has not recorded its model for this long counts as ended. If it wakes up, its first searches get 503.
_LIVE_SECONDS = 30.0
_FORGET_SECONDS = 60
# Long memories have many passages. More vectors than this in one command would block the event loop.
_VECTORS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class ReembedState:
    """The state of a model change in one bucket. Searches use the `active` model."""

    phase: Phase
    first: EmbeddingChoice
    second: EmbeddingChoice
    active: EmbeddingChoice
    rate: float
    total: int
    missing: int
    refused: int
    checked: bool
    """True if a second scan has queued all documents without a vector."""
    left: int
    """The number of vectors missing at the time `since`."""
    since: float
    now: float
    error: str

    @property
    def other(self) -> EmbeddingChoice:
        return self.second if self.active == self.first else self.first


class ReembedStore:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._own = [keys.root + name for name in ("re", "re:todo", "re:refused", "re:processes", "re:turn")]
        self._state, self._todo, self._refused, self._processes, self._turn = self._own
        self._names = {"state": self._state, "todo": self._todo, "config": keys.config}
        self._change = Script(client, "reembed/change")
        self._vectors = Script(client, "reembed/vectors")
        self._pick = Script(client, "reembed/pick")
        self._sift = Script(client, "reembed/sift")

    async def load_state(self) -> ReembedState | None:
        raw, missing, refused, (seconds, micros) = await read(
            self._client,
            lambda pipe: [pipe.hgetall(self._state), pipe.scard(self._todo), pipe.scard(self._refused), pipe.time()],
        )
        if b"phase" not in raw:
            return None
        text = {name.decode(): value.decode() for name, value in raw.items()}
        return ReembedState(
            phase=text["phase"],  # pyright: ignore[reportArgumentType]
            first=EmbeddingChoice.parse(raw[b"first"]),
            second=EmbeddingChoice.parse(raw[b"second"]),
            active=EmbeddingChoice.parse(raw[b"active"]),
            rate=float(text["rate"]),
            total=int(text.get("total", 0)),
            missing=missing,
            refused=refused,
            checked=text.get("checked") == "1",
            left=int(text["left"]),
            since=float(text["since"]),
            now=seconds + micros / 1e6,
            error=text.get("error", ""),
        )

    async def change(self, phases: Sequence[Phase | Literal[""]], fields: Mapping[str, Any], *, most_missing: int | None = None) -> None:
        """Set `fields`. Raises Conflict if the phase is wrong or too many vectors are missing."""
        ((seconds, _),) = await read(self._client, lambda pipe: pipe.time())
        flat = [part for name, value in {**fields, "error": ""}.items() for part in (name, str(value))]
        reply = await self._change(**self._names, phases=list(phases), most_missing=most_missing, since=seconds, fields=flat)
        if reply == -1:
            raise Conflict(VECTORS_MISSING)
        if reply != 1:
            state = await self.load_state()
            raise Conflict(wrong_phase(state.phase if state else "", phases), field="action")

    async def take_turn(self, worker: str) -> bool:
        """True if this worker may fill in vectors for the next 15 seconds."""
        with redis_errors():
            if await self._client.set(self._turn, worker, nx=True, px=_TURN_MS):
                return True
            is_own = await self._client.get(self._turn) == worker.encode()
            return is_own and bool(await self._client.pexpire(self._turn, _TURN_MS))

    async def load_successor(self, choice: EmbeddingChoice, *, is_configured: bool) -> EmbeddingChoice:
        """Return the model that replaced `choice`, or `choice` if it has not been replaced.

        If `choice` is not the configured model, return the result of the last change.
        """
        (raw,) = await read(self._client, lambda pipe: pipe.hget(self._keys.config, "choice"))
        if raw is not None and not is_configured:
            return EmbeddingChoice(*json.loads(raw)["choice"])
        return choice.successor(raw) or choice

    async def announce(self, process: str, model: EmbeddingChoice, since: float, now: float) -> None:
        """Record which model a process uses, and since when (epoch seconds)."""
        key, entry = self._processes, json.dumps([model, since, now])
        await write(self._client, lambda pipe: (pipe.hset(key, process, entry), pipe.expire(key, _FORGET_SECONDS)))

    async def count_behind(self, state: ReembedState, seconds: float = 0) -> int:
        """Count live processes that have not used the active model for at least `seconds`."""
        (raw,) = await read(self._client, lambda pipe: pipe.hvals(self._processes))
        announced_models = [
            (EmbeddingChoice(*model), since) for model, since, at in map(json.loads, raw) if at >= state.now - _LIVE_SECONDS
        ]
        return sum(model != state.active or since > state.now - seconds for model, since in announced_models)

    async def pick(self, limit: int, specs: Sequence[VectorSpec]) -> tuple[int, list[list[str]]]:
        """Take up to `limit` names from the queue.

        Return how many were taken and, for each model, the names that lack its vector.
        """
        fields = [spec.field for spec in specs]
        picked = await self._pick(todo=self._todo, root=self._keys.root, limit=limit, fields=fields)
        return len(picked), [[name.decode() for name, lacking in picked if lacking.decode() == field] for field in fields]

    async def sample_texts(self) -> tuple[int, list[str]]:
        """Return the number of memories and versions that have vectors, and a sample of texts."""
        count, names = 0, list[bytes]()
        for prefix in (self._keys.vector_prefix, self._keys.history_prefix):
            with redis_errors():
                async for key in self._client.scan_iter(match=prefix + "*", count=_SCAN):
                    count += 1
                    if len(names) < _SAMPLE:
                        names.append(key.rsplit(b":", 1)[-1])
        rows = await read(self._client, lambda pipe: [pipe.hget(self._keys.memory(name.decode()), "j") for name in names])
        return count, [decode_memory(raw).text for raw in rows if raw is not None]

    async def mark_refused(self, names: Sequence[str]) -> None:
        """Mark texts that a model rejects, so that the change can finish without their vectors."""
        if names:

            def build(pipe: Pipe) -> None:
                pipe.srem(self._todo, *names)
                pipe.sadd(self._refused, *names)

            await write(self._client, build, atomic=True)

    async def list_refused(self, limit: int) -> list[str]:
        """Return the ids of up to `limit` current memories whose texts a model rejected."""
        (names,) = await read(self._client, lambda pipe: pipe.srandmember(self._refused, limit))
        rows = await read(self._client, lambda pipe: [pipe.hget(self._keys.memory(name.decode()), "j") for name in names]) if names else []
        return sorted(decode_memory(raw).id for raw in rows if raw is not None)

    async def note_missing(self, spec: VectorSpec, *, is_second: bool = False) -> None:
        """Queue memories and versions that only have vectors from other models.

        `is_second` marks the second and final scan. Raises Conflict unless the phase is "filling".
        """
        total, _ = await self._sift_all((self._keys.vector_prefix, self._keys.history_prefix), spec, drop=False)
        await self.change(["filling"], {"total": total, "checked": int(is_second)})

    async def drop_others(self, schemas: Mapping[str, IndexSchema], spec: VectorSpec) -> int:
        """Delete other models' vectors. Queue and count documents that lack one from this model."""
        prefixes = {str(schema.index.prefix) for schema in schemas.values() if spec.field in schema.fields}
        return (await self._sift_all(sorted(prefixes), spec, drop=True))[1]

    async def _sift_all(self, prefixes: Sequence[str], spec: VectorSpec, *, drop: bool) -> tuple[int, int]:
        document_count = lacking = 0
        starts = {prefix.encode() for prefix in prefixes}
        keys = self._keys
        queues = {"todo": self._todo, "refused": self._refused, "due": keys.due(DueKind.MEMORY)}
        names = {**queues, "root": keys.root, "field": spec.field, "model": spec.digest}
        cursor = -1
        while cursor:
            # One pass for all prefixes, because each pass reads all of the store's keys.
            with redis_errors():
                cursor, scanned_keys = await self._client.scan(max(cursor, 0), match=f"{keys.root}*", count=_SCAN)
            # Some keys begin like a document's key, but are not documents (`pr:<pid>:c`).
            documents = [key for key in cast("list[bytes]", scanned_keys) if key.rpartition(b":")[0] + b":" in starts]
            if documents:
                lacking += await self._sift(**names, documents=documents, drop=drop)
                document_count += len(documents)
        return document_count, lacking

    async def store_vectors(self, items: Sequence[IndexEntry], missing_names: Sequence[str], spec: VectorSpec) -> int:
        """Store the second model's vectors for unchanged memories. Return the number dequeued."""
        args: list[Arg] = [part for name in missing_names for part in (name, "", 0, "", "", 0)]
        done = vectors = 0
        for item in items:
            args += [item.mid, item.version, int(item.past), spec.field, spec.blob(item.vector), len(item.passages)]
            args += [spec.blob(vector) for _, vector in item.passages]
            vectors += 1 + len(item.passages)
            if vectors >= _VECTORS_AT_ONCE:
                done += await self._store(args)
                args, vectors = [], 0
        return done + (await self._store(args) if args else 0)

    async def _store(self, args: list[Arg]) -> int:
        return int(await self._vectors(todo=self._todo, root=self._keys.root, memories=args))

    async def note_error(self, text: str) -> None:
        phases = ["filling", "paused", "swapped", "ending"]
        await self._change(**self._names, phases=phases, most_missing=None, since=None, fields=["error", text[:300]])

    async def refuse_others(self, spec: VectorSpec) -> None:
        """Reject vectors from other models until the next model change."""
        await write(self._client, lambda pipe: pipe.hset(self._keys.config, "only", spec.field))

    async def end(self, state: ReembedState, spec: VectorSpec) -> None:
        """Delete the state of a finished change.

        After a confirmed change, processes configured with the first model use the second one
        instead.
        """
        keys, active = self._keys, state.active
        (raw,) = await read(self._client, lambda pipe: pipe.hget(keys.config, "choice"))
        replaced = {EmbeddingChoice(*each) for each in json.loads(raw)["replaces"]} if raw else set[EmbeddingChoice]()
        if active == state.second:
            replaced.add(state.first)
        choice = json.dumps({"choice": active, "replaces": list(replaced - {active})})

        def build(pipe: Pipe) -> None:
            pipe.hset(keys.config, mapping={"vectors": spec.digest, "model": spec.model, "choice": choice})
            pipe.delete(*self._own)

        await write(self._client, build, atomic=True)


def wrong_phase(phase: str, phases: Sequence[str]) -> str:
    """Explain why an action is not allowed in `phase`, which is "" if no change is running."""
    if not phase:
        return "no change of the embedding model is running: start one with POST /v1/reembed"
    if "" in phases:
        return f"a change of the embedding model is already running (phase {phase}): confirm, roll back or abort it first"
    needed = " or ".join(phases)
    return f"the change of the embedding model is in phase {phase}, but this action needs {needed}: wait, or send another action"
