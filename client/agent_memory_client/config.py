"""The client's settings."""

from __future__ import annotations

from pydantic import BaseModel, Field


class MemoryClientConfig(BaseModel):
    """The client's settings.

    `timeout` applies to each request, in seconds. `api_key` is sent as `X-API-Key`, and
    `bearer_token` as `Authorization: Bearer`. `max_retries` applies only to requests that are safe
    to repeat.
    """

    base_url: str
    timeout: float = 30.0
    default_namespace: str | None = None
    default_model_name: str | None = None
    default_context_window_max: int | None = None
    api_key: str | None = Field(default=None, repr=False)
    bearer_token: str | None = Field(default=None, repr=False)
    max_retries: int = Field(default=2, ge=0)
