"""Define `agent-memory token`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from agent_memory.foundation.core.listing import describe, table
from agent_memory.interfaces.cli.decorators import Answer, asking
from agent_memory.interfaces.cli.options import Force
from agent_memory.interfaces.cli.output import Command, ask, report

if TYPE_CHECKING:
    from agent_memory.features.access.tokens import OperatorTokens
    from agent_memory_client.models import TokenInfo
    from agent_memory_client.resources.tokens import Tokens

    Keys: TypeAlias = "Tokens | OperatorTokens"

_KEEP = "Save it now: it is not shown again."
Name = Annotated[str, typer.Argument(metavar="ID_OR_HASH", help="the key's id, its hash, or a prefix of the hash")]

app = typer.Typer(help="Manage API keys: add, list, show, remove, rotate.", no_args_is_help=True, rich_markup_mode=None)


@asynccontextmanager
async def _keys(url: str | None, api_key: str | None, data_dir: Path | None) -> AsyncGenerator[Keys]:
    """Open a server's or store's API keys without loading any models.

    This makes it possible to revoke keys while models are down.
    """
    from agent_memory.features.access.token_store import TokenStore
    from agent_memory.features.access.tokens import OperatorTokens, TokenGate, TokenService
    from agent_memory.foundation.storage.cluster import bucket_clients
    from agent_memory.foundation.storage.erasures import ErasureGuard
    from agent_memory.foundation.storage.keyspace import Keys as RedisKeys
    from agent_memory.foundation.storage.keyspace import bucket_of
    from agent_memory.interfaces.cli.api_client import reach
    from agent_memory.interfaces.cli.store import open_store, settings_with
    from agent_memory_client.resources.tokens import Tokens

    settings = settings_with(None, data_dir)
    if url is not None:
        operator = settings.auth.admin_token
        async with reach(url, api_key or (operator.get_secret_value() if operator else None), None) as api:
            yield Tokens(api.transport, api.config)
        return
    # Users can create a key before a server's first start. REDIS_URL then names a Redis without a store.
    async with open_store(settings, new="accept") as store:
        options = settings.redis
        buckets = [RedisKeys(options.key_prefix, number) for number in range(options.buckets)]
        async with bucket_clients(store.url, buckets, command_timeout=options.command_timeout_seconds) as clients:
            guards = [ErasureGuard(client, keys) for keys, client in clients]
            tokens = TokenStore(clients[0][1], buckets[0], lambda tenant: guards[bucket_of(tenant, len(guards))])
            yield OperatorTokens(TokenService(tokens, TokenGate(settings.auth, tokens)))
    report(f"store {store.description}")


asks_keys = asking(_keys)


@app.command(cls=Command)
@asks_keys
async def add(
    keys: Keys,
    description: Annotated[str, typer.Option("--description", "-d", help="purpose of the key")],
    expires_days: Annotated[
        int | None, typer.Option("--expires-days", "-e", min=1, help="days until the key expires (default: never)")
    ] = None,
    token: Annotated[str | None, typer.Option("--token", help="your own secret, at least 16 characters (default: a new one)")] = None,
    role: Annotated[Literal["read", "write", "admin"], typer.Option(help="role of the key")] = "write",
    tenant: Annotated[str | None, typer.Option(help="tenant of the key (default: default)")] = None,
    namespace: Annotated[list[str] | None, typer.Option(help="only this namespace; may be repeated")] = None,
    user: Annotated[list[str] | None, typer.Option("--user", "--user-id", help="only this user; may be repeated")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="only this agent; may be repeated")] = None,
) -> Answer:
    """Create an API key. Its secret is shown only once."""
    from agent_memory_client import MemoryValidationError
    from agent_memory_client._wire.requests import checked
    from agent_memory_client.models import CreateTokenRequest

    request = {"description": description, "expires_days": expires_days, "token": token, "role": role, "tenant": tenant}
    request |= {"namespaces": namespace or None, "users": user or None, "agents": agent or None}
    try:
        body = checked(CreateTokenRequest, **{name: value for name, value in request.items() if value is not None})
    except MemoryValidationError as error:
        raise typer.BadParameter(str(error)) from None
    made = (await keys.create(body)).model_dump(mode="json")
    return Answer(made, [*describe(made), _KEEP])


@app.command(name="list", cls=Command)
@asks_keys
async def list_keys(keys: Keys) -> Answer:
    """List all tenants' API keys without their secrets."""
    stored = (await keys.list()).tokens
    return Answer([key.model_dump(mode="json") for key in stored], table([_row(key) for key in stored]) or ["no API keys"])


@app.command(cls=Command)
@asks_keys
async def show(keys: Keys, name: Name) -> Any:
    """Show an API key without its secret."""
    return (await keys.get(name)).model_dump(mode="json")


@app.command(cls=Command)
@asks_keys
async def remove(keys: Keys, name: Name, force: Force = False) -> Answer:
    """Revoke an API key. The key stops working before the command returns."""
    ask(f"Revoke the API key {name}?", force=force)
    await keys.delete(name)
    return Answer({"revoked": name}, ["revoked"])


@app.command(cls=Command)
@asks_keys
async def rotate(
    keys: Keys,
    name: Name,
    grace_seconds: Annotated[float, typer.Option(min=0, help="seconds that the old secret remains valid")] = 3600.0,
) -> Answer:
    """Give an API key a new secret."""
    rotated = (await keys.rotate(name, grace_seconds)).model_dump(mode="json")
    return Answer(rotated, [*describe(rotated), _KEEP])


def _row(key: TokenInfo) -> tuple[str, ...]:
    limits = {"namespaces": key.namespaces, "users": key.users, "agents": key.agents}
    reach = " ".join(f"{name}={','.join(values)}" for name, values in limits.items() if values is not None)
    ends = f"until {key.expires_at:%Y-%m-%d}" if key.expires_at else ""
    return key.id, key.hash[:12], f"{key.tenant}/{key.role.value}", ends, reach, key.description
