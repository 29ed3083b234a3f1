"""Authentication."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from pydantic import SecretStr

from agent_memory.foundation.core.settings.base import Group, archived, setting

ClaimUse: TypeAlias = Literal["tenant", "namespace", "user", "agent", "role"]
RoleName: TypeAlias = Literal["read", "write", "admin"]

_EVERYBODY = "*"


class AuthSettings(Group):
    auth_mode: Literal["disabled", "token", "oauth2"] = setting(
        "disabled",
        "AUTH_MODE",
        meaning="who may ask: everybody who reaches the port, those with an API key, or those with a JWT of a login provider",
    )
    disable_auth: bool | None = archived(None, "DISABLE_AUTH")
    token_auth_enabled: bool = archived(False, "TOKEN_AUTH_ENABLED")
    open_to_network: bool = setting(
        False,
        "AUTH_DISABLED_ON_NETWORK",
        meaning="let everybody in on other addresses than 127.0.0.1, too, where nobody is asked for credentials",
    )
    secret: SecretStr | None = setting(
        None,
        "AUTH_SECRET",
        meaning="key of the digests that API keys are kept as; made and kept in Redis if not given. Another one makes all keys void",
        min_length=16,
    )
    admin_token: SecretStr | None = setting(
        None, "AUTH_ADMIN_TOKEN", meaning="a key for the operator, who may make the others", min_length=16
    )
    oauth2_issuer_url: str | None = setting(None, "OAUTH2_ISSUER_URL", meaning="the `iss` that JWTs must have")
    oauth2_audience: str | None = setting(None, "OAUTH2_AUDIENCE", meaning="the `aud` that they must have; not looked at if not given")
    oauth2_jwks_url: str | None = setting(
        None,
        "OAUTH2_JWKS_URL",
        meaning="where the login provider's public keys are; below the issuer, at `/.well-known/jwks.json`, if not given",
        pattern=r"^https?://\S+$",
    )
    oauth2_algorithms: tuple[str, ...] = archived(("RS256",), "OAUTH2_ALGORITHMS")
    oauth2_leeway_seconds: ClassVar[float] = 30.0
    oauth2_claims: dict[ClaimUse, str] = setting(
        {},
        "OAUTH2_CLAIMS",
        meaning="JSON object: which claim names the caller's `tenant`, the `namespace`s, the `user` (`sub` for one) and the `agent`s that "
        "the caller may reach, and the `role`s; all of what no claim is named for",
    )
    oauth2_roles: dict[str, RoleName] = setting(
        {"memory:read": "read", "memory:write": "write", "memory:admin": "admin"},
        "OAUTH2_ROLES",
        meaning="JSON object: what the words of the `role` claim mean here (`read`, `write`, `admin`); `*`: the role of everybody while no "
        "claim names roles, `write` if not given",
    )

    @property
    def mode(self) -> Literal["disabled", "token", "oauth2"]:
        """The kind of credentials; the archived server's `DISABLE_AUTH=true` beats everything."""
        if self.disable_auth:
            return "disabled"
        return "token" if self.auth_mode == "disabled" and self.token_auth_enabled else self.auth_mode

    @property
    def required(self) -> bool:
        return self.mode != "disabled"

    def claim(self, use: ClaimUse) -> str | None:
        """Return the JWT claim with this value, None if none is named."""
        return self.oauth2_claims.get(use)

    @property
    def roles(self) -> dict[str, RoleName]:
        return {word: role for word, role in self.oauth2_roles.items() if word != _EVERYBODY}

    @property
    def default_role(self) -> RoleName:
        """The role while no claim names roles."""
        return self.oauth2_roles.get(_EVERYBODY, "write")
