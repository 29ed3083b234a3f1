"""`agent-memory token`: API keys, in Redis directly, or (with --url) through a running server with the operator's AUTH_ADMIN_TOKEN."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import httpx
import typer
from pydantic import BaseModel, ValidationError

from agent_memory.cli.run import check_redis_url
from agent_memory.embedded_redis import embedded_redis
from agent_memory.errors import AgentMemoryError, StartupError
from agent_memory.services.tokens import OPERATOR, TokenGate, TokenService
from agent_memory.settings import Settings, load_settings
from agent_memory.storage.cluster import find_places
from agent_memory.storage.connection import shown_url
from agent_memory.storage.keys import Keys
from agent_memory.storage.tokens import TokenStore
from agent_memory_client.models import CreatedToken, CreateTokenRequest, RotateTokenRequest, TokenInfo, TokenList

_Made = TypeVar("_Made")
Format = Literal["text", "json"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the keys are: behind a server's URL, else in the Redis of the settings."""

    url: str | None
    data_dir: Path | None = None


def add(place: Place, request: dict[str, Any], form: Format) -> None:
    """Makes a key and shows its secret, this once."""
    try:
        body = CreateTokenRequest.model_validate({name: value for name, value in request.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise StartupError(f"{first['loc'][0] if first['loc'] else 'token'}: {first['msg']}") from None
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


def listing(place: Place, form: Format) -> None:
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


def show(place: Place, name: str, form: Format) -> None:
    """Shows one key, without its secret."""
    one = _run(place, lambda service: service.show(OPERATOR, name), lambda call: call("GET", f"/{quote(name, safe='')}", TokenInfo))
    typer.echo(one.model_dump_json(indent=None if form == "json" else 2))


def remove(place: Place, name: str, *, force: bool) -> None:
    """Revokes a key: when this returns, no process accepts it."""
    if not force and not typer.confirm(f"Revoke the API key {name}?"):
        raise typer.Exit(1)

    async def own(service: TokenService) -> None:
        await service.remove(OPERATOR, name)

    async def there(call: _Call) -> None:
        await call("DELETE", f"/{quote(name, safe='')}", BaseModel)

    _run(place, own, there)
    typer.echo("revoked")


def rotate(place: Place, name: str, grace_seconds: float, form: Format) -> None:
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


def _run(place: Place, own: Callable[[TokenService], Awaitable[_Made]], there: Callable[[_Call], Awaitable[_Made]]) -> _Made:
    """Does it in Redis, or through the server. Raises StartupError in one line."""
    settings = load_settings(**({"DATA_DIR": place.data_dir} if place.data_dir else {}))

    async def work() -> _Made:
        if place.url is not None:
            return await there(_calling(settings, place.url))
        async with _service(settings) as service:
            return await own(service)

    try:
        return asyncio.run(work())
    except StartupError:
        raise
    except AgentMemoryError as error:
        raise StartupError(error.message) from error


def _calling(settings: Settings, url: str) -> _Call:
    key = settings.auth.admin_token
    headers = {} if key is None else {"X-API-Key": key.get_secret_value()}

    async def call(method: str, path: str, model: type[BaseModel], body: BaseModel | None = None) -> Any:
        sent = None if body is None else body.model_dump(mode="json", exclude_none=True)
        try:
            async with httpx.AsyncClient(base_url=url.rstrip("/"), timeout=30, headers=headers, trust_env=False) as client:
                answer = await client.request(method, f"/v1/auth/tokens{path}", json=sent)
                found = answer.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise StartupError(f"no memory server answers at {url}: {error}") from error
        if answer.status_code != 200:
            raise StartupError(f"the server refuses: {found.get('detail', found)}")
        return model.model_validate(found)

    return call


@asynccontextmanager
async def _service(settings: Settings) -> AsyncGenerator[TokenService]:
    check_redis_url(settings)
    async with AsyncExitStack() as stack:
        if settings.redis.url is None:
            url = (await stack.enter_async_context(embedded_redis(settings.redis.data_dir))).url
        else:
            url = settings.redis.url.get_secret_value()
        keys, timeout = Keys(settings.redis.key_prefix), settings.redis.command_timeout_seconds
        (place,) = await find_places(url, [keys], shown=shown_url(url), command_timeout=timeout)
        client = place.connect(pool_size=4, command_timeout=timeout)
        stack.push_async_callback(client.aclose)
        store = TokenStore(client, keys)
        yield TokenService(store, TokenGate(settings.auth, store))
