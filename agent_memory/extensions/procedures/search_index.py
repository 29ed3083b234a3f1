"""Define the Redis keys and the search index for procedures and tools."""

from __future__ import annotations

from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search.indexes import (
    SCHEMA_VERSION,
    IndexSchema,
    VectorSpec,
    index_schema,
    number_fields,
    tag_fields,
    vector_field,
    word_field,
)


class ProcedureKeys:
    def __init__(self, root: str) -> None:
        self.prefix = f"{root}pr:"
        """The key prefix that the search index covers."""
        self.failing = f"{root}prf"
        """The key of the set of procedures with unchecked failures."""
        self._root = root

    def procedure(self, pid: str) -> str:
        """Return the key of a procedure or of a tool's statistics."""
        return f"{self.prefix}{pid}"

    def changes(self, pid: str) -> str:
        return f"{self.prefix}{pid}:c"

    def feedback(self, pid: str) -> str:
        return f"{self.prefix}{pid}:f"

    def learned(self, owner: str) -> str:
        """Return the key of a counter that detects concurrent learning."""
        return f"{self._root}po:{owner}"


def procedure_index_name(keys: Keys, spec: VectorSpec) -> str:
    return keys.index(f"pr:{SCHEMA_VERSION}:{spec.digest}")


def index_schemas(keys: Keys, spec: VectorSpec) -> dict[str, IndexSchema]:
    owners = tag_fields("u", "ns", "ag")
    for field in owners:
        field["attrs"]["index_missing"] = True
    fields = [*tag_fields("t"), *owners, *tag_fields("kd", "st", "rs", "tl", "s", "ow", "em"), *number_fields("c", sortable=True)]
    name, prefix = procedure_index_name(keys, spec), ProcedureKeys(keys.root).prefix
    return {"procedures": index_schema(name, prefix, [*fields, word_field(), vector_field(spec)])}
