"""What libraries work out again at every turn, though it never changes within a process: tests open thousands of runtimes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings.sources.base import PydanticBaseEnvSettingsSource, PydanticBaseSettingsSource
from redis import utils as redis_utils


def remember_constants() -> None:
    """From now on what a field of the settings is, and which version of redis-py this is, is looked up once a process."""
    redis_utils.get_lib_version = functools.cache(redis_utils.get_lib_version)
    _remember_field(PydanticBaseSettingsSource, "field_is_complex")
    _remember_field(PydanticBaseEnvSettingsSource, "_extract_field_info")


def _remember_field(source: type, name: str) -> None:
    """Lets a method that reads nothing but the declaration of a field and the options of its class answer from memory."""
    method: Callable[..., Any] = getattr(source, name)
    # The field is kept with the answer: its id stays its own.
    answers: dict[tuple[Any, ...], tuple[FieldInfo, Any]] = {}

    @functools.wraps(method)
    def remembered(self: Any, field: FieldInfo, *more: Any) -> Any:
        key = (type(self), self.settings_cls, id(field), *map(str, more))
        if key not in answers:
            answers[key] = (field, method(self, field, *more))
        return answers[key][1]

    setattr(source, name, remembered)
