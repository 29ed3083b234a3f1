"""The HTTP interface."""

from __future__ import annotations

from typing import Literal

from agent_memory.foundation.core.settings.base import Group, internal, setting


class ServerSettings(Group):
    host: str = setting("127.0.0.1", "HOST", meaning="address to listen on")
    port: int = setting(8000, "PORT", meaning="port to listen on; 0 takes a free one", ge=0, le=65535)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = setting("INFO", "LOG_LEVEL", meaning="what is logged, to stderr")
    log_format: Literal["console", "json"] = setting("console", "LOG_FORMAT", meaning="for people or for machines")
    max_body_bytes: int = internal(8 * 1024 * 1024, "MAX_BODY_BYTES", ge=1024)
    request_timeout_seconds: float = internal(30.0, "REQUEST_TIMEOUT_SECONDS", gt=0)
    head_timeout_seconds: float = internal(10.0, "HEAD_TIMEOUT_SECONDS", gt=0)
    body_timeout_seconds: float = setting(
        10.0,
        "BODY_TIMEOUT_SECONDS",
        meaning="how long a body may take to come in after its head, a second more per 16 KiB that came; then: 408; raise it for "
        "callers who pause within a body or whose network does for longer",
        gt=0,
    )
    max_concurrent_requests: int = internal(256, "MAX_CONCURRENT_REQUESTS", ge=1)
    shutdown_drain_seconds: float = setting(
        2.0,
        "SHUTDOWN_DRAIN_SECONDS",
        meaning="how long a process that was told to stop (SIGTERM) still answers new requests, while `/v1/ready` says 503: as long "
        "as a balancer in front takes to notice; 0 with none",
        ge=0,
    )
    shutdown_grace_seconds: int = internal(20, "SHUTDOWN_GRACE_SECONDS", ge=1)
    strict_fields: bool = setting(
        False, "STRICT_FIELDS", meaning="refuse requests with fields that are not known, instead of naming them in `X-Ignored-Fields`"
    )
    access_log: bool = internal(True, "ACCESS_LOG")
    audit_log: bool = setting(
        False,
        "AUDIT_LOG",
        meaning="whether the log says of each request and MCP call who made it and which ids it named, never what was said",
    )
    cors_allowed_origins: str = setting(
        "",
        "CORS_ALLOWED_ORIGINS",
        meaning="origins, as `https://app.example.com`, with commas between, whose pages may call the API; none if not given",
    )
    allowed_hosts: str = setting(
        "",
        "ALLOWED_HOSTS",
        meaning="host names, with commas between, under which the server may be reached besides those of this machine; `*` allows "
        "every one. None given: only those of this machine while it listens there alone and nobody is asked for credentials, "
        "else any",
    )
    public_url: str | None = setting(
        None,
        "PUBLIC_URL",
        meaning="the address that clients reach the server by, for the metadata of OAuth; not given: the one they sent to",
        pattern=r'^https?://[^\s"/?#]+(/[^\s"?#]*)?$',
    )
