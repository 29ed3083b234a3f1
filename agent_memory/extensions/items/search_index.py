"""Define the search index of items."""

from __future__ import annotations

from agent_memory.extensions.items.keys import ItemKeys
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search.indexes import (
    SCHEMA_VERSION,
    IndexSchema,
    VectorSpec,
    index_schema,
    tag_fields,
    vector_field,
    word_field,
)


def item_index_name(keys: Keys, spec: VectorSpec) -> str:
    return keys.index(f"it:{SCHEMA_VERSION}:{spec.digest}")


def item_schema(keys: Keys, spec: VectorSpec) -> IndexSchema:
    """Return the index schema: digests of path prefixes (`px`), the vector's model (`em`), terms, and the vector."""
    fields = [*tag_fields("px", "em"), word_field(), vector_field(spec)]
    return index_schema(item_index_name(keys, spec), ItemKeys(keys.root).prefix, fields)


def index_schemas(keys: Keys, spec: VectorSpec) -> dict[str, IndexSchema]:
    return {"items": item_schema(keys, spec)}
