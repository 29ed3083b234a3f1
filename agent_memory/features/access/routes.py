"""Administrator routes for managing API keys.

The routes ignore Idempotency-Key, because responses that contain secrets must not be stored.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Depends, Path, Request, Response

from agent_memory.features.access.tokens import TokenService
from agent_memory.foundation.api.dependencies import CallerDep, home_of
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import ModelResponse, errors
from agent_memory_client.models import AckResponse, CreatedToken, CreateTokenRequest, RotateTokenRequest, TokenInfo, TokenList

router = operations("access")


def tokens_of(request: Request) -> TokenService:
    return home_of(request).services[TokenService]


TokensDep = Annotated[TokenService, Depends(tokens_of)]
TokenPath = Annotated[str, Path(max_length=100, description="The key's id, its hash, or a prefix of its hash.")]


@router.get("/v1/auth/tokens", operation_id="list_tokens", response_model=TokenList, responses=errors())
async def list_tokens(caller: CallerDep, tokens: TokensDep) -> Response:
    """Returns the API keys of the caller's tenant, without their secrets. Operators see the keys of all tenants."""
    return ModelResponse(TokenList(tokens=list(await tokens.list(caller))))


@router.post("/v1/auth/tokens", operation_id="create_token", response_model=CreatedToken, responses=errors(400, 409, 413, 415))
async def create_token(caller: CallerDep, tokens: TokensDep, body: Annotated[CreateTokenRequest, Body()]) -> Response:
    """Creates an API key. Only this response contains the key's secret. An Idempotency-Key has no effect."""
    return ModelResponse(await tokens.create(caller, body), _NO_STORE)


@router.get("/v1/auth/tokens/{token_id}", operation_id="get_token", response_model=TokenInfo, responses=errors(404, 409))
async def get_token(caller: CallerDep, tokens: TokensDep, token_id: TokenPath) -> Response:
    """Returns an API key, without its secret."""
    return ModelResponse(await tokens.show(caller, token_id))


@router.delete("/v1/auth/tokens/{token_id}", operation_id="delete_token", response_model=AckResponse, responses=errors(404, 409))
async def delete_token(caller: CallerDep, tokens: TokensDep, token_id: TokenPath) -> Response:
    """Revokes an API key. Once the response arrives, no process accepts the key anymore."""
    await tokens.remove(caller, token_id)
    return ModelResponse(AckResponse(status="ok"))


@router.post(
    "/v1/auth/tokens/{token_id}/rotate", operation_id="rotate_token", response_model=CreatedToken, responses=errors(404, 409, 413, 415)
)
async def rotate_token(caller: CallerDep, tokens: TokensDep, token_id: TokenPath, body: Annotated[RotateTokenRequest, Body()]) -> Response:
    """Replaces an API key's secret.

    Only this response contains the new secret. The old secret remains valid for `grace_seconds`.
    """
    return ModelResponse(await tokens.rotate(caller, token_id, body.grace_seconds), _NO_STORE)


_NO_STORE = (b"cache-control", b"no-store")
