"""Define all settings. Create `Settings` only in composition roots."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError
from pydantic_settings import SettingsError

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.logs import without_secrets
from agent_memory.foundation.core.settings.auth import AuthSettings
from agent_memory.foundation.core.settings.base import Group, variables_of
from agent_memory.foundation.core.settings.limits import LimitSettings
from agent_memory.foundation.core.settings.memory import (
    CompactionSettings,
    ForgettingSettings,
    LongTermSettings,
    SearchSettings,
    ViewSettings,
    WorkingMemorySettings,
)
from agent_memory.foundation.core.settings.models import ModelSettings
from agent_memory.foundation.core.settings.redis import RedisSettings
from agent_memory.foundation.core.settings.server import CompatSettings, McpSettings, ServerSettings
from agent_memory.foundation.core.settings.worker import WorkerSettings


class Settings(BaseModel):
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


GROUPS = cast("dict[str, type[Group]]", {name: field.annotation for name, field in Settings.model_fields.items()})


@cache
def variables() -> dict[str, tuple[str, str]]:
    """Map each environment variable to its setting's group and field."""
    return {
        variable: (group, name)
        for group, model in GROUPS.items()
        for name, field in model.model_fields.items()
        for variable in variables_of(field)
    }


def load_settings(**overrides: Any) -> Settings:
    """Read settings from the environment and `.env`.

    Overrides take precedence unless they are None. Raises StartupError with the name of the invalid
    variable.
    """
    fields_by_variable = variables()
    values: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    for name, value in overrides.items():
        if name not in fields_by_variable:
            raise StartupError(f"there is no setting {name}: `agent-memory doctor` prints all")
        if value is not None:
            group, field = fields_by_variable[name]
            values[group][field] = value
    try:
        return Settings.model_validate({group: model(**values[group]) for group, model in GROUPS.items()})
    except SettingsError as error:
        # The message names the field. Operators know only its variable.
        named = [name for name, (_, field) in fields_by_variable.items() if f'"{field}"' in str(error)]
        raise StartupError(f"setting {named[0] if named else '?'}: must be JSON, a list in [] or an object in {{}}") from error
    except ValidationError as error:
        from agent_memory_client._wire.problems import plain_problems

        first = plain_problems(error)[0]
        place = [str(part) for part in first["loc"]] or ["?"]
        # For a value from the environment, `loc` is the variable; for an override, it is the field.
        fields = {field: name for name, (group, field) in fields_by_variable.items() if GROUPS[group].__name__ == error.title}
        name = next((part for part in place if part in fields_by_variable), fields.get(place[0], place[0]))
        group, field = fields_by_variable.get(name.upper(), ("", ""))
        default = GROUPS[group].model_fields[field].default if group else None
        such_as = f", such as {default}" if first["msg"].endswith(" number") and default is not None else ""
        raise StartupError(f"setting {name.upper()}: {first['msg']}{such_as}") from error


def settings_in_force(settings: Settings, *, defaults: bool) -> dict[str, tuple[str, bool]]:
    """Return each variable's value and whether it differs from the default.

    Hide secrets. Include default values only if `defaults` is true.
    """
    first: dict[tuple[str, str], str] = {}
    for variable, place in variables().items():
        first.setdefault(place, variable)
    values: dict[str, tuple[str, bool]] = {}
    for (group, field), variable in first.items():
        value: object = getattr(getattr(settings, group), field)
        is_set = value != GROUPS[group].model_fields[field].default
        if is_set or defaults:
            text = "(hidden)" if isinstance(value, SecretStr) else "-" if value is None else without_secrets(str(value))
            values[variable] = (text, is_set)
    return values
