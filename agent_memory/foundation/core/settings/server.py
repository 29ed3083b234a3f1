"""Define settings for HTTP, MCP, and compatible APIs."""

from __future__ import annotations

from typing import Literal

from pydantic import SecretStr

from agent_memory.foundation.core.settings.base import Group, archived, internal, setting

_UPSTREAM = r"\s*[A-Za-z0-9._-]{1,64}=https?://[^\s,\"/?#@]+(/[^\s,\"?#@]*)?\s*"
_API = r"\s*(mem0|supermemory)(:[^,]{1,256})?\s*"


class ServerSettings(Group):
    host: str = setting("127.0.0.1", "HOST", meaning="address to listen on")
    port: int = setting(8000, "PORT", meaning="port to listen on; 0 picks a free one", ge=0, le=65535)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = setting(
        "INFO", "LOG_LEVEL", meaning="lowest level of log lines on stderr"
    )
    log_format: Literal["console", "json"] = setting("console", "LOG_FORMAT", meaning="log lines: text (`console`) or JSON (`json`)")
    max_body_bytes: int = internal(8 * 1024 * 1024, "MAX_BODY_BYTES", ge=1024)
    request_timeout_seconds: float = internal(30.0, "REQUEST_TIMEOUT_SECONDS", gt=0)
    head_timeout_seconds: float = internal(10.0, "HEAD_TIMEOUT_SECONDS", gt=0)
    body_timeout_seconds: float = internal(10.0, "BODY_TIMEOUT_SECONDS", gt=0)
    max_concurrent_requests: int = internal(256, "MAX_CONCURRENT_REQUESTS", ge=1)
    shutdown_drain_seconds: float = setting(
        2.0,
        "SHUTDOWN_DRAIN_SECONDS",
        meaning="seconds after SIGTERM during which the API still responds and `/v1/ready` returns 503. Without a load balancer, set to 0",
        ge=0,
    )
    shutdown_grace_seconds: int = internal(20, "SHUTDOWN_GRACE_SECONDS", ge=1)
    strict_fields: bool = setting(
        False, "STRICT_FIELDS", meaning="reject unknown fields (422) instead of listing them in `X-Ignored-Fields`"
    )
    access_log: bool = internal(True, "ACCESS_LOG")
    audit_log: bool = setting(False, "AUDIT_LOG", meaning="log caller, operation and ids of each request and MCP call, never content")
    console: bool = internal(True, "CONSOLE_ENABLED")
    cors_allowed_origins: str = setting(
        "", "CORS_ALLOWED_ORIGINS", meaning="origins whose pages may call the API, comma-separated, e.g. `https://app.example.com`"
    )
    allowed_hosts: str = setting(
        "",
        "ALLOWED_HOSTS",
        meaning="host names that requests may use besides localhost, comma-separated (`*`: all). "
        "Default: with `AUTH_MODE=disabled` on 127.0.0.1, only localhost; otherwise, all",
    )
    public_url: str | None = setting(
        None,
        "PUBLIC_URL",
        meaning="the server's address for clients, used in OAuth metadata and for the console's login; if unset, the request's address",
        pattern=r'^https?://[^\s"/?#]+(/[^\s"?#]*)?$',
    )
    proxy_upstreams: str = setting(
        "",
        "PROXY_UPSTREAMS",
        meaning="model servers that `/proxy/v1` may call, comma-separated; the first is the default. Example: "
        "`openai=https://api.openai.com/v1`",
        pattern=rf"^(\s*|{_UPSTREAM}(,{_UPSTREAM})*)$",
    )

    @property
    def upstreams(self) -> dict[str, str]:
        """Model server addresses by name, with trailing slashes removed."""
        parts = [part.strip().partition("=") for part in self.proxy_upstreams.split(",") if part.strip()]
        return {name: address.rstrip("/") for name, _, address in parts}


class McpSettings(Group):
    host: str = archived("127.0.0.1", "MCP_HOST")
    port: int = archived(9000, "MCP_PORT", ge=0, le=65535)
    on_api: bool = internal(True, "MCP_ON_API")
    tools: Literal["core", "agent", "all"] = setting(
        "all", "MCP_TOOLS", meaning="tools: `core` (eight), `agent` (also conversations, blocks, archive, timeline, procedures) or `all`"
    )
    namespace: str | None = archived(None, "DEFAULT_MCP_NAMESPACE", max_length=512)
    user_id: str | None = archived(None, "DEFAULT_MCP_USER_ID", max_length=512)
    token: SecretStr | None = setting(None, "MCP_TOKEN", meaning="the caller's credential over stdio, if `AUTH_MODE` requires one")


class CompatSettings(Group):
    apis: str = setting(
        "",
        "COMPAT_APIS",
        meaning="compatible APIs, comma-separated: `mem0`, `supermemory`. An API stores its data in the namespace of the same name. "
        "`mem0:shared` selects the namespace `shared` ([Mem0](../integrations/mem0.md), [Supermemory](../integrations/supermemory.md))",
        pattern=rf"^(\s*|{_API}(,{_API})?)$",
    )

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._namespaces)

    def namespace_of(self, product: str) -> str:
        """Return the namespace where the given product's API stores its data."""
        return self._namespaces[product]

    @property
    def _namespaces(self) -> dict[str, str]:
        namespaces: dict[str, str] = {}
        for part in self.apis.split(","):
            name, _, namespace = part.strip().partition(":")
            if name:
                namespaces[name] = namespace or name
        return namespaces
