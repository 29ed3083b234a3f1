"""Store the state of a change of the embedding model, and the second model's vectors next to the first model's.

Both models' vectors are fields of the same documents, each with its own index. So a deletion deletes both, and a query
vector is never compared with the other model's vectors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from redis.asyncio import Redis
from redisvl.schema import IndexSchema

from agent_memory.features.memories.records import decode_memory
from agent_memory.features.memories.store import IndexEntry
from agent_memory.foundation.core.errors import Conflict
from agent_memory.foundation.llm.embedding_choice import EmbeddingChoice
from agent_memory.foundation.storage.connection import read, redis_errors
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Arg, Script
from agent_memory.foundation.storage.search.indexes import VectorSpec

Phase = Literal["filling", "paused", "swapped", "ending"]
_SCAN = 500
_SAMPLE = 300
_TURN_MS = 15_000
# Long memories have many passages: more vectors in one command block the event loop.
_VECTORS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class ReembedState:
    """A change of the model in one bucket. Searches use the model `active`."""

    phase: Phase
    first: EmbeddingChoice
    second: EmbeddingChoice
    active: EmbeddingChoice
    rate: float
    total: int
    missing: int
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
        self._names = {"state": keys.reembed, "todo": keys.reembed_todo, "config": keys.config}
        self._change = Script(client, "memories/reembed_change")
        self._vectors = Script(client, "memories/reembed_vectors")

    async def load_state(self) -> ReembedState | None:
        keys = self._keys
        raw, missing, (seconds, micros) = await read(
            self._client, lambda pipe: [pipe.hgetall(keys.reembed), pipe.scard(keys.reembed_todo), pipe.time()]
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
            since=float(text["since"]),
            now=seconds + micros / 1e6,
            error=text.get("error", ""),
        )

    async def change(self, phases: Sequence[Phase | Literal[""]], fields: Mapping[str, Any], *, drained: bool = False) -> None:
        """Set `fields`. Raises Conflict if the phase is not in `phases` or, with `drained`, if vectors are missing."""
        with redis_errors():
            seconds, _ = await self._client.time()
        flat = [part for name, value in {**fields, "since": seconds, "error": ""}.items() for part in (name, str(value))]
        reply = await self._change(**self._names, phases=list(phases), drained=drained, fields=flat)
        if reply == -1:
            raise Conflict("vectors of the other model are missing for the newest memories: try again in a moment")
        if reply != 1:
            state = await self.load_state()
            raise Conflict(f"the change of the model is {state.phase}" if state else "no change of the model is under way")

    async def take_turn(self, worker: str) -> bool:
        """True if this worker may fill in vectors for the next 15 seconds."""
        with redis_errors():
            if await self._client.set(self._keys.reembed_turn, worker, nx=True, px=_TURN_MS):
                return True
            is_own = await self._client.get(self._keys.reembed_turn) == worker.encode()
            return is_own and bool(await self._client.pexpire(self._keys.reembed_turn, _TURN_MS))

    async def pick(self, limit: int) -> list[str]:
        with redis_errors():
            names: Any = await self._client.srandmember(self._keys.reembed_todo, limit)
        return [name.decode() for name in names]

    async def sample_texts(self) -> tuple[int, list[str]]:
        """Return the number of memories and versions with vectors, and the texts of up to a few hundred memories."""
        count, names = 0, list[bytes]()
        for prefix in (self._keys.vector_prefix, self._keys.history_prefix):
            with redis_errors():
                async for key in self._client.scan_iter(match=prefix + "*", count=_SCAN):
                    count += 1
                    if len(names) < _SAMPLE:
                        names.append(key.rsplit(b":", 1)[-1])
        rows = await read(self._client, lambda pipe: [pipe.hget(self._keys.memory(name.decode()), "j") for name in names])
        return count, [decode_memory(raw).text for raw in rows if raw is not None]

    async def note_missing(self, present: VectorSpec, absent: VectorSpec) -> int:
        """Queue the memories and versions that have a vector from one model but not from the other. Return their number."""
        count = total = 0
        for prefix in (self._keys.vector_prefix, self._keys.history_prefix):
            batch: list[bytes] = []
            with redis_errors():
                async for key in self._client.scan_iter(match=prefix + "*", count=_SCAN):
                    batch.append(key)
                    if len(batch) >= _SCAN:
                        count += await self._note(batch, present, absent)
                        total, batch = total + len(batch), []
            count, total = count + await self._note(batch, present, absent), total + len(batch)
        with redis_errors():
            await self._client.hset(self._keys.reembed, "total", str(total))
        return count

    async def _note(self, keys: Sequence[bytes], present: VectorSpec, absent: VectorSpec) -> int:
        rows = await read(self._client, lambda pipe: [pipe.hexists(key, s.field) for key in keys for s in (present, absent)])
        names = [key.rsplit(b":", 1)[-1] for key, has, twin in zip(keys, rows[::2], rows[1::2], strict=True) if has and not twin]
        if names:
            with redis_errors():
                await self._client.sadd(self._keys.reembed_todo, *names)
        return len(names)

    async def store_vectors(self, items: Sequence[IndexEntry], gone: Sequence[str], spec: VectorSpec) -> int:
        """Store the second model's vectors of unchanged memories. Return how many memories left the queue."""
        args: list[Arg] = [part for name in gone for part in (name, "", 0, "", "", 0)]
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
        return int(await self._vectors(todo=self._keys.reembed_todo, root=self._keys.root, memories=args))

    async def note_error(self, text: str) -> None:
        with redis_errors():
            if await self._client.exists(self._keys.reembed):
                await self._client.hset(self._keys.reembed, "error", text[:300])

    async def delete_vectors(self, schemas: Mapping[str, IndexSchema], spec: VectorSpec) -> None:
        """Delete a model's vectors from all documents."""
        for schema in schemas.values():
            if spec.field not in schema.fields:
                continue
            with redis_errors():
                cursor = 0
                while True:
                    cursor, keys = await self._client.scan(cursor, match=f"{schema.index.prefix}*", count=_SCAN)
                    if keys:
                        await read(self._client, lambda pipe, keys=keys: [pipe.hdel(key, spec.field) for key in keys])
                    if cursor == 0:
                        break

    async def refuse(self, spec: VectorSpec) -> None:
        """Refuse vectors of this model from now on, until another change of the model begins."""
        with redis_errors():
            await self._client.hset(self._keys.config, "gone", spec.field)

    async def end(self, kept: EmbeddingChoice, dropped: EmbeddingChoice, spec: VectorSpec) -> None:
        """Delete the change's state. From now on, processes configured with the dropped model use the kept model."""
        with redis_errors():
            raw = await self._client.hget(self._keys.config, "choice")
            replaced = {EmbeddingChoice(*each) for each in json.loads(raw)["replaces"]} if raw else set[EmbeddingChoice]()
            choice = json.dumps({"choice": kept, "replaces": list((replaced | {dropped}) - {kept})})
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.hset(self._keys.config, mapping={"vectors": spec.digest, "model": spec.model, "choice": choice})
                pipe.delete(self._keys.reembed, self._keys.reembed_todo, self._keys.reembed_turn)
                await pipe.execute()
