"""Every setting, its environment variable and its default. Only composition roots build a `Settings`; the rest receive it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_settings import SettingsError

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.settings.auth import AuthSettings
from agent_memory.foundation.core.settings.base import Group, variables_of
from agent_memory.foundation.core.settings.compat import CompatSettings
from agent_memory.foundation.core.settings.limits import LimitSettings, TenantLimits
from agent_memory.foundation.core.settings.longterm import CompactionSettings, ForgettingSettings, LongTermSettings
from agent_memory.foundation.core.settings.mcp import McpSettings
from agent_memory.foundation.core.settings.models import ModelSettings
from agent_memory.foundation.core.settings.redis import RedisSettings
from agent_memory.foundation.core.settings.search import SearchSettings
from agent_memory.foundation.core.settings.server import ServerSettings
from agent_memory.foundation.core.settings.views import ViewSettings
from agent_memory.foundation.core.settings.worker import WorkerSettings
from agent_memory.foundation.core.settings.working import WorkingMemorySettings

__all__ = [
    "GROUPS",
    "AuthSettings",
    "CompactionSettings",
    "CompatSettings",
    "ForgettingSettings",
    "LimitSettings",
    "LongTermSettings",
    "McpSettings",
    "ModelSettings",
    "RedisSettings",
    "SearchSettings",
    "ServerSettings",
    "Settings",
    "TenantLimits",
    "ViewSettings",
    "WorkerSettings",
    "WorkingMemorySettings",
    "load_settings",
    "variables",
]


class Settings(BaseModel):
    """All settings of a process, frozen."""

    model_config = ConfigDict(frozen=True)

    server: ServerSettings
    redis: RedisSettings
    models: ModelSettings
    working: WorkingMemorySettings
    longterm: LongTermSettings
    search: SearchSettings
    worker: WorkerSettings
    forgetting: ForgettingSettings
    compaction: CompactionSettings
    views: ViewSettings
    mcp: McpSettings
    auth: AuthSettings
    limits: LimitSettings
    compat: CompatSettings


GROUPS: dict[str, type[Group]] = {
    "server": ServerSettings,
    "redis": RedisSettings,
    "models": ModelSettings,
    "working": WorkingMemorySettings,
    "longterm": LongTermSettings,
    "search": SearchSettings,
    "worker": WorkerSettings,
    "forgetting": ForgettingSettings,
    "compaction": CompactionSettings,
    "views": ViewSettings,
    "mcp": McpSettings,
    "auth": AuthSettings,
    "limits": LimitSettings,
    "compat": CompatSettings,
}


def variables() -> dict[str, tuple[str, str]]:
    """Every environment variable that is read: name -> (group, field)."""
    return {
        variable: (group, name)
        for group, model in GROUPS.items()
        for name, field in model.model_fields.items()
        for variable in variables_of(field)
    }


def load_settings(**overrides: Any) -> Settings:
    """Reads the environment and `.env`; `overrides` are named like the variables and win (None counts as not given).

    Raises StartupError with one line that names the variable when a value does not fit, and for an unknown override.
    """
    fields_by_variable = variables()
    values: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    for name, value in overrides.items():
        if name not in fields_by_variable:
            raise StartupError(f"there is no setting {name}")
        if value is not None:
            group, field = fields_by_variable[name]
            values[group][field] = value
    try:
        return Settings.model_validate({group: model(**values[group]) for group, model in GROUPS.items()})
    except SettingsError as error:
        # Its message names the field in quotation marks; the field's own name says less than the variable's.
        named = [name for name, (_, field) in fields_by_variable.items() if f'"{field}"' in str(error)]
        raise StartupError(f"setting {named[0] if named else '?'}: must be JSON") from error
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = next((str(part) for part in first["loc"] if str(part) in fields_by_variable), str(first["loc"][0]) if first["loc"] else "?")
        raise StartupError(f"setting {name.upper()}: {first['msg']}") from error
