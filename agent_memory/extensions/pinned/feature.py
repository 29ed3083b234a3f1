"""Show a user's pinned memories in the prompt, regardless of the query."""

from __future__ import annotations

from agent_memory.extensions.pinned.section import PinnedSection
from agent_memory.foundation.core.feature import Feature, Services
from agent_memory.foundation.foundation import Foundation


def open_pinned(foundation: Foundation, services: Services) -> None:
    services.add(PinnedSection(foundation.keys, foundation.counter))


FEATURE = Feature(name="pinned", open=open_pinned, section=PinnedSection)
