"""Pinned memories in the memory prompt: what is never forgotten, shown whatever is asked."""

from __future__ import annotations

from agent_memory.core.feature import Feature, Services
from agent_memory.foundation import Foundation
from agent_memory.pinned.section import PinnedSection


def open_pinned(foundation: Foundation, services: Services) -> None:
    """Opens the section."""
    services.add(PinnedSection(foundation.keys, foundation.counter))


PINNED = Feature(name="pinned", open=open_pinned, section=PinnedSection)
