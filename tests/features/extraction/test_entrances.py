"""Test that the same text from any two entry points becomes one memory with two pieces of evidence.

One server runs every ordered pair.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from typing import Any

import httpx
import pytest

from agent_memory.features.transfer.archived_server.layout import OldPrefixes
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import Runtime, open_runtime
from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_client.models import ClientMemoryRecord, MemoryEvidence, MemoryMessage, MemoryRecord
from agent_memory_worker.main import run_worker
from tests.compat.archived_store.moves import move
from tests.compat.archived_store.old_server import hashed
from tests.features.extraction.cases import SCOPE
from tests.support.api import serving
from tests.support.lookalike import Lookalike
from tests.support.mcp import Session, over_http
from tests.support.rig import Rig, SharedEmbedder
from tests.support.waiting import wait_until

PREFIX = "entrances"


def text_of(user: str) -> str:
    """Return a text unique to the user, so that no two users share an embedding batch."""
    return f"The boat of {user} lies in Bergen"


@dataclass
class Server:
    """A server with all features, and a method for each entry point."""

    url: str
    redis_url: str
    settings: Settings
    api: MemoryAPIClient
    http: httpx.AsyncClient
    runtime: Runtime
    model: Lookalike
    sessions: set[tuple[str, str]] = field(default_factory=set)
    mcp: Session | None = None

    async def create(self, user: str, n: int) -> None:
        """Create a memory over REST, with only the required fields."""
        body = {"memories": [{"id": f"{user} {n}", "text": text_of(user), "user_id": user}]}
        assert (await self.http.post("/v1/long-term-memory/", json=body)).status_code == 200

    async def episodic(self, user: str, n: int) -> None:
        """Create an episodic memory over REST."""
        record = ClientMemoryRecord(id=f"{user} {n}", text=text_of(user), user_id=user, memory_type="episodic")
        await self.api.create_long_term_memory([record])

    async def in_session(self, user: str, n: int) -> None:
        """PUT a session that contains a memory. The default type is "message"."""
        body = {"user_id": user, "messages": [], "memories": [{"id": f"{user} {n}", "text": text_of(user)}]}
        assert (await self.http.put(f"/v1/working-memory/held-{n}", json=body)).status_code == 200
        self.sessions.add((user, f"held-{n}"))

    async def message(self, user: str, n: int) -> None:
        """Append a user message with exactly this text."""
        await self.api.append_messages("chat", [MemoryMessage(role="user", content=text_of(user), id=f"{n}")], user_id=user)
        self.sessions.add((user, "chat"))

    async def elsewhere(self, user: str, n: int) -> None:
        """Append a user message in a separate session, on a separate day."""
        said = MemoryMessage(role="user", content=text_of(user), id=f"{n}", created_at=datetime(2024, 3, 1 + n, tzinfo=UTC))
        await self.api.append_messages(f"of day {n}", [said], user_id=user)
        self.sessions.add((user, f"of day {n}"))

    async def extraction(self, user: str, n: int) -> None:
        """Append a user message with different words, from which a model extracts the text."""
        said = f"By the way, part {n}: {user} keeps a boat, and it lies over in Bergen!"
        self.model.scripted.facts[said] = [{"text": text_of(user), "type": "semantic", "speaker": user, "slot": "boat_place"}]
        await self.api.append_messages(f"talk-{n}", [MemoryMessage(role="user", content=said, id=f"said-{n}")], user_id=user)
        self.sessions.add((user, f"talk-{n}"))

    async def by_mcp(self, user: str, n: int) -> None:
        """Create a memory with the MCP tool."""
        assert self.mcp is not None
        memory = {"text": text_of(user), "user_id": user, "memory_type": "semantic"}
        assert (await self.mcp.call("create_long_term_memories", memories=[memory]))["status"] == "ok"

    async def eager_tool(self, user: str, n: int) -> None:
        """Use the client tool that stores a memory immediately."""
        await self._tool("eagerly_create_long_term_memory", {"memories": [{"text": text_of(user), "memory_type": "semantic"}]}, user, n)

    async def lazy_tool(self, user: str, n: int) -> None:
        """Use the client tool that stores a memory through the session."""
        await self._tool("lazily_create_long_term_memory", {"text": text_of(user), "memory_type": "episodic"}, user, n)
        self.sessions.add((user, f"tools-{n}"))

    async def _tool(self, name: str, given: dict[str, Any], user: str, n: int) -> None:
        done = await self.api.resolve_function_call(name, given, f"tools-{n}", user_id=user)
        assert done["success"], done

    async def move(self, user: str, n: int) -> None:
        """Create a memory in the old layout for `agent-memory migrate` (see `moved_in`)."""
        record = {"id": f"old {user} {n}", "text": text_of(user), "user_id": user, "memory_type": "semantic", "created_at": 1.7e9}
        await self.runtime.client.hset(f"{PREFIX}-old-{n}:{record['id']}", mapping=hashed(record, None))  # pyright: ignore[reportGeneralTypeIssues]

    async def moved_in(self, n: int) -> None:
        """Migrate all data from the old layout, then delete the old data."""
        client, embedder = self.runtime.client, SharedEmbedder(self.runtime.embedder)
        report = await move(Rig(self.runtime, self.settings, embedder), self.redis_url, prefixes=OldPrefixes(memories=f"{PREFIX}-old-{n}"))
        assert report.imported.get("memory", 0) + report.present.get("memory", 0) == len(ENTRANCES), report
        async for key in client.scan_iter(match=f"{PREFIX}-old-{n}:*", count=1000):
            await client.delete(key)

    async def user_import(self, user: str, n: int) -> None:
        """Import another user's export as this user."""
        there = f"{user} there {n}"
        await self.create(there, n)
        lines = [line async for line in self.api.export_user(there)]
        named = [line.replace(f"{there} {n}".encode(), f"brought {user} {n}".encode()) for line in lines]
        named = [line.replace(text_of(there).encode(), text_of(user).encode()) for line in named]
        report = await self.api.import_user(user, named)
        assert report.complete
        assert not report.problem_count, report

    async def worked_off(self) -> None:
        sessions, self.sessions = self.sessions, set()
        some = asyncio.Semaphore(8)

        async def flush(user: str, session: str) -> None:
            async with some:
                await self.api.flush_working_memory(session, user_id=user)

        await asyncio.gather(*(flush(user, session) for user, session in sessions))
        keys = Keys(PREFIX)
        members = {keys.sid(SCOPE.tenant, SessionRef(session, None, user)) for user, session in sessions}

        async def idle() -> bool:
            due = [await self.runtime.client.zrange(keys.due(kind), 0, -1) for kind in (DueKind.SESSION, DueKind.EXTRACTION)]
            return members.isdisjoint(member.decode() for some in due for member in some)

        await wait_until(idle, "the work on the sessions", 60)


@pytest.fixture(scope="module")
async def server(redis_url: str) -> AsyncGenerator[Server]:
    model = Lookalike().start()
    model.scripted.silent = True
    options = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test-0000", "EMBEDDING_PROVIDER": "local"}
    settings = load_settings(KEY_PREFIX=PREFIX, EXTRACTION_DEBOUNCE_SECONDS=3600, COMPACTION_EVERY_MINUTES=0, **options)
    async with open_runtime(settings, redis_url) as runtime:
        stop = asyncio.Event()
        worker = asyncio.create_task(run_worker(runtime, settings, stop))
        try:
            async with (
                serving(create_app(settings, runtime)) as url,
                httpx.AsyncClient(base_url=url, timeout=60) as http,
                MemoryAPIClient(MemoryClientConfig(base_url=url, max_retries=0, timeout=60)) as api,
            ):
                yield Server(url, redis_url, settings, api, http, runtime, model)
        finally:
            stop.set()
            await worker
            model.stop()


Entrance = Callable[[Server, str, int], Awaitable[None]]
ENTRANCES: dict[str, Entrance] = {
    "create": Server.create,
    "create as an event": Server.episodic,
    "session": Server.in_session,
    "message": Server.message,
    "message of another day": Server.elsewhere,
    "extraction": Server.extraction,
    "MCP": Server.by_mcp,
    "eager tool": Server.eager_tool,
    "lazy tool": Server.lazy_tool,
    "move": Server.move,
    "import": Server.user_import,
}
MESSAGES = ("message", "message of another day")
PAIRS = list(product(ENTRANCES, ENTRANCES))


@dataclass
class Kept:
    """Search and list results for a text, and its evidence."""

    found: list[MemoryRecord]
    listed: int
    evidence: MemoryEvidence


@pytest.fixture(scope="module")
async def kept(server: Server) -> dict[tuple[str, str], Kept]:
    """Run all pairs, each as a separate user, and return the results."""
    users = {pair: f"{pair[0]} then {pair[1]}" for pair in PAIRS}
    some = asyncio.Semaphore(8)

    async def enter(entrance: Entrance, user: str, n: int) -> None:
        async with some:
            await entrance(server, user, n)

    async with over_http(f"{server.url}/mcp") as server.mcp:
        for n in (0, 1):
            await asyncio.gather(*(enter(ENTRANCES[pair[n]], user, n) for pair, user in users.items()))
            await server.moved_in(n)
            await server.worked_off()
    found: dict[tuple[str, str], Kept] = {}
    for pair, user in users.items():
        records = [one async for one in server.api.search_all_long_term_memories(text_of(user), user_id={"eq": user}, batch_size=50)]
        listed = await server.api.search_long_term_memory("", user_id={"eq": user}, limit=50)
        same = [one for one in records if one.text == text_of(user)]
        evidence = await server.api.get_memory_evidence(same[0].id)
        found[pair] = Kept(same, sum(one.text == text_of(user) for one in listed.memories), evidence)
    return found


@pytest.mark.parametrize("pair", PAIRS, ids=[" then ".join(pair) for pair in PAIRS])
async def test_same_text_through_two_entrances_is_one_memory_with_two_evidence_pieces(
    kept: dict[tuple[str, str], Kept], pair: tuple[str, str]
) -> None:
    one = kept[pair]
    (memory,) = one.found
    assert one.listed == 1
    pieces = one.evidence.evidence
    assert len(pieces) == 2, pieces
    sources = [(piece.session_id, *piece.message_ids, piece.memory_id if not piece.message_ids else None) for piece in pieces]
    assert len(set(sources)) == 2, "they are different pieces"
    shown = [message.content for piece in pieces for message in piece.messages or () if message.id in ("0", "1")]
    assert shown == [memory.text] * sum(name in MESSAGES for name in pair)
    if pair[0] in ("create", "create as an event"):
        assert memory.id.endswith(" 0"), "who comes first keeps the id"
