"""Read a request's body first, so that slow senders occupy no place.

Short bodies are buffered. Long ones, and those with `Expect: 100-continue`, are passed on with `BODY_ARRIVING`. A late
body is answered by a 408 and its connection closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_memory.foundation.api.errors import render
from agent_memory.foundation.core.errors import AgentMemoryError, RequestTimeout

BODY_ARRIVING = "agent_memory.body_arriving"
"""Key in an ASGI scope: the request's body is incomplete."""

BODY_COMPLETE = "agent_memory.body_complete"
"""Key in an ASGI scope: the body is complete. Optional for servers."""

REFUSAL = "agent_memory.refusal"
"""Key in an ASGI scope: the connection's error that ends the body (`protocol.py`)."""

# Each such piece adds a second: a sender at this pace is never late.
BYTES_PER_SECOND = 16 * 1024
_MAX_BUFFERED_BYTES = 64 * 1024
# Room for all buffered bodies; beyond it they are passed on.
_MAX_BUFFERED_BYTES_OF_ALL = 16 * 1024 * 1024
# Extra time for data in transit.
_SECOND_LOOK_SECONDS = 0.05
# After this many turns all received data is read; in asyncio two are not enough.
_TURNS = 3


class BodyDeadlineMiddleware:
    """A body has `seconds`, plus one for each BYTES_PER_SECOND of it, up to `request_timeout` (s)."""

    def __init__(self, app: ASGIApp, *, seconds: float, request_timeout: float) -> None:
        self._app = app
        self._seconds = seconds
        self._most_seconds = max(seconds, request_timeout)
        self.buffered_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or BODY_COMPLETE in scope or not (length := _expected_bytes(scope)):
            await self._app(scope, receive, send)
            return
        body = TimedBody(scope, receive, self._seconds, self._most_seconds)
        if length > _MAX_BUFFERED_BYTES:
            await self._pass_on(scope, [], body, send)
            return
        try:
            messages = [await body.receive()]
            if not body.complete:
                messages = await self._buffer(messages, body)
        except AgentMemoryError as error:
            await _refuse(error, scope, receive, send)
            return
        if not body.complete:
            await self._pass_on(scope, messages, body, send)
        elif messages[-1]["type"] != "http.disconnect":
            await self._app(scope, _replay(messages, receive), send)

    async def _buffer(self, messages: list[Message], body: TimedBody) -> list[Message]:
        """Wait for the rest of a body while there is room."""
        buffered = 0
        try:
            while not body.complete:
                self.buffered_bytes += body.size - buffered
                buffered = body.size
                if buffered > _MAX_BUFFERED_BYTES or self.buffered_bytes > _MAX_BUFFERED_BYTES_OF_ALL:
                    break
                messages.append(await body.receive())
        finally:
            self.buffered_bytes -= buffered
        return messages

    async def _pass_on(self, scope: Scope, messages: Sequence[Message], body: TimedBody, send: Send) -> None:
        """Run the application while the body arrives. On a refusal it sees a disconnect."""
        refusal: AgentMemoryError | None = None
        begun = False

        async def receive_in_time() -> Message:
            nonlocal refusal
            if refusal is None:
                try:
                    return await body.receive()
                except AgentMemoryError as error:
                    refusal = error
            return {"type": "http.disconnect"}

        async def send_unless_refused(message: Message) -> None:
            nonlocal begun
            if begun or refusal is None:
                begun = True
                await send(message)

        scope[BODY_ARRIVING] = True
        try:
            await self._app(scope, _replay(list(messages), receive_in_time), send_unless_refused)
        except Exception:
            if refusal is None or begun:
                raise
        if refusal is not None and not begun:
            await _refuse(refusal, scope, receive_in_time, send)


class TimedBody:
    """An arriving body. Only the time spent waiting for it counts."""

    def __init__(self, scope: Scope, receive: Receive, seconds: float, most_seconds: float) -> None:
        self._scope = scope
        self._receive = receive
        self._seconds = seconds
        self._most_seconds = most_seconds
        self._waited = 0.0
        self.size = 0
        self.complete = False

    async def receive(self) -> Message:
        """Return the next message. Raises RequestTimeout if it is late, and the error in `REFUSAL`."""
        if self.complete:
            return await self._receive()
        message = await self._receive_in_time()
        if REFUSAL in self._scope:
            raise self._scope[REFUSAL]
        self.size += len(message.get("body", b""))
        self.complete = not message.get("more_body", False)
        if not self.complete and self._seconds_left() <= 0:
            raise self._late()
        return message

    async def _receive_in_time(self) -> Message:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        due = begun + self._seconds_left()
        try:
            async with asyncio.timeout_at(due):
                return await self._receive()
        except TimeoutError:
            # Add our own delay: a sender on the same machine may have been stopped as well.
            behind = min(max(loop.time() - due, 0.0), self._seconds)
            begun += behind
            return await self._look_again(_SECOND_LOOK_SECONDS + behind)
        finally:
            self._waited += loop.time() - begun

    async def _look_again(self, seconds: float) -> Message:
        """Timers run before received data is read."""
        try:
            async with asyncio.timeout(seconds):
                return await self._receive()
        except TimeoutError:
            pass
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        try:
            async with asyncio.timeout(0):
                return await self._receive()
        except TimeoutError:
            raise self._late() from None

    def _seconds_left(self) -> float:
        return min(self._seconds + self.size / BYTES_PER_SECOND, self._most_seconds) - self._waited

    def _late(self) -> RequestTimeout:
        return RequestTimeout(
            f"the body of the request did not come within {self._seconds:g} s and a second more for each "
            f"{BYTES_PER_SECOND // 1024} KiB of it: send it at once, or raise BODY_TIMEOUT_SECONDS"
        )


def _expected_bytes(scope: Scope) -> float:
    """Return the length by the headers: 0 for none, infinite with `Expect: 100-continue`."""
    expected = 0.0
    for name, value in scope["headers"]:
        if name == b"content-length":
            # More digits exceed every limit.
            expected = max(expected, float(value[:18]) if value.isdigit() else 1.0)
        elif name == b"transfer-encoding":
            expected = max(expected, 1.0)
        elif name == b"expect" and value.lower() == b"100-continue":
            return float("inf")
    return expected


def _replay(messages: list[Message], receive: Receive) -> Receive:
    messages.reverse()

    async def receive_next() -> Message:
        return messages.pop() if messages else await receive()

    return receive_next


async def _refuse(error: AgentMemoryError, scope: Scope, receive: Receive, send: Send) -> None:
    answer = render(error)
    answer.headers["connection"] = "close"
    await answer(scope, receive, send)
