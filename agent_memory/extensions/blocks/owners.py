"""Decide who may read or change memory blocks."""

from __future__ import annotations

from hashlib import sha1
from typing import NamedTuple

from agent_memory.foundation.api.dependencies import AgentOwnerParameters
from agent_memory.foundation.core.errors import Forbidden, UnsupportedRequest
from agent_memory.foundation.core.permissions import access_denied, denied_field
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.keyspace import digest, joined
from agent_memory_client.models.features import blocks as wire


class BlockOwner(NamedTuple):
    """The owner of a block. A user alone and the same user with an agent are different owners."""

    namespace: str | None = None
    user_id: str | None = None
    agent_id: str | None = None

    def model(self) -> wire.BlockOwner:
        return wire.BlockOwner.model_construct(**self._asdict())


def named_owner(names: AgentOwnerParameters | wire.BlockOwner) -> BlockOwner:
    """Return the owner given in a request. Raises UnsupportedRequest if the owner is missing."""
    owner = BlockOwner(names.namespace or None, names.user_id or None, names.agent_id or None)
    if not any(owner):
        raise UnsupportedRequest("name the owner of the block: send agent_id, user_id, namespace or several of them", field="agent_id")
    return owner


def may_read(scope: Scope, owner: BlockOwner) -> bool:
    """True if the caller may see an owner's blocks.

    Callers limited to certain users may also see blocks that have an agent but no user.
    """
    if scope.agents is not None and owner.agent_id not in scope.agents:
        return False
    if scope.namespaces is not None and owner.namespace not in scope.namespaces:
        return False
    return scope.users is None or owner.user_id in scope.users or (owner.user_id is None and owner.agent_id is not None)


def may_write(scope: Scope, owner: BlockOwner) -> bool:
    """True if the caller may change an owner's blocks."""
    return scope.may_write and may_read(scope, owner) and (scope.users is None or owner.user_id in scope.users)


def check_reader(scope: Scope, owner: BlockOwner) -> None:
    """Raise Forbidden unless the caller may see the owner's blocks."""
    if not may_read(scope, owner):
        raise access_denied("this owner's blocks", denied_field(scope, owner))


def check_writer(scope: Scope, owner: BlockOwner) -> None:
    """Raise Forbidden unless the caller may change the owner's blocks."""
    if not scope.may_write:
        raise Forbidden("these credentials are read-only: use credentials with the role write")
    if not may_write(scope, owner):
        raise access_denied("changes of this owner's blocks", denied_field(scope, owner))


class BlockKeys:
    def __init__(self, root: str) -> None:
        self.root = root

    def name(self, tenant: str, owner: BlockOwner) -> str:
        """Return an owner's digest. Must match `blocks_shown.lua`."""
        return sha1(joined("blocks", tenant, *owner), usedforsecurity=False).hexdigest()

    def blocks(self, name: str) -> str:
        return f"{self.root}bl:{name}"

    def attached(self, name: str) -> str:
        """Return the key of a hash with fields named "<block owner>:<label>"."""
        return f"{self.root}bla:{name}"

    def changes(self, name: str, label: str) -> str:
        """Return the key of a block's change list. Must match `blocks_erase.lua`."""
        return f"{self.root}blh:{name}:{sha1(label.encode(), usedforsecurity=False).hexdigest()}"

    def of_user(self, tenant: str, user_id: str) -> str:
        return f"{self.root}blu:{digest('blocks', tenant, user_id)}"

    def of_agent(self, tenant: str, agent_id: str) -> str:
        return f"{self.root}blg:{digest('blocks', tenant, agent_id)}"
