"""Define tenant limits and maximum sizes."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from agent_memory.foundation.core.settings.base import Group, internal, setting


class TenantLimits(BaseModel):
    """The limits for one tenant. None means that the limit for all tenants applies."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    requests_per_minute: int | None = Field(default=None, ge=0)
    requests_burst: int | None = Field(default=None, ge=1)
    memories: int | None = Field(default=None, ge=0)
    model_tokens_per_day: int | None = Field(default=None, ge=0)


class LimitSettings(Group):
    """Per-tenant limits (0 means no limit) and maximum sizes."""

    requests_per_minute: int = setting(0, "LIMIT_REQUESTS_PER_MINUTE", meaning="requests per tenant per minute; 0: unlimited", ge=0)
    requests_burst: int = internal(100, "LIMIT_REQUESTS_BURST", ge=1)
    memories: int = setting(0, "LIMIT_MEMORIES", meaning="stored memories per tenant, including those from messages; 0: unlimited", ge=0)
    model_tokens_per_day: int = setting(
        0,
        "LIMIT_MODEL_TOKENS_PER_DAY",
        meaning="model tokens per tenant per day (UTC), including embeddings by a model server; 0: unlimited",
        ge=0,
    )
    tenants: dict[str, TenantLimits] = setting(
        {},
        "LIMIT_TENANTS",
        meaning="JSON object: tenants and their `requests_per_minute`, `requests_burst`, `memories`, `model_tokens_per_day`",
    )
    query_bytes: int = internal(8 * 1024, "MAX_QUERY_BYTES", ge=64, le=1024 * 1024)
    message_bytes: int = internal(8 * 1024 * 1024, "MAX_MESSAGE_BYTES", ge=1)

    def for_tenant(self, tenant: str) -> TenantLimits:
        own = self.tenants.get(tenant, TenantLimits())
        own_limits = {name: value for name in TenantLimits.model_fields if (value := getattr(own, name)) is not None}
        everybody = {name: getattr(self, name) for name in TenantLimits.model_fields}
        return TenantLimits(**(everybody | own_limits))

    def limits_any(self, name: str) -> bool:
        return bool(getattr(self, name) or any(getattr(own, name) for own in self.tenants.values()))
