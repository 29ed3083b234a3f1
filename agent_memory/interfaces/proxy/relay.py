"""Stream an upstream's response to the caller and store its text in the session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import httpx2
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent_memory.foundation.api.errors import render
from agent_memory.foundation.api.responses import DEADLINE, HAS_REQUEST_ID
from agent_memory.foundation.core.errors import AgentMemoryError, Unavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.interfaces.proxy.authorization import FORWARDED
from agent_memory.interfaces.proxy.call_memory import CallMemory
from agent_memory.interfaces.proxy.forwarding import Headers, to_caller
from agent_memory.interfaces.proxy.upstreams import SILENCE_SECONDS
from agent_memory_client.models.llm import AnswerReader

log = get_logger(__name__)

# A longer JSON answer passes through without being read.
_MOST_READ_BYTES = 8 * 1024 * 1024
_OFF: Headers = ((b"x-memory-status", b"off"),)
# A comment line, which clients of event streams ignore. It is too late for a header.
_NOT_STORED = b": x-memory-stored: failed\n"


class Relay(Response):
    """A response that relays the upstream's bytes and adds this server's headers.

    The user's messages are stored before the first byte is sent, and the model's answer before the
    last. `memory` is None if the caller opted out.
    """

    def __init__(
        self, call: Callable[[], Awaitable[httpx2.Response]], memory: CallMemory | None, reader: AnswerReader, leave: Callable[[], None]
    ) -> None:
        super().__init__()
        self._leave = leave
        self._call = call
        self._memory = memory
        self._reader = reader
        self._deadline: asyncio.Timeout | None = None
        self._refused = self._begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._deadline = scope.get(DEADLINE)
        self._postpone()
        with anyio.CancelScope() as talk:
            disconnect = asyncio.create_task(_wait_for_disconnect(receive))
            disconnect.add_done_callback(lambda _: talk.cancel())
            try:
                await self._relay(scope, receive, send)
            except httpx2.HTTPError as error:
                log.warning("answer of the upstream broke off", error_type=type(error).__name__)
                # If the answer has begun, the caller's connection breaks, too, because the answer has no end.
                if not self._begun:
                    await self._refuse(Unavailable("the upstream's answer broke off: try again"), scope, receive, send)
            finally:
                with anyio.CancelScope(shield=True):
                    await self._store()
                    self._leave()
                    disconnect.cancel()

    async def _relay(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._call()
        except AgentMemoryError as error:
            self._refused = True
            await self._refuse(error, scope, receive, send)
            return
        try:
            self._refused = not response.is_success
            if "x-request-id" in response.headers:
                # An upstream's id belongs to the exchange between the caller and the upstream.
                scope[HAS_REQUEST_ID] = True
            pieces: AsyncIterator[bytes] = response.aiter_raw()
            if self._memory is not None and not self._refused:
                if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
                    await self._store()
                    pieces = self._stored_events(pieces)
                else:
                    pieces = await self._stored_body(pieces)
            headers = [*to_caller(response.headers.raw), *self._memory_headers()]
            self._begun = scope[FORWARDED] = True
            await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
            async for piece in pieces:
                self._postpone()
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await response.aclose()

    async def _refuse(self, error: AgentMemoryError, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = render(error)
        refusal.raw_headers += self._memory_headers()
        await refusal(scope, receive, send)

    async def _stored_events(self, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """Yield the pieces, and store the answer before the last event.

        If storing fails, yield `_NOT_STORED` first.
        """
        is_reported = self._memory is None or self._memory.stored == "failed"
        async for piece in pieces:
            begins_line = self._reader.begins_line
            if self._read(self._reader.feed, piece) and not await self._store() and begins_line and not is_reported:
                is_reported = True
                yield _NOT_STORED
            yield piece
        if not await self._store() and self._reader.begins_line and not is_reported:
            yield _NOT_STORED

    async def _stored_body(self, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        body = bytearray()
        async for piece in pieces:
            self._postpone()
            body += piece
            if len(body) > _MOST_READ_BYTES:
                break
        else:
            self._read(self._reader.read_body, bytes(body))
        await self._store()

        async def joined() -> AsyncGenerator[bytes]:
            yield bytes(body)
            async for piece in pieces:
                yield piece

        return joined()

    def _read(self, read: Callable[[bytes], bool], data: bytes) -> bool:
        """Pass `data` to `read`, and return True if the answer is complete. Never raises."""
        try:
            return read(data)
        except Exception:
            log.exception("answer of a model cannot be read", bytes=len(data), **(self._memory.log_fields if self._memory else {}))
            return False

    async def _store(self) -> bool:
        return self._memory is None or self._refused or await self._memory.store(self._reader.message())

    def _memory_headers(self) -> Headers:
        return _OFF if self._memory is None else self._memory.headers()

    def _postpone(self) -> None:
        if self._deadline is not None:
            self._deadline.reschedule(asyncio.get_running_loop().time() + SILENCE_SECONDS)


async def _wait_for_disconnect(receive: Receive) -> Any:
    while (await receive())["type"] != "http.disconnect":
        pass
