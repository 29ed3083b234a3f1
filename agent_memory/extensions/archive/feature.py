"""The archive: long-term memory as an agent writes and searches it itself, and the search of what was said."""

from __future__ import annotations

from agent_memory.foundation.bucket import Foundation
from agent_memory.foundation.core.feature import Feature, Services


def open_archive(foundation: Foundation, services: Services) -> None:
    """Opens nothing: the archive is made of memories."""


FEATURE = Feature(name="archive", open=open_archive, tools=("agent_memory.extensions.archive.tools:TOOLS",))
