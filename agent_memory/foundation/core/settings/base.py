"""Define settings groups and three kinds of settings."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, Field
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, SettingsConfigDict


class Group(BaseSettings):
    """Settings from the environment and `.env`. Empty values are treated as unset."""

    model_config = SettingsConfigDict(
        env_file=".env", env_ignore_empty=True, extra="ignore", frozen=True, case_sensitive=False, populate_by_name=True
    )


def setting(default: Any, *names: str, meaning: str, **rules: Any) -> Any:
    """Define a setting for operators, documented in docs/running/configuration.md.

    The first of `names` that is set takes precedence.
    """
    return Field(default, validation_alias=AliasChoices(*names), description=meaning, **rules)


def archived(default: Any, *names: str, **rules: Any) -> Any:
    """Define a variable that may still be set in deployments of the archived server."""
    return Field(default, validation_alias=AliasChoices(*names), json_schema_extra={"kind": "archived"}, **rules)


def internal(default: Any, *names: str, **rules: Any) -> Any:
    """Define an undocumented setting that only tests use."""
    return Field(default, validation_alias=AliasChoices(*names), json_schema_extra={"kind": "internal"}, **rules)


def variables_of(field: FieldInfo) -> list[str]:
    """Return a setting's environment variables, in order of precedence."""
    return [str(name) for name in field.validation_alias.choices] if isinstance(field.validation_alias, AliasChoices) else []


def kind_of(field: FieldInfo) -> str:
    """Return a setting's kind: `setting`, `archived` or `internal`."""
    return str(field.json_schema_extra.get("kind", "setting")) if isinstance(field.json_schema_extra, dict) else "setting"
