"""Define the search index of procedures and tools."""

from __future__ import annotations

from agent_memory.extensions.procedures.keys import ProcedureKeys
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


def procedure_index_name(keys: Keys, spec: VectorSpec) -> str:
    return keys.index(f"pr:{SCHEMA_VERSION}:{spec.digest}")


def procedure_schema(keys: Keys, spec: VectorSpec) -> IndexSchema:
    """Return the index schema. A procedure's words and vector are in one document; tools are indexed by name."""
    owners = tag_fields("u", "ns", "ag")
    for field in owners:
        field["attrs"]["index_missing"] = True
    fields = [*tag_fields("t"), *owners, *tag_fields("kd", "st", "rs", "tl", "s", "ow", "em"), *number_fields("c", sortable=True)]
    return index_schema(procedure_index_name(keys, spec), ProcedureKeys(keys.root).prefix, [*fields, word_field(), vector_field(spec)])


def index_schemas(keys: Keys, spec: VectorSpec) -> dict[str, IndexSchema]:
    return {"procedures": procedure_schema(keys, spec)}
