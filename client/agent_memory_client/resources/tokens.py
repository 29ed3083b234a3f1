"""Manage API keys on a server with `AUTH_MODE=token`. Requires an administrator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_memory_client._wire.requests import Call, as_body, checked, segment
from agent_memory_client.models import AckResponse, CreatedToken, CreateTokenRequest, RotateTokenRequest, TokenInfo, TokenList
from agent_memory_client.resources.base import Resource

_PATH = "/v1/auth/tokens"


class Tokens(Resource):
    """Create and manage API keys.

    Raises MemoryAuthError (403) unless the caller is an administrator. Calls that create or revoke
    a key are not retried.
    """

    async def list(self) -> TokenList:
        """Return the tenant's API keys without secrets, oldest first.

        Operators get the keys of all tenants.
        """
        return await self._read(TokenList, Call("GET", _PATH))

    async def create(self, request: CreateTokenRequest | Mapping[str, Any]) -> CreatedToken:
        """Create a key. The secret is included only in this response.

        If the response is lost, revoke the key.
        """
        return await self._read(CreatedToken, Call("POST", _PATH, json=as_body(request), idempotent=False))

    async def get(self, token_id: str) -> TokenInfo:
        """Return a key by its id, its hash or a prefix of its hash.

        Raises MemoryNotFoundError, or MemoryConflictError if more than one key matches.
        """
        return await self._read(TokenInfo, Call("GET", _token_path(token_id)))

    async def delete(self, token_id: str) -> AckResponse:
        """Revoke a key. When the call returns, no process accepts the key any longer.

        Raises MemoryNotFoundError or MemoryConflictError.
        """
        return await self._read(AckResponse, Call("DELETE", _token_path(token_id), idempotent=False))

    async def rotate(self, token_id: str, grace_seconds: float = 3600.0) -> CreatedToken:
        """Replace a key's secret. The old secret stays valid for `grace_seconds` (up to 7 days).

        If the response is lost, rotate the key again. Raises MemoryNotFoundError or
        MemoryConflictError.
        """
        request = checked(RotateTokenRequest, grace_seconds=grace_seconds)
        return await self._read(CreatedToken, Call("POST", f"{_token_path(token_id)}/rotate", json=as_body(request), idempotent=False))


def _token_path(token_id: str) -> str:
    return f"{_PATH}/{segment('token_id', token_id)}"
