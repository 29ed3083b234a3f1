"""Whose a memory block is, and who may read and change it (pure)."""

from __future__ import annotations

from hashlib import sha1
from typing import NamedTuple

from agent_memory.foundation.core.errors import Forbidden, UnsupportedRequest
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.keyspace import digest, joined
from agent_memory_client.models.features import blocks as wire


class BlockOwner(NamedTuple):
    """Exactly these names: a block of a user is another one than the user's with an agent."""

    namespace: str | None = None
    user_id: str | None = None
    agent_id: str | None = None

    def model(self) -> wire.BlockOwner:
        """As the wire has it."""
        return wire.BlockOwner.model_construct(**self._asdict())


def named_owner(namespace: str | None, user_id: str | None, agent_id: str | None, *, field: str = "agent_id") -> BlockOwner:
    """The owner that a request names. Raises UnsupportedRequest for nobody."""
    owner = BlockOwner(namespace or None, user_id or None, agent_id or None)
    if not any(owner):
        raise UnsupportedRequest("say whose block is meant: agent_id, user_id, namespace or several of them", field=field)
    return owner


def may_read(scope: Scope, owner: BlockOwner) -> bool:
    """Whether a caller sees the blocks of an owner of the tenant.

    Whoever is limited to namespaces, users or agents reaches what bears one of these names. What an agent has without a user is seen by the
    callers that are limited to users, too, if they reach the agent: its prompts show it, whoever it talks to.
    """
    if scope.agents is not None and owner.agent_id not in scope.agents:
        return False
    if scope.namespaces is not None and owner.namespace not in scope.namespaces:
        return False
    return scope.users is None or owner.user_id in scope.users or (owner.user_id is None and owner.agent_id is not None)


def may_write(scope: Scope, owner: BlockOwner) -> bool:
    """Whether a caller changes the blocks of an owner: who is limited to users changes nothing that others are shown."""
    return scope.may_write and may_read(scope, owner) and (scope.users is None or owner.user_id in scope.users)


def check_reader(scope: Scope, owner: BlockOwner) -> None:
    """Raises Forbidden when the owner's blocks are out of reach."""
    if not may_read(scope, owner):
        raise Forbidden("these credentials do not reach the blocks of this owner", field=_beyond(scope, owner))


def check_writer(scope: Scope, owner: BlockOwner) -> None:
    """Raises Forbidden when the caller may not change the owner's blocks."""
    if not scope.may_write:
        raise Forbidden("these credentials may only read: use some with the role write")
    if not may_write(scope, owner):
        raise Forbidden("these credentials do not change the blocks of this owner", field=_beyond(scope, owner))


def _beyond(scope: Scope, owner: BlockOwner) -> str:
    limits = (("namespace", scope.namespaces), ("user_id", scope.users), ("agent_id", scope.agents))
    return next(name for name, limit in limits if limit is not None and getattr(owner, name) not in limit)


class BlockKeys:
    """The keys of blocks in one bucket: see `BLOCKS.keys` in `feature.py`."""

    def __init__(self, root: str) -> None:
        self.root = root

    def name(self, tenant: str, owner: BlockOwner) -> str:
        """An owner's name in keys; `blocks_shown.lua` makes it, too."""
        return sha1(joined("blocks", tenant, *owner), usedforsecurity=False).hexdigest()

    def blocks(self, name: str) -> str:
        """The blocks of an owner, by label."""
        return f"{self.root}bl:{name}"

    def attached(self, name: str) -> str:
        """What is attached to an owner, by "<owner>:<label>"."""
        return f"{self.root}bla:{name}"

    def changes(self, name: str, label: str) -> str:
        """The changes of a block, oldest first; `blocks_erase.lua` makes this name, too."""
        return f"{self.root}blh:{name}:{sha1(label.encode(), usedforsecurity=False).hexdigest()}"

    def of_user(self, tenant: str, user_id: str) -> str:
        """The owners of a user that have blocks, or to whom some are attached."""
        return f"{self.root}blu:{digest('blocks', tenant, user_id)}"

    def of_agent(self, tenant: str, agent_id: str) -> str:
        """The owners of an agent that have blocks, or to whom some are attached."""
        return f"{self.root}blg:{digest('blocks', tenant, agent_id)}"

    def user_owners(self, tenant: str, owner: BlockOwner) -> str | None:
        """Where an owner is noted among those of its user; None without one."""
        return None if owner.user_id is None else self.of_user(tenant, owner.user_id)

    def agent_owners(self, tenant: str, owner: BlockOwner) -> str | None:
        """Where an owner is noted among those of its agent; None without one."""
        return None if owner.agent_id is None else self.of_agent(tenant, owner.agent_id)
