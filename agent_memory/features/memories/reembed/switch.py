"""Follow a change of the embedding model in one process: open the second model, and switch to it when the store does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from agent_memory.features.memories.reembed.store import ReembedStore
from agent_memory.foundation.core.errors import AgentMemoryError
from agent_memory.foundation.llm.embedding_choice import EmbeddingChoice
from agent_memory.foundation.storage.cluster import end_task

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0

T = TypeVar("T")


class ModelSwitch(Generic[T]):
    """Holds the objects that the process opened for each model and bucket. A request uses one model until it ends."""

    def __init__(
        self,
        stores: Sequence[ReembedStore],
        choice: EmbeddingChoice,
        opened: Sequence[T],
        open_model: Callable[[EmbeddingChoice], Awaitable[Sequence[T]]],
        expect: Callable[[int, Sequence[T]], None],
    ) -> None:
        """Create a switch. `opened` contains the objects of `choice`, the model at startup.

        `expect` receives the objects whose index must exist.
        """
        self._stores = stores
        self._by_model = {choice: opened}
        self._active = [choice] * len(opened)
        self._open_model = open_model
        self._expect = expect

    def active(self, bucket: int) -> T:
        return self._by_model[self._active[bucket]][bucket]

    def find(self, choice: EmbeddingChoice, bucket: int) -> T | None:
        """Return a model's object for a bucket, or None if the model is not open yet."""
        parts = self._by_model.get(choice)
        return None if parts is None else parts[bucket]

    async def look(self) -> None:
        """Open and switch models to match the store's state. Raises RedisUnavailable, and StartupError if a model cannot be opened."""
        for bucket, store in enumerate(self._stores):
            state = await store.load_state()
            if state is None:
                self._expect(bucket, [self.active(bucket)])
                continue
            models = [state.active] if state.phase == "ending" else [state.active, state.other]
            for choice in models:
                if choice not in self._by_model:
                    self._by_model[choice] = await self._open(store, choice)
            if self._active[bucket] != state.active:
                log.warning("searches of bucket %d now use the embedding model %s", bucket, state.active.model)
            self._active[bucket] = state.active
            self._expect(bucket, [self._by_model[choice][bucket] for choice in models])

    async def follow(self) -> None:
        """Call `look`, but keep the current models if Redis is unavailable or the second model cannot be opened."""
        try:
            await self.look()
        except AgentMemoryError as error:
            log.warning("cannot follow the change of the embedding model: %s", error.message)

    async def _open(self, store: ReembedStore, choice: EmbeddingChoice) -> Sequence[T]:
        try:
            return await self._open_model(choice)
        except AgentMemoryError as error:
            await store.note_error(f"cannot open {choice.model}: {error.message}")
            raise

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        task = asyncio.create_task(self._run(), name="model-switch")
        try:
            yield
        finally:
            await end_task(task)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self.follow()
            except Exception:
                log.exception("cannot follow the change of the embedding model; continuing")
