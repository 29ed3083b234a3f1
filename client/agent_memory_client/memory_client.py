"""The client, with calls such as `client.sessions.append(...)` and `client.memories.search(...)`.

All calls are also methods of the client, under their names in the archived client.
"""

from __future__ import annotations

from copy import copy
from typing import Self

import httpx

from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.flat_calls import FlatCalls
from agent_memory_client.resources.changes import Changes
from agent_memory_client.resources.extraction_rules import ExtractionRuleSets
from agent_memory_client.resources.jobs import Jobs
from agent_memory_client.resources.memories import Memories
from agent_memory_client.resources.prompts import Prompts
from agent_memory_client.resources.quarantine import Quarantine
from agent_memory_client.resources.registry import FeatureResources
from agent_memory_client.resources.server import Server
from agent_memory_client.resources.sessions import Sessions
from agent_memory_client.resources.tokens import Tokens
from agent_memory_client.resources.tool_calls import ToolCalls
from agent_memory_client.resources.users import Users
from agent_memory_client.resources.views import Views
from agent_memory_client.transport import Transport


class MemoryClient(FeatureResources, FlatCalls):
    """A client for a memory server. Use it as an async context manager, or call `close()`.

    Each API resource is an attribute of the client. Calls use the defaults in `config` (namespace,
    model, context window) and raise the errors in `agent_memory_client.errors`.
    """

    def __init__(self, config: MemoryClientConfig, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """Create a client.

        `transport` replaces httpx's default transport. Raises MemoryValidationError or
        MemoryProtocolError if the configuration is invalid.
        """
        self.config = config
        self.acting_user: str | None = None
        """The only user whose data this client can access, if it comes from `for_user`."""
        self._open(Transport(config, transport))

    def _open(self, transport: Transport) -> None:
        config = self.config
        self._transport = transport
        super().__init__(transport, config)
        self.server = Server(transport, config)
        self.sessions = Sessions(transport, config)
        self.memories = Memories(transport, config)
        self.prompts = Prompts(transport, config)
        self.tools = ToolCalls(transport, config)
        self.views = Views(transport, config)
        self.changes = Changes(transport, config)
        self.extraction_rules = ExtractionRuleSets(transport, config)
        self.quarantine = Quarantine(transport, config)
        self.users = Users(transport, config)
        self.jobs = Jobs(transport, config)
        self.tokens = Tokens(transport, config)

    def for_user(self, user_id: str) -> Self:
        """Return a client that can access only this user's data.

        The two clients share connections, so close only the original. Raises MemoryValidationError
        if the user id is invalid.
        """
        acting = copy(self)
        acting.acting_user = user_id
        acting._open(self._transport.acting_for(user_id))  # noqa: SLF001 - its own copy
        return acting

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
