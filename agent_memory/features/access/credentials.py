"""Turn a caller's credentials into a `Principal`, or raise an error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from agent_memory.foundation.core.errors import Unauthenticated
from agent_memory.foundation.core.scope import Principal
from agent_memory.foundation.core.settings import Settings

if TYPE_CHECKING:
    from agent_memory.features.access.login_provider import LoginProvider

MAX_CREDENTIAL_BYTES = 16 * 1024
_HOW = "send an API key or a token: Authorization: Bearer … or X-API-Key: …"


class CredentialGate(Protocol):
    async def admit(self, credential: str) -> Principal:
        """Return the principal for a key or token. Raises Unauthenticated and Unavailable."""
        ...

    def recall_principal(self, credential: str) -> tuple[Principal, bool] | None:
        """Return the principal from the last check, and whether that check is still valid.

        If not, use the principal only to choose the queue for a new check.
        """
        ...


@dataclass(frozen=True, slots=True)
class Authenticator:
    gate: CredentialGate


class EitherGate:
    """Validates credentials that look like JWTs as JWTs, and all others as API keys."""

    def __init__(self, keys: CredentialGate, jwts: CredentialGate) -> None:
        self._keys = keys
        self._jwts = jwts

    async def admit(self, credential: str) -> Principal:
        return await self._gate(credential).admit(credential)

    def recall_principal(self, credential: str) -> tuple[Principal, bool] | None:
        return self._gate(credential).recall_principal(credential)

    def _gate(self, credential: str) -> CredentialGate:
        # The header of a JWT is a JSON object in Base64.
        return self._jwts if credential.startswith("ey") and credential.count(".") == 2 else self._keys


def open_oauth(settings: Settings, keys: CredentialGate) -> tuple[CredentialGate, LoginProvider | None]:
    """Return the gate for AUTH_MODE=oauth2 or both, and the login provider, if there is one.

    Raises StartupError.
    """
    # Import PyJWT only if the server uses OAuth.
    from agent_memory.features.access.login_provider import LoginProvider  # noqa: PLC0415
    from agent_memory.features.access.oauth import JwtGate, ProviderDocument, fetch_keys, parse_keys  # noqa: PLC0415

    gate = JwtGate(settings.auth, ProviderDocument(partial(fetch_keys, settings.auth), parse_keys))
    provider = LoginProvider(settings, gate) if settings.auth.oauth2_client_id else None
    return EitherGate(keys, gate) if settings.auth.takes_keys else gate, provider


def credential_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the key or token from a request's headers, or None.

    Expects lowercase header names. Raises Unauthenticated for invalid or conflicting credentials.
    """
    credentials: set[bytes] = set()
    for name, value in headers:
        if name == b"authorization":
            scheme, _, rest = value.strip().partition(b" ")
            if scheme.lower() != b"bearer":
                raise Unauthenticated(_HOW)
            credentials.add(rest.strip())
        elif name == b"x-api-key":
            credentials.add(value.strip())
    if not credentials:
        return None
    credential = credentials.pop()
    if credentials:
        raise Unauthenticated("several credentials were sent that differ: send one")
    if not credential or len(credential) > MAX_CREDENTIAL_BYTES or not credential.isascii():
        raise Unauthenticated(_HOW)
    return credential.decode("ascii")
