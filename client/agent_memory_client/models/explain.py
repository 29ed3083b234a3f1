"""Explanations of why a search or prompt did or did not return a memory."""

from __future__ import annotations

from pydantic import BaseModel, model_validator

from agent_memory_client.models._types import Identifier
from agent_memory_client.models.memories import HitExplanation
from agent_memory_client.models.prompt import MemoryPromptRequest
from agent_memory_client.models.search import SearchRequest


class ExplainRequest(BaseModel):
    """A request to explain why a search or prompt did or did not return a memory.

    Give either `search` or `prompt`.
    """

    memory_id: Identifier
    """The memory that you expected."""
    search: SearchRequest | None = None
    """The search that you expected to return the memory. Set either this or `prompt`."""
    prompt: MemoryPromptRequest | None = None
    """The prompt that you expected to contain the memory. Set either this or `search`."""

    @model_validator(mode="after")
    def _one(self) -> ExplainRequest:
        if (self.search is None) == (self.prompt is None):
            raise ValueError("give either search or prompt")
        return self


class Explanation(BaseModel):
    """Why a search or prompt did or did not return a memory."""

    memory_id: str
    """The id of the memory in question."""
    returned: bool
    """True if the response contains the memory."""
    reason: str
    """The reason: `returned`, `not_found`, `quarantined`, `not_current`, `filtered`, `not_ranked`, `below_threshold`,
    `beyond_limit` or `collapsed`. Prompts can also have `already_shown` (among the session's messages) and `over_budget`.

    A memory is `not_current` if it was superseded or merged, has ended or expired, or is not valid yet. `not_ranked`: it
    is not close in meaning and shares no words. `quarantined`: it awaits review. `collapsed`: a better result has the
    same content."""
    filters: list[str] = []
    """The filters that exclude the memory, if `reason` is `filtered`."""
    rank: int | None = None
    """The memory's rank among all results, starting at 1. A `limit` of at least this number would return the memory.
    Null if it was not ranked."""
    by: str | None = None
    """The id of the result with the same content if `reason` is `collapsed`, or of the successor if it is
    `not_current` and the memory was superseded or merged."""
    tokens_needed: int | None = None
    """The number of tokens that the prompt's memories would need if they included this one, if `reason` is
    `over_budget`."""
    tokens_available: int | None = None
    """The number of tokens that the prompt had available for memories, if `reason` is `over_budget`."""
    explanation: HitExplanation | None = None
    """The memory's scores. Null if the search did not score it."""
