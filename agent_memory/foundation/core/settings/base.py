"""What a group of settings is, and the three kinds of settings."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, Field
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, SettingsConfigDict


class Group(BaseSettings):
    """One group of settings, read from the environment and from `.env`; blank values count as absent."""

    model_config = SettingsConfigDict(
        env_file=".env", env_ignore_empty=True, extra="ignore", frozen=True, case_sensitive=False, populate_by_name=True
    )


def setting(default: Any, *names: str, meaning: str, **rules: Any) -> Any:
    """What a person who runs the server decides: a row of docs/running/configuration.md.

    The first of the variables `names` that is set counts.
    """
    return Field(default, validation_alias=AliasChoices(*names), description=meaning, **rules)


def archived(default: Any, *names: str, **rules: Any) -> Any:
    """A variable of the archived server that deployments may have set; it is read, docs/migrating.md names it."""
    return Field(default, validation_alias=AliasChoices(*names), json_schema_extra={"kind": "archived"}, **rules)


def internal(default: Any, *names: str, **rules: Any) -> Any:
    """A value that nobody who runs a server has to choose. Tests set it by its variable, which no page names."""
    return Field(default, validation_alias=AliasChoices(*names), json_schema_extra={"kind": "internal"}, **rules)


def variables_of(field: FieldInfo) -> list[str]:
    """The environment variables of a setting, the one that counts first before the others; none for a field that is not read."""
    return [str(name) for name in field.validation_alias.choices] if isinstance(field.validation_alias, AliasChoices) else []


def kind_of(field: FieldInfo) -> str:
    """`setting`, `archived` or `internal`."""
    return str(field.json_schema_extra.get("kind", "setting")) if isinstance(field.json_schema_extra, dict) else "setting"
