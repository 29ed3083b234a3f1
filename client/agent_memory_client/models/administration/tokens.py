"""API keys."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agent_memory_client.models._types import FreeText, Identifier, Instant

MAX_LIMITS = 1000
MAX_GRACE_SECONDS = 7 * 24 * 3600


class RoleEnum(StrEnum):
    """A key's role. `admin` includes `write`, and `write` includes `read`."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class CreateTokenRequest(BaseModel):
    """An API key to create.

    If `namespaces`, `users` and `agents` are not set, the key can access all of its tenant's data.
    """

    model_config = ConfigDict(extra="forbid")

    description: Annotated[FreeText, Field(max_length=1000)] = ""
    """The key's purpose, shown in lists of keys. At most 1,000 characters."""
    role: RoleEnum = RoleEnum.WRITE
    """The key's role: `read`, `write` or `admin`. Default: `write`."""
    tenant: Identifier | None = None
    """The key's tenant. Default: the caller's tenant. Only operators may specify a different tenant."""
    namespaces: Annotated[list[Identifier], Field(min_length=1, max_length=MAX_LIMITS)] | None = None
    """The only namespaces that the key can access. Default: all of the tenant's namespaces."""
    users: Annotated[list[Identifier], Field(min_length=1, max_length=MAX_LIMITS)] | None = None
    """The only users whose data the key can access. Default: all of the tenant's users."""
    agents: Annotated[list[Identifier], Field(min_length=1, max_length=MAX_LIMITS)] | None = None
    """The only agents whose memories the key can access. Default: all of the tenant's agents."""
    expires_days: Annotated[float, Field(gt=0, le=36600, allow_inf_nan=False)] | None = None
    """The key's lifetime in days, at most 36,600. Without this or `expires_at`, the key never expires."""
    expires_at: Instant | None = None
    """The time when the key expires. Set either this or `expires_days`."""
    token: Annotated[str, Field(min_length=16, max_length=1024, pattern=r"^[\x21-\x7e]*$")] | None = None
    """Your own secret: 16 to 1,024 printable ASCII characters without spaces. Use 256 random bits. By default, the
    server generates a secret."""


class RotateTokenRequest(BaseModel):
    """A request to replace a key's secret. The old secret stays valid for `grace_seconds`."""

    model_config = ConfigDict(extra="forbid")

    grace_seconds: Annotated[float, Field(ge=0, le=MAX_GRACE_SECONDS, allow_inf_nan=False)] = 3600.0
    """How long the old secret stays valid, in seconds. Default 3,600 (an hour), at most 604,800 (a week)."""


class TokenInfo(BaseModel):
    """An API key without its secret."""

    id: str
    hash: str
    """The digest of the key's secret."""
    tenant: str
    """The tenant whose data the key can access."""
    role: RoleEnum
    """The key's role: `read`, `write` or `admin`."""
    description: str
    """The key's purpose."""
    created_at: Instant
    expires_at: Instant | None = None
    """The time when the key expires. Null if it never expires."""
    last_used_at: Instant | None = None
    """The time when the key was last used. Null if it was never used."""
    namespaces: list[str] | None = None
    """The only namespaces that the key can access. Null means all namespaces."""
    users: list[str] | None = None
    """The only users whose data the key can access. Null means all users."""
    agents: list[str] | None = None
    """The only agents whose memories the key can access. Null means all agents."""


class CreatedToken(TokenInfo):
    """A new API key with its secret, which is shown only once."""

    token: str = Field(repr=False)
    """The secret. Send it as `Authorization: Bearer …`. No other response shows it."""


class TokenList(BaseModel):
    """API keys, oldest first."""

    tokens: list[TokenInfo]
    """The API keys, oldest first."""
