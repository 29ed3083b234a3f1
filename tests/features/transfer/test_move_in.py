"""`agent-memory import --from` against a server over HTTP: what arrives, twice is once, kills, undo."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.cli.app import app
from tests.features.transfer.exports import DATA, write_all
from tests.support.stack import stack

LOCAL = {"MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local"}
USERS = {"chatgpt": "gita", "claude": "clara", "letta": "lena", "basic-memory": "bea", "memobase": "mona"}
"""Whom the data of systems without users goes to."""


@dataclass
class Home:
    url: str
    http: httpx.AsyncClient

    async def run(self, *words: str) -> tuple[dict[str, Any], int]:
        result = await asyncio.to_thread(CliRunner().invoke, app, [*words, "--json", "--url", self.url])
        assert result.exit_code in (0, 4), (result.output, result.exception)
        return json.loads(result.stdout.splitlines()[-1]), result.exit_code

    async def move_in(self, system: str, files: list[Path], *more: str) -> dict[str, Any]:
        user = ["--user", USERS[system]] if system in USERS else []
        return (await self.run("import", "--from", system, *map(str, files), *user, *more))[0]

    async def memories(self, **filters: Any) -> list[dict[str, Any]]:
        body = {"text": "", "limit": 100} | {name: {"eq": value} for name, value in filters.items()}
        return (await self.http.post("/v1/long-term-memory/search", json=body)).raise_for_status().json()["memories"]

    async def session(self, session_id: str, user_id: str) -> dict[str, Any] | None:
        answer = await self.http.get(f"/v1/working-memory/{session_id}", params={"user_id": user_id})
        return None if answer.status_code == 404 else answer.raise_for_status().json()


@pytest.fixture
async def home(redis_url: str, request: pytest.FixtureRequest) -> AsyncGenerator[Home]:
    prefix = f"move{abs(hash(request.node.name)) % 10**8}"
    async with (
        stack(load_settings(KEY_PREFIX=prefix, **LOCAL), redis_url) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as http,
    ):
        yield Home(url, http)


async def test_every_system_is_imported_once_and_can_be_undone(home: Home, tmp_path: Path) -> None:
    names: list[str] = []
    for system, files in write_all(tmp_path).items():
        dry = await home.move_in(system, files, "--dry-run")
        first = await home.move_in(system, files)
        assert first["problems"] == [], system
        assert first["read"] == dry["read"], system
        assert first["imported"] == first["read"], system
        assert dry["dry_run"]
        names.append(first["name"])
        again = await home.move_in(system, files)
        assert (again["imported"], again["present"], again["problems"]) == ({}, first["imported"], []), system
        assert again["name"] == first["name"]
    assert len(await home.memories()) > 20
    for name in names:
        undone, _ = await home.run("import", "--undo", name)
        assert undone["status"] == "ok", name
        assert undone["counts"]["matched"] > 0, name
    assert await home.memories() == []
    assert (await home.http.get("/v1/working-memory/", params={"limit": 10})).json()["sessions"] == []
