"""The search indexes: what they hold, how they are made by several processes at once, and how a new embedding model gets its own."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError
from redisvl.index import AsyncSearchIndex
from redisvl.schema import IndexSchema

from agent_memory.errors import StartupError
from agent_memory.storage.connection import redis_errors
from agent_memory.storage.keys import Keys

log = logging.getLogger(__name__)

SCHEMA_VERSION = 3
_BUILD_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class VectorSpec:
    """The vectors of one embedding model: only vectors of the same model share a field, so that none is ever compared with another's."""

    model: str
    dimensions: int
    algorithm: str = "FLAT"
    datatype: str = "FLOAT16"

    @property
    def digest(self) -> str:
        text = f"{self.model}\n{self.dimensions}\n{self.datatype}\n{self.algorithm}"
        return blake2b(text.encode(), digest_size=4).hexdigest()

    @property
    def field(self) -> str:
        return f"v_{self.digest}"

    @property
    def numpy_type(self) -> str:
        return self.datatype.lower()


def _tags(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "type": "tag", "attrs": {"case_sensitive": True}} for name in names]


def _numbers(*names: str, sortable: bool = False) -> list[dict[str, Any]]:
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
    words = {"name": "k", "type": "text", "attrs": {"no_stem": True}}
    return _schema(memory_index_name(keys), keys.memory_prefix, [*_memory_fields(), *_numbers("n", sortable=True), words])


def vector_schema(keys: Keys, spec: VectorSpec) -> IndexSchema:
    """Their vectors, with the same tags and times."""
    return _schema(vector_index_name(keys, spec), keys.vector_prefix, [*_memory_fields(), _vector(spec)])


def history_schema(keys: Keys, spec: VectorSpec) -> IndexSchema:
    """What is no longer current, words and vector in one document (it comes as a whole); `rt` is when a version was retired."""
    words = {"name": "k", "type": "text", "attrs": {"no_stem": True}}
    return _schema(history_index_name(keys, spec), keys.history_prefix, [*_memory_fields(), *_numbers("rt"), words, _vector(spec)])


def change_schema(keys: Keys) -> IndexSchema:
    """Changes of memories: whose, of which kind and batch, in which state, and when."""
    fields = [*_tags("t", "ns", "u", "kd", "bt", "st"), *_numbers("at", sortable=True)]
    return _schema(change_index_name(keys), keys.change_prefix, fields)


def _vector(spec: VectorSpec) -> dict[str, Any]:
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
    tags = _tags("t", "ns", "u", "s", "ty", "st", "tp", "en", "ag", "sl", "ct", "sc", "md")
    # `vf` and `z`: true from and until; `b`: not true before (only where that lay ahead when it was written); `ra`: recorded at.
    return [*tags, *_numbers("c", sortable=True), *_numbers("la", "e", "vf", "z", "b", "ra", "tr")]


def session_schema(keys: Keys) -> IndexSchema:
    """Sessions: identity and the time of their creation."""
    return _schema(session_index_name(keys), keys.session_doc_prefix, [*_tags("t", "ns", "u", "s"), *_numbers("c", sortable=True)])


def _schema(name: str, prefix: str, fields: list[dict[str, Any]]) -> IndexSchema:
    # No stop words: with the default list a query that begins with two of them can kill RediSearch 2.10; analysis.py drops them instead.
    # The prefix ends in ":" already; redisvl would only use the separator to build keys, which it never does for us.
    index = {"name": name, "prefix": prefix, "key_separator": ":", "storage_type": "hash", "stopwords": []}
    return IndexSchema.from_dict({"index": index, "fields": fields})


async def ensure_index(client: Redis, schema: IndexSchema) -> bool:
    """Makes an index unless it is there, and waits until it holds all documents; True when this call made it.

    Documents written while a new index is still scanning are indexed twice by RediSearch 2.10, so nobody writes before.
    Raises StartupError when it is not complete after ten minutes.
    """
    name = schema.index.name
    made = False
    with redis_errors():
        if not await _info(client, name):
            try:
                await AsyncSearchIndex(schema, redis_client=client).create(overwrite=False)
                made = True
            except Exception as error:
                # redisvl wraps redis-py's error; another process that was faster is the one case that is fine.
                if not await _info(client, name):
                    raise StartupError(f"cannot make the search index {name}: {str(error)[:200]}") from error
        deadline = asyncio.get_running_loop().time() + _BUILD_SECONDS
        while int((await _info(client, name) or {}).get(b"indexing", 0)) != 0:
            if asyncio.get_running_loop().time() > deadline:
                raise StartupError(f"the search index {name} is still being built after {_BUILD_SECONDS:.0f} s")
            await asyncio.sleep(0.02)
    return made


async def some_index(client: Redis, keys: Keys) -> bool:
    """Whether these keys have an index of any version: then a store has been made there."""
    with redis_errors():
        listed: list[bytes] = await client.execute_command("FT._LIST") or []
    return any(name.startswith(keys.index("").encode()) for name in listed)


async def former_indexes(client: Redis, keys: Keys, spec: VectorSpec) -> list[str]:
    """The indexes of this store that a former version or another embedding model left behind."""
    with redis_errors():
        listed: list[bytes] = await client.execute_command("FT._LIST") or []
    prefix = keys.index("")
    own = {memory_index_name(keys), vector_index_name(keys, spec), history_index_name(keys, spec)}
    own |= {change_index_name(keys), session_index_name(keys)}
    names = [name.decode() for name in listed]
    kinds = ("m", "v", "w", "h", "ch")
    return [one for one in names if one.startswith(prefix) and one not in own and one.removeprefix(prefix).split(":")[0] in kinds]


async def drop_index(client: Redis, name: str) -> None:
    """Drops an index; its documents stay. One that another process has dropped is fine."""
    with redis_errors():
        try:
            await client.execute_command("FT.DROPINDEX", name)
        except ResponseError as error:
            log.info("the index %s was dropped by another process: %s", name, error)


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
