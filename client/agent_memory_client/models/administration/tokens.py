"""API keys."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agent_memory_client.models._types import FreeText, Identifier, Instant, OptionalIdentifier

MAX_LIMITS = 1000
MAX_GRACE_SECONDS = 7 * 24 * 3600


class RoleEnum(StrEnum):
    """What a key may do; each may what stands before it, too."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class CreateTokenRequest(BaseModel):
    """An API key to make. Without `namespaces`, `users` or `agents` it reaches all of the tenant's."""

    model_config = ConfigDict(extra="forbid")

    description: Annotated[FreeText, Field(max_length=1000)] = ""
    """What the key is for, in words; it is shown in lists."""
    role: RoleEnum = RoleEnum.WRITE
    """What the key may do: only read, also write, or also administer."""
    tenant: OptionalIdentifier = None
    """The tenant whose data it reaches; the caller's own when not given. Only operators may name another one."""
    namespaces: Annotated[list[Identifier], Field(min_length=1, max_length=MAX_LIMITS)] | None = None
    """The only namespaces that it reaches; all of the tenant's when not given."""
    users: Annotated[list[Identifier], Field(min_length=1, max_length=MAX_LIMITS)] | None = None
    """The only users whose data it reaches; all of the tenant's when not given."""
    agents: Annotated[list[Identifier], Field(min_length=1, max_length=MAX_LIMITS)] | None = None
    """The only agents whose memories it reaches; all of the tenant's when not given."""
    expires_days: Annotated[float, Field(gt=0, le=36600, allow_inf_nan=False)] | None = None
    """How many days it counts; for ever when neither this nor `expires_at` is given."""
    expires_at: Instant | None = None
    """When it ceases to count; give this or `expires_days`."""
    token: Annotated[str, Field(min_length=16, max_length=1024, pattern=r"^[\x21-\x7e]*$")] | None = None
    """A secret of the caller's own with 256 random bits; the server makes one when it is left out."""


class RotateTokenRequest(BaseModel):
    """Another secret for a key, beside which the former one counts for a while."""

    model_config = ConfigDict(extra="forbid")

    grace_seconds: Annotated[float, Field(ge=0, le=MAX_GRACE_SECONDS, allow_inf_nan=False)] = 3600.0
    """For how many more seconds the former secret counts; an hour when not given, at most a week."""


class TokenInfo(BaseModel):
    """An API key without its secret."""

    id: str
    hash: str
    """The digest of the secret that the key is found by."""
    tenant: str
    """The tenant whose data it reaches."""
    role: RoleEnum
    """What the key may do: only read, also write, or also administer."""
    description: str
    """What the key is for."""
    created_at: Instant
    expires_at: Instant | None = None
    """When it ceases to count; null for never."""
    last_used_at: Instant | None = None
    """When it was last used; null when it never was."""
    namespaces: list[str] | None = None
    """The only namespaces that it reaches; null for all."""
    users: list[str] | None = None
    """The only users whose data it reaches; null for all."""
    agents: list[str] | None = None
    """The only agents whose memories it reaches; null for all."""


class CreatedToken(TokenInfo):
    """A new API key with its secret, which is shown this once."""

    token: str = Field(repr=False)
    """The secret, which is sent as `Authorization: Bearer …`; no other answer shows it."""


class TokenList(BaseModel):
    """API keys, the oldest first."""

    tokens: list[TokenInfo]
    """The keys, the oldest first."""
