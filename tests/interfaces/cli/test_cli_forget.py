"""Test `agent-memory forget`: preview, deletion, undo, and exit codes."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner, Result

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.cli.app import app
from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_client.models import ClientMemoryRecord, UserId
from tests.support.stack import stack

DONE, USAGE, AMBIGUOUS, NOTHING = 0, 2, 2, 3


@dataclass
class Server:
    url: str
    memory: MemoryAPIClient

    async def run(self, line: str) -> Result:
        """Run a command in a thread, because commands start their own event loops."""
        return await asyncio.to_thread(CliRunner().invoke, app, [*shlex.split(line), "--url", self.url])

    async def remember(self, user: str, *texts: str) -> None:
        await self.memory.create_long_term_memory([ClientMemoryRecord(text=text, user_id=user) for text in texts], deduplicate=False)

    async def texts(self, user: str) -> list[str]:
        return sorted(memory.text for memory in (await self.memory.search_long_term_memory("", user_id=UserId(eq=user))).memories)


@pytest.fixture(scope="module")
async def server(redis_url: str) -> AsyncGenerator[Server]:
    settings = load_settings(KEY_PREFIX="cli-forget", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with stack(settings, redis_url) as url, MemoryAPIClient(MemoryClientConfig(base_url=url)) as memory:
        yield Server(url, memory)


async def test_forget_previews_deletes_and_undoes(server: Server) -> None:
    await server.remember("ada", "Ada is allergic to peanuts", "Ada works at Acme")
    shown = await server.run("forget 'that I am allergic to peanuts' --user ada --dry-run")
    assert shown.exit_code == DONE, shown.output
    assert "Ada is allergic to peanuts" in shown.output
    assert "Acme" not in shown.output
    assert await server.texts("ada") == ["Ada is allergic to peanuts", "Ada works at Acme"]

    gone = await server.run("forget 'that I am allergic to peanuts' --user ada --yes")
    assert gone.exit_code == DONE, gone.output
    assert "forgotten: 1 fact\n" in gone.output
    assert await server.texts("ada") == ["Ada works at Acme"]

    receipt = re.search(r"forget --undo (\w+)", gone.output)
    assert receipt is not None, gone.output
    back = await server.run(f"forget --undo {receipt[1]}")
    assert back.exit_code == DONE, back.output
    assert "restored: 1 memory\n" in back.output
    assert await server.texts("ada") == ["Ada is allergic to peanuts", "Ada works at Acme"]


async def test_forget_without_a_terminal_requires_yes(server: Server) -> None:
    await server.remember("bob", "Bob plays the oboe")
    kept = await server.run("forget 'that I play the oboe' --user bob")
    assert kept.exit_code == USAGE
    assert "--yes" in kept.output
    assert await server.texts("bob") == ["Bob plays the oboe"]
    gone = await server.run("forget 'that I play the oboe' --user bob --yes")
    assert gone.exit_code == DONE, gone.output
    assert await server.texts("bob") == []


async def test_forget_asks_for_an_id_when_text_is_ambiguous(server: Server) -> None:
    await server.remember("cleo", "Anna is a sister of hers", "Anna Berg sells bread at the corner")
    asked = await server.run("forget Anna --user cleo --yes")
    assert asked.exit_code == AMBIGUOUS
    assert "choose with --id" in asked.output
    listed = json.loads((await server.run("forget Anna --user cleo --yes --format json")).stdout)
    assert listed["ambiguous"]
    (chosen,) = [match["id"] for match in listed["matches"] if "sister" in match["text"]]
    gone = await server.run(f"forget --id {chosen} --user cleo --yes --format json")
    assert json.loads(gone.stdout)["forgotten"] == {"facts": 1}
    assert await server.texts("cleo") == ["Anna Berg sells bread at the corner"]


async def test_forget_reports_when_no_memory_matches(server: Server) -> None:
    await server.remember("dora", "Dora keeps bees")
    nothing = await server.run("forget 'my piano' --user dora --yes")
    assert nothing.exit_code == NOTHING
    assert "no matching memories" in nothing.output
    assert await server.texts("dora") == ["Dora keeps bees"]


@pytest.mark.parametrize("line", ["forget", "forget 'my piano' --id m1 --user dora"])
async def test_forget_requires_either_text_or_id(server: Server, line: str) -> None:
    refused = await server.run(line)
    assert refused.exit_code == USAGE
    assert "either TEXT or --id" in refused.output


async def test_undo_with_unknown_receipt_fails(server: Server) -> None:
    assert (await server.run("forget --undo 01AAAAAAAAAAAAAAAAAAAAAAAA")).exit_code != DONE
