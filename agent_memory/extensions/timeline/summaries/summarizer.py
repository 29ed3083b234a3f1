"""Summarize finished days, weeks and months."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from agent_memory.extensions.timeline.periods import period_of_key
from agent_memory.extensions.timeline.summaries.digest import digest_of, weightiest
from agent_memory.extensions.timeline.summaries.prompts import PeriodAnswer, event_lines, summarize_period
from agent_memory.extensions.timeline.summaries.store import PeriodInputs, SummaryStore
from agent_memory.features.access.context_limits import ContextLimits
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.foundation.core.errors import ContextExceeded, ModelAnswerInvalid
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.llm.base import ChatModel, is_declined
from agent_memory.foundation.llm.tokens import TokenCounter, first_fitting

log = get_logger(__name__)

# Maximum numbers of periods and model calls per run.
_MOST_PERIODS, _MOST_CALLS = 256, 48
# Periods with at most this many events and day summaries need no model.
_FEW = 2
_WORDS = {"day": 80, "week": 120, "month": 200}
_MOST_CHARS = 2_000
_EVENTS_TOKENS, _ANSWER_TOKENS, _LEAST_TOKENS = 6_000, 800, 96
# Delays (s) for a period: after an unusable answer, and after the time when its waiting days are due.
_LATER, _A_MOMENT = 3_600.0, 60.0


class PeriodSummarizer:
    """Writes due summaries. Longer periods use the summaries of their days."""

    def __init__(self, store: SummaryStore, models: TenantModels, limits: ContextLimits | None, counter: TokenCounter) -> None:
        """Create a summarizer. If `limits` is None, it uses no language model."""
        self._store = store
        self._models = models
        self._limits = limits
        self._counter = counter

    async def summarize(self, owner: str, tenant: str) -> int:
        """Write an owner's due summaries and return the count. `owner` is the owner's `name`.

        Raises ModelUnavailable if the model fails or the token budget is spent. The remaining
        periods stay due.
        """
        chat = None if self._limits is None else self._models.chat(tenant)
        if chat is not None and self._limits is not None:
            await self._limits.load_learned(chat)
        made = calls = 0
        for key in await self._store.waiting_periods(owner, _MOST_PERIODS):
            inputs = await self._store.read_inputs(owner, key)
            now = datetime.now(UTC).timestamp()
            if not inputs.mark:
                continue
            if inputs.waits_until is not None or not (inputs.events or inputs.days):
                await self._store.put_off(owner, key, inputs, max(now, inputs.waits_until or now) + _A_MOMENT)
                continue
            by_model = chat is not None and len(inputs.events) + len(inputs.days) > _FEW
            if by_model and calls == _MOST_CALLS:
                break
            calls += by_model
            if chat is not None and by_model:
                text = await self._ask(chat, key, inputs)
            else:
                text = digest_of(period_of_key(key)[1], inputs.events, _named_days(inputs))
            if text is None:
                await self._store.put_off(owner, key, inputs, now + _LATER)
                continue
            made += await self._store.put_summary(owner, key, inputs, _summary(text, inputs, by_model=by_model))
        return made

    async def _ask(self, chat: ChatModel, key: str, inputs: PeriodInputs) -> str | None:
        """Return the model's summary, or None if it is unusable. Raises ModelUnavailable."""
        period, unit = period_of_key(key)
        words = _WORDS[unit]
        room = chat.room(summarize_period(unit, period.name, [], max_words=words), PeriodAnswer) - _ANSWER_TOKENS
        # Summaries of days, then events by weight.
        lines = event_lines(weightiest(inputs.events), _named_days(inputs))
        lines = first_fitting(lines, max(min(room, _EVENTS_TOKENS), _LEAST_TOKENS), lambda line: self._counter.count(line) + 1)
        try:
            answer = await chat.structured(
                summarize_period(unit, period.name, lines, max_words=words), PeriodAnswer, max_tokens=_ANSWER_TOKENS
            )
        except ModelAnswerInvalid as error:
            log.warning("model returned no summary of a period", period=period.name, unit=unit, model=chat.model, error=error)
            if isinstance(error, ContextExceeded) and self._limits is not None:
                await self._limits.save_learned(chat)
            return None
        text = answer.summary.strip()
        return None if is_declined(text) else text[:_MOST_CHARS]


def _named_days(inputs: PeriodInputs) -> list[tuple[str, str]]:
    return [(period_of_key(day)[0].name, summary["text"]) for day, summary in inputs.days]


def _summary(text: str, inputs: PeriodInputs, *, by_model: bool) -> dict[str, Any]:
    """Return a summary in its stored form. `by` is "model" if a model wrote any of the text."""
    wrote = by_model or any(summary["by"] == "model" for _, summary in inputs.days)
    ends = [part["until"] for part in (*inputs.events, *(summary for _, summary in inputs.days)) if "until" in part]
    hidden = {"until": min(ends)} if ends else {}
    made_at = datetime.now(UTC).isoformat()
    return {"text": text, "by": "model" if wrote else "events", "events": inputs.count, "made_at": made_at} | hidden
