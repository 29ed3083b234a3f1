"""Define the Redis keys and the search index for items."""

from __future__ import annotations

from agent_memory.foundation.storage.keyspace import Keys, digest
from agent_memory.foundation.storage.search.indexes import (
    SCHEMA_VERSION,
    IndexSchema,
    VectorSpec,
    index_schema,
    tag_fields,
    vector_field,
    word_field,
)


class ItemKeys:
    def __init__(self, root: str) -> None:
        self.prefix = f"{root}it:"
        """The key prefix that the search index covers."""
        self._root = root

    def of(self, tenant: str, owner: str) -> dict[str, str]:
        """Return the script arguments for an owner, including its keys. `owner` is a digest."""
        keys = {"items": f"{self._root}its:{owner}", "expiries": self.expiries(owner), "paths": f"{self._root}itn:{owner}"}
        return keys | {"owners": self.owners(tenant), "root": self._root, "owner": owner}

    def expiries(self, owner: str) -> str:
        """Return the key of the sorted set of items with a TTL."""
        return f"{self._root}itx:{owner}"

    def owners(self, tenant: str) -> str:
        return f"{self._root}ito:{digest('item owners', tenant)}"


def item_index_name(keys: Keys, spec: VectorSpec) -> str:
    return keys.index(f"it:{SCHEMA_VERSION}:{spec.digest}")


def index_schemas(keys: Keys, spec: VectorSpec) -> dict[str, IndexSchema]:
    fields = [*tag_fields("px", "em"), word_field(), vector_field(spec)]
    return {"items": index_schema(item_index_name(keys, spec), ItemKeys(keys.root).prefix, fields)}
