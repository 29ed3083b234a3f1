"""API keys, as administrators make and see them."""

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
    """An API key to make. Without `namespaces`, `users` or `agents` it reaches all of the tenant's.

    `token` is a secret of the caller's own instead of a new one; it should have 256 random bits. Only operators may name another `tenant`.
    """

    model_config = ConfigDict(extra="forbid")

    description: Annotated[FreeText, Field(max_length=1000)] = ""
    role: RoleEnum = RoleEnum.WRITE
    tenant: OptionalIdentifier = None
    namespaces: Annotated[list[Identifier], Field(min_length=1, max_length=MAX_LIMITS)] | None = None
    users: Annotated[list[Identifier], Field(min_length=1, max_length=MAX_LIMITS)] | None = None
    agents: Annotated[list[Identifier], Field(min_length=1, max_length=MAX_LIMITS)] | None = None
    expires_days: Annotated[float, Field(gt=0, le=36600, allow_inf_nan=False)] | None = None
    expires_at: Instant | None = None
    token: Annotated[str, Field(min_length=16, max_length=1024, pattern=r"^[\x21-\x7e]*$")] | None = None


class RotateTokenRequest(BaseModel):
    """For how many more seconds the former secret of a key counts."""

    model_config = ConfigDict(extra="forbid")

    grace_seconds: Annotated[float, Field(ge=0, le=MAX_GRACE_SECONDS, allow_inf_nan=False)] = 3600.0


class TokenInfo(BaseModel):
    """An API key without its secret; `hash` is the digest that it is found by."""

    id: str
    hash: str
    tenant: str
    role: RoleEnum
    description: str
    created_at: Instant
    expires_at: Instant | None = None
    last_used_at: Instant | None = None
    namespaces: list[str] | None = None
    users: list[str] | None = None
    agents: list[str] | None = None


class CreatedToken(TokenInfo):
    """A new API key with its secret, which is shown this once."""

    token: str = Field(repr=False)


class TokenList(BaseModel):
    """API keys, the oldest first."""

    tokens: list[TokenInfo]
