"""The proxy's routes, which provide the paths of OpenAI's API under `/proxy`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

from fastapi import Request, Response
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from agent_memory.foundation.api.body import read_body
from agent_memory.foundation.api.dependencies import scope_of, services_of
from agent_memory.foundation.api.errors import broken_json, invalid
from agent_memory.foundation.api.operation import ARGUMENTS, NamedRoute
from agent_memory.foundation.api.principals import permit_agent, place_of, writing
from agent_memory.foundation.api.responses import LEAVE
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.input.lone_surrogates import repair_json
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.interfaces.proxy.authorization import PREFIX, UPSTREAM_AUTHORIZATION
from agent_memory.interfaces.proxy.call_memory import WRITES_AT_ONCE, CallMemory
from agent_memory.interfaces.proxy.forwarding import our_headers, to_upstream
from agent_memory.interfaces.proxy.relay import Relay
from agent_memory.interfaces.proxy.upstreams import RequestBody, Upstreams
from agent_memory_client.models.llm import CHAT, HEADERS, RESPONSES, CallOptions, Conversation, ModelApi, read_options


class ModelProxy:
    """The proxy's routes, for an application whose lifespan enters `running`."""

    def __init__(self, settings: Settings) -> None:
        self._upstreams = Upstreams(settings.server.upstreams)
        self._turns = asyncio.Semaphore(WRITES_AT_ONCE)
        self.routes = [NamedRoute(f"{PREFIX.rstrip('/')}{api.path}", self._endpoint(api), methods=["POST"]) for api in (CHAT, RESPONSES)]

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with self._upstreams.opened():
            yield

    def _endpoint(self, api: ModelApi) -> Any:
        async def endpoint(request: Request) -> Response:
            return await self._call(api, request)

        return endpoint

    async def _call(self, api: ModelApi, request: Request) -> Response:
        self._upstreams.choose(None)
        sent = await read_body(request.scope, request.receive)
        body, conversation = await run_in_thread(partial(_read, api, sent), len(sent))
        headers = request.headers.raw
        try:
            options = read_options(our_headers(headers), body)
        except ValidationError as error:
            raise invalid(error, lambda name: ("header", HEADERS[name])) from None
        url = self._upstreams.choose(options.upstream) + api.path
        if query := request.url.query:
            url += f"?{query}"
        memory = None if options.mode == "off" else _memory_of(request, options, conversation, self._turns)
        if memory is not None:
            await memory.recall()
            if memory.context:
                # Change the body only if there is something to add.
                sent = to_json(api.with_context(body, memory.context))
        forwarded = to_upstream(headers, request.scope.get(UPSTREAM_AUTHORIZATION, ()))
        request.scope.get(LEAVE, _stay)()
        leave = self._upstreams.enter(scope_of(request).tenant)
        return Relay(partial(self._upstreams.send, url, forwarded, RequestBody(sent)), memory, api.answer(), leave)


def _memory_of(request: Request, options: CallOptions, conversation: Conversation, turns: asyncio.Semaphore) -> CallMemory:
    """Return the memory for a call.

    Raises Forbidden if the caller cannot access the owner, or BadInput if there is no user.
    """
    scope = scope_of(request)
    if options.mode == "on":
        writing(scope)
    permit_agent(scope, options.agent_id)
    namespace, user_id = place_of(scope, options.namespace, options.user_id)
    if user_id is None:
        how = "name the user here, in the body's `user` or in `metadata.user_id`; send X-Memory: off for a call without memory"
        raise BadInput(how, field=HEADERS["user_id"], where="header")
    ref = SessionRef(options.session_id or conversation.default_session_id, namespace, user_id)
    request.scope[ARGUMENTS] = {"session_id": ref.session_id, "user_id": user_id, "namespace": namespace}
    return CallMemory(services_of(request), scope, options, ref, conversation, turns)


def _read(api: ModelApi, sent: bytes) -> tuple[dict[str, Any], Conversation]:
    """Parse a request's body and conversation. Raises RequestValidationError or BadInput."""
    try:
        body: Any = from_json(sent)
    except ValueError as error:
        repaired = repair_json(sent)
        if repaired is None:
            raise broken_json(str(error)) from None
        body = from_json(repaired.body)
    if not isinstance(body, dict):
        raise BadInput("must be an object", field="body")
    fields = cast("dict[str, Any]", body)
    return fields, Conversation(fields, api.messages(fields))


def _stay() -> None:
    """Do nothing. Used when the server admits all requests."""
