"""Memory blocks in Redis: one hash per owner, one list of changes per block; each change is one script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis

from agent_memory.extensions.blocks.codec import (
    StoredBlock,
    decode_block,
    decode_change,
    decode_owner,
    encode_block,
    encode_change,
    encode_owner,
)
from agent_memory.extensions.blocks.owners import BlockKeys, BlockOwner, check_reader, check_writer, may_read
from agent_memory.foundation.core.prompt_sections import Reader
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import Pipe, read
from agent_memory.foundation.storage.erasures import guard_of
from agent_memory.foundation.storage.lua_files import load
from agent_memory.foundation.storage.scripts import Script
from agent_memory_client.models.features.blocks import DEFAULT_BLOCK_CHARS, BlockChange

MAX_BLOCKS = 64
"""Per owner; as many can be attached to it."""
MAX_TARGETS, MAX_TARGET_BYTES = 64, 16 * 1024
"""Owners that one block can be attached to, and their names' size: 1,000 cost 70 ms of Redis per call."""
MAX_CHANGES = 500
"""Kept per block."""
_SHOWN = load("blocks/blocks_shown")


@dataclass(frozen=True, slots=True)
class BlockWrite:
    """A requested change: see `block_change.lua`. `settings` have the names of Redis.

    `tokens` are those of `content`, `counted` those of the whole text after this change of a version.
    """

    operation: str
    content: str | None = None
    old_content: str | None = None
    line: int | None = None
    version: int | None = None
    expected: str | None = None
    tokens: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    counted: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class BlockReply:
    """The result of a change; what `state` does not need is empty."""

    state: str
    block: StoredBlock | None = None
    change: BlockChange | None = None
    size: int = 0
    limit: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class ShownBlock:
    """A block that a prompt may show. `names` is the sum of those it belongs to: namespace 1, user 2, agent 4."""

    names: int
    attached: bool
    block: StoredBlock


class BlockStore:
    """Reads and writes of blocks. Every method raises RedisUnavailable, and Forbidden outside the caller's reach."""

    def __init__(self, client: Redis, root: str, *, fsync: bool = False) -> None:
        self._client = client
        self._keys = BlockKeys(root)
        self._change = Script(client, "blocks/block_change", fsync=fsync)
        self._delete = Script(client, "blocks/block_delete", fsync=fsync)
        self._attach = Script(client, "blocks/block_attach", fsync=fsync)
        self._erase = Script(client, "blocks/blocks_erase", fsync=fsync)
        self._unnote = Script(client, "blocks/block_unnote", fsync=fsync)
        self._restore = Script(client, "blocks/block_restore", fsync=fsync)

    async def load(self, scope: Scope, owner: BlockOwner, label: str) -> StoredBlock | None:
        check_reader(scope, owner)
        key = self._keys.blocks(self._keys.name(scope.tenant, owner))
        raw = (await read(self._client, lambda pipe: pipe.hget(key, label)))[0]
        return None if raw is None else decode_block(owner, label, raw)

    async def load_all(self, scope: Scope, owner: BlockOwner) -> list[StoredBlock]:
        check_reader(scope, owner)
        key = self._keys.blocks(self._keys.name(scope.tenant, owner))
        stored = (await read(self._client, lambda pipe: pipe.hgetall(key)))[0]
        return sorted((decode_block(owner, label.decode(), raw) for label, raw in stored.items()), key=lambda block: block.label)

    async def load_changes(self, scope: Scope, owner: BlockOwner, label: str) -> tuple[StoredBlock | None, list[BlockChange]]:
        check_reader(scope, owner)
        name = self._keys.name(scope.tenant, owner)

        def build(pipe: Pipe) -> None:
            pipe.hget(self._keys.blocks(name), label)
            pipe.lrange(self._keys.changes(name, label), 0, -1)

        raw, changes = await read(self._client, build)
        return None if raw is None else decode_block(owner, label, raw), [decode_change(entry) for entry in changes]

    async def change(self, scope: Scope, owner: BlockOwner, label: str, write: BlockWrite) -> BlockReply:
        check_writer(scope, owner)
        name = self._keys.name(scope.tenant, owner)
        state, *rest = await self._change(
            operation=write.operation,
            expected=write.expected,
            content=write.content,
            old_content=write.old_content,
            line=write.line,
            version=write.version,
            tokens=write.tokens,
            settings=write.settings,
            counted=write.counted,
            blocks=self._keys.blocks(name),
            changes=self._keys.changes(name, label),
            user_owners=self._keys.user_owners(scope.tenant, owner),
            agent_owners=self._keys.agent_owners(scope.tenant, owner),
            label=label,
            owner=name,
            identity=encode_owner(owner),
            actor=scope.actor,
            bounds={"blocks": MAX_BLOCKS, "changes": MAX_CHANGES, "chars": DEFAULT_BLOCK_CHARS},
            guard=guard_of(self._keys.root, scope.tenant, owner.namespace, owner.user_id, agent_id=owner.agent_id),
        )
        return _reply(owner, label, state.decode(), rest)

    async def delete(self, scope: Scope, owner: BlockOwner, label: str, expected: str | None) -> BlockReply:
        """Delete a block with its changes and attachments."""
        check_writer(scope, owner)
        name = self._keys.name(scope.tenant, owner)
        state, *rest = await self._delete(
            blocks=self._keys.blocks(name),
            changes=self._keys.changes(name, label),
            attached=self._keys.attached(name),
            user_owners=self._keys.user_owners(scope.tenant, owner),
            agent_owners=self._keys.agent_owners(scope.tenant, owner),
            root=self._keys.root,
            label=label,
            owner=name,
            expected=expected,
        )
        reply = _reply(owner, label, state.decode(), rest)
        if reply.state == "ok" and reply.block is not None:
            await self._forget_targets(scope, [reply.block])
        return reply

    async def attach(self, scope: Scope, owner: BlockOwner, label: str, target: BlockOwner, *, attach: bool) -> BlockReply:
        """Show a block in another owner's prompts, or stop that. The caller must be allowed to change both owners."""
        check_writer(scope, owner)
        check_writer(scope, target)
        name, target_name = self._keys.name(scope.tenant, owner), self._keys.name(scope.tenant, target)
        state, *rest = await self._attach(
            blocks=self._keys.blocks(name),
            target_blocks=self._keys.blocks(target_name),
            attached=self._keys.attached(target_name),
            user_owners=self._keys.user_owners(scope.tenant, target),
            agent_owners=self._keys.agent_owners(scope.tenant, target),
            label=label,
            owner=name,
            identity=encode_owner(owner),
            target=target_name,
            target_identity=encode_owner(target),
            attach=attach,
            most=MAX_BLOCKS,
            most_targets=MAX_TARGETS,
            most_target_bytes=MAX_TARGET_BYTES,
            guard=guard_of(self._keys.root, scope.tenant, owner.namespace, owner.user_id, agent_id=owner.agent_id),
            target_guard=guard_of(self._keys.root, scope.tenant, target.namespace, target.user_id, agent_id=target.agent_id),
        )
        return _reply(owner, label, state.decode(), rest)

    def queue_shown(self, pipe: Pipe, scope: Scope, reader: Reader, session: str | None) -> None:
        """Queue the read of all blocks that a prompt may show; the `session` (a key) may name the agent."""
        asked = _SHOWN.read_only(
            any=f"{self._keys.root}bl",
            session=session,
            root=self._keys.root,
            tenant=scope.tenant,
            namespace=reader.namespace,
            user_id=reader.user_id,
            agent_id=reader.agent_id,
        )
        pipe.execute_command(*asked)

    def parse_shown(self, scope: Scope, reader: Reader, reply: Sequence[Any]) -> list[ShownBlock]:
        """Parse the reply to `queue_shown`, without blocks outside the caller's reach."""
        agent, *rows = reply
        names = Reader(reader.namespace, reader.user_id, agent.decode() or None)
        shown: list[ShownBlock] = []
        for mask, identity, label, raw in rows:
            reads = BlockOwner(*(name if mask & bit else None for name, bit in zip(names, (1, 2, 4), strict=True)))
            owner = decode_owner(identity) if identity else reads
            if may_read(scope, reads) and may_read(scope, owner):
                shown.append(ShownBlock(mask, bool(identity), decode_block(owner, label.decode(), raw)))
        return shown

    async def load_shown(self, scope: Scope, reader: Reader) -> list[ShownBlock]:
        reply = (await read(self._client, lambda pipe: self.queue_shown(pipe, scope, reader, None)))[0]
        return self.parse_shown(scope, reader, reply)

    async def owners_of_user(self, scope: Scope, user_id: str, namespace: str | None) -> list[BlockOwner]:
        """Return a user's owners with blocks, in one namespace or (None) all, within the caller's reach."""
        return await self._noted_owners(scope, self._keys.of_user(scope.tenant, user_id), namespace)

    async def owners_of_agent(self, scope: Scope, agent_id: str, namespace: str | None) -> list[BlockOwner]:
        """Return an agent's owners with blocks: the agent alone, and with each user."""
        return await self._noted_owners(scope, self._keys.of_agent(scope.tenant, agent_id), namespace)

    async def _noted_owners(self, scope: Scope, key: str, namespace: str | None) -> list[BlockOwner]:
        stored = (await read(self._client, lambda pipe: pipe.hvals(key)))[0]
        owners = sorted(map(decode_owner, stored), key=str)
        return [owner for owner in owners if namespace in (None, owner.namespace) and may_read(scope, owner)]

    async def erase(self, scope: Scope, owner: BlockOwner) -> int:
        """Delete everything of an owner; return the number of blocks."""
        name = self._keys.name(scope.tenant, owner)
        erased = await self._erase(
            blocks=self._keys.blocks(name),
            attached=self._keys.attached(name),
            user_owners=self._keys.user_owners(scope.tenant, owner),
            agent_owners=self._keys.agent_owners(scope.tenant, owner),
            root=self._keys.root,
            owner=name,
        )
        await self._forget_targets(scope, [decode_block(owner, "", raw) for raw in erased])
        return len(erased)

    async def _forget_targets(self, scope: Scope, gone: Sequence[StoredBlock]) -> None:
        """Forget owners to which only deleted blocks were attached. A crash leaves a harmless entry."""
        for target in dict.fromkeys(target for block in gone for target in block.attached_to):
            name = self._keys.name(scope.tenant, target)
            await self._unnote(
                blocks=self._keys.blocks(name),
                attached=self._keys.attached(name),
                user_owners=self._keys.user_owners(scope.tenant, target),
                agent_owners=self._keys.agent_owners(scope.tenant, target),
                owner=name,
            )

    async def restore(self, scope: Scope, block: StoredBlock, changes: Sequence[BlockChange], tokens: int) -> BlockReply:
        """Store an exported block with its changes unless its label exists: "new", "many" or "here"."""
        check_writer(scope, block.owner)
        name = self._keys.name(scope.tenant, block.owner)
        entries: list[str] = []
        value = block.base
        for change in changes:
            entries.append(encode_change(change, value))
            value = value[: change.position] + change.inserted + value[change.position + len(change.removed) :]
        state, *rest = await self._restore(
            blocks=self._keys.blocks(name),
            changes=self._keys.changes(name, block.label),
            user_owners=self._keys.user_owners(scope.tenant, block.owner),
            agent_owners=self._keys.agent_owners(scope.tenant, block.owner),
            label=block.label,
            owner=name,
            identity=encode_owner(block.owner),
            block=encode_block(block, {}, tokens),
            most=MAX_BLOCKS,
            guard=guard_of(self._keys.root, scope.tenant, block.owner.namespace, block.owner.user_id, agent_id=block.owner.agent_id),
            entries=entries,
        )
        return _reply(block.owner, block.label, state.decode(), rest)


def _reply(owner: BlockOwner, label: str, state: str, rest: Sequence[Any]) -> BlockReply:
    if state == "count":
        return BlockReply(state, size=int(rest[0]), text=rest[1].decode())
    block = decode_block(owner, label, rest[0]) if rest and rest[0] else None
    if state in ("full", "full_tokens"):
        return BlockReply(state, block, size=int(rest[1]), limit=int(rest[2]))
    return BlockReply(state, block, decode_change(rest[1]) if len(rest) > 1 else None)
