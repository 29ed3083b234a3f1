"""Sections that extensions add to a memory prompt on request.

Each has a field in `PromptOptions` and its name in `PromptOptionArguments`; HTTP, the clients and MCP use these.
"""

from __future__ import annotations

from typing import Any, TypedDict

from pydantic import BaseModel, Field

from agent_memory_client.models.features.blocks import BlocksInPrompt
from agent_memory_client.models.features.pinned import PinnedInPrompt
from agent_memory_client.models.features.procedures import ProcedurePromptOptions
from agent_memory_client.models.features.profile import ProfileInPrompt
from agent_memory_client.models.features.timeline import TimelineInPrompt


class PromptOptions(BaseModel):
    """The optional sections of a prompt, beside the session and the memories."""

    # Descriptions instead of docstrings: models also read them over MCP.
    profile: ProfileInPrompt | None = Field(
        None,
        description="Shows what is stable and what is current about the user, the same bytes while nothing changed; not when not given.",
    )
    timeline: TimelineInPrompt | None = Field(
        None,
        description="Shows what happened to the user in the time that `query` names, else in the latest days, weeks and months that are "
        "over; not when not given.",
    )
    pinned: PinnedInPrompt | None = Field(
        None,
        description="Shows the user's pinned memories whatever is asked, the same bytes while none of them changed; not when not given.",
    )
    procedures: ProcedurePromptOptions | None = Field(
        None,
        description="How many procedures for situations like `query` are shown behind the memories, and in how many tokens; none when not "
        "given.",
    )
    blocks: BlocksInPrompt | None = Field(
        None,
        description="Says beside the memory blocks when one was last edited, and how many memories and messages can be searched; not when "
        "not given.",
    )


class PromptOptionArguments(TypedDict, total=False):
    """The options as keyword arguments, each as its model or as a mapping. `PromptOptions` describes them."""

    profile: dict[str, Any] | ProfileInPrompt | None
    timeline: dict[str, Any] | TimelineInPrompt | None
    pinned: dict[str, Any] | PinnedInPrompt | None
    procedures: dict[str, Any] | ProcedurePromptOptions | None
    blocks: dict[str, Any] | BlocksInPrompt | None
