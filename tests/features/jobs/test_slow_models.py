"""Test that work waiting for a slow model does not delay other work."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Self

from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.errors import ModelUnavailable
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.base import ChatModel, EmbeddingModel, Vectors
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.llm.wrappers.base import ChatWrapper, EmbedderWrapper
from tests.features.jobs.test_dispatch import QUICK, eventually, rest, working
from tests.support.rig import SCOPE, MakeRig, Rig, record


class HeldEmbedder(EmbedderWrapper):
    """An embedder that blocks on texts about beets until released."""

    def __init__(self, inner: EmbeddingModel) -> None:
        super().__init__(inner)
        self.held = 0
        self.let_go = asyncio.Event()

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        if any("beets" in text for text in texts):
            self.held += 1
            await self.let_go.wait()
        return await self._inner.embed(["about vegetables" if "beets" in text else text for text in texts], timeout=timeout)

    async def __aenter__(self) -> None:
        """Release the model on exit, so that a worker can stop."""

    async def __aexit__(self, *_: object) -> None:
        self.let_go.set()

    async def close(self) -> None:
        """Do nothing, because the inner embedder outlives a runtime."""


def long_text(number: int, passages: int = 90) -> str:
    return "\n".join(f"Line {number}.{line} is about beets. " + 70 * "beets and " for line in range(passages))


async def test_long_memories_do_not_delay_erasures_and_messages(make_rig: MakeRig, local: EmbeddingModel) -> None:
    held = HeldEmbedder(local)
    async with make_rig(embedder=held, WORKER_CONCURRENCY=4, WORKER_INDEX_BATCH=1, **QUICK) as rig:
        records = [record(long_text(number), f"hog{number}", user_id="hog") for number in range(12)]
        mids = {rig.rt[MemoryStore].mid(SCOPE, one.id) for one in records}
        await rig.rt[MemoryStore].write(SCOPE, records)
        await rig.rt[MemoryStore].write(SCOPE, [record("Vic grows figs", user_id="vic")])
        async with working(rig), held:

            async def begun() -> bool:
                return held.held > 0

            await eventually(rig, begun, "the first long memory")
            await erase_and_say(rig)
            assert set(await rig.marks(DueKind.MEMORY)) == mids
            # A shorter text of another user finds room beside the long ones.
            held_before = held.held
            await rig.rt[MemoryStore].write(SCOPE, [record(long_text(99, 10), "eve's list", user_id="eve")])

            async def joined() -> bool:
                return held.held > held_before

            await eventually(rig, joined, "the shorter text's call")
            held.let_go.set()

            # No work waits for a lease to expire.
            async def embedded() -> bool:
                return not await rig.marks(DueKind.MEMORY)

            await eventually(rig, embedded, "the long memories")
        keys = [rig.keys.vector(mid) for mid in mids]
        assert await rig.rt.client.exists(*keys) == 12


async def erase_and_say(rig: Rig) -> None:
    """Erase a user, append another user's message, and wait until both are processed."""
    await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, "vic", None))
    await rig.append("s", "I own a boat", user_id="eve")

    async def done() -> bool:
        texts = {one.text: one for one in await rig.stored()}
        if "Vic grows figs" in texts or "I own a boat" not in texts:
            return False
        return bool(await rig.rt.client.exists(rig.keys.vector(rig.rt[MemoryStore].mid(SCOPE, texts["I own a boat"].id))))

    await eventually(rig, done, "the erasure and the message")


async def test_many_memories_do_not_delay_erasures_and_messages(make_rig: MakeRig, local: EmbeddingModel) -> None:
    held = HeldEmbedder(local)
    async with make_rig(embedder=held, WORKER_CONCURRENCY=4, WORKER_INDEX_BATCH=1, **QUICK) as rig:
        await rig.rt[MemoryStore].write(SCOPE, [record(f"Row {number} is for beets", user_id="hog") for number in range(40)])
        await rig.rt[MemoryStore].write(SCOPE, [record("Vic grows figs", user_id="vic")])
        async with working(rig), held:

            async def begun() -> bool:
                return held.held > 0

            await eventually(rig, begun, "the first memory")
            await erase_and_say(rig)
            assert len(await rig.marks(DueKind.MEMORY)) == 40
            held.let_go.set()
            await rest(rig)


class HeldChat(ChatWrapper):
    """A chat model that blocks until released, and then fails."""

    def __init__(self, inner: ChatModel) -> None:
        super().__init__(inner)
        self.held = 0
        self.let_go = asyncio.Event()

    async def text(self, *_: Any, **__: Any) -> str:
        self.held += 1
        await self.let_go.wait()
        raise ModelUnavailable("let go")

    structured = text

    def with_model(self, model: str) -> Self:
        return self


async def test_slow_chat_model_does_not_delay_erasures(make_rig: MakeRig, chat: OpenAIChat) -> None:
    held = HeldChat(chat)
    async with make_rig(held, WORKER_CONCURRENCY=4, **QUICK) as rig:
        await rig.rt[MemoryStore].write(SCOPE, [record("Vic grows figs", user_id="vic")])
        for number in range(12):
            await rig.append(f"s{number}", f"I own {number} boats", user_id=f"user{number}")
        async with working(rig):

            async def busy() -> bool:
                return held.held >= 3

            await eventually(rig, busy, "calls that the model does not answer")
            await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, "vic", None))

            async def erased() -> bool:
                return "Vic grows figs" not in {one.text for one in await rig.stored()}

            try:
                await eventually(rig, erased, "the erasure")
            finally:
                held.let_go.set()
