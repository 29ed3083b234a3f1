"""The archive: long-term memory as an agent writes and searches it itself, and the search of what was said."""

from __future__ import annotations

from agent_memory.core.feature import Feature, Services
from agent_memory.foundation import Foundation


def open_archive(foundation: Foundation, services: Services) -> None:
    """Opens nothing: the archive is made of memories."""


ARCHIVE = Feature(name="archive", open=open_archive, tools=("agent_memory.archive.tools:TOOLS",))
