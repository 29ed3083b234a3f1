"""Memory blocks: labeled texts that agents edit, and that appear in their owner's prompts."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias, TypedDict

from pydantic import BaseModel, Field, model_validator

from agent_memory_client.models._types import Absent, FreeText, Instant, JsonObject, OptionalIdentifier, SessionIdentifier

MAX_BLOCK_CHARS = 20_000
DEFAULT_BLOCK_CHARS = 2_000
MAX_LABEL_CHARS = 64
MAX_DESCRIPTION_CHARS = 500

BlockLabel: TypeAlias = Annotated[SessionIdentifier, Field(max_length=MAX_LABEL_CHARS)]
"""A block's label: at most 64 characters, without '/'."""

BlockText: TypeAlias = Annotated[FreeText, Field(max_length=MAX_BLOCK_CHARS)]
"""The text of a block, or part of it."""

BlockOperation: TypeAlias = Literal["append", "replace", "insert", "rethink"]
"""The kind of edit: append a line, replace an exact text, insert a line, or rewrite the whole text (`rethink`)."""


class BlocksInPrompt(BaseModel):
    """Statistics that a prompt shows in addition to the blocks."""

    counts: bool = True
    """True to show when a block was last edited, and how many memories and messages the agent can search."""


class BlockOwner(BaseModel):
    """The owner of a block. All three values must match exactly."""

    namespace: OptionalIdentifier = None
    user_id: OptionalIdentifier = None
    agent_id: OptionalIdentifier = None
    """The agent that owns the block. Null means every agent."""


class OwnerNames(TypedDict, total=False):
    """The owner of a block. All values must match exactly.

    `namespace` defaults to the client's default namespace.
    """

    agent_id: str | None
    user_id: str | None
    namespace: str | None


class Block(BlockOwner):
    """A memory block."""

    label: str
    """The block's name, such as `human` or `persona`."""
    value: str
    """The block's text."""
    description: str = ""
    """The block's purpose. The agent reads it in each prompt."""
    limit: int = DEFAULT_BLOCK_CHARS
    """The maximum size of the text, in characters."""
    limit_tokens: int | None = None
    """The maximum size of the text, in tokens. Null means no limit."""
    read_only: bool = False
    """True if edits are rejected, so that only a PUT can change the block."""
    chars: int
    """The size of the text, in characters."""
    tokens: int
    """The size of the text, in tokens."""
    version: int
    """The number of changes, starting at 1. The response's ETag contains it, for use with `If-Match`."""
    created_at: Instant
    updated_at: Instant
    attached_to: list[BlockOwner] = Field(default_factory=list[BlockOwner])
    """Other owners whose prompts show the block. Lists at most ten."""
    attached_count: int = 0
    """The number of other owners whose prompts show the block."""


class BlockListResponse(BaseModel):
    """Blocks, sorted by label."""

    blocks: list[Block]
    """The blocks, sorted by label."""


class PutBlockRequest(BaseModel):
    """The fields of a block. Fields that are not given are not changed."""

    value: BlockText | None = None
    """The whole text. Default for a new block: empty."""
    description: Annotated[FreeText, Field(max_length=MAX_DESCRIPTION_CHARS)] | None = None
    """The block's purpose. The agent reads it in each prompt."""
    limit: Annotated[int, Field(ge=1, le=MAX_BLOCK_CHARS)] | None = None
    """The maximum size of the text, in characters. Default for a new block: 2,000."""
    limit_tokens: Annotated[int, Field(ge=0, le=MAX_BLOCK_CHARS)] | None = None
    """The maximum size of the text, in tokens. 0 means no limit."""
    read_only: bool | None = None
    """True to reject edits, so that only a PUT can change the block."""


class EditBlockRequest(BaseModel):
    """An edit to a block's text."""

    operation: BlockOperation
    """The kind of edit: `append` a line, `replace` an exact text, `insert` a line, or `rethink` (rewrite the whole
    text)."""
    content: BlockText
    """The new line, the replacement for the old text (empty deletes it), or the whole new text."""
    old_content: BlockText | None = None
    """For `replace`: the exact text to replace. The block must contain it exactly once."""
    line: Annotated[int, Field(ge=1, le=MAX_BLOCK_CHARS + 1)] | None = None
    """For `insert`: the line number of the new line, starting at 1. A number after the last line appends the line."""

    @model_validator(mode="after")
    def _fits_operation(self) -> Self:
        if (self.operation == "replace") != bool(self.old_content):
            raise ValueError("replace requires old_content; other operations do not accept it")
        if (self.operation == "insert") != (self.line is not None):
            raise ValueError("insert requires line; other operations do not accept it")
        if self.operation in ("append", "insert") and not self.content:
            raise ValueError("content must not be empty")
        return self


class UndoBlockRequest(BaseModel):
    """The change to undo."""

    version: Annotated[int, Field(ge=1, le=2**53 - 1)] | None = None
    """The version that the change created. Default: the newest version."""


class BlockChange(BaseModel):
    """A change to a block, in which `inserted` replaced `removed` at `position`."""

    version: int
    """The block's version after the change."""
    operation: str
    """The kind of change: `put`, `append`, `replace`, `insert`, `rethink` or `undo`."""
    position: int
    """The position of the change in the previous text, in characters, starting at 0."""
    removed: str
    """The deleted text."""
    inserted: str
    """The inserted text."""
    settings: JsonObject | None = Absent
    """The other fields that changed, each as [before, after]. Omitted if only the text changed."""
    undoes: int | None = Absent
    """The version whose change this one undoes. Omitted for other changes."""
    at: Instant
    """The time of the change."""
    actor: str = ""
    """The caller who made the change. Empty if the server does not require credentials."""
    said: str
    """A description of the change."""


class BlockEdit(BaseModel):
    """A block after a change, together with the change."""

    block: Block
    """The block after the change."""
    change: BlockChange | None = None
    """The change. Null if the block already had this content."""


class BlockHistoryResponse(BaseModel):
    """The changes to a block, oldest first. Applied to `base`, they produce the current text."""

    label: str
    """The block's label."""
    base: str
    """The text before the first of these changes. Empty, unless the server no longer has the oldest changes."""
    changes: list[BlockChange]
    """The changes that the server still has, at most 500."""


class BlockAttachRequest(BlockOwner):
    """Another owner whose prompts will show the block.

    At least one value is required, and all values must match exactly.
    """
