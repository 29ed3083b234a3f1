"""Define and create the search indexes. Each embedding model has its own vector index."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, RedisError, ResponseError
from redisvl.index import AsyncSearchIndex
from redisvl.schema import IndexSchema

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.storage.connection import redis_errors, translate_error
from agent_memory.foundation.storage.keyspace import Keys

log = get_logger(__name__)

SCHEMA_VERSION = 6
BUILT = "built"
"""A field in the store's configuration. It is "1" once all indexes have existed."""
_BUILD_SECONDS = 600.0
# Redis delays writes for `_PAUSE_MS` at a time. The total stays below the default command timeout of 5 s, so that no
# caller times out.
_PAUSE_MS = 1000
_PAUSED_SECONDS = 4.0
# A script, because Redis delays scripts together with writes. A plain FT.ALIASADD counts as a read: it runs during
# another build's pause, and crashes Redis (failed assertion) when it reaches the append-only file.
_ADD_ALIAS = "return redis.call('FT.ALIASADD', ARGV[1], ARGV[2])"


@dataclass(frozen=True, slots=True)
class VectorSpec:
    """The format of an embedding model's vectors. Each model has its own field."""

    model: str
    dimensions: int
    algorithm: str = "FLAT"
    datatype: str = "FLOAT16"
    profile: str = ""
    """The digest of the model's profile, which defines how to prepare texts and vectors."""

    @property
    def digest(self) -> str:
        text = f"{self.model}\n{self.dimensions}\n{self.datatype}\n{self.algorithm}\n{self.profile}"
        return blake2b(text.encode(), digest_size=4).hexdigest()

    @property
    def field(self) -> str:
        return f"v_{self.digest}"

    @property
    def numpy_type(self) -> str:
        return self.datatype.lower()

    def blob(self, vector: NDArray[np.float32]) -> bytes:
        return vector.astype(self.numpy_type).tobytes()


def word_field() -> dict[str, Any]:
    """Return the text field that contains a memory's space-separated terms (`text/terms.py`)."""
    return {"name": "k", "type": "text", "attrs": {"no_stem": True}}


def tag_fields(*names: str) -> list[dict[str, Any]]:
    """Return tag fields, which match exact, case-sensitive values."""
    return [{"name": name, "type": "tag", "attrs": {"case_sensitive": True}} for name in names]


def number_fields(*names: str, sortable: bool = False) -> list[dict[str, Any]]:
    return [{"name": name, "type": "numeric", "attrs": {"sortable": sortable}} for name in names]


def memory_index_name(keys: Keys) -> str:
    return keys.index(f"m:{SCHEMA_VERSION}")


def vector_index_name(keys: Keys, spec: VectorSpec) -> str:
    return keys.index(f"v:{SCHEMA_VERSION}:{spec.digest}")


def history_index_name(keys: Keys, spec: VectorSpec) -> str:
    return keys.index(f"h:{SCHEMA_VERSION}:{spec.digest}")


def change_index_name(keys: Keys) -> str:
    return keys.index(f"ch:{SCHEMA_VERSION}")


def session_index_name(keys: Keys) -> str:
    return keys.index(f"w:{SCHEMA_VERSION}")


def passage_index_name(keys: Keys, spec: VectorSpec) -> str:
    return keys.index(f"p:{SCHEMA_VERSION}:{spec.digest}")


def vector_field(spec: VectorSpec) -> dict[str, Any]:
    vector: dict[str, Any] = {
        "algorithm": spec.algorithm.lower(),
        "dims": spec.dimensions,
        "distance_metric": "cosine",
        "datatype": spec.datatype.lower(),
    }
    if spec.algorithm == "HNSW":
        # With the default EF_RUNTIME of 10, recall@10 was only 0.82 to 0.86.
        vector |= {"m": 16, "ef_construction": 200, "ef_runtime": 100}
    return {"name": spec.field, "type": "vector", "attrs": vector}


def _memory_fields() -> list[dict[str, Any]]:
    tags = tag_fields("t", "ns", "u", "s", "ty", "st", "tp", "en", "ag", "sl", "ct", "sc", "md", "da")
    # Some queries match memories without a user.
    tags[2]["attrs"]["index_missing"] = True
    # `vf`: true from. `z`: true until. `b`: not true before (only if in the future). `ra`: recorded at.
    return [*tags, *number_fields("c", sortable=True), *number_fields("la", "e", "vf", "z", "b", "ra", "tr")]


def shared_schemas(keys: Keys, spec: VectorSpec) -> dict[str, IndexSchema]:
    """Return the schemas, by kind, of the indexes that several features search.

    - `memories`: current memories with their terms; `n` is the time of the last change in µs.
    - `vectors`, `passages`: vectors of current memories; terms and vectors of passages.
    - `history`: ended memories and former versions; `rt` is the time when a version was replaced.
    - `changes`: changes to memories.
    """
    tags, created, word, vector = _memory_fields(), number_fields("c", sortable=True), word_field(), vector_field(spec)
    changes = [*tag_fields("t", "ns", "u", "ag", "kd", "bt", "st"), *number_fields("at", sortable=True)]
    sessions = [*tag_fields("t", "ns", "u", "s", "ag"), *created]
    sessions[4]["attrs"]["index_missing"] = True
    memories = [*tags, *number_fields("n", sortable=True), word]
    return {
        "sessions": index_schema(session_index_name(keys), keys.session_doc_prefix, sessions),
        "memories": index_schema(memory_index_name(keys), keys.memory_prefix, memories),
        "vectors": index_schema(vector_index_name(keys, spec), keys.vector_prefix, [*tags, vector]),
        "passages": index_schema(passage_index_name(keys, spec), keys.passage_prefix, [*tags, word, vector]),
        "history": index_schema(history_index_name(keys, spec), keys.history_prefix, [*tags, *number_fields("rt"), word, vector]),
        "changes": index_schema(change_index_name(keys), keys.change_prefix, changes),
    }


def index_schema(name: str, prefix: str, fields: list[dict[str, Any]]) -> IndexSchema:
    """Return the schema for an index of hashes with this key prefix."""
    # No stop words: with the default list, a query with two stop words can crash RediSearch 2.10. The separator has no
    # effect: redisvl uses it only to build keys, which we never let it do.
    index = {"name": name, "prefix": prefix, "key_separator": ":", "storage_type": "hash", "stopwords": []}
    return IndexSchema.from_dict({"index": index, "fields": fields})


def rebuilt_name(keys: Keys, name: str) -> str:
    """Return the name to use while rebuilding an index. `name` later becomes its alias."""
    return keys.index("rebuilt:") + name.removeprefix(keys.index(""))


async def ensure_index(client: Redis, keys: Keys, schema: IndexSchema, *, hold: bool = True) -> bool:
    """Create an index unless it exists, and wait until it is complete.

    Returns True if this call created the index. Safe to call from several processes at the same
    time. If all indexes have been built before, searches never use an incomplete index. With
    `hold`, Redis delays writes while it builds an index that contains words. Raises StartupError
    after ten minutes.
    """
    name = schema.index.name
    with redis_errors():
        if await _info(client, name):
            await _complete(client, name)
            return False
        if not await client.hget(keys.config, BUILT):
            made = await _create(client, schema)
            await _complete(client, name)
            return made
        rebuilt = rebuilt_name(keys, name)
        made = await _create(client, IndexSchema.from_dict({**schema.to_dict(), "index": {**schema.to_dict()["index"], "name": rebuilt}}))
        # Every process that finds the index waits and adds the alias, because the process that began it may be gone.
        hold = hold and made and any(field.type == "text" for field in schema.fields.values())
        await (_complete_alone(client, rebuilt) if hold else _complete(client, rebuilt))
        try:
            await client.eval(_ADD_ALIAS, 0, name, rebuilt)
        except ResponseError as error:
            if "already exists" not in str(error).lower():
                raise
    return made


async def note_built(client: Redis, keys: Keys) -> None:
    """Record that all of the store's indexes have been built."""
    with redis_errors():
        if not await client.hget(keys.config, BUILT):
            await client.hset(keys.config, BUILT, "1")


async def _create(client: Redis, schema: IndexSchema) -> bool:
    """Create an index. Return False if another process created it first."""
    try:
        await AsyncSearchIndex(schema, redis_client=client).create(overwrite=False)
    except Exception as error:
        # redisvl wraps redis-py's error. If the index exists now, another process was faster, which is not an error.
        if not await _info(client, schema.index.name):
            if isinstance(error.__cause__, RedisError) and (ours := translate_error(error.__cause__)) is not None:
                raise ours from error
            raise StartupError(f"cannot make the search index {schema.index.name}: {str(error)[:200]}") from error
        return False
    return True


async def _complete(client: Redis, name: str) -> None:
    deadline, pause = asyncio.get_running_loop().time() + _BUILD_SECONDS, 0.02
    while int((await _info(client, name) or {}).get(b"indexing", 0)) != 0:
        if asyncio.get_running_loop().time() > deadline:
            raise StartupError(f"the search index {name} is still being built after {_BUILD_SECONDS:.0f} s: start again later")
        # Each check interrupts the build, and several processes may be waiting for it.
        await asyncio.sleep(pause)
        pause = min(1.25 * pause, 0.5)


async def _complete_alone(client: Redis, name: str) -> None:
    """Wait until an index is complete. Redis pauses writes for up to four seconds."""
    # RediSearch 2.10 indexes a document twice if a write to it occurs during the build. This distorts the word
    # statistics until RediSearch collects garbage.
    waiting = asyncio.create_task(_complete(client, name))
    until = asyncio.get_running_loop().time() + _PAUSED_SECONDS
    try:
        while not waiting.done() and (left := until - asyncio.get_running_loop().time()) > 0:
            await client.execute_command("CLIENT", "PAUSE", min(_PAUSE_MS, int(left * 1000) + 1), "WRITE")
            await asyncio.wait({waiting}, timeout=_PAUSE_MS / 2000)
        await client.execute_command("CLIENT", "UNPAUSE")
    except NoPermissionError:
        log.info("this Redis user has no permission to pause writes while a search index is built", index=name)
    finally:
        if not waiting.done():
            await asyncio.wait({waiting})
    waiting.result()


async def former_indexes(client: Redis, keys: Keys, schemas: Collection[IndexSchema]) -> list[str]:
    """Return the names of indexes left over from earlier embedding models or schema versions."""
    with redis_errors():
        listed: list[bytes] = await client.execute_command("FT._LIST") or []
    prefix = keys.index("")
    own = {schema.index.name for schema in schemas}
    names = [name.decode() for name in listed]
    kinds = {name.removeprefix(prefix).split(":")[0] for name in own}
    base_names = {one: one.removeprefix(prefix).removeprefix("rebuilt:") for one in names if one.startswith(prefix)}
    return [one for one, base in base_names.items() if prefix + base not in own and base.split(":")[0] in kinds]


async def drop_index(client: Redis, name: str) -> None:
    """Drop an index but not its documents. Idempotent."""
    with redis_errors():
        try:
            await client.execute_command("FT.DROPINDEX", name)
        except ResponseError as error:
            log.info("search index was dropped by another process", index=name, error=error)


async def has_index(client: Redis, name: str) -> bool:
    """True if an index or alias with this name exists."""
    with redis_errors():
        return await _info(client, name) is not None


async def count_documents(client: Redis, name: str) -> int:
    """Return the number of documents in an index, or 0 if it is missing."""
    with redis_errors():
        return int((await _info(client, name) or {}).get(b"num_docs", 0))


async def _info(client: Redis, name: str) -> dict[bytes, Any] | None:
    try:
        raw: Any = await client.execute_command("FT.INFO", name)
    except ResponseError as error:
        if "no such index" in str(error).lower() or "unknown index" in str(error).lower():
            return None
        raise
    if isinstance(raw, dict):
        return raw
    return dict(zip(raw[::2], raw[1::2], strict=False))
