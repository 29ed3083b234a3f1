"""Compare `agent-memory token` with the archived server's command, and test its additions."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from redis.asyncio import Redis
from typer.testing import CliRunner

from agent_memory.foundation.core.errors import AgentMemoryError
from agent_memory.interfaces.cli.app import app

RUNNER = CliRunner()


@pytest.fixture
def token(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs `agent-memory token` and returns its output."""
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("KEY_PREFIX", "cli-token")

    async def run(*arguments: str, code: int = 0) -> str:
        result = await asyncio.to_thread(RUNNER.invoke, app, ["token", *arguments])
        if isinstance(result.exception, AgentMemoryError):
            return f"error: {result.exception.advice}"
        assert result.exit_code == code, result.output
        return result.stdout

    return run


async def test_token_commands_create_list_show_rotate_and_revoke_keys(token: Any, redis_url: str) -> None:
    made = json.loads(await token("add", "-d", "for the tests", "-e", "30", "--user", "ana", "--format", "json"))
    assert {"token", "description", "created_at", "expires_at", "hash"} <= made.keys()
    assert (made["role"], made["users"], made["tenant"]) == ("write", ["ana"], "default")
    second = await token("add", "--description", "two", "--token", "a-secret-of-my-own-0123", "--role", "admin")
    assert "a-secret-of-my-own-0123" in second
    # The archived server's `token list` emptied the list, and its look-up by a prefix crashed (defect 33).
    for _ in range(2):
        listed = json.loads(await token("list", "--format", "json"))
        assert [one["description"] for one in listed] == ["for the tests", "two"]
    assert made["token"] not in await token("list")
    shown = json.loads(await token("show", made["hash"][:10], "--format", "json"))
    assert shown["id"] == made["id"]
    assert "token" not in shown
    rotated = json.loads(await token("rotate", made["id"], "--grace-seconds", "60", "--format", "json"))
    assert rotated["token"] != made["token"]
    assert await token("remove", rotated["hash"][:10], "-f") == "revoked\n"
    assert await token("remove", rotated["hash"], "-f") == (
        "error: API key not found: `agent-memory token list` or GET /v1/auth/tokens lists all"
    )
    assert await token("add", "-d", "x", "--token", "short", code=2) == ""
    async with Redis.from_url(redis_url) as redis:
        keys = [key async for key in redis.scan_iter(match="cli-token:*")]
        assert len(keys) == 3, keys  # the names, the secret of the digests, and the one remaining key
        await redis.delete(*keys)
