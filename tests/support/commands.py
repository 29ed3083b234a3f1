"""Record what a rig's own store sends to Redis, because other tests' servers may share the process and Redis."""

from __future__ import annotations

from typing import Any

import pytest
from redis.asyncio.connection import AbstractConnection

from agent_memory.foundation.storage.lua_files import load
from tests.support.rig import Rig


def commands_of(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list that grows with each packed command (a pipeline is one) that names a key of this rig.

    The runtime's periodic store check is excluded.
    """
    return commands_under(rig.settings.redis.key_prefix, monkeypatch)


def commands_under(prefix: str, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Like `commands_of`, for the keys under a KEY_PREFIX."""
    sent: list[bytes] = []
    send = AbstractConnection.send_packed_command
    own, probe = prefix.encode(), load("storage/marker_probe").source.encode()

    async def noted(self: Any, command: Any, **more: Any) -> None:
        whole = command if isinstance(command, bytes) else b"".join(command)
        if own in whole and probe not in whole:
            sent.append(whole)
        await send(self, command, **more)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", noted)
    return sent
