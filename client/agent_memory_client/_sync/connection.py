# Made of agent_memory_client/_async/connection.py by client/scripts/make_sync.py: change that file, then run the script.
"""What every call needs: the config, the request builders and the transport."""

from __future__ import annotations

from typing import Self

import httpx

from agent_memory_client._calls import Call, Calls
from agent_memory_client._sync.transport import Transport
from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.errors import MemoryNotFoundError


class Connection:
    """An open client, an context manager. Every method raises an error of `agent_memory_client.errors`."""

    def __init__(self, config: MemoryClientConfig, *, transport: httpx.BaseTransport | None = None) -> None:
        self.config = config
        self._calls = Calls(config)
        self._transport = Transport(config, transport)

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _send(self, call: Call) -> httpx.Response:
        return self._transport.send(call)

    def _send_or_none(self, call: Call) -> httpx.Response | None:
        """The answer to `call`, or None for a 404."""
        try:
            return self._send(call)
        except MemoryNotFoundError:
            return None
