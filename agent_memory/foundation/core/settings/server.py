"""The HTTP and MCP interfaces, and the APIs of other products."""

from __future__ import annotations

from typing import Literal

from pydantic import SecretStr

from agent_memory.foundation.core.settings.base import Group, archived, internal, setting

_API = r"\s*(mem0|supermemory)(:[^,]{1,256})?\s*"


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
    console: bool = internal(True, "CONSOLE_ENABLED")
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


class McpSettings(Group):
    host: str = archived("127.0.0.1", "MCP_HOST")
    port: int = archived(9000, "MCP_PORT", ge=0, le=65535)
    on_api: bool = setting(True, "MCP_ON_API", meaning="whether the API offers MCP as well, at `/mcp`")
    tools: Literal["core", "agent", "all"] = setting(
        "all",
        "MCP_TOOLS",
        meaning="tools that MCP offers: `core` (eight, in few words), `agent` (also blocks, archive, timeline and procedures) or `all`",
    )
    namespace: str | None = archived(None, "DEFAULT_MCP_NAMESPACE", max_length=512)
    user_id: str | None = archived(None, "DEFAULT_MCP_USER_ID", max_length=512)
    token: SecretStr | None = setting(
        None, "MCP_TOKEN", meaning="credential of the one who speaks over stdio; needed when `AUTH_MODE` asks for credentials"
    )


class CompatSettings(Group):
    apis: str = setting(
        "",
        "COMPAT_APIS",
        meaning="APIs of other products to serve as well, with commas between: `mem0`, `supermemory`; what each keeps lives in the "
        "namespace of its own name, or in the one that is named behind it (`mem0:shared`); none if not given",
        pattern=rf"^(\s*|{_API}(,{_API})?)$",
    )

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._namespaces)

    def namespace_of(self, product: str) -> str:
        """Return the namespace that holds the data of a product's API."""
        return self._namespaces[product]

    @property
    def _namespaces(self) -> dict[str, str]:
        namespaces: dict[str, str] = {}
        for part in self.apis.split(","):
            name, _, namespace = part.strip().partition(":")
            if name:
                namespaces[name] = namespace or name
        return namespaces
