"""Items: JSON values by namespace path and key, as in LangGraph's stores."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field

from agent_memory_client.models._types import MAX_ID_BYTES, AnyObject, ExactName, FreeText, Instant, ItemKey

MAX_ITEM_OPERATIONS = 1000
"""The largest number of operations in a batch."""

ItemPath: TypeAlias = Annotated[list[ExactName], Field(min_length=1, max_length=32)]
"""A namespace path: 1 to 32 labels of at most 512 bytes each."""

ItemPrefix: TypeAlias = Annotated[list[ExactName], Field(max_length=32)]
"""The beginning of a namespace path; empty for every path."""
ItemIndex: TypeAlias = Literal[False] | Annotated[list[Annotated[FreeText, Field(max_length=MAX_ID_BYTES)]], Field(max_length=64)]
"""Paths of fields to index, or `false` for no fields."""
TtlMinutes: TypeAlias = Annotated[float, Field(gt=0, le=52_704_000, allow_inf_nan=False)]
"""Minutes, at most 52,704,000 (a hundred years)."""


class Item(BaseModel):
    """A stored item."""

    path: list[str]
    key: str
    value: dict[str, Any]
    """The stored value, a JSON object."""
    created_at: Instant
    """The time when the item was first put."""
    updated_at: Instant
    """The time when the item was last put."""


class ScoredItem(Item):
    """An item that a search found."""

    score: float | None = None
    """How well the item matches the query, at most 1. Null without a query, and for items that are not indexed."""


class PutItem(BaseModel):
    """Store a value. It replaces a value under the same path and key, and keeps the time of creation."""

    op: Literal["put"] = "put"
    path: ItemPath
    key: ItemKey
    value: AnyObject
    """The value, a JSON object."""
    index: ItemIndex | None = None
    """The fields to search by meaning and words, such as `title`, `author.name`, `chapters[*].text`. Default: all
    fields. `false`: no fields."""
    ttl_minutes: TtlMinutes | None = None
    """The minutes after which the item expires if nobody reads or puts it. By default, it never expires."""


class GetItem(BaseModel):
    """Read a value."""

    op: Literal["get"] = "get"
    path: ItemPath
    key: ItemKey
    refresh_ttl: bool = True
    """True if the read restarts the item's time to live."""


class DeleteItem(BaseModel):
    """Delete a value; a missing value is no error."""

    op: Literal["delete"] = "delete"
    path: ItemPath
    key: ItemKey


class SearchItems(BaseModel):
    """Find values under a path by a filter, and sort them by their match with a query."""

    op: Literal["search"] = "search"
    prefix: ItemPrefix = Field(default_factory=list[str])
    """Search items under this path, at any depth; empty for all items."""
    query: FreeText | None = None
    """The query, compared by meaning and by words. Without it, items are sorted by path and key."""
    filter: AnyObject | None = None
    """Conditions by field: a value, an object of conditions for nested fields, or operators (`$eq`, `$ne`, `$gt`,
    `$gte`, `$lt`, `$lte`)."""
    limit: Annotated[int, Field(ge=0, le=10_000)] = 10
    """The number of items to return, at most 10,000."""
    offset: Annotated[int, Field(ge=0, le=100_000)] = 0
    """The number of items to skip, at most 100,000."""
    refresh_ttl: bool = True
    """True if the search restarts the time to live of the returned items."""


class PathCondition(BaseModel):
    """The beginning or the end of a namespace path."""

    match_type: Literal["prefix", "suffix"]
    """The end of the path to compare: `prefix` or `suffix`."""
    path: ItemPrefix
    """The labels at this end; `*` matches any label."""


class ListItemPaths(BaseModel):
    """List the namespace paths that contain items."""

    op: Literal["list_namespaces"] = "list_namespaces"
    match_conditions: Annotated[list[PathCondition], Field(max_length=64)] = Field(default_factory=list[PathCondition])
    """Conditions for the beginning and end of a path. A path must match all of them."""
    max_depth: Annotated[int, Field(ge=1, le=32)] | None = None
    """The largest number of labels in a returned path. Longer paths are cut."""
    limit: Annotated[int, Field(ge=0, le=10_000)] = 100
    """The number of paths to return, at most 10,000."""
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """The number of paths to skip, at most 1,000,000."""


ItemOperation: TypeAlias = Annotated[PutItem | GetItem | DeleteItem | SearchItems | ListItemPaths, Field(discriminator="op")]
"""One operation of a batch."""


class ItemBatch(BaseModel):
    """Operations for one round trip.

    Reads see the state before the batch. If a batch writes a key several times, the last write wins.
    """

    operations: Annotated[list[ItemOperation], Field(max_length=MAX_ITEM_OPERATIONS)]
    """The operations, each with its `op`. At most 1,000."""


class ItemSearchResults(BaseModel):
    """The results of a search."""

    items: list[ScoredItem]
    """The items, best match first."""


class ItemPaths(BaseModel):
    """Namespace paths that contain items."""

    namespaces: list[list[str]]
    """The paths, sorted."""


class ItemResult(BaseModel):
    """The result of one operation in a batch. It has the field of its kind; a put or delete has no field."""

    item: Item | None = None
    """The item of a get; null if it does not exist."""
    items: list[ScoredItem] | None = None
    """The items of a search."""
    namespaces: list[list[str]] | None = None
    """The paths of a list."""


class ItemBatchResults(BaseModel):
    """The results of a batch."""

    results: list[ItemResult]
    """One result for each operation, in the same order."""
