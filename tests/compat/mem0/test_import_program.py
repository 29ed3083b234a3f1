"""`examples/import_mem0.py` moves memories with their ids, owners and dates, from Mem0's API (here: our own) and from files."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from tests.support.cli import ROOT
from tests.support.stack import stack

pytestmark = pytest.mark.integrations

PYTHON = ROOT / ".venvs" / "frameworks" / "bin" / "python"
PROGRAM = ROOT / "examples" / "import_mem0.py"
EVERYTHING = {"OR": [{f"{kind}_id": "*"} for kind in ("user", "agent", "run", "app")]}
ADDED: list[dict[str, Any]] = [
    {"text": "I keep bees", "user_id": "ada", "timestamp": 1_700_000_000, "metadata": {"source": "chat", "page": 3}},
    {"text": "ok", "user_id": "ada", "agent_id": "coach", "timestamp": 1_600_000_000},
    {"text": "Short answers", "agent_id": "coach", "run_id": "r1", "app_id": "app"},
    {"text": "The ankle is sprained", "user_id": "bo", "expiration_date": "2999-01-31"},
]
KEPT = ("id", "memory", "user_id", "agent_id", "run_id", "app_id", "metadata", "categories", "created_at", "expiration_date")


@asynccontextmanager
async def server(redis_url: str, prefix: str) -> AsyncGenerator[httpx.AsyncClient]:
    settings = load_settings(KEY_PREFIX=prefix, MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", COMPAT_APIS="mem0")
    async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        yield http


async def listed(http: httpx.AsyncClient) -> list[dict[str, Any]]:
    """All memories by id, in the fields that a move keeps."""
    answer = await http.post("/v3/memories/", json={"filters": EVERYTHING}, params={"page": 1, "page_size": 100})
    memories = answer.raise_for_status().json()["results"]
    return sorted(({name: memory[name] for name in KEPT} for memory in memories), key=lambda memory: memory["id"])


async def imported(http: httpx.AsyncClient, home: Path, *arguments: str, python: str | Path) -> str:
    """What the program prints."""
    process = await asyncio.create_subprocess_exec(
        *(python, PROGRAM, *arguments, "--url", str(http.base_url)),
        env={**os.environ, "MEM0_TELEMETRY": "False", "MEM0_DIR": str(home), "MEM0_API_KEY": "any", "PYTHONWARNINGS": "ignore"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-4000:]
    return out.decode()


async def test_program_moves_memories_of_the_api_twice_without_duplicates(
    redis_url: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if not PYTHON.exists():
        pytest.skip("mem0ai is not installed: scripts/tests.sh compat does that")
    async with server(redis_url, f"from-{id(request)}") as old, server(redis_url, f"to-{id(request)}") as new:
        for each in ADDED:
            body = {"messages": [{"role": "user", "content": each["text"]}], "infer": False}
            body |= {name: value for name, value in each.items() if name != "text"}
            (await old.post("/v3/memories/add/", json=body)).raise_for_status()
        before = await listed(old)
        assert len(before) == len(ADDED)
        for _ in range(2):
            printed = await imported(new, tmp_path, "--platform", "--mem0-host", str(old.base_url), python=PYTHON)
            assert printed.splitlines()[-1] == f"the namespace mem0 now holds {len(ADDED)} memories"
            assert await listed(new) == before
        found = await new.post("/v3/memories/search/", json={"query": "Which animals?", "filters": {"user_id": "ada"}})
        assert "I keep bees" in [hit["memory"] for hit in found.json()["results"]]


async def test_program_moves_memories_of_files(redis_url: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    # As the class Memory returns them: without an app and categories.
    memory = {
        "id": "5f1c",
        "memory": "I keep goats",
        "hash": "x",
        "metadata": None,
        "created_at": "2024-05-01T10:00:00-07:00",
        "user_id": "cy",
    }
    expired = {**memory, "id": "5f1d", "expiration_date": "2024-06-01"}
    (tmp_path / "one.json").write_text(json.dumps({"results": [memory, expired]}))
    (tmp_path / "lines.json").write_text(json.dumps({**memory, "id": "5f1e", "categories": ["pets", "farm"]}) + "\n" + json.dumps(memory))
    async with server(redis_url, f"files-{id(request)}") as http:
        files = [str(tmp_path / name) for name in ("one.json", "lines.json")]
        python = ROOT / ".venv" / "bin" / "python"
        assert await imported(http, tmp_path, *files, "--dry-run", python=python) == "read 3 memories; 1 are empty or expired\n"
        assert await listed(http) == []
        await imported(http, tmp_path, *files, python=python)
        first, second = await listed(http)
    assert (first["id"], first["memory"], first["user_id"], first["created_at"]) == (
        "5f1c",
        "I keep goats",
        "cy",
        "2024-05-01T17:00:00+00:00",
    )
    assert (second["id"], second["categories"]) == ("5f1e", ["pets"])
