"""JSON values stored under a namespace path and a key, like in LangGraph's stores."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field

from agent_memory_client.models._types import MAX_ID_BYTES, AnyObject, ExactName, FreeText, Instant, ItemKey

MAX_ITEM_OPERATIONS = 1000
"""The maximum number of operations in a batch."""

ItemPath: TypeAlias = Annotated[list[ExactName], Field(min_length=1, max_length=32)]
"""A namespace path: 1 to 32 labels of at most 512 bytes each."""

ItemPrefix: TypeAlias = Annotated[list[ExactName], Field(max_length=32)]
"""The beginning of a namespace path. An empty list matches every path."""
ItemIndex: TypeAlias = Literal[False] | Annotated[list[Annotated[FreeText, Field(max_length=MAX_ID_BYTES)]], Field(max_length=64)]
"""The paths of the fields to index, or `false` to index no fields."""
TtlMinutes: TypeAlias = Annotated[float, Field(gt=0, le=52_704_000, allow_inf_nan=False)]
"""Minutes, at most 52,704,000 (a hundred years)."""


class Item(BaseModel):
    """A stored item."""

    path: list[str]
    key: str
    value: dict[str, Any]
    """The stored value: a JSON object."""
    created_at: Instant
    """The time when the item was first stored."""
    updated_at: Instant
    """The time when the item was last stored."""


class ScoredItem(Item):
    """An item that a search returned."""

    score: float | None = None
    """How well the item matches the query, at most 1. Null if there is no query or the item is not indexed."""


class PutItem(BaseModel):
    """Store a value, replacing any value for this path and key. The creation time is kept."""

    op: Literal["put"] = "put"
    path: ItemPath
    key: ItemKey
    value: AnyObject
    """The value: a JSON object."""
    index: ItemIndex | None = None
    """The fields to search by meaning and keywords, such as `title`, `author.name`, `chapters[*].text`. Default: all
    fields. `false`: no fields."""
    ttl_minutes: TtlMinutes | None = None
    """The item expires this many minutes after it was last read or stored. By default, it never expires."""


class GetItem(BaseModel):
    """Get a value."""

    op: Literal["get"] = "get"
    path: ItemPath
    key: ItemKey
    refresh_ttl: bool = True
    """True if the read restarts the item's TTL."""


class DeleteItem(BaseModel):
    """Delete a value, if it exists."""

    op: Literal["delete"] = "delete"
    path: ItemPath
    key: ItemKey


class SearchItems(BaseModel):
    """Search under a path for values that match a filter, optionally ranked by a query."""

    op: Literal["search"] = "search"
    prefix: ItemPrefix = Field(default_factory=list[str])
    """Search items under this path, at any depth. An empty list searches all items."""
    query: FreeText | None = None
    """The query, compared by meaning and keywords. Without it, items are sorted by path and key."""
    filter: AnyObject | None = None
    """Conditions by field: a value, an object of conditions for nested fields, or operators (`$eq`, `$ne`, `$gt`,
    `$gte`, `$lt`, `$lte`)."""
    limit: Annotated[int, Field(ge=0, le=10_000)] = 10
    """The number of items to return, at most 10,000."""
    offset: Annotated[int, Field(ge=0, le=100_000)] = 0
    """The number of items to skip, at most 100,000."""
    refresh_ttl: bool = True
    """True if the search restarts the TTL of the returned items."""


class PathCondition(BaseModel):
    """A condition on the beginning or end of a namespace path."""

    match_type: Literal["prefix", "suffix"]
    """Which end of the path to compare: `prefix` or `suffix`."""
    path: ItemPrefix
    """The labels at this end. `*` matches any label."""


class ListItemPaths(BaseModel):
    """List the namespace paths that contain items."""

    op: Literal["list_namespaces"] = "list_namespaces"
    match_conditions: Annotated[list[PathCondition], Field(max_length=64)] = Field(default_factory=list[PathCondition])
    """Conditions for the beginning and end of a path. A path must match all of them."""
    max_depth: Annotated[int, Field(ge=1, le=32)] | None = None
    """The maximum number of labels in a returned path. Longer paths are truncated."""
    limit: Annotated[int, Field(ge=0, le=10_000)] = 100
    """The number of paths to return, at most 10,000."""
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """The number of paths to skip, at most 1,000,000."""


ItemOperation: TypeAlias = Annotated[PutItem | GetItem | DeleteItem | SearchItems | ListItemPaths, Field(discriminator="op")]
"""One operation in a batch."""


class ItemBatch(BaseModel):
    """Operations to run in one request.

    Reads return values from before the batch. If a batch writes to a key more than once, the last
    write wins.
    """

    operations: Annotated[list[ItemOperation], Field(max_length=MAX_ITEM_OPERATIONS)]
    """The operations, at most 1,000. `op` is the kind of operation."""


class ItemSearchResults(BaseModel):
    """The items that match a search, best first."""

    items: list[ScoredItem]
    """The items, best match first."""


class ItemPaths(BaseModel):
    """The namespace paths that contain items."""

    namespaces: list[list[str]]
    """The paths, sorted."""


class ItemResult(BaseModel):
    """The result of an operation, in the field for its kind. A put or delete sets no field."""

    item: Item | None = None
    """The item that a get returned. Null if it does not exist."""
    items: list[ScoredItem] | None = None
    """The items that a search found."""
    namespaces: list[list[str]] | None = None
    """The paths that a listing found."""


class ItemBatchResults(BaseModel):
    """The results of a batch, in the order of its operations."""

    results: list[ItemResult]
    """One result per operation, in the same order."""
