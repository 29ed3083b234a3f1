"""Memory blocks: labeled text that agents edit and every prompt includes."""

from __future__ import annotations

from agent_memory.extensions.blocks.section import BlocksSection
from agent_memory.extensions.blocks.service import BlockService
from agent_memory.extensions.blocks.store import BlockStore
from agent_memory.extensions.blocks.transfer import BlockTransfer
from agent_memory.foundation.core.feature import Feature, KeySpace, Services
from agent_memory.foundation.foundation import Foundation


def open_blocks(foundation: Foundation, services: Services) -> None:
    store = BlockStore(foundation.client, foundation.keys.root, fsync=foundation.fsync)
    services.add(
        store,
        BlockService(store, foundation.counter),
        BlocksSection(store, foundation.keys, foundation.counter),
        BlockTransfer(store, foundation.counter),
    )


FEATURE = Feature(
    name="blocks",
    open=open_blocks,
    routes=("agent_memory.extensions.blocks.routes:router",),
    examples="agent_memory.extensions.blocks.examples:EXAMPLES",
    keys=(
        KeySpace("bl:<owner>", "hash", "an owner's memory blocks, by label", "until deleted"),
        KeySpace("blh:<owner>:<label>", "list", "a block's last 500 changes, oldest first", "as the block"),
        KeySpace("bla:<owner>", "hash", "other owners' blocks that this owner's prompts show", "until detached or deleted"),
        KeySpace("blu:<user>", "hash", "owners of blocks that include this user", "as their blocks"),
        KeySpace("blg:<agent>", "hash", "owners of blocks that include this agent", "as their blocks"),
    ),
    exporter=BlockTransfer,
    eraser=BlockTransfer,
    section=BlocksSection,
    tools=("agent_memory.extensions.blocks.tools:TOOLS",),
)
