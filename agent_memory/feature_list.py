"""List all features in the order the server opens them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from importlib.resources import files

from agent_memory.features.access.feature import ACCESS
from agent_memory.features.extraction.feature import EXTRACTION
from agent_memory.features.jobs.feature import JOBS
from agent_memory.features.memories.feature import MEMORIES
from agent_memory.features.privacy.feature import PRIVACY
from agent_memory.features.privacy.forget.feature import FORGET
from agent_memory.features.recall.feature import RECALL
from agent_memory.features.reembed.feature import REEMBED
from agent_memory.features.sessions.feature import SESSIONS
from agent_memory.features.transfer.feature import TRANSFER
from agent_memory.foundation.core.feature import Feature, import_name

ENTRY_POINTS = "agent_memory.extensions"
"""The entry point group in which installed packages list their features."""


def find_extensions() -> Iterator[Feature]:
    """Yield features from extensions, interfaces, and installed packages, in that order.

    Each group is sorted by name.
    """
    for level in ("extensions", "interfaces"):
        top = files("agent_memory").joinpath(level)
        if top.is_dir():
            for name in sorted(folder.name for folder in top.iterdir() if folder.joinpath("feature.py").is_file()):
                yield import_name(f"agent_memory.{level}.{name}.feature:FEATURE")
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        yield point.load()


def check_names(features: Sequence[Feature]) -> None:
    """Raise ValueError if features share a name, job, periodic job or Redis key."""
    for kind, names in (
        ("features", [one.name for one in features]),
        ("jobs", [name for one in features for name in one.jobs]),
        ("periodic jobs", [name for one in features for name in one.schedule]),
        ("Redis keys", [space.name for one in features for space in one.keys]),
    ):
        if twice := sorted(name for name, times in Counter(names).items() if times > 1):
            raise ValueError(f"two {kind} are named {', '.join(twice)}: rename one, or uninstall its package")


FEATURES: Sequence[Feature] = (ACCESS, JOBS, MEMORIES, REEMBED, SESSIONS, EXTRACTION, *find_extensions(), RECALL, PRIVACY, FORGET, TRANSFER)
check_names(FEATURES)
