"""All routes: those that the features announce, and those for whoever runs the server."""

from __future__ import annotations

from fastapi import APIRouter

from agent_memory.core.feature import import_name
from agent_memory.features import FEATURES
from agent_memory.http import health

ROUTERS: tuple[APIRouter, ...] = (*(import_name(name) for feature in FEATURES for name in feature.routes), health.router)
