"""Export, import and erase memory blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from agent_memory.extensions.blocks.codec import SETTINGS, StoredBlock, replay_change
from agent_memory.extensions.blocks.owners import BlockOwner
from agent_memory.extensions.blocks.store import MAX_BLOCKS, MAX_CHANGES, BlockStore
from agent_memory.foundation.api.principals import place_of
from agent_memory.foundation.core.errors import BadInput, Forbidden
from agent_memory.foundation.core.feature import AgentOwner, ExportLine, Owner, RestoreTarget
from agent_memory.foundation.core.input.validation import validated
from agent_memory.foundation.core.permissions import permit_writing
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.storage.keyspace import tag
from agent_memory_client.models import OptionalIdentifier
from agent_memory_client.models.features.blocks import (
    MAX_BLOCK_CHARS,
    MAX_DESCRIPTION_CHARS,
    Block,
    BlockChange,
    BlockLabel,
    BlockText,
    PutBlockRequest,
)
from agent_memory_client.models.features.blocks import BlockOwner as WireOwner


class _BlockLine(BaseModel):
    """A block in an export. Applying `changes` to `base` must yield its text."""

    user_id: OptionalIdentifier = None
    namespace: OptionalIdentifier = None
    agent_id: OptionalIdentifier = None
    label: BlockLabel
    block: Block
    base: BlockText = ""
    changes: Annotated[list[BlockChange], Field(max_length=MAX_CHANGES)] = Field(default_factory=list[BlockChange])
    attached_to: Annotated[list[WireOwner], Field(max_length=1000)] = Field(default_factory=list[WireOwner])


class BlockTransfer:
    kinds = ("block",)

    def __init__(self, store: BlockStore, counter: TokenCounter) -> None:
        self._store = store
        self._counter = counter

    async def export_lines(self, scope: Scope, owner: Owner | AgentOwner) -> AsyncIterator[ExportLine]:
        """Yield one export line per block, omitting attachments to other users."""
        for block_owner in await self._store.owners_of(scope, owner):
            for block in await self._store.load_all(scope, block_owner):
                _, changes = await self._store.load_changes(scope, block_owner, block.label)
                targets = [target for target in block.attached_to if target.user_id in (None, block_owner.user_id)]
                tokens = await self._counter.count_in_thread(block.value)
                model = block.model(tokens).model_copy(update={"attached_to": [], "attached_count": 0})
                yield {
                    "kind": "block",
                    "namespace": block_owner.namespace,
                    "user_id": block_owner.user_id,
                    "agent_id": block_owner.agent_id,
                    "label": block.label,
                    "block": model.model_dump(mode="json", exclude={"namespace", "user_id", "agent_id", "label"}) | {"label": block.label},
                    "base": block.base,
                    "changes": [change.model_dump(mode="json") for change in changes],
                    "attached_to": [target.model().model_dump(mode="json") for target in targets],
                }

    export_agent = export_lines

    async def restore_line(self, scope: Scope, target: RestoreTarget, line: ExportLine) -> str:
        """Store a block with its history. Raises BadInput or Forbidden.

        Return "new" if stored. If the label exists, return "same" if the content matches, or else
        "other".
        """
        permit_writing(scope)
        read = validated(_BlockLine, line)
        namespace, user = place_of(scope, target.namespace(read.namespace), target.user(read.user_id))
        owner = BlockOwner(namespace, user, target.agent(read.agent_id))
        block = replace(_block_of(read, owner), imported=tag(target.source))
        reply = await self._store.restore(scope, block, read.changes, await self._counter.count_in_thread(block.value))
        if reply.state == "many":
            raise BadInput(f"the limit of {MAX_BLOCKS} blocks an owner is reached: delete some first", field="label")
        if reply.state == "here":
            current = reply.block
            return "same" if current is not None and (current.value, current.description) == (block.value, block.description) else "other"
        for shown_to in read.attached_to:
            where = target.namespace(shown_to.namespace) if shown_to.namespace else None
            # Only the exported agent may get a new id; other agents keep their ids.
            agent = target.agent(shown_to.agent_id) if shown_to.agent_id == read.agent_id else shown_to.agent_id
            whom = BlockOwner(where, target.user(shown_to.user_id) if shown_to.user_id else None, agent)
            if any(whom) and whom != owner:
                try:
                    await self._store.attach(scope, owner, block.label, whom, attach=True)
                except Forbidden:
                    continue  # The caller is not allowed to change that owner's prompts. The block itself is stored.
        return "new"

    async def undo_import(self, scope: Scope, owner: Owner | AgentOwner, source: str, *, dry_run: bool) -> Counter[str]:
        """Delete imported blocks that have not changed since the import."""
        counts: Counter[str] = Counter()
        for block_owner in await self._store.owners_of(scope, owner):
            for block in await self._store.load_all(scope, block_owner):
                if block.imported == tag(source):
                    counts["blocks"] += (
                        dry_run or (await self._store.delete(scope, block_owner, block.label, str(block.version))).state == "ok"
                    )
        return counts

    async def erase_owner(self, scope: Scope, owner: Owner | AgentOwner) -> Counter[str]:
        """Delete the owner's blocks and attachments. Return the number of deleted blocks."""
        return Counter(
            blocks=sum([await self._store.erase(scope, block_owner) for block_owner in await self._store.owners_of(scope, owner)])
        )

    erase_agent = erase_owner


def _block_of(line: _BlockLine, owner: BlockOwner) -> StoredBlock:
    """Parse the block in an export line. Raises BadInput."""
    block, value, version = line.block, line.base, line.block.version - len(line.changes)
    for change in line.changes:
        version += 1
        try:
            value = replay_change(value, change)
        except ValueError as error:
            raise BadInput(str(error), field="changes") from error
        if change.version != version or len(value) > MAX_BLOCK_CHARS:
            raise BadInput("the versions of the changes do not follow each other", field="changes")
        _check_settings(change)
    if value != block.value or version != block.version or version < 1:
        raise BadInput("the changes do not result in this text", field="changes")
    if not (0 < block.limit <= MAX_BLOCK_CHARS and len(block.description) <= MAX_DESCRIPTION_CHARS and len(value) <= MAX_BLOCK_CHARS):
        raise BadInput("the block exceeds the size limit", field="block")
    return StoredBlock(
        owner=owner,
        label=line.label,
        value=value,
        description=block.description,
        limit=block.limit,
        limit_tokens=min(max(block.limit_tokens or 0, 0), MAX_BLOCK_CHARS),
        read_only=block.read_only,
        version=version,
        created=round(block.created_at.timestamp() * 1_000_000),
        updated=round(block.updated_at.timestamp() * 1_000_000),
        base=line.base,
        attached_to=(),
    )


def _check_settings(change: BlockChange) -> None:
    """Raise BadInput if a change contains invalid settings."""
    for name, pair in (change.settings or {}).items():
        values = pair if isinstance(pair, list) else []
        if name not in SETTINGS or len(values) != 2:
            raise BadInput("each setting is [before, after]", field="changes")
        try:
            for value in values:
                PutBlockRequest.model_validate({name: value}, strict=True)
        except ValidationError as error:
            raise BadInput(f"the change does not fit the former value of {name}", field="changes") from error
