"""Memory blocks: labeled texts that appear in their owner's prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Unpack

from pydantic import AliasChoices, BaseModel, Field

from agent_memory_client._tools.arguments import parse_arguments
from agent_memory_client._tools.definitions import Definition, text_rule
from agent_memory_client._tools.scope import ToolScope
from agent_memory_client._wire.requests import Call, Method, idempotency_headers, omit_none, query, segment
from agent_memory_client.errors import MemoryNotFoundError
from agent_memory_client.models import AckResponse
from agent_memory_client.models.features.blocks import Block, BlockEdit, BlockHistoryResponse, BlockListResponse, BlockOperation, OwnerNames
from agent_memory_client.resources.base import Resource
from agent_memory_client.resources.model_tools import ModelTools

_PATH = "/v1/blocks"
CORE_MEMORY_APPEND, CORE_MEMORY_REPLACE = "core_memory_append", "core_memory_replace"


class Blocks(Resource):
    """Create, read, edit and share memory blocks.

    A block is found only if `agent_id`, `user_id` and `namespace` (default: the client's) match
    exactly. If the block's version differs from `if_match`, calls raise
    MemoryPreconditionFailedError.
    """

    async def list(self, *, shown: bool = False, **owner: Unpack[OwnerNames]) -> BlockListResponse:
        """Return the blocks that have exactly this owner.

        With `shown`, return all blocks that appear in prompts for this agent, user and namespace.
        """
        return await self._read(BlockListResponse, Call("GET", _PATH, self._owner(owner) | query(shown=shown or None)))

    async def get(self, label: str, **owner: Unpack[OwnerNames]) -> Block:
        """Return a block. Raises MemoryNotFoundError."""
        return await self._read(Block, self._call("GET", label, owner))

    async def put(
        self,
        label: str,
        value: str | None = None,
        *,
        description: str | None = None,
        limit: int | None = None,
        limit_tokens: int | None = None,
        read_only: bool | None = None,
        if_match: int | None = None,
        **owner: Unpack[OwnerNames],
    ) -> BlockEdit:
        """Create a block, or change the given fields of an existing one.

        Raises MemoryServerError if the text is too long.
        """
        body = omit_none(value=value, description=description, limit=limit, limit_tokens=limit_tokens, read_only=read_only)
        return await self._read(BlockEdit, self._call("PUT", label, owner, json=body, headers=_matching(if_match)))

    async def edit(
        self,
        label: str,
        operation: BlockOperation,
        content: str,
        *,
        old_content: str | None = None,
        line: int | None = None,
        if_match: int | None = None,
        **owner: Unpack[OwnerNames],
    ) -> BlockEdit:
        """Edit a block's text.

        `append` and `insert` add a line, `replace` replaces exact text, and `rethink` rewrites the
        entire text. Raises MemoryNotFoundError if the block does not exist. Raises
        MemoryServerError if it is full or read-only, or does not contain the old text exactly once.
        """
        body = omit_none(operation=operation, content=content, old_content=old_content, line=line)
        return await self._read(BlockEdit, self._call("PATCH", label, owner, json=body, headers=_matching(if_match), idempotent=False))

    async def delete(self, label: str, *, if_match: int | None = None, **owner: Unpack[OwnerNames]) -> AckResponse:
        """Delete a block and its history, if it exists."""
        return await self._read(AckResponse, self._call("DELETE", label, owner, headers=_matching(if_match)))

    async def history(self, label: str, **owner: Unpack[OwnerNames]) -> BlockHistoryResponse:
        """Return the changes to a block, oldest first. Raises MemoryNotFoundError."""
        return await self._read(BlockHistoryResponse, self._call("GET", label, owner, "/history"))

    async def undo(self, label: str, version: int | None = None, *, if_match: int | None = None, **owner: Unpack[OwnerNames]) -> BlockEdit:
        """Undo the change that created `version`, or the newest change if `version` is None.

        Raises MemoryNotFoundError. Raises MemoryServerError if a later change conflicts with the
        undo.
        """
        headers = {**idempotency_headers(), **_matching(if_match)}
        return await self._read(BlockEdit, self._call("POST", label, owner, "/undo", json=omit_none(version=version), headers=headers))

    async def attach(self, label: str, to: Mapping[str, str], **owner: Unpack[OwnerNames]) -> Block:
        """Show a block in another owner's prompts too: `to={"agent_id": "helper"}`.

        Raises MemoryNotFoundError.
        """
        return await self._read(Block, self._call("POST", label, owner, "/attach", json=dict(to), headers=idempotency_headers()))

    async def detach(self, label: str, to: Mapping[str, str], **owner: Unpack[OwnerNames]) -> Block:
        """Stop showing a block in another owner's prompts. Raises MemoryNotFoundError."""
        return await self._read(Block, self._call("POST", label, owner, "/detach", json=dict(to), headers=idempotency_headers()))

    def _call(self, method: Method, label: str, owner: OwnerNames, action: str = "", **more: Any) -> Call:
        return Call(method, f"{_block_path(label)}{action}", self._owner(owner), **more)

    def _owner(self, owner: OwnerNames) -> dict[str, str]:
        return query(agent_id=owner.get("agent_id"), **self._scope(owner.get("namespace"), owner.get("user_id")))


class AppendArguments(BaseModel):
    """Arguments of core_memory_append."""

    label: Annotated[str, Field(min_length=1, validation_alias=AliasChoices("label", "section"))]
    content: Annotated[str, Field(min_length=1)]


class ReplaceArguments(BaseModel):
    """Arguments of core_memory_replace."""

    label: Annotated[str, Field(min_length=1, validation_alias=AliasChoices("label", "section"))]
    old_content: Annotated[str, Field(min_length=1)]
    new_content: str


_LABEL = text_rule("The label of the block, as the prompt shows it, such as 'human' or 'persona'.")


class BlockTools(ModelTools):
    """Tools that let an agent edit the blocks in its prompts."""

    definitions: ClassVar[tuple[Definition, ...]] = (
        Definition(
            CORE_MEMORY_APPEND,
            "Add a line to a block of your core memory, which is part of every prompt. Use it when you learn something that must always be "
            "in mind. If the block is full, the call fails: move something to the archive, remove it from the block, and try again.",
            {"label": _LABEL, "content": text_rule("The line to add at the end of the block.")},
            ("label", "content"),
        ),
        Definition(
            CORE_MEMORY_REPLACE,
            "Replace text in a block of your core memory, to correct it or to make room. 'old_content' must be the exact "
            "text; an error shows the most similar line.",
            {
                "label": _LABEL,
                "old_content": text_rule("The exact text to replace."),
                "new_content": text_rule("The replacement; an empty text removes the old one."),
            },
            ("label", "old_content", "new_content"),
        ),
    )

    async def run_tool(self, name: str, values: Mapping[str, Any], scope: ToolScope) -> dict[str, Any]:
        """Edit a block and return its label, text and size."""
        body: dict[str, Any]
        if name == CORE_MEMORY_APPEND:
            appended = parse_arguments(AppendArguments, values)
            label, body = appended.label, {"operation": "append", "content": appended.content}
        else:
            replaced = parse_arguments(ReplaceArguments, values)
            label, body = replaced.label, {"operation": "replace", "content": replaced.new_content, "old_content": replaced.old_content}
        block = await self._shown_block(label, scope)
        owner = query(agent_id=block.agent_id, user_id=block.user_id, namespace=block.namespace)
        edit = await self._read(BlockEdit, Call("PATCH", _block_path(label), owner, json=body, idempotent=False))
        change_text = "nothing changed" if edit.change is None else edit.change.said
        size = f"{edit.block.chars} of {edit.block.limit} characters"
        return {"summary": f"{label}: {change_text}; it has {size} now", "label": label, "value": edit.block.value}

    async def _shown_block(self, label: str, scope: ToolScope) -> Block:
        """Return the block with this label that appears in the conversation's prompts.

        Raises MemoryNotFoundError.
        """
        params = query(agent_id=scope.agent_id, user_id=scope.user_id, namespace=scope.namespace, shown=True)
        blocks = (await self._read(BlockListResponse, Call("GET", _PATH, params))).blocks
        for block in blocks:
            if block.label == label:
                return block
        raise MemoryNotFoundError(f"there is no block {label!r}; there are: {', '.join(block.label for block in blocks) or 'none'}")


def _block_path(label: str) -> str:
    return f"{_PATH}/{segment('label', label)}"


def _matching(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}
