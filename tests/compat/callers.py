"""Provide callers with different permissions for in-process requests to an application."""

from __future__ import annotations

from typing import Any

import httpx

from agent_memory.foundation.api.principals import PRINCIPAL
from agent_memory.foundation.core.scope import Principal, Role

ANNA = Principal("t1", "anna's", Role.WRITE, users=frozenset({"anna"}))
BOB = Principal("t1", "bob's", Role.WRITE, users=frozenset({"bob"}))
STRANGER = Principal("t2", "stranger's", Role.ADMIN)
READER = Principal("t1", "reader's", Role.READ)
ELSEWHERE = Principal("t1", "elsewhere's", Role.WRITE, namespaces=frozenset({"ours"}))
OWNER = Principal("t1", "owner's", Role.ADMIN)
ONE_AGENT = Principal("t1", "agent's", Role.WRITE, agents=frozenset({"coach"}))


class Callers:
    """Creates clients for one application with different credentials."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def __call__(self, principal: Principal) -> httpx.AsyncClient:
        async def as_caller(scope: Any, receive: Any, send: Any) -> None:
            await self._app({**scope, PRINCIPAL: principal}, receive, send)

        return httpx.AsyncClient(transport=httpx.ASGITransport(as_caller), base_url="http://localhost")
