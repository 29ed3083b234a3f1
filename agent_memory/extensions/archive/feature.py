"""The archive: an agent's own use of long-term memory, and search of conversations."""

from __future__ import annotations

from agent_memory.foundation.core.feature import Feature, Services
from agent_memory.foundation.foundation import Foundation


def open_archive(foundation: Foundation, services: Services) -> None:
    """Do nothing: the archive consists of memories."""


FEATURE = Feature(name="archive", open=open_archive, tools=("agent_memory.extensions.archive.tools:TOOLS",))
