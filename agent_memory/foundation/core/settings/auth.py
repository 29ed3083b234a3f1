"""Define the authentication settings."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from pydantic import SecretStr

from agent_memory.foundation.core.settings.base import Group, archived, setting

ClaimUse: TypeAlias = Literal["tenant", "namespace", "user", "agent", "role"]
RoleName: TypeAlias = Literal["read", "write", "admin"]

AuthMode: TypeAlias = Literal["disabled", "token", "oauth2", "both"]

_EVERYBODY = "*"


class AuthSettings(Group):
    auth_mode: AuthMode = setting(
        "disabled",
        "AUTH_MODE",
        meaning="credentials: none (`disabled`), API keys (`token`), JWTs from a login provider (`oauth2`), or `both`",
    )
    disable_auth: bool | None = archived(None, "DISABLE_AUTH")
    token_auth_enabled: bool = archived(False, "TOKEN_AUTH_ENABLED")
    open_to_network: bool = setting(
        False, "AUTH_DISABLED_ON_NETWORK", meaning="let a server without credentials listen on addresses other than 127.0.0.1"
    )
    secret: SecretStr | None = setting(
        None,
        "AUTH_SECRET",
        meaning="HMAC key for stored API keys; if unset, generated once and stored in Redis. Changing it invalidates all API keys",
        min_length=16,
    )
    admin_token: SecretStr | None = setting(
        None, "AUTH_ADMIN_TOKEN", meaning="the operator's API key, which can create API keys", min_length=16
    )
    oauth_server: bool = setting(
        False, "OAUTH_SERVER", meaning="let apps such as claude.ai log in through OAuth ([details](connect-apps.md))"
    )
    oauth2_issuer_url: str | None = setting(None, "OAUTH2_ISSUER_URL", meaning="required `iss` of JWTs")
    oauth2_audience: str | None = setting(None, "OAUTH2_AUDIENCE", meaning="required `aud` of JWTs; not checked if unset")
    oauth2_client_id: str | None = setting(None, "OAUTH2_CLIENT_ID", meaning="the console's client id ([login](access.md#console))")
    oauth2_client_secret: SecretStr | None = setting(None, "OAUTH2_CLIENT_SECRET", meaning="client secret; if unset, the client is public")
    oauth2_jwks_url: str | None = archived(None, "OAUTH2_JWKS_URL", pattern=r"^https?://\S+$")
    oauth2_algorithms: tuple[str, ...] = archived(("RS256",), "OAUTH2_ALGORITHMS")
    oauth2_leeway_seconds: ClassVar[float] = 30.0
    oauth2_claims: dict[ClaimUse, str] = setting(
        {},
        "OAUTH2_CLAIMS",
        meaning="JSON object: the claim for each of `tenant`, `namespace`, `user`, `agent`, `role` ([details](access.md#json-web-tokens))",
    )
    oauth2_roles: dict[str, RoleName] = setting(
        {"memory:read": "read", "memory:write": "write", "memory:admin": "admin"},
        "OAUTH2_ROLES",
        meaning="JSON object: the role for each word in the `role` claim ([details](access.md#json-web-tokens))",
    )

    @property
    def mode(self) -> AuthMode:
        """The kind of credentials the server accepts. `DISABLE_AUTH=true` takes precedence."""
        if self.disable_auth:
            return "disabled"
        return "token" if self.auth_mode == "disabled" and self.token_auth_enabled else self.auth_mode

    def without_logins(self) -> AuthSettings:
        """Return these settings without an OAuth server."""
        return self.model_copy(update={"oauth_server": False})

    @property
    def takes_keys(self) -> bool:
        return self.mode in ("token", "both")

    @property
    def takes_jwts(self) -> bool:
        return self.mode in ("oauth2", "both")

    @property
    def required(self) -> bool:
        return self.mode != "disabled"

    @property
    def roles(self) -> dict[str, RoleName]:
        return {word: role for word, role in self.oauth2_roles.items() if word != _EVERYBODY}

    @property
    def default_role(self) -> RoleName:
        """The role for all callers if `OAUTH2_CLAIMS` does not specify a role claim."""
        return self.oauth2_roles.get(_EVERYBODY, "write")
