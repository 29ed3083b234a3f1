"""Why an answer is as it is: what a search or a prompt left out, and why a memory is not in it."""

from __future__ import annotations

from pydantic import BaseModel, model_validator

from agent_memory_client.models._types import Identifier
from agent_memory_client.models.memories import HitExplanation
from agent_memory_client.models.prompt import MemoryPromptRequest
from agent_memory_client.models.search import SearchRequest


class ExplainRequest(BaseModel):
    """Asks why a search, or a prompt, did or did not return a memory. Give one of the two."""

    memory_id: Identifier
    search: SearchRequest | None = None
    prompt: MemoryPromptRequest | None = None

    @model_validator(mode="after")
    def _one(self) -> ExplainRequest:
        if (self.search is None) == (self.prompt is None):
            raise ValueError("give either search or prompt")
        return self


class Explanation(BaseModel):
    """Why a search or a prompt did not return a memory, or where it did.

    `reason` is one of returned, not_found, quarantined (it waits for a review), filtered (`filters` names those that exclude it),
    not_ranked (neither near nor sharing a word), below_threshold, beyond_limit (a limit of `rank` would show it), collapsed (`by` says the
    same), and for prompts already_shown (in the session's messages) and over_budget (it would fit if `tokens_needed` instead of
    `tokens_available` were there for memories).
    Ranks count from 1.
    """

    memory_id: str
    returned: bool
    reason: str
    filters: list[str] = []
    rank: int | None = None
    by: str | None = None
    tokens_needed: int | None = None
    tokens_available: int | None = None
    explanation: HitExplanation | None = None
