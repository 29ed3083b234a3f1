"""All routes: those that the features announce, and those for whoever runs the server."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter

from agent_memory.feature_list import FEATURES
from agent_memory.foundation.core.feature import Feature, import_name
from agent_memory.interfaces.http import health


def assemble_routers(features: Iterable[Feature]) -> tuple[APIRouter, ...]:
    """The routers of features in their order, and the one for whoever runs the server."""
    return (*(import_name(name) for feature in features for name in feature.routes), health.router)


ROUTERS = assemble_routers(FEATURES)
"""The routes of this server."""
