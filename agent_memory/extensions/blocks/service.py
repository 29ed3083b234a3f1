"""Read, change and attach memory blocks."""

from __future__ import annotations

from dataclasses import replace

from agent_memory.extensions.blocks.codec import SETTINGS, StoredBlock
from agent_memory.extensions.blocks.owners import BlockOwner
from agent_memory.extensions.blocks.refusal_messages import no_block, refusal
from agent_memory.extensions.blocks.store import BlockStore, BlockWrite, choose_blocks
from agent_memory.foundation.api.principals import writing
from agent_memory.foundation.core.errors import Conflict, NotFound
from agent_memory.foundation.core.prompt_sections import Reader
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory_client.models import AckResponse
from agent_memory_client.models.features.blocks import (
    Block,
    BlockEdit,
    BlockHistoryResponse,
    BlockListResponse,
    EditBlockRequest,
    PutBlockRequest,
)

# Maximum attempts for a change whose tokens Python must count. A concurrent change makes the count stale.
_TRIES = 20


class BlockService:
    """Reads and changes blocks. Every method can raise Forbidden."""

    def __init__(self, store: BlockStore, counter: TokenCounter) -> None:
        self._store = store
        self._counter = counter

    async def get(self, scope: Scope, owner: BlockOwner, label: str) -> Block:
        """Return a block. Raises NotFound."""
        block = await self._store.load(scope, owner, label)
        if block is None:
            raise no_block(label)
        return await self._model(block)

    async def list_blocks(self, scope: Scope, owner: BlockOwner) -> BlockListResponse:
        return BlockListResponse(blocks=[await self._model(block) for block in await self._store.load_all(scope, owner)])

    async def list_shown(self, scope: Scope, reader: Reader) -> BlockListResponse:
        """Return the blocks shown in the reader's prompts."""
        chosen = choose_blocks(await self._store.load_shown(scope, reader))
        return BlockListResponse(blocks=[await self._model(shown_block.block) for shown_block in chosen])

    async def put(self, scope: Scope, owner: BlockOwner, label: str, body: PutBlockRequest, expected: str | None) -> BlockEdit:
        """Create or change a block. Raises VersionMismatch, BlockFull or Conflict."""
        settings = {SETTINGS[name]: value for name in SETTINGS if (value := getattr(body, name)) is not None}
        tokens = await self._count(body.value)
        return await self._write(scope, owner, label, BlockWrite("put", body.value, expected=expected, tokens=tokens, settings=settings))

    async def edit(self, scope: Scope, owner: BlockOwner, label: str, body: EditBlockRequest, expected: str | None = None) -> BlockEdit:
        """Edit a block's text. Raises NotFound, VersionMismatch, BlockFull or Forbidden.

        Raises Conflict unless the text to replace occurs exactly once.
        """
        tokens = await self._count(body.content)
        write = BlockWrite(body.operation, body.content, body.old_content, body.line, expected=expected, tokens=tokens)
        return await self._write(scope, owner, label, write)

    async def edit_shown(self, scope: Scope, reader: Reader, label: str, body: EditBlockRequest) -> BlockEdit:
        """Edit the block with this label in the reader's prompts. Raises the errors of `edit`."""
        writing(scope)
        chosen = choose_blocks(await self._store.load_shown(scope, reader))
        owner = next((shown_block.block.owner for shown_block in chosen if shown_block.block.label == label), None)
        if owner is None:
            labels = ", ".join(shown_block.block.label for shown_block in chosen) or "none"
            raise NotFound(f"there is no block {label!r} here; there are: {labels}")
        return await self.edit(scope, owner, label, body)

    async def undo(self, scope: Scope, owner: BlockOwner, label: str, version: int | None, expected: str | None) -> BlockEdit:
        """Undo the change that created `version`, or the newest change if it is None.

        Raises NotFound, VersionMismatch, BlockFull or Forbidden. Raises Conflict if a later change affected the same
        text or setting.
        """
        return await self._write(scope, owner, label, BlockWrite("undo", version=version, expected=expected))

    async def delete(self, scope: Scope, owner: BlockOwner, label: str, expected: str | None) -> AckResponse:
        """Delete a block and its history. Raises VersionMismatch.

        A missing block is an error only if `expected` is set.
        """
        reply = await self._store.delete(scope, owner, label, expected)
        if reply.state == "version" or (reply.state == "missing" and expected is not None):
            raise refusal(label, replace(reply, state="version"))
        return AckResponse(status="ok" if reply.state == "ok" else "ok, the block did not exist")

    async def attach(self, scope: Scope, owner: BlockOwner, label: str, target: BlockOwner, *, attach: bool) -> Block:
        """Attach a block to `target`, or detach it. Raises NotFound or Conflict."""
        if owner == target:
            raise Conflict("the block already belongs to this owner: name another owner to attach it to", field="agent_id")
        reply = await self._store.attach(scope, owner, label, target, attach=attach)
        if reply.block is None:
            raise refusal(label, reply)
        return await self._model(reply.block)

    async def history(self, scope: Scope, owner: BlockOwner, label: str) -> BlockHistoryResponse:
        """Return a block's changes and the text before the first one. Raises NotFound."""
        block, changes = await self._store.load_changes(scope, owner, label)
        if block is None:
            raise no_block(label)
        return BlockHistoryResponse(label=label, base=block.base, changes=changes)

    async def _write(self, scope: Scope, owner: BlockOwner, label: str, write: BlockWrite) -> BlockEdit:
        for _ in range(_TRIES):
            reply = await self._store.change(scope, owner, label, write)
            if reply.state != "count":
                break
            write = replace(write, counted={"version": reply.size, "tokens": await self._count(reply.text)})
        else:
            raise Conflict(f"the block {label!r} is constantly being changed by other requests: try again")
        if reply.state not in ("ok", "same"):
            raise refusal(label, reply, write.old_content or "")
        assert reply.block is not None, "the script answers with the block"
        return BlockEdit.model_construct(None, block=await self._model(reply.block), change=reply.change)

    async def _model(self, block: StoredBlock) -> Block:
        return block.model(await self._count(block.value))

    async def _count(self, text: str | None) -> int:
        return await self._counter.count_in_thread(text) if text else 0
