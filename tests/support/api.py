"""Serve the API under test with uvicorn, using a real or fake runtime."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import uvicorn
from fastapi import FastAPI

from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.duplicates.service import DuplicateService
from agent_memory.features.memories.retention.service import RetentionService
from agent_memory.features.memories.search.pages import Page
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.recall.formats import Prompt
from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.service import SessionAnswer, SessionService
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.outbox import Backlog
from agent_memory.interfaces.http.protocol import KEEP_ALIVE_SECONDS, http_protocol
from agent_memory.runtime import Readiness, Runtime
from agent_memory_client.models import (
    AckResponse,
    AppendMessagesResponse,
    MemoryPromptResponse,
    MemoryRecord,
    MemoryRecordResultsResponse,
    SessionListResponse,
    WorkingMemoryResponse,
)
from tests.registrations import registrations


class _Server(uvicorn.Server):
    """A uvicorn server that signals when it is listening and leaves signal handling to pytest."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def bound_socket() -> socket.socket:
    """Return a socket on a free loopback port."""
    # Name the protocol explicitly: only then does asyncio disable Nagle's algorithm (40 ms per answer).
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    return listener


@asynccontextmanager
async def serving(
    app: FastAPI, *, keep_alive: int = KEEP_ALIVE_SECONDS, listener: socket.socket | None = None
) -> AsyncGenerator[str, None]:
    """Serve `app` on a loopback port and yield its base URL."""
    listener = listener or bound_socket()
    http = http_protocol(app.state.settings)
    config = uvicorn.Config(app, http=http, lifespan="on", log_level="warning", access_log=False, timeout_keep_alive=keep_alive)
    server = _Server(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    listening = asyncio.create_task(server.listening.wait())
    try:
        await asyncio.wait({running, listening}, return_when=asyncio.FIRST_COMPLETED)
        assert server.listening.is_set(), "the server did not start"
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listening.cancel()
        # Like a process that stops: otherwise the server waits for open streams of pages.
        if live := getattr(app.state, "live", None):
            live.end()
        server.should_exit = True
        await running


@dataclass
class Recorded:
    """A fake runtime that records service calls in `calls`.

    `answers[name]` sets the result of a call. It can be a value, a function or an exception.
    """

    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list[Any])
    answers: dict[str, Any] = field(default_factory=dict[str, Any])

    others: tuple[()] = ()

    @property
    def runtime(self) -> Runtime:
        """Return this object as the type that the API expects."""
        return cast("Runtime", self)

    @property
    def services(self) -> Recorded:
        """Return this object as the type that the routes expect."""
        return self

    def __getitem__(self, kind: type[Any]) -> Any:
        return _Recorder(self, _SERVICES[kind])

    async def ready(self) -> Readiness:
        return await self.answer("ready")

    def of(self, _tenant: str) -> Recorded:
        return self

    async def backlog(self) -> Any:
        return await self.answer("outbox.backlog")

    async def answer(self, name: str) -> Any:
        """Return the configured result of a call."""
        found = self.answers.get(name, _ANSWERS.get(name))
        if callable(found):
            found = found()
        if asyncio.iscoroutine(found):
            found = await found
        if isinstance(found, BaseException):
            raise found
        return found

    @property
    def last(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        """Return the name, arguments and keywords of the last call, without the scope."""
        return self.calls[-1]


@dataclass
class _Recorder:
    owner: Recorded
    service: str

    def __getattr__(self, method: str) -> Callable[..., Any]:
        async def call(*arguments: Any, **keywords: Any) -> Any:
            name = f"{self.service}.{method}"
            self.owner.calls.append((name, arguments[1:], keywords))
            return await self.owner.answer(name)

        return call


_SERVICES: dict[type[Any], str] = {
    SessionService: "working",
    MemoryService: "longterm",
    SearchService: "search",
    RecallService: "recall",
    RetentionService: "forgetting",
    DuplicateService: "compaction",
    OperationService: "operations",
    **{service: name for one in registrations() for service, name in one.recorded.items()},
}


def session_answer(*, missing_timestamps: bool = False) -> SessionAnswer:
    """Return a session response with version 7."""
    return SessionAnswer(WorkingMemoryResponse(session_id="s1"), 7, missing_timestamps)


_ANSWERS: dict[str, Callable[[], Any]] = {
    "working.put": session_answer,
    "working.get": session_answer,
    "working.patch_data": session_answer,
    "working.append_messages": lambda: (
        AppendMessagesResponse(session_id="s1", appended=1, total_messages=1, tokens=3, version=7),
        [],
    ),
    "working.delete": lambda: AckResponse(status="ok"),
    "working.list": lambda: SessionListResponse(sessions=["s1"], total=1),
    "longterm.create": lambda: AckResponse(status="ok"),
    "longterm.delete": lambda: AckResponse(status="ok, deleted 0 memories"),
    "longterm.get": lambda: MemoryRecord(id="m1", text="a fact"),
    "longterm.patch": lambda: MemoryRecord(id="m1", text="a fact"),
    "search.search": lambda: MemoryRecordResultsResponse(memories=[], total=0),
    "recall.prompt": lambda: MemoryPromptResponse(messages=[]),
    "search.search_page": lambda: Page([], 0, None, [], None),
    "recall.build_prompt": lambda: Prompt([], [], [], None),
    "outbox.backlog": lambda: {kind: Backlog(2, 1, 1.5) for kind in DueKind},
    "ready": lambda: Readiness(True, {"redis": "ok"}),
}
