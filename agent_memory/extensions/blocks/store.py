"""Store memory blocks in Redis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

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
from agent_memory.foundation.core.feature import AgentOwner, Owner
from agent_memory.foundation.core.prompt_sections import Reader
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import Pipe, read
from agent_memory.foundation.storage.erasures import Guard, guard_of
from agent_memory.foundation.storage.lua_files import load
from agent_memory.foundation.storage.scripts import Script
from agent_memory_client.models.features.blocks import DEFAULT_BLOCK_CHARS, BlockChange

MAX_BLOCKS = 64
"""Limit on an owner's own blocks, and on its attached blocks."""
MAX_TARGETS, MAX_TARGET_BYTES = 64, 16 * 1024
"""Limits on the number of owners a block is attached to, and on their names' total bytes."""
MAX_CHANGES = 500
"""Number of recent changes to keep per block."""
_SHOWN_BLOCKS = load("blocks/blocks_shown")


@dataclass(frozen=True, slots=True)
class BlockWrite:
    """A requested change. The fields are arguments of `block_change.lua`.

    `tokens` is the size of `content`. `counted` contains the version before the change, and the
    size of the entire text after it.
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
    state: str
    block: StoredBlock | None = None
    change: BlockChange | None = None
    size: int = 0
    limit: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class ShownBlock:
    """A block that a prompt may show.

    `names` is a bit mask of matching names: 1 for the namespace, 2 for the user, 4 for the agent.
    """

    names: int
    attached: bool
    block: StoredBlock


def choose_blocks(candidates: Iterable[ShownBlock]) -> list[ShownBlock]:
    """Return one block per label, sorted by label.

    The block with the most matching names wins. Ties go to the agent, then the user, then the
    namespace. Owned blocks outrank attached ones.
    """
    ranked = sorted(candidates, key=lambda one: (one.names.bit_count(), one.names, not one.attached, str(one.block.owner)))
    chosen = {shown_block.block.label: shown_block for shown_block in ranked}
    return [chosen[label] for label in sorted(chosen)]


class _OwnerKeys(NamedTuple):
    blocks: str
    attached: str
    user_owners: str | None
    agent_owners: str | None
    root: str
    owner: str
    identity: str
    guard: Guard


class BlockStore:
    """Reads and writes blocks. Methods that take an owner can raise Forbidden, except `erase`."""

    def __init__(self, client: Redis, root: str, *, fsync: bool = False) -> None:
        self._client = client
        self._keys = BlockKeys(root)
        self._change = Script(client, "blocks/block_change", fsync=fsync)
        self._delete = Script(client, "blocks/block_delete", fsync=fsync)
        self._attach = Script(client, "blocks/block_attach", fsync=fsync)
        self._erase = Script(client, "blocks/blocks_erase", fsync=fsync)
        self._unnote = Script(client, "blocks/block_unnote", fsync=fsync)
        self._restore = Script(client, "blocks/block_restore", fsync=fsync)

    def _owner_keys(self, scope: Scope, owner: BlockOwner) -> _OwnerKeys:
        name = self._keys.name(scope.tenant, owner)
        return _OwnerKeys(
            self._keys.blocks(name),
            self._keys.attached(name),
            None if owner.user_id is None else self._keys.of_user(scope.tenant, owner.user_id),
            None if owner.agent_id is None else self._keys.of_agent(scope.tenant, owner.agent_id),
            self._keys.root,
            name,
            encode_owner(owner),
            guard_of(self._keys.root, scope.tenant, owner.namespace, owner.user_id, agent_id=owner.agent_id),
        )

    async def load(self, scope: Scope, owner: BlockOwner, label: str) -> StoredBlock | None:
        check_reader(scope, owner)
        (raw,) = await read(self._client, lambda pipe: pipe.hget(self._keys.blocks(self._keys.name(scope.tenant, owner)), label))
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
        keys = self._owner_keys(scope, owner)
        bounds = {"blocks": MAX_BLOCKS, "changes": MAX_CHANGES, "chars": DEFAULT_BLOCK_CHARS}
        changes = self._keys.changes(keys.owner, label)
        state, *rest = await self._change(keys, **asdict(write), changes=changes, label=label, actor=scope.actor, bounds=bounds)
        return _reply(owner, label, state.decode(), rest)

    async def delete(self, scope: Scope, owner: BlockOwner, label: str, expected: str | None) -> BlockReply:
        """Delete a block, its changes and its attachments."""
        check_writer(scope, owner)
        keys = self._owner_keys(scope, owner)
        state, *rest = await self._delete(keys, changes=self._keys.changes(keys.owner, label), label=label, expected=expected)
        reply = _reply(owner, label, state.decode(), rest)
        if reply.state == "ok" and reply.block is not None:
            await self._forget_targets(scope, [reply.block])
        return reply

    async def attach(self, scope: Scope, owner: BlockOwner, label: str, target: BlockOwner, *, attach: bool) -> BlockReply:
        """Attach or detach a block. Requires write access to both owners."""
        check_writer(scope, owner)
        check_writer(scope, target)
        keys, target_keys = self._owner_keys(scope, owner), self._owner_keys(scope, target)
        state, *rest = await self._attach(
            keys,
            target_blocks=target_keys.blocks,
            attached=target_keys.attached,
            user_owners=target_keys.user_owners,
            agent_owners=target_keys.agent_owners,
            label=label,
            target=target_keys.owner,
            target_identity=target_keys.identity,
            attach=attach,
            most=MAX_BLOCKS,
            most_targets=MAX_TARGETS,
            most_target_bytes=MAX_TARGET_BYTES,
            target_guard=target_keys.guard,
        )
        return _reply(owner, label, state.decode(), rest)

    def queue_shown(self, pipe: Pipe, scope: Scope, reader: Reader, session: str | None) -> None:
        """Queue a read of all blocks that a prompt may show.

        If the reader has no agent, the session's agent applies.
        """
        command = _SHOWN_BLOCKS.read_only(
            any=f"{self._keys.root}bl",
            session=session,
            root=self._keys.root,
            tenant=scope.tenant,
            namespace=reader.namespace,
            user_id=reader.user_id,
            agent_id=reader.agent_id,
        )
        pipe.execute_command(*command)

    def parse_shown(self, scope: Scope, reader: Reader, reply: Sequence[Any]) -> list[ShownBlock]:
        """Parse the reply to `queue_shown`. Return the blocks that the caller may read."""
        agent, *rows = reply
        names = Reader(reader.namespace, reader.user_id, agent.decode() or None)
        shown_blocks: list[ShownBlock] = []
        for mask, identity, label, raw in rows:
            reads = BlockOwner(*(name if mask & bit else None for name, bit in zip(names, (1, 2, 4), strict=True)))
            owner = decode_owner(identity) if identity else reads
            if may_read(scope, reads) and may_read(scope, owner):
                shown_blocks.append(ShownBlock(mask, bool(identity), decode_block(owner, label.decode(), raw)))
        return shown_blocks

    async def load_shown(self, scope: Scope, reader: Reader) -> list[ShownBlock]:
        reply = (await read(self._client, lambda pipe: self.queue_shown(pipe, scope, reader, None)))[0]
        return self.parse_shown(scope, reader, reply)

    async def owners_of(self, scope: Scope, member: Owner | AgentOwner) -> list[BlockOwner]:
        """Return the readable block owners that include this user or agent."""
        is_user = isinstance(member, Owner)
        key = self._keys.of_user(scope.tenant, member.user_id) if is_user else self._keys.of_agent(scope.tenant, member.agent_id)
        stored = (await read(self._client, lambda pipe: pipe.hvals(key)))[0]
        owners = sorted(map(decode_owner, stored), key=str)
        return [owner for owner in owners if member.namespace in (None, owner.namespace) and may_read(scope, owner)]

    async def erase(self, scope: Scope, owner: BlockOwner) -> int:
        """Delete an owner's blocks and attachments. Return the number of deleted blocks."""
        erased = await self._erase(self._owner_keys(scope, owner))
        await self._forget_targets(scope, [decode_block(owner, "", raw) for raw in erased])
        return len(erased)

    async def _forget_targets(self, scope: Scope, deleted_blocks: Sequence[StoredBlock]) -> None:
        for target in dict.fromkeys(target for block in deleted_blocks for target in block.attached_to):
            await self._unnote(self._owner_keys(scope, target))

    async def restore(self, scope: Scope, block: StoredBlock, changes: Sequence[BlockChange], tokens: int) -> BlockReply:
        """Store an exported block with its changes.

        The reply's state is "new", "here" if the label exists, or "many" if the owner has too many
        blocks.
        """
        check_writer(scope, block.owner)
        entries: list[str] = []
        value = block.base
        for change in changes:
            entries.append(encode_change(change, value))
            value = value[: change.position] + change.inserted + value[change.position + len(change.removed) :]
        keys, label = self._owner_keys(scope, block.owner), block.label
        changed, body = self._keys.changes(keys.owner, label), encode_block(block, {}, tokens)
        state, *rest = await self._restore(keys, changes=changed, label=label, block=body, most=MAX_BLOCKS, entries=entries)
        return _reply(block.owner, block.label, state.decode(), rest)


def _reply(owner: BlockOwner, label: str, state: str, rest: Sequence[Any]) -> BlockReply:
    if state == "count":
        return BlockReply(state, size=int(rest[0]), text=rest[1].decode())
    block = decode_block(owner, label, rest[0]) if rest and rest[0] else None
    if state in ("full", "full_tokens"):
        return BlockReply(state, block, size=int(rest[1]), limit=int(rest[2]))
    return BlockReply(state, block, decode_change(rest[1]) if len(rest) > 1 else None)
