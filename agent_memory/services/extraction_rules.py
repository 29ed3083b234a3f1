"""Which rules hold for the facts of a session: those of its strategy's configuration and of everything that it belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from agent_memory.blocklist import Blocklist
from agent_memory.errors import BadInput
from agent_memory.scope import Scope, SessionRef
from agent_memory.services.access import place_of, writing
from agent_memory.storage.rules import RuleStore
from agent_memory.timewords import zone_of
from agent_memory_client.models import AckResponse, ExtractionCategory, ExtractionRules, MemoryStrategyConfig

MAX_PROMPT_CHARS = 10_000
DEFAULT_SUMMARY_WORDS = 500
_STRATEGY = "long_term_memory_strategy"
PLACEHOLDERS: Final = frozenset(
    {"message", "context", "current_datetime", "session_id", "namespace", "user_id", "model_name", "topics", "entities"}
)
# A placeholder with more than its name: an attribute, an index, a conversion or a format.
_CODE = re.compile(r"\{(" + "|".join(sorted(PLACEHOLDERS)) + r")\s*[.\[!:][^{}\n]{0,200}\}")


class StrategyOptions(ExtractionRules):
    """The `config` of a session's strategy: rules for this session alone, and what single strategies take."""

    custom_prompt: Annotated[str, Field(max_length=MAX_PROMPT_CHARS)] | None = None
    max_summary_length: Annotated[int, Field(ge=10, le=10_000)] = DEFAULT_SUMMARY_WORDS
    topics: list[str] = Field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of a session together, from the widest to the narrowest."""

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


def check_strategy(strategy: MemoryStrategyConfig) -> None:
    """Raises BadInput that names the field of a configuration with which no facts could be taken."""
    if not strategy.config and strategy.strategy != "custom":
        return
    options = _options(strategy.config)
    if strategy.strategy == "custom":
        name = f"{_STRATEGY}.config.custom_prompt"
        if options.custom_prompt is None or not options.custom_prompt.strip():
            raise BadInput("the strategy custom needs a prompt: say what is to be remembered", field=name)
        if found := _CODE.search(options.custom_prompt):
            message = f"{found[0]} is more than a name, which prompts do not run: write {{{found[1]}}}"
            raise BadInput(message, field=name)
    _check_zone(options.timezone, f"{_STRATEGY}.config.timezone")


def _options(config: dict[str, Any]) -> StrategyOptions:
    known = {name: value for name, value in config.items() if name in StrategyOptions.model_fields}
    try:
        return StrategyOptions.model_validate(known)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadInput(first["msg"], field=f"{_STRATEGY}.config.{place}") from error


def _check_zone(name: str | None, field_name: str) -> None:
    try:
        zone_of(name)
    except ValueError as error:
        raise BadInput(str(error), field=field_name) from error


def together(strategy: MemoryStrategyConfig, wider: Sequence[ExtractionRules] = ()) -> Rules:
    """The rules of a session. What is wider is said first; of a zone, a language or a category of one name the narrowest counts.

    Raises BadInput for a configuration that was stored before it was checked.
    """
    check_strategy(strategy)
    options = _options(strategy.config)
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
    """Rules as the API offers them, and as workers read them."""

    def __init__(self, store: RuleStore) -> None:
        self._store = store

    async def get(self, scope: Scope, namespace: str | None, user_id: str | None) -> ExtractionRules:
        """The rules of exactly this place; empty ones when there are none. Raises Forbidden."""
        return (await self._store.load(scope, [place_of(scope, namespace, user_id)]))[0] or ExtractionRules()

    async def put(self, scope: Scope, namespace: str | None, user_id: str | None, rules: ExtractionRules) -> ExtractionRules:
        """Replaces the rules of a place. Raises BadInput for a zone that does not exist, and Forbidden."""
        _check_zone(rules.timezone, "timezone")
        await self._store.save(scope, *place_of(writing(scope), namespace, user_id), rules)
        return rules

    async def delete(self, scope: Scope, namespace: str | None, user_id: str | None) -> AckResponse:
        """Forgets the rules of a place; none there is no error. Raises Forbidden."""
        await self._store.save(scope, *place_of(writing(scope), namespace, user_id), None)
        return AckResponse(status="ok")

    async def forget_user(self, scope: Scope, user_id: str, namespace: str | None) -> None:
        """Forgets the rules of a user who is erased, in one namespace or (None) everywhere."""
        await self._store.forget_user(scope, user_id, namespace)

    async def of_session(self, scope: Scope, ref: SessionRef, strategy: MemoryStrategyConfig) -> Rules:
        """All rules that hold for a session's messages, in one round trip."""
        places = dict.fromkeys([(None, None), (ref.namespace, None), (None, ref.user_id), (ref.namespace, ref.user_id)])
        wider = await self._store.load(scope, list(places))
        return together(strategy, [rules for rules in wider if rules is not None])
