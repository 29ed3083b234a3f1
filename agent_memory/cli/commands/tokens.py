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

from agent_memory.access.token_store import TokenStore
from agent_memory.access.tokens import OPERATOR, TokenGate, TokenService
from agent_memory.cli.confirmation import ask
from agent_memory.cli.store import existing_store, settings_with
from agent_memory.cli.target import API_KEY_VARIABLE, say_server, say_store, sentence, shown_server
from agent_memory.core.errors import NotFound, StartupError
from agent_memory.core.settings import Settings
from agent_memory.storage.cluster import locate_buckets
from agent_memory.storage.keyspace import Keys
from agent_memory_client.models import CreatedToken, CreateTokenRequest, RotateTokenRequest, TokenInfo, TokenList

_Made = TypeVar("_Made")
Format = Literal["text", "json"]


@dataclass(frozen=True, slots=True)
class TokenTarget:
    """Where the keys are: behind a server's URL, asked with `api_key`; else in the store of the settings or of a data directory."""

    url: str | None
    data_dir: Path | None = None
    api_key: str | None = None


def add(place: TokenTarget, request: dict[str, Any], form: Format) -> None:
    """Makes a key and shows its secret, this once."""
    try:
        body = CreateTokenRequest.model_validate({name: value for name, value in request.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise typer.BadParameter(f"{first['loc'][0] if first['loc'] else 'token'}: {first['msg']}") from None
    made = _run(
        place,
        lambda service: service.create(OPERATOR, body),
        lambda call: call("POST", "", CreatedToken, body),
    )
    if form == "json":
        typer.echo(made.model_dump_json(exclude_none=False))
        return
    typer.echo(f"token:       {made.token}\nid:          {made.id}\nhash:        {made.hash}\nrole:        {made.role.value}")
    typer.echo("Keep it now: it is not shown again.")


def listing(place: TokenTarget, form: Format) -> None:
    """Shows all keys, without their secrets."""

    async def own(service: TokenService) -> TokenList:
        return TokenList(tokens=list(await service.list(OPERATOR)))

    found = _run(place, own, lambda call: call("GET", "", TokenList))
    if form == "json":
        typer.echo(json.dumps([one.model_dump(mode="json") for one in found.tokens], ensure_ascii=False))
        return
    for one in found.tokens:
        typer.echo(_line(one))
    if not found.tokens:
        typer.echo("no API keys")


def show(place: TokenTarget, name: str, form: Format) -> None:
    """Shows one key, without its secret."""
    one = _run(place, lambda service: service.show(OPERATOR, name), lambda call: call("GET", f"/{quote(name, safe='')}", TokenInfo))
    typer.echo(one.model_dump_json(indent=None if form == "json" else 2))


def remove(place: TokenTarget, name: str, *, force: bool) -> None:
    """Revokes a key: when this returns, no process accepts it."""
    ask(f"Revoke the API key {name}?", force=force)

    async def own(service: TokenService) -> None:
        await service.remove(OPERATOR, name)

    async def there(call: _Call) -> None:
        await call("DELETE", f"/{quote(name, safe='')}", BaseModel)

    _run(place, own, there)
    typer.echo("revoked")


def rotate(place: TokenTarget, name: str, grace_seconds: float, form: Format) -> None:
    """Gives a key another secret; the former one counts for a while."""
    body = RotateTokenRequest(grace_seconds=grace_seconds)
    path = f"/{quote(name, safe='')}/rotate"
    made = _run(place, lambda service: service.rotate(OPERATOR, name, grace_seconds), lambda call: call("POST", path, CreatedToken, body))
    typer.echo(made.model_dump_json() if form == "json" else f"token: {made.token}\nKeep it now: it is not shown again.")


def _line(one: TokenInfo) -> str:
    limits = {"namespaces": one.namespaces, "users": one.users, "agents": one.agents}
    reach = " ".join(f"{name}={','.join(values)}" for name, values in limits.items() if values is not None)
    ends = f" until {one.expires_at:%Y-%m-%d}" if one.expires_at else ""
    return f"{one.id}  {one.hash[:12]}  {one.tenant}/{one.role.value}{ends}  {reach}  {one.description}".rstrip()


# ------------------------------------------------------------------------------------------------------------------ reaching them

_Call = Callable[..., Awaitable[Any]]


def _run(place: TokenTarget, own: Callable[[TokenService], Awaitable[_Made]], there: Callable[[_Call], Awaitable[_Made]]) -> _Made:
    """Does it through the server, or in the store, and says which. Raises errors of ours, in one line."""
    settings = settings_with(None, place.data_dir)
    return asyncio.run(_by_server(settings, place.url, place.api_key, there) if place.url else _in_store(settings, own))


async def _by_server(settings: Settings, url: str, api_key: str | None, there: Callable[[_Call], Awaitable[_Made]]) -> _Made:
    operator = settings.auth.admin_token
    key = api_key or (operator.get_secret_value() if operator else os.environ.get(API_KEY_VARIABLE))
    made = await there(_calling(url, key))
    say_server(url)
    return made


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
            found = answer.json()
        except ValueError as error:
            raise StartupError(f"{shown} is not a memory server: status {answer.status_code}, no JSON") from error
        if answer.status_code == 404:
            raise NotFound(f"{shown}: {sentence(found)}")
        if answer.status_code != 200:
            hint = " (AUTH_ADMIN_TOKEN, --api-key, or AGENT_MEMORY_API_KEY)" if answer.status_code in (401, 403) else ""
            raise StartupError(f"{shown} refuses: {sentence(found)}{hint}")
        return model.model_validate(found)

    return call


async def _in_store(settings: Settings, own: Callable[[TokenService], Awaitable[_Made]]) -> _Made:
    # A key may be made before the first start of a server: what is named by REDIS_URL is there already.
    async with existing_store(settings, begun=False) as store:
        keys, timeout = Keys(settings.redis.key_prefix), settings.redis.command_timeout_seconds
        (place,) = await locate_buckets(store.url, [keys], shown=store.shown, command_timeout=timeout)
        client = place.connect(pool_size=4, command_timeout=timeout)
        try:
            tokens = TokenStore(client, keys)
            made = await own(TokenService(tokens, TokenGate(settings.auth, tokens)))
        finally:
            await client.aclose()
    say_store(store.shown)
    return made
