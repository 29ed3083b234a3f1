"""Record the commands that a rig sends to Redis, excluding those from other tests' servers."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import pytest
from redis.asyncio.connection import AbstractConnection

from agent_memory.foundation.storage.lua_files import load
from tests.support.rig import Rig

_OBSERVED: ContextVar[str] = ContextVar("observed", default="")


def commands_of(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list that collects the commands this test sends for the rig's keys.

    Commands from the runtime's earlier tasks are excluded, since their timing varies.
    """
    prefix = rig.settings.redis.key_prefix
    _OBSERVED.set(prefix)
    return _noted(prefix, monkeypatch, _OBSERVED)


def commands_under(prefix: str, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Like `commands_of`, but for any KEY_PREFIX and from all tasks."""
    return _noted(prefix, monkeypatch, None)


def _noted(prefix: str, monkeypatch: pytest.MonkeyPatch, observed: ContextVar[str] | None) -> list[bytes]:
    sent: list[bytes] = []
    send = AbstractConnection.send_packed_command
    own, probe = prefix.encode(), load("storage/marker_probe").source.encode()

    async def noted(self: Any, command: Any, **more: Any) -> None:
        whole = command if isinstance(command, bytes) else b"".join(command)
        checks_store = probe in whole or whole.endswith(b"\r\n$5\r\nstore\r\n")
        if own in whole and not checks_store and (observed is None or observed.get() == prefix):
            sent.append(whole)
        await send(self, command, **more)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", noted)
    return sent
