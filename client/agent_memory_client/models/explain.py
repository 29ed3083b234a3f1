"""Explanations why a search or prompt returned a memory or not."""

from __future__ import annotations

from pydantic import BaseModel, model_validator

from agent_memory_client.models._types import Identifier
from agent_memory_client.models.memories import HitExplanation
from agent_memory_client.models.prompt import MemoryPromptRequest
from agent_memory_client.models.search import SearchRequest


class ExplainRequest(BaseModel):
    """Asks why a search or a prompt did or did not return a memory. Give one of the two."""

    memory_id: Identifier
    """The memory that was expected in the answer."""
    search: SearchRequest | None = None
    """The search that it was expected of; give either this or `prompt`."""
    prompt: MemoryPromptRequest | None = None
    """The prompt that it was expected in; give either this or `search`."""

    @model_validator(mode="after")
    def _one(self) -> ExplainRequest:
        if (self.search is None) == (self.prompt is None):
            raise ValueError("give either search or prompt")
        return self


class Explanation(BaseModel):
    """Why a search or a prompt did not return a memory, or where it did."""

    memory_id: str
    """The memory that was asked about."""
    returned: bool
    """Whether the answer has it."""
    reason: str
    """Why it is in the answer or not: `returned`, `not_found`, `quarantined` (it waits for a review), `filtered`,
    `not_ranked` (neither near nor sharing a word), `below_threshold`, `beyond_limit`, `collapsed` (another one says the
    same); of prompts also `already_shown` (among the session's messages) and `over_budget`."""
    filters: list[str] = []
    """The filters that exclude it, when `reason` is `filtered`."""
    rank: int | None = None
    """Its place among all that was found, from 1: a `limit` of at least this shows it. Null when it was not ranked."""
    by: str | None = None
    """The id of the memory that says the same and is shown instead, when `reason` is `collapsed`."""
    tokens_needed: int | None = None
    """How many tokens the memories of the prompt would need for it to be shown, when `reason` is `over_budget`."""
    tokens_available: int | None = None
    """How many tokens the prompt had for memories, when `reason` is `over_budget`."""
    explanation: HitExplanation | None = None
    """How the search scored it; null when it was not scored."""
