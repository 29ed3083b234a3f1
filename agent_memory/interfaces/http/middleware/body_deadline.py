"""Middleware that reads request bodies before admission, so that slow senders do not take up slots.

Late bodies get a 408 response. Long bodies are not buffered, but marked with `BODY_ARRIVING`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from functools import partial

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_memory.foundation.api.errors import render
from agent_memory.foundation.core.errors import RequestTimeout
from agent_memory.interfaces.http.middleware.request_cost import declared_bytes

BODY_ARRIVING = "agent_memory.body_arriving"
"""Key in an ASGI scope: the request's body has not fully arrived."""
BODY_COMPLETE = "agent_memory.body_complete"
"""Key in an ASGI scope: the body has fully arrived. HTTP servers may set this key."""
REFUSAL = "agent_memory.refusal"
"""Key in an ASGI scope: the error that stops reading the body. `protocol.py` may also set it."""

# Each 16 KiB of a body adds a second, so a sender at this rate is never late.
BYTES_PER_SECOND = 16 * 1024
_MAX_BUFFERED_BYTES = 64 * 1024
# Calls to language models have long histories, and a long queue, which they join when their body is complete.
_MAX_BUFFERED_BYTES_OF_CALLS = 1024 * 1024
# Maximum size of all buffered bodies together. Above it, bodies are passed on while they arrive.
_MAX_BUFFERED_BYTES_OF_ALL = 16 * 1024 * 1024
# Extra seconds for data in transit.
_SECOND_LOOK_SECONDS = 0.05


class BodyDeadlineMiddleware:
    """Middleware that limits how long a body may take to arrive.

    The limit is `seconds`, plus one second for every BYTES_PER_SECOND received, up to
    `request_timeout` seconds. Paths that begin with one of `calls` have a larger buffer.
    """

    def __init__(self, app: ASGIApp, *, seconds: float, request_timeout: float, calls: tuple[str, ...] = ()) -> None:
        self._app = app
        self._calls = calls
        self._body = partial(TimedBody, seconds=seconds, most_seconds=max(seconds, request_timeout))
        self.buffered_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or BODY_COMPLETE in scope or (length := declared_bytes(scope)) == 0:
            await self._app(scope, receive, send)
            return
        body = self._body(scope, receive)
        most = _MAX_BUFFERED_BYTES_OF_CALLS if scope["path"].startswith(self._calls) else _MAX_BUFFERED_BYTES
        at_once = any(name == b"expect" for name, _ in scope["headers"]) or (length or 0) > most
        messages = deque[Message]() if at_once else await self._buffer(body, most)
        begun = False

        async def receive_next() -> Message:
            return messages.popleft() if messages else await body.receive()

        async def send_unless_refused(message: Message) -> None:
            nonlocal begun
            if begun or REFUSAL not in scope:
                begun = True
                await send(message)

        if not body.complete:
            scope[BODY_ARRIVING] = True
        try:
            if not (messages and messages[-1]["type"] == "http.disconnect"):
                await self._app(scope, receive_next, send_unless_refused)
        except Exception:
            if REFUSAL not in scope or begun:
                raise
        if REFUSAL in scope and not begun:
            answer = render(scope[REFUSAL])
            answer.headers["connection"] = "close"
            await answer(scope, receive, send)

    async def _buffer(self, body: TimedBody, most: int) -> deque[Message]:
        messages, is_full = deque[Message](), False
        while not (is_full or body.complete or REFUSAL in body.scope):
            size = body.size
            self.buffered_bytes += size
            try:
                messages.append(await body.receive())
            finally:
                self.buffered_bytes -= size
            is_full = body.size > most or self.buffered_bytes + body.size > _MAX_BUFFERED_BYTES_OF_ALL
        return messages


@dataclass
class TimedBody:
    """A request body that is still arriving.

    Only time spent waiting for the sender counts. If the body is late, `receive` sets `REFUSAL` in
    the scope.
    """

    scope: Scope
    source: Receive
    seconds: float
    most_seconds: float
    waited: float = 0.0
    size: int = 0
    complete: bool = False

    async def receive(self) -> Message:
        """Return the next message, or a disconnect message once the request has been rejected."""
        if self.complete:
            return await self.source()
        if REFUSAL not in self.scope:
            message = await self._receive_in_time() if self._seconds_left() > 0 else None
            if message is not None and REFUSAL not in self.scope:
                self.size += len(message.get("body", b""))
                self.complete = not message.get("more_body", False)
                return message
            late = f"did not arrive within {self.seconds:g} s plus one second for each {BYTES_PER_SECOND // 1024} KiB"
            error = RequestTimeout(f"the body of the request {late}: send it without pauses")
            self.scope.setdefault(REFUSAL, error)
        return {"type": "http.disconnect"}

    async def _receive_in_time(self) -> Message | None:
        loop = asyncio.get_running_loop()
        begun, left = loop.time(), self._seconds_left()
        coming = asyncio.ensure_future(self.source())
        try:
            if not (await asyncio.wait((coming,), timeout=left))[0]:
                # Add our own delay: a sender on the same machine may have been suspended with us.
                behind = min(max(loop.time() - begun - left, 0.0), self.seconds)
                begun += behind
                await asyncio.wait((coming,), timeout=_SECOND_LOOK_SECONDS + behind)
            # Timers run before received data is read. asyncio needs three turns of the loop for reading, and the
            # receiver two.
            for _ in range(5):
                if not coming.done():
                    await asyncio.sleep(0)
            return coming.result() if coming.done() else None
        finally:
            coming.cancel()
            self.waited += loop.time() - begun

    def _seconds_left(self) -> float:
        return min(self.seconds + self.size / BYTES_PER_SECOND, self.most_seconds) - self.waited
