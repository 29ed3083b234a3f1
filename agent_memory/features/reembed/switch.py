"""Follow embedding model changes in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from ulid import ULID

from agent_memory.features.reembed.embedding_choice import EmbeddingChoice
from agent_memory.features.reembed.store import ReembedStore
from agent_memory.foundation.core.errors import AgentMemoryError
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.storage.cluster import end_task

log = get_logger(__name__)

_LOOK_SECONDS = 1.0

T = TypeVar("T")


class ModelSwitch(Generic[T]):
    """Provides each model's open objects, one per bucket. A request uses a single model."""

    def __init__(
        self,
        stores: Sequence[ReembedStore],
        choice: EmbeddingChoice,
        opened: Sequence[T],
        open_model: Callable[[EmbeddingChoice], Awaitable[Sequence[T]]],
        expect: Callable[[int, Sequence[T]], None],
    ) -> None:
        """`opened` contains the objects for `choice`, the model used at startup.

        `expect` is called with objects whose indexes must exist.
        """
        self._stores = stores
        self._configured = choice
        self._by_model = {choice: opened}
        self._active = [choice] * len(opened)
        self._since = [0.0] * len(opened)
        self._process = str(ULID())
        self._failure = ""
        self._open_model = open_model
        self._expect = expect

    def active(self, bucket: int) -> T:
        return self._by_model[self._active[bucket]][bucket]

    def find(self, choice: EmbeddingChoice, bucket: int) -> T | None:
        """Return a model's object for a bucket, or None if the model is not open."""
        parts = self._by_model.get(choice)
        return None if parts is None else parts[bucket]

    async def look(self, *, other: bool = True) -> None:
        """Open and switch models to match the store's state.

        If `other` is false, open only the model used for searches. Raises RedisUnavailable or
        StartupError.
        """
        states = [await store.load_state() for store in self._stores]
        for store, state, current, since in zip(self._stores, states, self._active, self._since, strict=True):
            if state is not None:
                await store.announce(self._process, current, since, state.now)
        for bucket, (store, state) in enumerate(zip(self._stores, states, strict=True)):
            current = self._active[bucket]
            if state is None:
                # A change may have ended while this process was asleep or starting.
                models = [await store.load_successor(current, is_configured=current == self._configured)]
            else:
                models = [state.active, state.other] if other and state.phase != "ending" else [state.active]
            for choice in models:
                if choice not in self._by_model:
                    self._by_model[choice] = await self._open(store, choice)
            if current != models[0]:
                if state is not None:
                    self._since[bucket] = state.now
                    await store.announce(self._process, models[0], state.now, state.now)
                log.warning("searches now use another embedding model", bucket=bucket, model=models[0].model)
                self._active[bucket] = models[0]
            self._expect(bucket, [self._by_model[choice][bucket] for choice in models])
        if not any(states):
            # A later change back to a former model creates its indexes again.
            self._by_model = {choice: parts for choice, parts in self._by_model.items() if choice in self._active}

    async def follow(self, *, other: bool = True) -> None:
        """Call `look`. If it fails, log the error and keep the current models."""
        failure = ""
        try:
            await self.look(other=other)
        except AgentMemoryError as error:
            failure = error.message
            if failure != self._failure:
                log.warning("cannot follow the change of the embedding model", error=error)
        self._failure = failure

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
                log.exception("cannot follow the change of the embedding model", retry_seconds=_LOOK_SECONDS)
