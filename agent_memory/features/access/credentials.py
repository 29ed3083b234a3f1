"""Turn a caller's credentials into a `Principal`, or raise an error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from agent_memory.foundation.core.errors import Unauthenticated
from agent_memory.foundation.core.scope import Principal
from agent_memory.foundation.core.settings import AuthSettings

MAX_CREDENTIAL_BYTES = 16 * 1024
_HOW = "send an API key or a token: Authorization: Bearer … or X-API-Key: …"


class CredentialGate(Protocol):
    async def admit(self, credential: str) -> Principal:
        """Return the principal for a key or token. Raises Unauthenticated and Unavailable."""
        ...

    def recall_principal(self, credential: str) -> tuple[Principal, bool] | None:
        """Return the principal from the last check, and True if that check is still valid. Makes no look-up.

        If the check is no longer valid, the principal only determines in which queue the request waits for a new check.
        """
        ...


@dataclass(frozen=True, slots=True)
class Authenticator:
    gate: CredentialGate


def jwt_gate(settings: AuthSettings) -> CredentialGate:
    """Return the gate for AUTH_MODE=oauth2. Raises StartupError if the settings are incomplete."""
    # Import PyJWT only if the server uses OAuth.
    from agent_memory.features.access.oauth import JwtGate, KeySet, fetching  # noqa: PLC0415

    return JwtGate(settings, KeySet(fetching(settings)))


def credential_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the key or token in a request's headers, or None if there is none. Expects lowercase header names.

    `Authorization: Bearer` and `X-API-Key` are equivalent. Raises Unauthenticated for other schemes, for credentials
    that are empty or too long, and for several different credentials.
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
