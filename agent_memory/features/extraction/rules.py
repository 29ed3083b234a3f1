"""Combine the extraction rules that apply to a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from agent_memory.features.extraction.rule_store import RuleStore
from agent_memory.features.sessions.strategies import DEFAULT_SUMMARY_WORDS, check_strategy, options_of, read_zone
from agent_memory.foundation.api.principals import shared_place_of, writing
from agent_memory.foundation.core.clock import zone_of
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.text.blocked_phrases import Blocklist
from agent_memory_client.models import AckResponse, ExtractionCategory, ExtractionRules, MemoryStrategyConfig


@dataclass(frozen=True, slots=True)
class Rules:
    """The combined rules for a session. In each list, the most general rules come first."""

    strategy: str = "discrete"
    instructions: tuple[str, ...] = ()
    categories: tuple[ExtractionCategory, ...] = ()
    phrases: tuple[str, ...] = ()
    zone: tzinfo = UTC
    language: str | None = None
    review: bool = False
    custom_prompt: str | None = None
    summary_words: int = DEFAULT_SUMMARY_WORDS
    topics: tuple[str, ...] = ()
    blocklist: Blocklist = field(default_factory=lambda: Blocklist(()), compare=False)


def together(strategy: MemoryStrategyConfig, wider: Sequence[ExtractionRules] = ()) -> Rules:
    """Combine a session's strategy options with the `wider` rules, sorted from widest to narrowest.

    For the time zone, the language and categories with the same name, the narrowest rules win.
    Raises BadInput.
    """
    check_strategy(strategy)
    options = options_of(strategy.config)
    every: list[ExtractionRules] = [*wider, options]
    categories = {category.name: category for rules in every for category in rules.categories}
    phrases = tuple(dict.fromkeys(phrase for rules in every for phrase in rules.do_not_record))
    return Rules(
        strategy=strategy.strategy,
        instructions=tuple(rules.instructions.strip() for rules in every if rules.instructions and rules.instructions.strip()),
        categories=tuple(categories.values()),
        phrases=phrases,
        zone=zone_of(next((rules.timezone for rules in reversed(every) if rules.timezone), None)),
        language=next((rules.language for rules in reversed(every) if rules.language), None),
        review=any(rules.review for rules in every),
        custom_prompt=options.custom_prompt,
        summary_words=options.max_summary_length,
        topics=tuple(options.topics),
        blocklist=Blocklist(phrases),
    )


class ExtractionRulesService:
    def __init__(self, store: RuleStore) -> None:
        self._store = store

    async def get(self, scope: Scope, namespace: str | None, user_id: str | None) -> ExtractionRules:
        """Return the rules for exactly this owner, or empty rules. Raises Forbidden."""
        return (await self._store.load(scope, [_place_of(scope, namespace, user_id)]))[0] or ExtractionRules()

    async def put(self, scope: Scope, namespace: str | None, user_id: str | None, rules: ExtractionRules) -> ExtractionRules:
        """Replace the rules. Raises Forbidden, and BadInput for an unknown time zone."""
        read_zone(rules.timezone)
        await self._store.save(scope, *_place_of(writing(scope), namespace, user_id), rules)
        return rules

    async def delete(self, scope: Scope, namespace: str | None, user_id: str | None) -> AckResponse:
        """Delete the rules, if any. Raises Forbidden."""
        await self._store.save(scope, *_place_of(writing(scope), namespace, user_id), None)
        return AckResponse(status="ok")

    async def of_session(self, scope: Scope, ref: SessionRef, strategy: MemoryStrategyConfig) -> Rules:
        owners = dict.fromkeys([(None, None), (ref.namespace, None), (None, ref.user_id), (ref.namespace, ref.user_id)])
        wider = await self._store.load(scope, list(owners))
        return together(strategy, [rules for rules in wider if rules is not None])


def _place_of(scope: Scope, namespace: str | None, user_id: str | None) -> tuple[str | None, str | None]:
    return shared_place_of(scope, "extraction rules", namespace, user_id)
