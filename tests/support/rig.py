"""A real runtime for tests below the API, with its own key prefix and shared models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from ulid import ULID

from agent_memory import runtime as runtime_module
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import ModelUnavailable
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.base import ChatModel, EmbeddingModel, Reranker, Vectors
from agent_memory.foundation.llm.providers import Models
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.llm.wrappers.base import EmbedderWrapper
from agent_memory.foundation.storage.connection import connect
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.outbox import Claim, Claims, Outbox
from agent_memory.runtime import Runtime, open_runtime
from agent_memory_client.models import AppendMessagesRequest, MemoryMessage, MemoryRecord
from agent_memory_worker.memories.indexing import index_memories
from agent_memory_worker.relay import TASK_OF
from agent_memory_worker.task_handlers import Tasks

SCOPE: Scope = scope_of_work("default")


async def claim_kind(outbox: Outbox, kind: DueKind, *, limit: int, lease_seconds: float, max_attempts: int, share: float = 1.0) -> Claims:
    """Claim due marks of one kind. Raise the error if the claim fails."""
    claims = (await outbox.claim_each({kind: limit}, lease_seconds=lease_seconds, max_attempts=max_attempts, share=share))[kind]
    if isinstance(claims, Exception):
        raise claims
    return claims


class SharedEmbedder(EmbedderWrapper):
    """An embedder shared by all runtimes. `away` makes it fail as if the model server were down."""

    def __init__(self, inner: EmbeddingModel) -> None:
        super().__init__(inner)
        self.away = False

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        if self.away:
            raise ModelUnavailable("the embedder is away")
        return await self._inner.embed(texts, timeout=timeout)

    async def close(self) -> None:
        """Do nothing, because the fixture closes the inner embedder."""


@dataclass
class Rig:
    """A runtime with shortcuts for tests."""

    rt: Runtime
    settings: Settings
    embedder: SharedEmbedder
    workers: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    @property
    def keys(self) -> Keys:
        return Keys(self.settings.redis.key_prefix)

    def sid(self, ref: SessionRef) -> str:
        return self.keys.sid(SCOPE.tenant, ref)

    async def append(self, session_id: str, *texts: str, role: str = "user", namespace: str | None = None, **more: Any) -> Any:
        """Append messages with ids in the form "<session>-<text>"."""
        messages = [MemoryMessage(role=role, content=text, id=f"{session_id}-{text}"[:100]) for text in texts]
        return await self.rt[SessionService].append(
            SCOPE, session_id, AppendMessagesRequest(messages=messages, namespace=namespace, **more)
        )

    async def contents(self, session_id: str, **scope: Any) -> list[str]:
        """Return the contents of a session's messages, in order."""
        return [message.content for message in (await self.rt[SessionService].get(SCOPE, session_id, **scope)).session.messages]

    async def claim(self, kind: DueKind, *, limit: int = 1000, lease_seconds: float = 60, max_attempts: int = 8) -> list[Claim]:
        return (await self.claims(kind, limit=limit, lease_seconds=lease_seconds, max_attempts=max_attempts)).claims

    async def claims(self, kind: DueKind, *, limit: int = 1000, lease_seconds: float = 60, max_attempts: int = 8) -> Claims:
        return await claim_kind(self.rt.outbox, kind, limit=limit, lease_seconds=lease_seconds, max_attempts=max_attempts)

    async def begin(self, kind: DueKind, claims: Sequence[Claim], *, lease_seconds: float = 60, max_attempts: int = 8) -> list[Claim]:
        members = [claim.member for claim in claims]
        return await self.rt.outbox.begin_claims(kind, members, lease_seconds=lease_seconds, max_attempts=max_attempts)

    async def work(self, *kinds: DueKind) -> None:
        """Run all work that is due now, without docket."""
        tasks = Tasks(self.rt)
        for _ in range(100):
            some = False
            for kind in kinds or (DueKind.SESSION, DueKind.EXTRACTION, DueKind.MEMORY, DueKind.FOLLOW):
                claims = await self.claim(kind)
                some = some or bool(claims)
                task = getattr(tasks, TASK_OF[kind].value)
                batched = kind in (DueKind.MEMORY, DueKind.FOLLOW, DueKind.ITEM)
                if batched and claims:
                    await task([c.member for c in claims], [c.lease for c in claims], [c.attempt for c in claims])
                    await tasks.close(seconds=60)
                for claim in () if batched else claims:
                    await task(claim.member, claim.lease, claim.attempt)
                    await tasks.close(seconds=60)
            if not some:
                return
        raise AssertionError("the work does not end")

    async def index(self) -> None:
        """Embed all due memories, and let any errors propagate."""
        while claims := await self.claim(DueKind.MEMORY):
            await index_memories(self.rt, await self.begin(DueKind.MEMORY, claims))

    async def remember(self, *records: MemoryRecord) -> None:
        await self.rt[MemoryStore].write(SCOPE, records)
        await self.index()

    async def stored(self) -> list[MemoryRecord]:
        """Return all memories, read directly from their keys."""
        mids = [key.decode().rsplit(":", 1)[-1] async for key in self.rt.client.scan_iter(match=self.keys.memory_prefix + "*", count=1000)]
        return [record for record in await self.rt[MemoryStore].fetch_records(SCOPE, mids) if record is not None]

    async def raw_keys(self) -> set[str]:
        """Return the runtime's keys without their prefix, excluding docket's."""
        found = [key.decode() async for key in self.rt.client.scan_iter(match=self.keys.root + "*", count=1000)]
        return {key.removeprefix(self.keys.root) for key in found}

    async def marks(self, kind: DueKind) -> dict[str, float]:
        """Return the due time of each mark of this kind, in milliseconds."""
        return {member.decode(): score for member, score in await self.rt.client.zrange(self.keys.due(kind), 0, -1, withscores=True)}

    async def make_due(self, kind: DueKind) -> None:
        """Make all marks of this kind due now, ignoring delays and leases."""
        marks = await self.marks(kind)
        if marks:
            await self.rt.client.zadd(self.keys.due(kind), dict.fromkeys(marks, 1))
        for member, tries in (await self.rt.client.hgetall(self.keys.tries(kind))).items():
            failed, lease, *rest = tries.split(b" ")
            await self.rt.client.hset(self.keys.tries(kind), member, b" ".join([failed, b"1" if lease != b"0" else lease, *rest]))


MakeRig = Callable[..., AbstractAsyncContextManager[Rig]]


@asynccontextmanager
async def open_rig(
    redis_url: str,
    embedder: EmbeddingModel,
    counter: TokenCounter,
    chat: ChatModel | None,
    reranker: Reranker | None = None,
    **overrides: Any,
) -> AsyncGenerator[Rig]:
    """Open a runtime. Delete its data on exit unless `KEY_PREFIX` was given."""
    kept = "KEY_PREFIX" in overrides
    settings = load_settings(**{"KEY_PREFIX": f"t-{ULID()}", "MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local"} | overrides)
    shared = SharedEmbedder(embedder)

    async def models(_: Settings) -> Models:
        return Models(shared, chat, counter, "tests", reranker)

    with patch.object(runtime_module, "open_models", models):
        async with open_runtime(settings, redis_url) as rt:
            rig = Rig(rt, settings, shared)
            yield rig
    if not kept:
        # No process watches the store any more, so deleted keys do not count as lost.
        await _delete_store(redis_url, rig.keys)


async def _delete_store(redis_url: str, keys: Keys) -> None:
    client = connect(redis_url, pool_size=2, command_timeout=30)
    try:
        for name in await client.execute_command("FT._LIST"):
            if name.startswith(keys.root.encode()):
                await client.execute_command("FT.DROPINDEX", name)
        found = [key async for key in client.scan_iter(match=f"{keys.prefix}:*", count=1000)]
        for start in range(0, len(found), 1000):
            await client.delete(*found[start : start + 1000])
    finally:
        await client.aclose()


def record(text: str, memory_id: str | None = None, **more: Any) -> MemoryRecord:
    """Return a memory whose id defaults to its text."""
    return MemoryRecord(id=memory_id or text[:100], text=text, **{"memory_type": "semantic", **more})


async def gathered(work: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Run everything concurrently, then raise the first error if there is one."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return list(results)
