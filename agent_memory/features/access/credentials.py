"""Checking credentials: what a caller sends becomes a `Principal`, or an error."""

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
    """Whatever knows who may ask."""

    async def admit(self, credential: str) -> Principal:
        """Who sent this key or token. Raises Unauthenticated, Unavailable."""
        ...

    def recall_principal(self, credential: str) -> tuple[Principal, bool] | None:
        """Who sent this key or token when it was checked last, and whether that still counts; asks nobody.

        What counts no longer tells nothing but whose line a request stands in while it is checked anew.
        """
        ...


@dataclass(frozen=True, slots=True)
class Authenticator:
    """The gate of this server: that of API keys, or that of OAuth."""

    gate: CredentialGate


def jwt_gate(settings: AuthSettings) -> CredentialGate:
    """The gate of AUTH_MODE=oauth2. Raises StartupError for settings by which it could not check a token."""
    # Only who has signatures to check waits at its start for what checks them.
    from agent_memory.features.access.oauth import JwtGate, KeySet, fetching  # noqa: PLC0415

    return JwtGate(settings, KeySet(fetching(settings)))


def credential_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The key or token among a request's headers (names in lower case), None without one.

    `Authorization: Bearer` and `X-API-Key` count the same. Raises Unauthenticated for another scheme, an empty one, one that is too
    long, and for two different ones.
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
