"""Collect the routes of all features and the routes for operators."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter

from agent_memory.feature_list import FEATURES
from agent_memory.foundation.core.feature import Feature, import_name
from agent_memory.interfaces.http import health


def assemble_routers(features: Iterable[Feature]) -> tuple[APIRouter, ...]:
    """Return the features' routers in order, followed by the operators' router."""
    return (*(import_name(name) for feature in features for name in feature.routes), health.router)


ROUTERS = assemble_routers(FEATURES)
