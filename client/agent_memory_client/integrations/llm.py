"""Memory for the OpenAI and Anthropic clients: `with_memory(OpenAI(), memory, user_id="ada")`.

The returned client recalls memories before each call and stores new messages after it. This works
for all methods, including streams, helpers and raw responses. To override options for a call, use
headers, like with the proxy: `extra_headers={"X-Memory": "off"}`.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar, cast

import anyio  # httpx requires it
from pydantic import ValidationError

from agent_memory_client._wire.requests import validation_error
from agent_memory_client.errors import MemoryClientError
from agent_memory_client.integrations._shared import AnyClient, EitherClient
from agent_memory_client.models._types import replace_lone_surrogates
from agent_memory_client.models.llm import (
    ANTHROPIC,
    CHAT,
    HEADERS,
    RESPONSES,
    CallOptions,
    Conversation,
    ModelApi,
    last_question,
    memory_headers,
    read_options,
    stored_message,
)
from agent_memory_client.models.llm.requests import Message

log = logging.getLogger(__name__)

# Lone surrogates (half an emoji) and escaped pairs (a whole emoji).
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")

Client = TypeVar("Client")


def with_memory(
    client: Client,
    memory: AnyClient,
    *,
    user_id: str,
    session_id: str | None = None,
    namespace: str | None = None,
    agent_id: str | None = None,
    max_tokens: int | None = None,
) -> Client:
    """Return an OpenAI or Anthropic client that adds a user's memory to its calls.

    The new client shares the connections of `client`. `max_tokens` limits the size of the added
    context. If `session_id` is None, each conversation gets its own session. If the memory server
    fails, calls continue without memory. Raises MemoryValidationError for invalid ids.
    """
    options = {"user_id": user_id, "session_id": session_id, "namespace": namespace, "agent_id": agent_id, "max_tokens": max_tokens}
    defaults = {HEADERS[name]: str(value) for name, value in options.items() if value is not None}
    _options(defaults)
    sender: Any = cast("Any", client)._client  # noqa: SLF001 - the SDKs have no public name for it
    http: Any = sys.modules[
        next(name for base in type(sender).__mro__ if (name := base.__module__.partition(".")[0]) in ("httpx", "httpx2"))
    ]
    is_async = isinstance(sender, http.AsyncClient)
    transport = (_async_transport if is_async else _blocking_transport)(http, sender, EitherClient(memory), defaults)
    outer = (http.AsyncClient if is_async else http.Client)(transport=transport, timeout=sender.timeout, follow_redirects=True)
    return cast("Any", client).with_options(http_client=outer)


class _Call:
    """A model call with memory.

    Each method that takes a memory client sends one request to the memory server.
    """

    def __init__(self, http: Any, api: ModelApi, options: CallOptions, body: dict[str, Any], request: Any) -> None:
        self._http = http
        self._api = api
        self._options = options
        self._body = body
        self._request = request
        if _SURROGATE.search(request.content):
            body = json.loads(replace_lone_surrogates(json.dumps(body, ensure_ascii=False)))
        self._conversation = Conversation(body, api.messages(body))
        self._session_id = options.session_id or self._conversation.default_session_id
        self.query = last_question(self._conversation.messages)
        self.status: Literal["added", "nothing", "failed"] = "nothing"
        self._context = ""
        self._memory_ids: list[str] = []
        self._reader = api.answer()
        self._body_of_answer: list[bytes] | None = None
        self._is_over = False

    def recall(self, client: Any) -> Any:
        names = {"user_id": self._options.user_id, "namespace": self._options.namespace, "agent_id": self._options.agent_id}
        shown_messages = self._conversation.shown_messages(self._session_id)
        limit = self._options.max_tokens
        return client.prompts.render(
            self.query,
            **names,
            long_term_search=True,
            format="anthropic",
            include_ids=False,
            max_tokens=limit,
            shown_messages=shown_messages,
        )

    def use(self, prompt: Any) -> None:
        if prompt.system:
            self._context, self.status = prompt.system, "added"
            self._memory_ids = [memory["id"] for memory in prompt.get("long_term_memories") or ()]

    @contextmanager
    def going_on(self) -> Generator[None]:
        """Let the call continue without memory if the memory server fails."""
        try:
            yield
        except (MemoryClientError, ValidationError) as error:
            self.status = "failed"
            log.warning("model call continues without memories", extra={"error": str(error)})

    @contextmanager
    def storing(self) -> Generator[None]:
        """Log a warning if storing the messages fails."""
        try:
            yield
        except (MemoryClientError, ValidationError) as error:
            # A validation error would show the message's text.
            why = "invalid" if isinstance(error, ValidationError) else str(error)
            log.warning("messages of a model call not stored", extra={"session_id": self._session_id, "error": why})

    def request(self) -> Any:
        """Return the model request with memories added and memory headers removed."""
        dropped = {*HEADERS.values(), "content-length", "accept-encoding"}
        headers = [(name, value) for name, value in self._request.headers.raw if name.decode().lower() not in dropped]
        body = self._api.with_context(self._body, self._context) if self._context else self._body
        # JSON can represent lone surrogates only as escapes.
        content = json.dumps(body).encode() if self._context else self._request.content
        return self._http.Request(
            self._request.method,
            self._request.url,
            headers=[*headers, (b"accept-encoding", b"identity")],
            content=content,
            extensions=self._request.extensions,
        )

    def response(self, response: Any, stream: Any) -> Any:
        """Return the response with a new stream and headers that list the added memories."""
        headers = memory_headers(self.status, memory_ids=self._memory_ids, session_id=self._session_id)
        headers.pop("x-memory-stored")  # messages are stored at the end
        raw = [*response.headers.raw, *((name.encode(), value.encode()) for name, value in headers.items())]
        if not str(response.headers.get("content-type", "")).startswith("text/event-stream"):
            self._body_of_answer = []
        return self._http.Response(response.status_code, headers=raw, stream=stream, extensions=response.extensions)

    def read(self, piece: bytes) -> None:
        if self._body_of_answer is None:
            self._reader.feed(piece)
        else:
            self._body_of_answer.append(piece)

    def messages(self, response: Any) -> Sequence[Any]:
        """Return the new messages and the answer so far. Later calls return []."""
        if self._options.mode != "on" or self._is_over or not response.is_success:
            return []
        self._is_over = True
        if self._body_of_answer is not None:
            self._reader.read_body(b"".join(self._body_of_answer))
        answer = self._reader.message()
        new_messages: list[tuple[Message, str]] = [
            *self._conversation.new,
            *([] if answer is None else [(answer, self._conversation.answer_id)]),
        ]
        return [stored_message(message, name) for message, name in new_messages]

    def append(self, client: Any, messages: Sequence[Any]) -> Any:
        options = self._options
        return client.sessions.append(
            self._session_id, messages, namespace=options.namespace, user_id=options.user_id, agent_id=options.agent_id
        )


def _options(headers: dict[str, str]) -> CallOptions:
    try:
        return read_options(headers, {})
    except ValidationError as error:
        raise validation_error(error) from error


def _call_of(http: Any, request: Any, defaults: dict[str, str]) -> _Call | None:
    """Return the model call in a request. Return None for other requests and opt-outs.

    Raises MemoryValidationError for invalid options.
    """
    api = next((api for api in (CHAT, RESPONSES, ANTHROPIC) if request.url.path.endswith(api.path)), None)
    if api is None or request.method != "POST":
        return None
    options = _options(defaults | {name: value for name, value in request.headers.items() if name in HEADERS.values()})
    try:
        body: Any = json.loads(request.content)
    except ValueError:
        return None
    return _Call(http, api, options, body, request) if isinstance(body, dict) and options.mode != "off" else None


def _plain(request: Any) -> Any:
    """Remove the memory headers from a request and return it."""
    for name in HEADERS.values():
        request.headers.pop(name, None)
    return request


def _blocking_transport(http: Any, sender: Any, memory: EitherClient, defaults: dict[str, str]) -> Any:
    class Stream(http.SyncByteStream):
        def __init__(self, response: Any, call: _Call) -> None:
            self._response = response
            self._call = call

        def __iter__(self) -> Iterator[bytes]:
            for piece in self._response.iter_raw():
                self._call.read(piece)
                yield piece

        def close(self) -> None:
            self._response.close()
            with self._call.storing():
                if messages := self._call.messages(self._response):
                    self._call.append(memory.blocking, messages)

    class Transport(http.BaseTransport):
        def handle_request(self, request: Any) -> Any:
            request.read()
            call = _call_of(http, request, defaults)
            if call is None:
                return sender.send(_plain(request), stream=True, follow_redirects=False)
            with call.going_on():
                if call.query:
                    call.use(call.recall(memory.blocking))
            response = sender.send(call.request(), stream=True, follow_redirects=False)
            return call.response(response, Stream(response, call))

        def close(self) -> None:
            sender.close()
            memory.close()

    return Transport()


def _async_transport(http: Any, sender: Any, memory: EitherClient, defaults: dict[str, str]) -> Any:
    class Stream(http.AsyncByteStream):
        def __init__(self, response: Any, call: _Call) -> None:
            self._response = response
            self._call = call

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._response.aiter_raw():
                self._call.read(piece)
                yield piece

        async def aclose(self) -> None:
            # Web frameworks cancel the scope of a caller that disconnects. The messages must be stored nevertheless.
            with anyio.CancelScope(shield=True):
                await self._response.aclose()
                with self._call.storing():
                    if messages := self._call.messages(self._response):
                        await memory.awaited(lambda client: self._call.append(client, messages))

    class Transport(http.AsyncBaseTransport):
        async def handle_async_request(self, request: Any) -> Any:
            await request.aread()
            call = _call_of(http, request, defaults)
            if call is None:
                return await sender.send(_plain(request), stream=True, follow_redirects=False)
            with call.going_on():
                if call.query:
                    call.use(await memory.awaited(call.recall))
            response = await sender.send(call.request(), stream=True, follow_redirects=False)
            return call.response(response, Stream(response, call))

        async def aclose(self) -> None:
            await sender.aclose()
            memory.close()

    return Transport()
