"""Memory blocks: labelled texts in every prompt of their owner, which an agent edits itself."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias, TypedDict

from pydantic import BaseModel, Field, model_validator

from agent_memory_client.models._types import Absent, FreeText, Instant, JsonObject, OptionalIdentifier, SessionIdentifier

MAX_BLOCK_CHARS = 20_000
DEFAULT_BLOCK_CHARS = 2_000
MAX_LABEL_CHARS = 64
MAX_DESCRIPTION_CHARS = 500

BlockLabel: TypeAlias = Annotated[SessionIdentifier, Field(max_length=MAX_LABEL_CHARS)]
"""What a block is called by its owner and its agents: at most 64 characters, without '/'."""

BlockText: TypeAlias = Annotated[FreeText, Field(max_length=MAX_BLOCK_CHARS)]
"""The text of a block, or a part of it."""

BlockOperation: TypeAlias = Literal["append", "replace", "insert", "rethink"]
"""What an edit does: adds a line at the end, replaces one exact text, inserts a line, or writes the whole text anew."""


class BlocksInPrompt(BaseModel):
    """What a prompt says of memory beside the blocks."""

    counts: bool = True
    """Whether it says when a block was last edited, and how many memories and messages can be searched beside the blocks."""


class BlockOwner(BaseModel):
    """Whose a block is: exactly the names that are given."""

    namespace: OptionalIdentifier = None
    user_id: OptionalIdentifier = None
    agent_id: OptionalIdentifier = None
    """The agent whose it is; null for every agent's."""


class OwnerNames(TypedDict, total=False):
    """The owner of a block: exactly the names that are given; the namespace is by default the client's."""

    agent_id: str | None
    user_id: str | None
    namespace: str | None


class Block(BlockOwner):
    """A memory block as it is stored."""

    label: str
    """What it is called, such as `human` or `persona`."""
    value: str
    """Its text."""
    description: str = ""
    """What it is for: the agent reads it in each prompt."""
    limit: int = DEFAULT_BLOCK_CHARS
    """How many characters the text may have."""
    limit_tokens: int | None = None
    """How many tokens the text may take; null for any number."""
    read_only: bool = False
    """Whether edits are refused; only a PUT changes it then."""
    chars: int
    """How many characters the text has."""
    tokens: int
    """How many tokens the text takes."""
    version: int
    """Counts its changes from 1; the ETag of the answer, for `If-Match`."""
    created_at: Instant
    updated_at: Instant
    attached_to: list[BlockOwner] = Field(default_factory=list[BlockOwner])
    """Whose prompts show it beside its owner's: the first ten of them."""
    attached_count: int = 0
    """How many owners' prompts show it beside its owner's."""


class BlockListResponse(BaseModel):
    """Blocks by label."""

    blocks: list[Block]
    """The blocks, in the order of their labels."""


class PutBlockRequest(BaseModel):
    """What a block is to be. Of one that exists, what is not given stays as it is."""

    value: BlockText | None = None
    """The whole text; a new block is empty when it is not given."""
    description: Annotated[FreeText, Field(max_length=MAX_DESCRIPTION_CHARS)] | None = None
    """What the block is for: the agent reads it in each prompt."""
    limit: Annotated[int, Field(ge=1, le=MAX_BLOCK_CHARS)] | None = None
    """How many characters the text may have; 2,000 for a new block when not given."""
    limit_tokens: Annotated[int, Field(ge=0, le=MAX_BLOCK_CHARS)] | None = None
    """How many tokens the text may take; 0 for any number."""
    read_only: bool | None = None
    """Whether edits are refused, so that only a PUT changes the block."""


class EditBlockRequest(BaseModel):
    """One edit of a block's text."""

    operation: BlockOperation
    """What to do: `append` a line, `replace` an exact text, `insert` a line, or `rethink`: write the whole text anew."""
    content: BlockText
    """The new text: the line, what stands in the place of the old text (empty removes it), or the whole."""
    old_content: BlockText | None = None
    """For `replace`: the exact text to replace, which the block must hold once."""
    line: Annotated[int, Field(ge=1, le=MAX_BLOCK_CHARS + 1)] | None = None
    """For `insert`: which line the new one becomes, 1 being the first; behind the last line it is appended."""

    @model_validator(mode="after")
    def _fits_operation(self) -> Self:
        if (self.operation == "replace") != bool(self.old_content):
            raise ValueError("old_content must be given for replace, and for nothing else")
        if (self.operation == "insert") != (self.line is not None):
            raise ValueError("line must be given for insert, and for nothing else")
        if self.operation in ("append", "insert") and not self.content:
            raise ValueError("content must not be empty")
        return self


class UndoBlockRequest(BaseModel):
    """Which change of a block is undone."""

    version: Annotated[int, Field(ge=1, le=2**53 - 1)] | None = None
    """The version that the change made; the newest when not given."""


class BlockChange(BaseModel):
    """A change of a block: in the text before it, at `position`, `removed` was replaced by `inserted`."""

    version: int
    """The version of the block that the change made."""
    operation: str
    """What was done: `put`, `append`, `replace`, `insert`, `rethink` or `undo`."""
    position: int
    """Before which character of the former text the change stands, counted from 0."""
    removed: str
    """The text that went."""
    inserted: str
    """The text that came in its place."""
    settings: JsonObject | None = Absent
    """What changed beside the text, each as [before, after]; left out when nothing did."""
    undoes: int | None = Absent
    """The version whose change it undoes; left out for other changes."""
    at: Instant
    """When it was done."""
    actor: str = ""
    """Whose credentials did it; empty where none are asked for."""
    said: str
    """What was done, in words."""


class BlockEdit(BaseModel):
    """A block after a change, and what was done."""

    block: Block
    """The block as it is now."""
    change: BlockChange | None = None
    """What was done; null when the block was like this already."""


class BlockHistoryResponse(BaseModel):
    """The changes of a block, oldest first: applied to `base` one after the other, they make its text."""

    label: str
    """The block's label."""
    base: str
    """The text before the first of these changes: empty, unless the oldest changes are no longer kept."""
    changes: list[BlockChange]
    """The changes that are kept, at most 500."""


class BlockAttachRequest(BlockOwner):
    """Whose prompts are to show a block, too: exactly the names that are given, at least one."""
