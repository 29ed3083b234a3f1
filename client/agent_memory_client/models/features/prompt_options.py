"""Optional prompt sections that extensions provide.

Each section has a field in `PromptOptions` and a matching key in `PromptOptionArguments`. HTTP, the
clients and MCP all use these definitions.
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
    """The optional sections of a prompt."""

    # Descriptions instead of docstrings, because models read them over MCP, too.
    profile: ProfileInPrompt | None = Field(
        default=None,
        description="Shows stable and current facts about the user. The text changes only with these facts. Default: not shown.",
    )
    timeline: TimelineInPrompt | None = Field(
        default=None,
        description="Shows the user's events in the time that `query` names, otherwise in the latest past days, weeks and months. "
        "Default: not shown.",
    )
    pinned: PinnedInPrompt | None = Field(
        default=None,
        description="Shows the user's pinned memories for any query. The text changes only with these memories. Default: not shown.",
    )
    procedures: ProcedurePromptOptions | None = Field(
        default=None,
        description="The number of procedures for situations like `query` to show after the memories, and their tokens. Default: none.",
    )
    blocks: BlocksInPrompt | None = Field(
        default=None,
        description="Shows the time of the last edit of a block, and the numbers of searchable memories and messages. Default: not shown.",
    )


class PromptOptionArguments(TypedDict, total=False):
    """The fields of `PromptOptions` as keyword arguments, each a model or mapping."""

    profile: dict[str, Any] | ProfileInPrompt | None
    timeline: dict[str, Any] | TimelineInPrompt | None
    pinned: dict[str, Any] | PinnedInPrompt | None
    procedures: dict[str, Any] | ProcedurePromptOptions | None
    blocks: dict[str, Any] | BlocksInPrompt | None
