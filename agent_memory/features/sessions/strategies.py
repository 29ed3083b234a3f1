"""Validate a session's extraction strategy."""

from __future__ import annotations

import re
from datetime import tzinfo
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from agent_memory.foundation.core.clock import zone_of
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.input.validation import first_problem
from agent_memory_client.models import ExtractionRules, MemoryStrategyConfig

MAX_PROMPT_CHARS = 10_000
DEFAULT_SUMMARY_WORDS = 500
_STRATEGY = "long_term_memory_strategy"
PLACEHOLDERS: Final = frozenset(
    {"message", "context", "current_datetime", "session_id", "namespace", "user_id", "model_name", "topics", "entities"}
)
# A placeholder with an attribute, an index, a conversion or a format.
_CODE = re.compile(r"\{(" + "|".join(sorted(PLACEHOLDERS)) + r")\s*[.\[!:][^{}\n]{0,200}\}")


class StrategyOptions(ExtractionRules):
    """A strategy's `config`: its extraction rules and other options."""

    custom_prompt: Annotated[str, Field(max_length=MAX_PROMPT_CHARS)] | None = None
    max_summary_length: Annotated[int, Field(ge=10, le=10_000)] = DEFAULT_SUMMARY_WORDS
    topics: list[str] = Field(default_factory=list[str])


def check_strategy(strategy: MemoryStrategyConfig) -> None:
    """Validate a strategy's configuration. Raises BadInput."""
    if not strategy.config and strategy.strategy != "custom":
        return
    options = options_of(strategy.config)
    if strategy.strategy == "custom":
        name = f"{_STRATEGY}.config.custom_prompt"
        if options.custom_prompt is None or not options.custom_prompt.strip():
            raise BadInput("the strategy custom needs a prompt that says what to remember", field=name)
        if code := _CODE.search(options.custom_prompt):
            message = f"{code[0]} is more than a name, which prompts do not run: write {{{code[1]}}}"
            raise BadInput(message, field=name)
    read_zone(options.timezone, f"{_STRATEGY}.config.timezone")


def options_of(config: dict[str, Any]) -> StrategyOptions:
    """Parse the supported options in `config`. Raises BadInput if one is invalid."""
    options = {name: value for name, value in config.items() if name in StrategyOptions.model_fields}
    try:
        return StrategyOptions.model_validate(options)
    except ValidationError as error:
        path, reason = first_problem(error)
        raise BadInput(reason, field=f"{_STRATEGY}.config.{path}") from error


def read_zone(name: str | None, field_name: str = "timezone", where: str = "body") -> tzinfo:
    """Return the time zone with this name, or UTC for None. Raises BadInput.

    `where` is the part of the request that contains the name.
    """
    try:
        return zone_of(name)
    except ValueError as error:
        raise BadInput(str(error), field=field_name, where=where) from error
