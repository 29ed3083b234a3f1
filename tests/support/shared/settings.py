"""Cache groups of settings, because reading all of them takes 12 ms and most tests do it."""

from __future__ import annotations

import os
from typing import Any, cast

from agent_memory.foundation.core.settings import GROUPS
from agent_memory.foundation.core.settings.base import Group, variables_of


class _KnownGroup:
    """Replaces a group's class and returns the same object for the same values and environment."""

    def __init__(self, model: type[Group]) -> None:
        self._model = model
        self._variables = {name.upper() for field in model.model_fields.values() for name in variables_of(field)}
        self._known: dict[object, Group] = {}

    def __call__(self, **values: Any) -> Group:
        if self._model.model_config.get("env_file") is not None:
            return self._model(**values)
        key = repr(values), frozenset(item for item in os.environ.items() if item[0].upper() in self._variables)
        if key not in self._known:
            if len(self._known) > 1_000:
                self._known.clear()
            self._known[key] = self._model(**values)
        return self._known[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def share_settings() -> None:
    """Make `load_settings` use cached groups in this process."""
    for name, model in GROUPS.items():
        GROUPS[name] = cast("type[Group]", _KnownGroup(model))
