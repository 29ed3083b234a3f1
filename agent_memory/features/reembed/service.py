"""Start, monitor and finish a change of embedding model in all buckets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent_memory.features.reembed.embedding_choice import EmbeddingChoice
from agent_memory.features.reembed.store import MOST_MISSING, Phase, ReembedStore
from agent_memory.foundation.core.errors import BadInput, Conflict, ModelAnswerInvalid, StartupError
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.local.embedder import find_model
from agent_memory.foundation.llm.local.weights import PACKAGES
from agent_memory.foundation.llm.providers import open_models
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory_client.models import ReembedAction, ReembedRequest, ReembedStatus

_PROBE_SECONDS = 10.0
_MOST_SHOWN = 100
# For each action: the phases that allow it, and the phase after it.
_ACTIONS: Final[dict[ReembedAction, tuple[Sequence[Phase], Phase]]] = {
    "pause": (["filling"], "paused"),
    "resume": (["paused"], "filling"),
    "confirm": (["swapped"], "ending"),
    "rollback": (["swapped"], "ending"),
    "abort": (["filling", "paused"], "ending"),
}


class ReembedService:
    def __init__(self, settings: Settings, store: ReembedStore, counter: TokenCounter) -> None:
        self._settings = settings
        self._current = EmbeddingChoice.of(settings.models)
        self._store = store
        self._counter = counter

    async def start(self, request: ReembedRequest) -> ReembedStatus:
        """Start the change, or only estimate its cost.

        Raises Conflict, ModelUnavailable, and BadInput if the model is unusable or already in use.
        """
        provider = request.provider or self._current.provider
        second = EmbeddingChoice(provider, request.model, request.dimensions if provider == "openai" else None)
        if second == self._current:
            raise BadInput(f"searches use {request.model} already: name another model", field="model")
        if provider == "local":
            await asyncio.to_thread(_check_local, request.model)
        if request.dry_run:
            texts, sample = await self._store.sample_texts()
            tokens = [await self._counter.count_in_thread(text) for text in sample]
            total = round(sum(tokens) / max(1, len(tokens)) * texts)
            seconds = texts / request.rate if request.rate else None
            model, rate = self._current.model, request.rate
            return ReembedStatus(phase="none", model=model, other=request.model, texts=texts, tokens=total, rate=rate, seconds_left=seconds)
        if provider == "openai":
            second = second._replace(dimensions=await self._dimensions_of(second))
        first = json.dumps(self._current)
        models = {"first": first, "second": json.dumps(second), "active": first}
        await self._store.change([""], {"phase": "filling", "rate": request.rate, **models})
        return await self.read_status()

    async def _dimensions_of(self, choice: EmbeddingChoice) -> int:
        """Return the number of dimensions in a server's vectors. Raises ModelUnavailable and BadInput."""
        try:
            models = await open_models(choice.applied(self._settings))
            try:
                await models.embedder.embed(["dimension"], timeout=_PROBE_SECONDS)
                return models.embedder.dimensions
            finally:
                await models.close()
        except (ModelAnswerInvalid, StartupError) as error:
            raise BadInput(f"cannot use this model: {error.message}", field="model") from error

    async def act(self, action: ReembedAction) -> ReembedStatus:
        """Pause, resume or end the change. Raises Conflict if the phase forbids the action.

        A rollback also raises Conflict until the newest memories have vectors from the old model. A confirmation also
        raises Conflict while a live process uses the old model.
        """
        phases, after = _ACTIONS[action]
        state = await self._store.load_state()
        fields = {"phase": after}
        if action == "rollback" and state is not None:
            fields["active"] = json.dumps(state.other)
        if action == "confirm" and state is not None and (behind := await self._store.count_behind(state)):
            text = f"{behind} processes do not use {state.active.model} yet (a killed one counts for 30 s)"
            raise Conflict(f"{text}: try again, or see their logs")
        await self._store.change(phases, fields, most_missing=MOST_MISSING if action == "rollback" else None)
        return await self.read_status()

    async def read_status(self) -> ReembedStatus:
        state = await self._store.load_state()
        if state is None:
            return ReembedStatus(phase="none", model=self._current.model)
        seconds = max(1.0, state.now - state.since)
        speed = state.rate or max(0, state.left - state.missing) / seconds
        return ReembedStatus(
            phase=state.phase,
            model=state.active.model,
            other=state.other.model,
            texts=state.total,
            done=max(0, state.total - state.missing),
            rate=state.rate,
            seconds_left=state.missing / speed if speed and state.phase == "filling" else None,
            error=state.error or None,
            refused=state.refused,
            refused_ids=await self._store.list_refused(_MOST_SHOWN) if state.refused else [],
        )


def _check_local(model: str) -> None:
    """Raise BadInput if this machine does not have the local model."""
    if model not in PACKAGES and not Path(model).is_dir():
        raise BadInput(f"must be a directory, or one of {', '.join(PACKAGES)}", field="model")
    try:
        find_model(model)
    except StartupError as error:
        raise BadInput(f"cannot use this model: {error.message}", field="model") from error


def join_statuses(statuses: Sequence[ReembedStatus]) -> ReembedStatus:
    """Combine the statuses of a store's buckets. Raises Conflict if `statuses` is empty."""
    if not statuses:
        raise Conflict("the store has no buckets")
    order = ("filling", "paused", "swapped", "ending", "none")
    first = min(statuses, key=lambda status: order.index(status.phase))
    counted = {name: sum(getattr(status, name) or 0 for status in statuses) for name in ("texts", "done", "rate", "refused")}
    refused_ids = [name for status in statuses for name in status.refused_ids][:_MOST_SHOWN]
    tokens = None if first.tokens is None else sum(status.tokens or 0 for status in statuses)
    left = [status.seconds_left for status in statuses if status.seconds_left is not None]
    return first.model_copy(update={**counted, "refused_ids": refused_ids, "tokens": tokens, "seconds_left": max(left, default=None)})
