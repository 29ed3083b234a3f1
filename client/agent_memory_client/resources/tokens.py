"""API keys of a server with `AUTH_MODE=token`, for administrators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_memory_client._wire.requests import Call, as_body, checked, segment
from agent_memory_client.models import AckResponse, CreatedToken, CreateTokenRequest, RotateTokenRequest, TokenInfo, TokenList
from agent_memory_client.resources.base import Resource

_PATH = "/v1/auth/tokens"


class Tokens(Resource):
    """Makes API keys and looks after them. Raises MemoryAuthError (403) for who is no administrator.

    What makes or ends a key is sent once: an answer with a secret is kept nowhere, so a second request would make a second key, and
    a key that is revoked twice is not there the second time.
    """

    async def list(self) -> TokenList:
        """The API keys of the caller's tenant without their secrets, the oldest first; an operator sees those of all tenants."""
        return await self._read(TokenList, Call("GET", _PATH))

    async def create(self, request: CreateTokenRequest | Mapping[str, Any]) -> CreatedToken:
        """Makes an API key; its secret is in the answer and nowhere else. Sent once: a lost answer is a key to revoke."""
        return await self._read(CreatedToken, Call("POST", _PATH, json=as_body(request), idempotent=False))

    async def get(self, token_id: str) -> TokenInfo:
        """One API key, by its id, its hash or the begin of that. Raises MemoryNotFoundError, MemoryConflictError for several."""
        return await self._read(TokenInfo, Call("GET", _token_path(token_id)))

    async def delete(self, token_id: str) -> AckResponse:
        """Revokes an API key: from the answer on no process accepts it. Raises MemoryNotFoundError, MemoryConflictError."""
        return await self._read(AckResponse, Call("DELETE", _token_path(token_id), idempotent=False))

    async def rotate(self, token_id: str, grace_seconds: float = 3600.0) -> CreatedToken:
        """Gives an API key another secret, which is in the answer; the former one counts for `grace_seconds` (up to 7 days) more.

        Sent once: after a lost answer rotate again. Raises MemoryNotFoundError, MemoryConflictError.
        """
        request = checked(RotateTokenRequest, grace_seconds=grace_seconds)
        return await self._read(CreatedToken, Call("POST", f"{_token_path(token_id)}/rotate", json=as_body(request), idempotent=False))


def _token_path(token_id: str) -> str:
    return f"{_PATH}/{segment('token_id', token_id)}"
