"""Test that commands print their target server or store to stderr and never create a store."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from redis.asyncio import Redis
from ulid import ULID

from agent_memory.foundation.core.settings import load_settings
from tests.support.cli import agent_memory, unwrapped
from tests.support.processes import running
from tests.support.stack import stack

pytestmark = pytest.mark.slow

LOCAL = {"MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local"}
OPERATOR = "operator-of-the-tests-01"
# All commands that read a store or a server, except the commands that start one.
COMMANDS = [
    ["token", "add", "-d", "x"],
    ["token", "list"],
    ["token", "show", "x"],
    ["token", "remove", "x", "--force"],
    ["token", "rotate", "x"],
    ["rebuild-index"],
    ["search", "x"],
    ["delete", "memory", "x", "--force"],
    ["delete", "session", "x", "--force"],
    ["export", "ada"],
    ["import", "export.jsonl"],
    ["erase", "x", "--force"],
    ["prompt", "x"],
    ["show", "x"],
    ["top"],
    ["call", "GET", "/v1/operations"],
    ["schedule-task", "compact_long_term_memories"],
]
ASKING = [["health"]]
MEMORY = json.dumps({"memories": [{"id": "m1", "text": "Ada keeps bees.", "memory_type": "semantic"}]})
NAMES = [" ".join(words[:2]) for words in COMMANDS]

Run = Callable[..., Awaitable[subprocess.CompletedProcess[str]]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a working directory that contains an export file."""
    header = {"kind": "header", "format": "agent-memory-export", "version": 1, "user_id": "ada"}
    (tmp_path / "export.jsonl").write_text(json.dumps(header) + "\n")
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    async def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(agent_memory, *words, cwd=folder, **LOCAL, **environment)

    return run


@pytest.fixture(scope="module")
async def server(redis_url: str) -> AsyncGenerator[str]:
    settings = load_settings(KEY_PREFIX=f"t{str(ULID()).lower()}", AUTH_MODE="token", AUTH_ADMIN_TOKEN=OPERATOR, **LOCAL)
    async with stack(settings, redis_url) as url:
        yield url


def contents(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def one_line(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    """Assert exit code 1 and one stderr message that contains all parts."""
    assert result.returncode == 1, (result.returncode, result.stderr)
    assert not result.stdout or list(json.loads(result.stdout)) == ["error"]
    assert all(line.startswith("    ") for line in result.stderr.splitlines()[1:]), result.stderr
    for part in parts:
        assert part in unwrapped(result.stderr)


@pytest.mark.parametrize("words", COMMANDS, ids=NAMES)
async def test_commands_fail_without_creating_a_missing_store(words: list[str], run: Run, folder: Path) -> None:
    options = (
        "name a store (--redis-url or --data-dir," if words == ["rebuild-index"] else "name a server (--url, AGENT_MEMORY_URL) or a store"
    )
    one_line(await run(*words), f"there is no store in {folder}/agent-memory-data", options)
    assert contents(folder) == ["export.jsonl"]


async def test_directory_with_other_files_does_not_become_a_store(run: Run, folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "notes.txt").touch()
    one_line(await run("token", "list", "--data-dir", "elsewhere"), f"there is no store in {folder}/elsewhere")
    assert contents(folder / "elsewhere") == ["notes.txt"]


@pytest.mark.parametrize("words", [words for words in COMMANDS if words[0] != "token"], ids=[n for n in NAMES if "token" not in n])
async def test_commands_leave_an_unused_redis_unchanged(words: list[str], run: Run, redis_url: str) -> None:
    prefix = f"t{str(ULID()).lower()}"
    one_line(await run(*words, REDIS_URL=redis_url, KEY_PREFIX=prefix), "no server has used the store redis://127.0.0.1", prefix)
    await nothing_under(prefix, redis_url)


async def nothing_under(prefix: str, redis_url: str) -> None:
    async with Redis.from_url(redis_url) as client:
        assert [key async for key in client.scan_iter(match=f"{prefix}:*")] == []
        assert [name for name in await client.execute_command("FT._LIST") if name.startswith(prefix.encode())] == []


async def test_doctor_creates_no_store(run: Run, redis_url: str) -> None:
    prefix = f"t{str(ULID()).lower()}"
    looked = await run("doctor", "--port", "0", REDIS_URL=redis_url, KEY_PREFIX=prefix)
    assert (looked.returncode, f"without a store of KEY_PREFIX {prefix} yet" in " ".join(looked.stdout.split())) == (0, True), looked.stdout
    await nothing_under(prefix, redis_url)


async def test_key_created_before_first_start_warns_and_works_after_start(run: Run, redis_url: str) -> None:
    prefix = f"t{str(ULID()).lower()}"
    made = await run("token", "add", "-d", "first", "--format", "json", REDIS_URL=redis_url, KEY_PREFIX=prefix)
    assert "no server has used it yet" in unwrapped(made.stderr)
    async with stack(load_settings(KEY_PREFIX=prefix, AUTH_MODE="token", **LOCAL), redis_url) as url:
        searched = await run("search", "x", AGENT_MEMORY_URL=url, AGENT_MEMORY_API_KEY=json.loads(made.stdout)["token"])
    assert searched.returncode == 0, searched.stderr


@pytest.mark.parametrize("words", [*COMMANDS, *ASKING], ids=[*NAMES, *(" ".join(words[:2]) for words in ASKING)])
async def test_commands_use_and_name_the_server_from_the_environment(words: list[str], run: Run, server: str, folder: Path) -> None:
    result = await run(*words, AGENT_MEMORY_URL=server, AUTH_ADMIN_TOKEN=OPERATOR, AGENT_MEMORY_API_KEY=OPERATOR)
    assert server in result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder / "agent-memory-data").exists()
    if words == ["rebuild-index"]:
        one_line(result, "works on a store itself", "--redis-url or --data-dir")
    elif result.returncode == 0:
        assert result.stderr.splitlines()[0] == f"agent-memory: server {server}"


@pytest.mark.parametrize("words", [*COMMANDS, *ASKING], ids=[*NAMES, *(" ".join(words[:2]) for words in ASKING)])
async def test_unreachable_server_is_reported_in_one_line(words: list[str], run: Run, folder: Path) -> None:
    one_line(await run(*words, AGENT_MEMORY_URL="http://user:sesame@127.0.0.1:1/"), "http://127.0.0.1:1")
    assert not (folder / "agent-memory-data").exists()


async def test_key_created_through_a_server_is_accepted_by_it(run: Run, server: str) -> None:
    made = await run("token", "add", "-d", "x", "--format", "json", AGENT_MEMORY_URL=server, AUTH_ADMIN_TOKEN=OPERATOR)
    key = json.loads(made.stdout)["token"]
    searched = await run("search", "anything", "--format", "json", "--api-key", key, AGENT_MEMORY_URL=server)
    assert (searched.returncode, json.loads(searched.stdout)["total"]) == (0, 0)
    refused = await run("search", "anything", "--api-key", key + "x", AGENT_MEMORY_URL=server)
    one_line(refused, f"{server} refuses: ")


async def test_missing_resource_exits_with_code_3(run: Run, server: str) -> None:
    given = {"AGENT_MEMORY_URL": server, "AUTH_ADMIN_TOKEN": OPERATOR, "AGENT_MEMORY_API_KEY": OPERATOR}
    for words in (
        ["token", "show", "nobody"],
        ["call", "GET", "/v1/operations/memory-0000"],
        ["schedule-task", "refresh_summary_view", "-a", "view_id=none"],
        ["delete", "session", "none", "-f"],
    ):
        result = await run(*words, **given)
        assert (result.returncode, bool(result.stdout)) == (3, words[0] == "call"), (words, result.stderr)
        assert "Traceback" not in result.stderr


async def test_invalid_value_is_reported_as_one_sentence(run: Run, server: str) -> None:
    given = {"AGENT_MEMORY_URL": server, "AGENT_MEMORY_API_KEY": OPERATOR}
    searched = await run("search", "x", "--text-scorer", "LOUDEST", **given)
    one_line(searched, f"{server} refuses: text_scorer: must be one of")
    listed = await run("call", "GET", "/v1/operations?state=no-such-state", **given)
    one_line(listed, f"{server} refuses: state: must be")
    for result in (searched, listed):
        assert "{" not in result.stderr
        assert result.stderr.count("text_scorer: ") + result.stderr.count("state: ") == 1, "the field is named once"


@pytest.mark.parametrize(
    "words",
    [
        ["call", "GET", "/v1/operations", "--data", "{"],
        ["schedule-task", "forget_long_term_memories", "-a", "x"],
        ["token", "add", "-d", "x", "--token", "short"],
    ],
    ids=" ".join,
)
async def test_wrong_command_line_exits_with_code_2(words: list[str], run: Run, server: str) -> None:
    result = await run(*words, AGENT_MEMORY_URL=server)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Invalid value: " in result.stderr


async def test_token_remove_without_a_terminal_requires_force(run: Run, server: str) -> None:
    result = await run("token", "remove", "x", AGENT_MEMORY_URL=server)
    assert (result.returncode, "--force" in result.stderr) == (2, True)


async def test_search_uses_the_default_mode_of_the_server(run: Run, redis_url: str) -> None:
    """Only a keyword search finds the number, so the test distinguishes the modes."""
    prefix = f"t{str(ULID()).lower()}"
    async with stack(load_settings(KEY_PREFIX=prefix, **LOCAL), redis_url) as url:
        async with httpx.AsyncClient(base_url=url) as http:
            memories = [{"id": "m1", "text": "The invoice is QX-77120-B.", "memory_type": "semantic"}]
            await http.post("/v1/long-term-memory/?wait=true", json={"memories": memories})
            asked = (await http.post("/v1/long-term-memory/search", json={"text": "QX-77120-B", "explain": True})).json()
        found = json.loads((await run("search", "QX-77120-B", "--format", "json", AGENT_MEMORY_URL=url)).stdout)
    assert [one["score"] for one in found["memories"]] == [one["score"] for one in asked["memories"]]


async def test_store_of_a_running_server_is_not_opened_twice(run: Run, folder: Path) -> None:
    async with running(folder, "serve", "--port", "0", warm=True, **LOCAL) as server:
        url = await server.base_url()
        one_line(await run("token", "list"), "in use by another agent-memory", "pass the address of its server as --url, or stop it")
        one_line(await run("rebuild-index", AGENT_MEMORY_URL=url, DATA_DIR="agent-memory-data"), "works on a store itself")
        one_line(await run("rebuild-index", "--data-dir", "agent-memory-data"), "in use by another agent-memory", "stop it first")
        assert (await run("call", "POST", "/v1/long-term-memory/?wait=true", "--data", MEMORY, AGENT_MEMORY_URL=url)).returncode == 0
        copied = await run("backup", "copy", "--json", DATA_DIR="agent-memory-data")
        assert json.loads(copied.stdout) == {"folder": "copy"}
        one_line(await run("backup", "copy"), "cannot copy")
        healthy = await run("health", "--json", AGENT_MEMORY_URL=url)
        assert (json.loads(healthy.stdout), healthy.stderr) == ({"server": url, "status": "ok"}, f"agent-memory: server {url}\n")
        await server.stop()
    rebuilt = await run("rebuild-index", "--data-dir", "agent-memory-data", AGENT_MEMORY_URL=url)
    assert (rebuilt.returncode, rebuilt.stdout) == (0, "indexed: 1 memory, 1 vector\n")
    assert f"agent-memory: store in {folder}/agent-memory-data" in unwrapped(rebuilt.stderr)
    listed = await run("token", "list", "--data-dir", "agent-memory-data", REDIS_URL="redis://127.0.0.1:1/0")
    assert (listed.returncode, listed.stdout) == (0, "no API keys\n"), "the directory that was named, not REDIS_URL"
    assert "Ada keeps bees." in (await run("show", "m1", "--data-dir", "copy")).stdout, "a backup that was made beside a server"


async def test_migrate_dry_run_creates_no_store(run: Run, redis_url: str, folder: Path) -> None:
    prefix = f"t{str(ULID()).lower()}"
    looked = await run("migrate", "--from", redis_url)
    assert (looked.returncode, "This was a dry run" in looked.stdout) == (0, True), looked.stderr
    store = f"agent-memory: store in {folder}/agent-memory-data (embedded Redis), keys am: (no server has used it yet)"
    assert store in unwrapped(looked.stderr)
    assert contents(folder) == ["export.jsonl"]
    looked = await run("migrate", "--from", redis_url, "--to", redis_url, KEY_PREFIX=prefix)
    assert looked.returncode == 0, looked.stderr
    await nothing_under(prefix, redis_url)
    one_line(await run("migrate", "--from", redis_url, AGENT_MEMORY_URL="http://127.0.0.1:1"), "migrate works on a store itself", "--to")
