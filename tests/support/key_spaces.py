"""Compare declared keys with existing keys."""

from __future__ import annotations

import re
from collections.abc import Collection

from agent_memory.feature_list import FEATURES
from agent_memory.foundation.storage import keyspace

SHAPES = ("profile", "timeline", "blocks", "procedures", "items")
"""The features with data of a user beside memories."""


def key_names() -> list[str]:
    """Return the names of all key kinds without their prefix."""
    shared = re.findall(r"^am:\{0\}:(\S+)", keyspace.__doc__ or "", re.MULTILINE)
    return [*shared, *(space.name for feature in FEATURES for space in feature.keys)]


def empty_key_spaces(keys: Collection[str], *, others: bool = False) -> list[str]:
    """Return the kinds of personal keys that match none of the given keys.

    Covers the features in `SHAPES`, or with `others` all other features.
    """
    announced = [space.name for feature in FEATURES if (feature.name in SHAPES) != others for space in feature.keys if space.personal]
    patterns = {name: re.compile(re.sub("<[^>]+>", "[0-9A-Za-z]+", name)) for name in announced}
    return [name for name, pattern in patterns.items() if not any(pattern.fullmatch(key) for key in keys)]
