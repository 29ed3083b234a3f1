"""Memory blocks from the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from typer.testing import CliRunner

from agent_memory.cli.app import app
from agent_memory.core.settings import load_settings
from tests.support.stack import stack


@pytest.fixture(scope="module")
async def url(redis_url: str) -> AsyncGenerator[str]:
    settings = load_settings(KEY_PREFIX="block-commands", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with stack(settings, redis_url) as base_url:
        yield base_url


async def run(url: str, *arguments: str, fails: bool = False) -> Any:
    done = await asyncio.to_thread(CliRunner().invoke, app, ["blocks", *arguments, "--url", url])
    assert (done.exit_code != 0) == fails, done.output
    return done.output if fails else json.loads(done.stdout)


async def test_a_block_is_made_shown_changed_and_deleted(url: str) -> None:
    owner = ("--user-id", "ada", "--agent-id", "helper")
    assert (await run(url, "set", "human notes", "Name: Ada", *owner))["block"]["value"] == "Name: Ada"
    await run(url, "append", "human notes", "Keeps bees", *owner)
    assert (await run(url, "get", "human notes", *owner))["value"] == "Name: Ada\nKeeps bees"
    assert [block["label"] for block in (await run(url, "list", *owner))["blocks"]] == ["human notes"]
    assert (await run(url, "list", "--user-id", "ada"))["blocks"] == [], "the owner is exactly what is named"
    await run(url, "delete", "human notes", *owner)
    await run(url, "get", "human notes", *owner, fails=True)
    assert (await run(url, "list", *owner))["blocks"] == []
