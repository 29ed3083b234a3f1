"""API keys of a server with `AUTH_MODE=token`, for administrators."""

from __future__ import annotations

from agent_memory_client._answers import parse
from agent_memory_client._async.connection import Connection
from agent_memory_client._parts import create_token_call, rotate_token_call, token_call
from agent_memory_client.models import AckResponse, CreatedToken, CreateTokenRequest, TokenInfo, TokenList


class Keys(Connection):
    """Makes API keys and looks after them. Raises MemoryServerError (403) for who is no administrator."""

    async def list_tokens(self) -> TokenList:
        """The API keys of the caller's tenant without their secrets, the oldest first; an operator sees those of all tenants."""
        return parse(TokenList, await self._send(token_call("GET")))

    async def create_token(self, request: CreateTokenRequest) -> CreatedToken:
        """Makes an API key; its secret is in the answer and nowhere else. Sent once: a lost answer is a key to revoke."""
        return parse(CreatedToken, await self._send(create_token_call(request)))

    async def get_token(self, token_id: str) -> TokenInfo:
        """One API key, by its id, its hash or the begin of that. Raises MemoryNotFoundError, MemoryConflictError for several."""
        return parse(TokenInfo, await self._send(token_call("GET", token_id)))

    async def delete_token(self, token_id: str) -> AckResponse:
        """Revokes an API key: from the answer on no process accepts it. Raises MemoryNotFoundError, MemoryConflictError."""
        return parse(AckResponse, await self._send(token_call("DELETE", token_id)))

    async def rotate_token(self, token_id: str, grace_seconds: float = 3600.0) -> CreatedToken:
        """Gives an API key another secret, which is in the answer; the former one counts for `grace_seconds` (up to 7 days) more.

        Sent once: after a lost answer rotate again. Raises MemoryNotFoundError, MemoryConflictError.
        """
        return parse(CreatedToken, await self._send(rotate_token_call(token_id, grace_seconds)))
