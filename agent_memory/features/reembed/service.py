"""Start, monitor and finish embedding model changes in all buckets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent_memory.features.reembed.embedding_choice import EmbeddingChoice
from agent_memory.features.reembed.store import MOST_MISSING, VECTORS_MISSING, Phase, ReembedStore, wrong_phase
from agent_memory.foundation.core.errors import BadInput, Conflict, ModelAnswerInvalid, StartupError
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.local.embedder import find_model
from agent_memory.foundation.llm.local.weights import PACKAGES
from agent_memory.foundation.llm.providers import open_models
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory_client.models import ReembedAction, ReembedPhase, ReembedRequest, ReembedStatus

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

    async def choose(self, request: ReembedRequest) -> EmbeddingChoice:
        """Return the requested model. Raises BadInput if it is unusable or already in use."""
        provider = request.provider or self._current.provider
        second = EmbeddingChoice(provider, request.model, request.dimensions if provider == "openai" else None)
        if second == self._current:
            raise BadInput(f"searches use {request.model} already: name another model", field="model")
        if provider == "local":
            await asyncio.to_thread(_check_local, request.model)
        return second

    async def estimate(self, request: ReembedRequest) -> ReembedStatus:
        texts, sample = await self._store.sample_texts()
        tokens = [await self._counter.count_in_thread(text) for text in sample]
        total = round(sum(tokens) / max(1, len(tokens)) * texts)
        seconds = texts / request.rate if request.rate else None
        model, rate = self._current.model, request.rate
        return ReembedStatus(phase="none", model=model, other=request.model, texts=texts, tokens=total, rate=rate, seconds_left=seconds)

    async def start(self, second: EmbeddingChoice, rate: float) -> None:
        """Start switching to a model. Raises Conflict if a change is already running."""
        first = json.dumps(self._current)
        models = {"first": first, "second": json.dumps(second), "active": first}
        await self._store.change([""], {"phase": "filling", "rate": rate, **models})

    async def dimensions_of(self, choice: EmbeddingChoice) -> int:
        """Return the model's number of dimensions. Raises ModelUnavailable or BadInput."""
        try:
            models = await open_models(choice.applied(self._settings))
            try:
                await models.embedder.embed(["dimension"], timeout=_PROBE_SECONDS)
                return models.embedder.dimensions
            finally:
                await models.close()
        except (ModelAnswerInvalid, StartupError) as error:
            raise BadInput(f"cannot use this model: {error.message}", field="model") from error

    async def check(self, action: ReembedAction) -> None:
        """Raise Conflict if it is too early for this action.

        A rollback requires vectors from the old model for the newest memories. A confirmation
        requires all live processes to use the new model.
        """
        state = await self._store.load_state()
        if action == "rollback" and state is not None and state.missing > MOST_MISSING:
            raise Conflict(VECTORS_MISSING)
        if action == "confirm" and state is not None and (behind := await self._store.count_behind(state)):
            text = f"{behind} processes do not use {state.active.model} yet (a killed one counts for 30 s)"
            raise Conflict(f"{text}: try again, or see their logs")

    async def act(self, action: ReembedAction) -> None:
        """Pause, resume or end the change. Raises Conflict if the action is not possible now."""
        await self.check(action)
        phases, after = _ACTIONS[action]
        fields = {"phase": after}
        if action == "rollback" and (state := await self._store.load_state()) is not None:
            fields["active"] = json.dumps(state.first)
        await self._store.change(phases, fields, most_missing=MOST_MISSING if action == "rollback" else None)

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


async def start_in_all(services: Sequence[ReembedService], request: ReembedRequest) -> ReembedStatus:
    """Start a model change in all buckets, or just estimate its cost in a dry run.

    Raises BadInput if the model is unusable or already in use. Also raises Conflict or
    ModelUnavailable. In these cases, no bucket changes.
    """
    home = services[0]
    second = await home.choose(request)
    share = request.model_copy(update={"rate": request.rate / len(services)})
    if request.dry_run:
        return _join([await service.estimate(share) for service in services])
    _require((await read_joined(services)).phase, [""])
    if second.provider == "openai":
        second = second._replace(dimensions=await home.dimensions_of(second))
    for service in services:
        await service.start(second, share.rate)
    return await read_joined(services)


async def act_in_all(services: Sequence[ReembedService], action: ReembedAction) -> ReembedStatus:
    """Apply an action to all buckets that are not already in a later phase.

    Raises Conflict if any bucket rejects the action, in which case nothing changes. If Redis fails
    partway through, repeating the action completes it.
    """
    statuses = [await service.read_status() for service in services]
    joined = _join(statuses)
    allowed, after = _ACTIONS[action]
    _require(joined.phase, allowed)
    model = joined.other if action == "rollback" else joined.model
    other_models = [status.model for status in statuses if status.phase in ("ending", "none") and status.model != model]
    if after == "ending" and other_models:
        instead = "rollback" if action == "confirm" else "confirm"
        raise Conflict(f"some buckets already keep {other_models[0]}: send {instead} instead", field="action")
    pairs = zip(services, statuses, strict=True)
    steps: list[tuple[ReembedService, ReembedAction]] = [(one, step) for one, status in pairs if (step := _step(action, status.phase))]
    for service, step in steps:
        await service.check(step)
    for service, step in steps:
        await service.act(step)
    return await read_joined(services)


def _step(action: ReembedAction, phase: ReembedPhase) -> ReembedAction | None:
    """Return the action to take in a bucket, or None if it is in a later phase."""
    if phase in _ACTIONS[action][0]:
        return action
    return "rollback" if action == "abort" and phase == "swapped" else None


def _require(phase: ReembedPhase, allowed: Sequence[str]) -> None:
    """Raise Conflict unless `allowed` contains the phase, or "" if no change is running."""
    name = "" if phase == "none" else phase
    if name not in allowed:
        raise Conflict(wrong_phase(name, allowed), field="action")


async def read_joined(services: Sequence[ReembedService]) -> ReembedStatus:
    return _join([await service.read_status() for service in services])


def _join(statuses: Sequence[ReembedStatus]) -> ReembedStatus:
    """Combine the statuses of a store's buckets."""
    order = ("filling", "paused", "swapped", "ending", "none")
    first = min(statuses, key=lambda status: order.index(status.phase))
    counted = {name: sum(getattr(status, name) or 0 for status in statuses) for name in ("texts", "done", "rate", "refused")}
    refused_ids = [name for status in statuses for name in status.refused_ids][:_MOST_SHOWN]
    tokens = None if first.tokens is None else sum(status.tokens or 0 for status in statuses)
    error = next((status.error for status in statuses if status.error), None)
    left = [status.seconds_left for status in statuses if status.seconds_left is not None]
    joined = {**counted, "refused_ids": refused_ids, "tokens": tokens, "seconds_left": max(left, default=None), "error": error}
    return first.model_copy(update=joined)
