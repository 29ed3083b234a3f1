"""`agent-memory token`: API keys, through a running server as an administrator, or in the store directly."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import httpx
import typer
from pydantic import BaseModel, ValidationError

from agent_memory.features.access.token_store import TokenStore
from agent_memory.features.access.tokens import OPERATOR, TokenGate, TokenService
from agent_memory.foundation.core.errors import NotFound, StartupError
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.storage.cluster import locate_buckets
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.interfaces.cli.confirmation import ask
from agent_memory.interfaces.cli.store import existing_store, settings_with
from agent_memory.interfaces.cli.target import API_KEY_VARIABLE, say_server, say_store, sentence, shown_server
from agent_memory_client.models import CreatedToken, CreateTokenRequest, RotateTokenRequest, TokenInfo, TokenList

_Result = TypeVar("_Result")
Format = Literal["text", "json"]


@dataclass(frozen=True, slots=True)
class TokenTarget:
    """Where the keys are: behind a server's URL, asked with `api_key`; else in the store of the settings or of a data directory."""

    url: str | None
    data_dir: Path | None = None
    api_key: str | None = None


def add(target: TokenTarget, request: dict[str, Any], form: Format) -> None:
    """Makes a key and shows its secret, this once."""
    try:
        body = CreateTokenRequest.model_validate({name: value for name, value in request.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise typer.BadParameter(f"{first['loc'][0] if first['loc'] else 'token'}: {first['msg']}") from None
    created = _run(
        target,
        lambda service: service.create(OPERATOR, body),
        lambda call: call("POST", "", CreatedToken, body),
    )
    if form == "json":
        typer.echo(created.model_dump_json(exclude_none=False))
        return
    typer.echo(f"token:       {created.token}\nid:          {created.id}\nhash:        {created.hash}\nrole:        {created.role.value}")
    typer.echo("Keep it now: it is not shown again.")


def listing(target: TokenTarget, form: Format) -> None:
    """Shows all keys, without their secrets."""

    async def own(service: TokenService) -> TokenList:
        return TokenList(tokens=list(await service.list(OPERATOR)))

    stored = _run(target, own, lambda call: call("GET", "", TokenList))
    if form == "json":
        typer.echo(json.dumps([key.model_dump(mode="json") for key in stored.tokens], ensure_ascii=False))
        return
    for key in stored.tokens:
        typer.echo(_line(key))
    if not stored.tokens:
        typer.echo("no API keys")


def show(target: TokenTarget, name: str, form: Format) -> None:
    """Shows one key, without its secret."""
    key = _run(target, lambda service: service.show(OPERATOR, name), lambda call: call("GET", f"/{quote(name, safe='')}", TokenInfo))
    typer.echo(key.model_dump_json(indent=None if form == "json" else 2))


def remove(target: TokenTarget, name: str, *, force: bool) -> None:
    """Revokes a key: when this returns, no process accepts it."""
    ask(f"Revoke the API key {name}?", force=force)

    async def own(service: TokenService) -> None:
        await service.remove(OPERATOR, name)

    async def there(call: _Call) -> None:
        await call("DELETE", f"/{quote(name, safe='')}", BaseModel)

    _run(target, own, there)
    typer.echo("revoked")


def rotate(target: TokenTarget, name: str, grace_seconds: float, form: Format) -> None:
    """Gives a key another secret; the former one counts for a while."""
    body = RotateTokenRequest(grace_seconds=grace_seconds)
    path = f"/{quote(name, safe='')}/rotate"
    rotated = _run(
        target, lambda service: service.rotate(OPERATOR, name, grace_seconds), lambda call: call("POST", path, CreatedToken, body)
    )
    typer.echo(rotated.model_dump_json() if form == "json" else f"token: {rotated.token}\nKeep it now: it is not shown again.")


def _line(key: TokenInfo) -> str:
    limits = {"namespaces": key.namespaces, "users": key.users, "agents": key.agents}
    reach = " ".join(f"{name}={','.join(values)}" for name, values in limits.items() if values is not None)
    ends = f" until {key.expires_at:%Y-%m-%d}" if key.expires_at else ""
    return f"{key.id}  {key.hash[:12]}  {key.tenant}/{key.role.value}{ends}  {reach}  {key.description}".rstrip()


# ------------------------------------------------------------------------------------------------------------------ reaching them

_Call = Callable[..., Awaitable[Any]]


def _run(target: TokenTarget, own: Callable[[TokenService], Awaitable[_Result]], there: Callable[[_Call], Awaitable[_Result]]) -> _Result:
    """Does it through the server, or in the store, and says which. Raises errors of ours, in one line."""
    settings = settings_with(None, target.data_dir)
    return asyncio.run(_by_server(settings, target.url, target.api_key, there) if target.url else _in_store(settings, own))


async def _by_server(settings: Settings, url: str, api_key: str | None, there: Callable[[_Call], Awaitable[_Result]]) -> _Result:
    operator = settings.auth.admin_token
    key = api_key or (operator.get_secret_value() if operator else os.environ.get(API_KEY_VARIABLE))
    result = await there(_calling(url, key))
    say_server(url)
    return result


def _calling(url: str, key: str | None) -> _Call:
    shown = shown_server(url)

    async def call(method: str, path: str, model: type[BaseModel], body: BaseModel | None = None) -> Any:
        sent = None if body is None else body.model_dump(mode="json", exclude_none=True)
        headers = {"X-API-Key": key} if key else {}
        try:
            async with httpx.AsyncClient(base_url=url.rstrip("/"), timeout=30, headers=headers, trust_env=False) as client:
                answer = await client.request(method, f"/v1/auth/tokens{path}", json=sent)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise StartupError(f"no server answers at {shown}: {error}") from error
        try:
            content = answer.json()
        except ValueError as error:
            raise StartupError(f"{shown} is not a memory server: status {answer.status_code}, no JSON") from error
        if answer.status_code == 404:
            raise NotFound(f"{shown}: {sentence(content)}")
        if answer.status_code != 200:
            hint = " (AUTH_ADMIN_TOKEN, --api-key, or AGENT_MEMORY_API_KEY)" if answer.status_code in (401, 403) else ""
            raise StartupError(f"{shown} refuses: {sentence(content)}{hint}")
        return model.model_validate(content)

    return call


async def _in_store(settings: Settings, own: Callable[[TokenService], Awaitable[_Result]]) -> _Result:
    # A key may be made before the first start of a server: what is named by REDIS_URL is there already.
    async with existing_store(settings, begun=False) as store:
        keys, timeout = Keys(settings.redis.key_prefix), settings.redis.command_timeout_seconds
        (server,) = await locate_buckets(store.url, [keys], shown=store.shown, command_timeout=timeout)
        client = server.connect(pool_size=4, command_timeout=timeout)
        try:
            tokens = TokenStore(client, keys)
            result = await own(TokenService(tokens, TokenGate(settings.auth, tokens)))
        finally:
            await client.aclose()
    say_store(store.shown)
    return result
