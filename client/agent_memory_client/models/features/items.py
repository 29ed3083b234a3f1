"""Items: JSON values by namespace path and key, as in LangGraph's stores."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field

from agent_memory_client.models._types import MAX_ID_BYTES, AnyObject, ExactName, FreeText, Instant, ItemKey

MAX_ITEM_OPERATIONS = 1000
"""Operations in one batch."""

ItemPath: TypeAlias = Annotated[list[ExactName], Field(min_length=1, max_length=32)]
"""A namespace path: from 1 to 32 labels, each at most 512 bytes."""

ItemPrefix: TypeAlias = Annotated[list[ExactName], Field(max_length=32)]
"""The beginning of a namespace path; empty for every path."""
ItemIndex: TypeAlias = Literal[False] | Annotated[list[Annotated[FreeText, Field(max_length=MAX_ID_BYTES)]], Field(max_length=64)]
"""`false`, or paths of fields."""
TtlMinutes: TypeAlias = Annotated[float, Field(gt=0, le=52_704_000, allow_inf_nan=False)]
"""Minutes, at most a hundred years."""


class Item(BaseModel):
    """A stored value."""

    path: list[str]
    key: str
    value: dict[str, Any]
    """The value, as it was put."""
    created_at: Instant
    """When it was first put."""
    updated_at: Instant
    """When it was last put."""


class ScoredItem(Item):
    """A value that a search brought."""

    score: float | None = None
    """How well it fits the query, at most 1; null without a query, and for what is not indexed."""


class PutItem(BaseModel):
    """Stores a value; one under the same path and key is replaced, and keeps the time it was created."""

    op: Literal["put"] = "put"
    path: ItemPath
    key: ItemKey
    value: AnyObject
    """The value: a JSON object."""
    index: ItemIndex | None = None
    """The fields whose text is searched by meaning and words, such as `title`, `author.name`, `chapters[*].text`; all when
    not given, none when `false`."""
    ttl_minutes: TtlMinutes | None = None
    """After so many minutes without being read or put the item is gone; never when not given."""


class GetItem(BaseModel):
    """Reads a value."""

    op: Literal["get"] = "get"
    path: ItemPath
    key: ItemKey
    refresh_ttl: bool = True
    """Whether reading it makes it stay for its time to live again."""


class DeleteItem(BaseModel):
    """Deletes a value; one that is not there is no error."""

    op: Literal["delete"] = "delete"
    path: ItemPath
    key: ItemKey


class SearchItems(BaseModel):
    """Finds values under a path: by a filter, and in the order of how well they fit a query."""

    op: Literal["search"] = "search"
    prefix: ItemPrefix = Field(default_factory=list[str])
    """Items under this path, at any depth; all when empty."""
    query: FreeText | None = None
    """Words to look for, by meaning and by the words themselves; without one, items come in the order of their paths and keys."""
    filter: AnyObject | None = None
    """Which items count, by field: a value, an object of such filters for nested fields, or operators (`$eq`, `$ne`, `$gt`,
    `$gte`, `$lt`, `$lte`)."""
    limit: Annotated[int, Field(ge=0, le=10_000)] = 10
    """How many items to return."""
    offset: Annotated[int, Field(ge=0, le=100_000)] = 0
    """How many to leave out before them."""
    refresh_ttl: bool = True
    """Whether the items that are returned stay for their time to live again."""


class PathCondition(BaseModel):
    """What a namespace path begins or ends with."""

    match_type: Literal["prefix", "suffix"]
    """Which end of the path is looked at."""
    path: ItemPrefix
    """The labels there; `*` stands for any label."""


class ListItemPaths(BaseModel):
    """Lists the namespace paths that hold items."""

    op: Literal["list_namespaces"] = "list_namespaces"
    match_conditions: Annotated[list[PathCondition], Field(max_length=64)] = Field(default_factory=list[PathCondition])
    """What a path must begin and end with; every one counts."""
    max_depth: Annotated[int, Field(ge=1, le=32)] | None = None
    """Longer paths are cut off after so many labels."""
    limit: Annotated[int, Field(ge=0, le=10_000)] = 100
    """How many paths to return."""
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """How many to leave out before them."""


ItemOperation: TypeAlias = Annotated[PutItem | GetItem | DeleteItem | SearchItems | ListItemPaths, Field(discriminator="op")]
"""One operation of a batch."""


class ItemBatch(BaseModel):
    """Operations for one round trip. Reads see what was stored before the batch; of several writes of one key the last counts."""

    operations: Annotated[list[ItemOperation], Field(max_length=MAX_ITEM_OPERATIONS)]
    """The operations, each with its `op`."""


class ItemSearchResults(BaseModel):
    """What a search brought."""

    items: list[ScoredItem]
    """The items, those that fit best first."""


class ItemPaths(BaseModel):
    """Namespace paths that hold items."""

    namespaces: list[list[str]]
    """The paths, sorted."""


class ItemResult(BaseModel):
    """The answer to one operation of a batch: the field of its kind, none for a put or a delete."""

    item: Item | None = None
    """Of a get: the item, null when there is none."""
    items: list[ScoredItem] | None = None
    """Of a search: the items."""
    namespaces: list[list[str]] | None = None
    """Of a list: the paths."""


class ItemBatchResults(BaseModel):
    """The answers to a batch."""

    results: list[ItemResult]
    """One for each operation, in their order."""
