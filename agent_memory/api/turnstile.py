"""The way in: says whose request it is where that is known already, and lets it in or turns it away where
its tenant's limit is known.

A refusal costs a look at two dictionaries, and for one request of a tenant once in a while a look at Redis. It takes no place among the
requests that are worked on, and nothing of it but its headers is read. Whatever is not certain goes on, to the checks behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.api.admission import SHARER
from agent_memory.api.answers import JsonResponse
from agent_memory.api.errors import render
from agent_memory.api.limiting import COUNTED, UNCOUNTED, cost_of
from agent_memory.errors import AgentMemoryError, TooMany, Unauthenticated
from agent_memory.scope import Principal
from agent_memory.services.access import EVERYBODY, PRINCIPAL
from agent_memory.services.credentials import Gate, credential_of
from agent_memory.services.limits import RequestLimit, too_many

# The share of those who run the server, which no tenant can have: its name is not empty.
_OPERATORS = "\0operators"
# Whoever sends on in spite of refusals waits for the next ones, so that one connection cannot ask thousands of times in a second.
_HOLD_SECONDS = 0.05
_MOST_HELD = 256
_MOST_ANSWERS = 64
# While Redis is slow to tell, so much of a tenant's waits here; the rest in line, whose length is bounded for all.
_MOST_ASKING = 32


class Turnstile:
    """Pure ASGI. `gate` and `limit` are asked for at each request, because they open later.

    Where no credentials are `required`, all callers are one.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        gate: Callable[[], Gate | None],
        limit: Callable[[], RequestLimit | None],
        required: bool,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._app = app
        self._gate = gate
        self._limit = limit
        self._required = required
        self._pause = pause
        self._held = 0
        self._answers: dict[int, JsonResponse] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        caller = self._caller(scope) if self._required else EVERYBODY
        if caller is None or (caller.operator and self._required) or scope["path"].rstrip("/") in UNCOUNTED:
            await self._app(scope, receive, send)
            return
        limit, tenant, cost = self._limit(), caller.tenant, cost_of(scope) or 1
        if limit is None:
            await self._app(scope, receive, send)
            return
        seconds = limit.known(tenant, cost)
        if seconds is None and limit.waiting(tenant) < _MOST_ASKING:
            # Before it stands in line: what is to be refused must not wait for its turn to be so.
            try:
                await limit.admit(tenant, cost)
            except TooMany as error:
                seconds = error.retry_after
            except AgentMemoryError as error:
                await render(error)(scope, receive, send)
                return
            else:
                seconds = 0
        if not seconds:
            if seconds == 0:
                scope[COUNTED] = True
            await self._app(scope, receive, send)
            return
        if self._held < _MOST_HELD and limit.hammered(tenant):
            self._held += 1
            try:
                await self._pause(_HOLD_SECONDS)
            finally:
                self._held -= 1
        await self._answer(seconds)(scope, receive, send)

    def _caller(self, scope: Scope) -> Principal | None:
        """Who asks, if that was checked a moment ago; in any case notes whose share of the places the request takes."""
        try:
            credential = credential_of(scope["headers"])
        except Unauthenticated:
            return None  # the check behind says what is wrong
        gate = None if credential is None else self._gate()
        seen = None if gate is None or credential is None else gate.seen(credential)
        if seen is None:
            return None
        caller, counts = seen
        scope[SHARER] = _OPERATORS if caller.operator else caller.tenant
        if not counts:
            return None
        scope[PRINCIPAL] = caller
        return caller

    def _answer(self, seconds: int) -> JsonResponse:
        answer = self._answers.get(seconds)
        if answer is None:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            answer = self._answers[seconds] = render(too_many(seconds))
        return answer
