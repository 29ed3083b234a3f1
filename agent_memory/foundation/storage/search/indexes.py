"""The search indexes: what they hold, how they are made by several processes at once, and how a new embedding model gets its own."""

from __future__ import annotations

import asyncio
import logging
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
from agent_memory.foundation.storage.connection import redis_errors, translate_error
from agent_memory.foundation.storage.keyspace import Keys

log = logging.getLogger(__name__)

SCHEMA_VERSION = 4
BUILT = "built"
"""The field of the store's configuration that says that its indexes have been there."""
_BUILD_SECONDS = 600.0
# Redis holds writes back for so long at a time, and while an index is built for as long as callers wait for an answer without a time-out.
_PAUSE_MS = 1000
_PAUSED_SECONDS = 4.0
# A script, for Redis holds scripts back together with the writes. The command by itself counts as a read, goes past the pause that another
# index is built in, and ends Redis with a failed assertion when it is to be written to the append-only file.
_ADD_ALIAS = "return redis.call('FT.ALIASADD', ARGV[1], ARGV[2])"


@dataclass(frozen=True, slots=True)
class VectorSpec:
    """The vectors of one embedding model: only vectors of the same model share a field, so that none is ever compared with another's."""

    model: str
    dimensions: int
    algorithm: str = "FLAT"
    datatype: str = "FLOAT16"
    profile: str = ""
    """What was done to the texts and vectors: the digest of the model's profile."""

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
        """A vector as a field holds it."""
        return vector.astype(self.numpy_type).tobytes()


def word_field() -> dict[str, Any]:
    """The field of our own terms (`text/terms.py`), separated by spaces."""
    return {"name": "k", "type": "text", "attrs": {"no_stem": True}}


def tag_fields(*names: str) -> list[dict[str, Any]]:
    """Fields whose values are compared whole, letter by letter."""
    return [{"name": name, "type": "tag", "attrs": {"case_sensitive": True}} for name in names]


def number_fields(*names: str, sortable: bool = False) -> list[dict[str, Any]]:
    """Fields of numbers, for ranges and (sortable) orders."""
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


def memory_schema(keys: Keys) -> IndexSchema:
    """Long-term memories: identity and tags, times (`n` is that of the last change, in µs), and our own terms."""
    fields = [*_memory_fields(), *number_fields("n", sortable=True), word_field()]
    return index_schema(memory_index_name(keys), keys.memory_prefix, fields)


def vector_schema(keys: Keys, spec: VectorSpec) -> IndexSchema:
    """Their vectors, with the same tags and times."""
    return index_schema(vector_index_name(keys, spec), keys.vector_prefix, [*_memory_fields(), vector_field(spec)])


def passage_index_name(keys: Keys, spec: VectorSpec) -> str:
    return keys.index(f"p:{SCHEMA_VERSION}:{spec.digest}")


def passage_schema(keys: Keys, spec: VectorSpec) -> IndexSchema:
    """Passages of long memories, words and vector in one document: it is written once, when the vector is there."""
    fields = [*_memory_fields(), word_field(), vector_field(spec)]
    return index_schema(passage_index_name(keys, spec), keys.passage_prefix, fields)


def history_schema(keys: Keys, spec: VectorSpec) -> IndexSchema:
    """What is no longer current, words and vector in one document (it comes as a whole); `rt` is when a version was retired."""
    fields = [*_memory_fields(), *number_fields("rt"), word_field(), vector_field(spec)]
    return index_schema(history_index_name(keys, spec), keys.history_prefix, fields)


def change_schema(keys: Keys) -> IndexSchema:
    """Changes of memories: whose, of which kind and batch, in which state, and when."""
    fields = [*tag_fields("t", "ns", "u", "kd", "bt", "st"), *number_fields("at", sortable=True)]
    return index_schema(change_index_name(keys), keys.change_prefix, fields)


def vector_field(spec: VectorSpec) -> dict[str, Any]:
    """The field of the vectors."""
    vector: dict[str, Any] = {
        "algorithm": spec.algorithm.lower(),
        "dims": spec.dimensions,
        "distance_metric": "cosine",
        "datatype": spec.datatype.lower(),
    }
    if spec.algorithm == "HNSW":
        # With the default EF_RUNTIME of 10, recall@10 was measured at 0.82-0.86.
        vector |= {"m": 16, "ef_construction": 200, "ef_runtime": 100}
    return {"name": spec.field, "type": "vector", "attrs": vector}


def _memory_fields() -> list[dict[str, Any]]:
    tags = tag_fields("t", "ns", "u", "s", "ty", "st", "tp", "en", "ag", "sl", "ct", "sc", "md")
    # What has no user is asked for, too.
    tags[2]["attrs"]["index_missing"] = True
    # `vf` and `z`: true from and until; `b`: not true before (only where that lay ahead when it was written); `ra`: recorded at.
    return [*tags, *number_fields("c", sortable=True), *number_fields("la", "e", "vf", "z", "b", "ra", "tr")]


def session_schema(keys: Keys) -> IndexSchema:
    """Sessions: identity and the time of their creation."""
    return index_schema(
        session_index_name(keys), keys.session_doc_prefix, [*tag_fields("t", "ns", "u", "s"), *number_fields("c", sortable=True)]
    )


def shared_schemas(keys: Keys, spec: VectorSpec) -> dict[str, IndexSchema]:
    """The indexes of a bucket that several features search, by what they hold; the others are announced (`Feature.indexes`)."""
    return {
        "sessions": session_schema(keys),
        "memories": memory_schema(keys),
        "vectors": vector_schema(keys, spec),
        "passages": passage_schema(keys, spec),
        "history": history_schema(keys, spec),
        "changes": change_schema(keys),
    }


def index_schema(name: str, prefix: str, fields: list[dict[str, Any]]) -> IndexSchema:
    """An index of the hashes whose keys begin with `prefix`."""
    # No stop words: with the default list a query that begins with two of them can kill RediSearch 2.10; analysis.py drops them instead.
    # The prefix ends in ":" already; redisvl would only use the separator to build keys, which it never does for us.
    index = {"name": name, "prefix": prefix, "key_separator": ":", "storage_type": "hash", "stopwords": []}
    return IndexSchema.from_dict({"index": index, "fields": fields})


def rebuilt_name(keys: Keys, name: str) -> str:
    """The name under which an index is built again; it gets its own name, as an alias, when it is complete."""
    return keys.index("rebuilt:") + name.removeprefix(keys.index(""))


async def ensure_index(client: Redis, keys: Keys, schema: IndexSchema) -> bool:
    """Makes an index unless it is there, and waits until it holds all documents; True when this call made it.

    Any number of processes may do so at once, while others use the store: an index of a store that was built before is built under
    another name first, so that no search sees a part of it. Raises StartupError when it is not complete after ten minutes.
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
        aside = rebuilt_name(keys, name)
        made = await _create(client, IndexSchema.from_dict({**schema.to_dict(), "index": {**schema.to_dict()["index"], "name": aside}}))
        # Whoever finds it begun waits for its end and names it, too: the process that began it may be gone.
        hold = made and any(field.type == "text" for field in schema.fields.values())
        await (_complete_alone(client, aside) if hold else _complete(client, aside))
        try:
            await client.eval(_ADD_ALIAS, 0, name, aside)
        except ResponseError as error:
            if "already exists" not in str(error).lower():
                raise
    return made


async def note_built(client: Redis, keys: Keys) -> None:
    """Notes that the store has had all its indexes: from then on one that is missing is built aside."""
    with redis_errors():
        if not await client.hget(keys.config, BUILT):
            await client.hset(keys.config, BUILT, "1")


async def _create(client: Redis, schema: IndexSchema) -> bool:
    """Begins an index; False when another process was faster."""
    try:
        await AsyncSearchIndex(schema, redis_client=client).create(overwrite=False)
    except Exception as error:
        # redisvl wraps redis-py's error; another process that was faster is the one case that is fine.
        if not await _info(client, schema.index.name):
            if isinstance(error.__cause__, RedisError) and (ours := translate_error(error.__cause__)) is not None:
                raise ours from error
            raise StartupError(f"cannot make the search index {schema.index.name}: {str(error)[:200]}") from error
        return False
    return True


async def _complete(client: Redis, name: str) -> None:
    """Waits until an index holds all documents. Documents written meanwhile are indexed twice by RediSearch 2.10."""
    deadline = asyncio.get_running_loop().time() + _BUILD_SECONDS
    while int((await _info(client, name) or {}).get(b"indexing", 0)) != 0:
        if asyncio.get_running_loop().time() > deadline:
            raise StartupError(f"the search index {name} is still being built after {_BUILD_SECONDS:.0f} s")
        await asyncio.sleep(0.02)


async def _complete_alone(client: Redis, name: str) -> None:
    """As `_complete`; meanwhile Redis holds the writes of all processes back, for some seconds at most, which no caller sees as an error.

    Words that are indexed twice count twice in the statistics until the engine's collector runs. A Redis user who may not hold writes
    back has that; what is written is found all the same.
    """
    waiting = asyncio.create_task(_complete(client, name))
    until = asyncio.get_running_loop().time() + _PAUSED_SECONDS
    try:
        while not waiting.done() and (left := until - asyncio.get_running_loop().time()) > 0:
            await client.execute_command("CLIENT", "PAUSE", min(_PAUSE_MS, int(left * 1000) + 1), "WRITE")
            await asyncio.wait({waiting}, timeout=_PAUSE_MS / 2000)
        await client.execute_command("CLIENT", "UNPAUSE")
    except NoPermissionError:
        log.info("this Redis user may not hold writes back while the search index %s is built", name)
    finally:
        if not waiting.done():
            await asyncio.wait({waiting})
    waiting.result()


async def former_indexes(client: Redis, keys: Keys, schemas: Collection[IndexSchema]) -> list[str]:
    """The indexes of this store that another embedding model left behind, beside those of `schemas`."""
    with redis_errors():
        listed: list[bytes] = await client.execute_command("FT._LIST") or []
    prefix = keys.index("")
    own = {schema.index.name for schema in schemas}
    names = [name.decode() for name in listed]
    kinds = {name.removeprefix(prefix).split(":")[0] for name in own}
    theirs = {one: one.removeprefix(prefix).removeprefix("rebuilt:") for one in names if one.startswith(prefix)}
    return [one for one, base in theirs.items() if prefix + base not in own and base.split(":")[0] in kinds]


async def drop_index(client: Redis, name: str) -> None:
    """Drops an index; its documents stay. One that another process has dropped is fine."""
    with redis_errors():
        try:
            await client.execute_command("FT.DROPINDEX", name)
        except ResponseError as error:
            log.info("the index %s was dropped by another process: %s", name, error)


async def has_index(client: Redis, name: str) -> bool:
    """Whether searches find an index under its name."""
    with redis_errors():
        return await _info(client, name) is not None


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
