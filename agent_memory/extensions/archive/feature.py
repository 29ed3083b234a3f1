"""Register the archive: MCP tools with which an agent writes and searches long-term memory and conversations."""

from __future__ import annotations

from agent_memory.foundation.core.feature import Feature, Services
from agent_memory.foundation.foundation import Foundation


def open_archive(foundation: Foundation, services: Services) -> None:
    """Do nothing. The archive stores ordinary memories and does not need services of its own."""


FEATURE = Feature(name="archive", open=open_archive, tools=("agent_memory.extensions.archive.tools:TOOLS",))
