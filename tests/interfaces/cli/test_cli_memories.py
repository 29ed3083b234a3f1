"""Test the archived server's memory and session commands, both over HTTP and directly on Redis."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import shlex
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main
from click.testing import Result
from typer.testing import CliRunner

from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep import reindex
from agent_memory.foundation.core.errors import NotFound, StartupError
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.storage.connection import shown_url
from agent_memory.foundation.storage.store_watch import StoreWatch
from agent_memory.interfaces.cli.app import app
from agent_memory.runtime import open_runtime
from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_client.models import ClientMemoryRecord, MemoryMessage, WorkingMemory
from agent_memory_client.sync import SyncMemoryAPIClient
from tests.support.cli import ROOT, agent_memory, clean_environment, light_model, unwrapped
from tests.support.stack import stack
from tests.support.waiting import settled
from tests.support.warm import WarmProcess

CONTRACT: dict[str, list[dict[str, Any]]] = json.loads((ROOT / "tests" / "compat" / "contract" / "contract.json").read_text())["cli"]
WITHOUT = {("api", "--reload"): "a developer's restart on changes, not something a server does"}
"""Options of the contract that the command lacks, with the reason."""
ELSEWHERE = {"mcp", "token add", "token list", "token show", "token remove"}
LOCAL = {"MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local"}
PREFIX = "cli-memories"


@dataclass
class Server:
    url: str
    memory: MemoryAPIClient

    async def run(self, line: str) -> Result:
        """Run a command in a thread, because commands start their own event loops."""
        words = [*shlex.split(line), "--url", self.url]
        return await asyncio.to_thread(CliRunner().invoke, app, words)


def fact(name: str, text: str, **more: Any) -> ClientMemoryRecord:
    return ClientMemoryRecord(id=name, text=text, memory_type="semantic", **more)


@pytest.fixture(scope="module")
async def server(redis_url: str) -> AsyncGenerator[Server]:
    async with (
        stack(load_settings(KEY_PREFIX=PREFIX, **LOCAL), redis_url) as url,
        MemoryAPIClient(MemoryClientConfig(base_url=url)) as memory,
    ):
        await memory.create_long_term_memory(
            [
                ClientMemoryRecord(
                    id="m1", text="Ada keeps bees.", user_id="ada", topics=["bees"], entities=["Ada"], memory_type="semantic"
                ),
                ClientMemoryRecord(id="m2", text="Ben sails.\nFar out.", user_id="ben", namespace="sea", memory_type="semantic"),
                ClientMemoryRecord(id="m3", text="Cleo paints.", user_id="cleo", memory_type="semantic"),
            ]
        )
        session = WorkingMemory(session_id="s 1", user_id="ada", messages=[MemoryMessage(role="user", content="hello there")])
        await memory.put_working_memory("s 1", session)
        await settled(memory)
        yield Server(url, memory)


@pytest.mark.parametrize("name", sorted(set(CONTRACT) - ELSEWHERE))
def test_every_contract_command_exists_with_its_options(name: str) -> None:
    command: Any = typer.main.get_command(app)
    for word in name.split():
        command = command.commands[word]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for wanted in CONTRACT[name]:
        if wanted["kind"] == "argument":
            assert any(parameter.param_type_name == "argument" for parameter in command.params)
            continue
        for flag in wanted["flags"]:
            assert (flag in known) != ((name, flag) in WITHOUT), flag


async def test_search_prints_clean_json_or_readable_text(server: Server) -> None:
    found = json.loads((await server.run("search 'who keeps bees' -u ada --format json")).stdout)
    assert found["memories"][0]["id"] == "m1"
    text = (await server.run("search sails -n sea -l 1")).stdout
    assert "m2" in text
    assert "Ben sails. Far out." in text
    assert "1 of 1" in text


async def test_search_shows_the_type_of_procedural_memories(server: Server) -> None:
    how = ClientMemoryRecord(id="how-1", text="Splice a rope by tucking each strand.", user_id="eve", memory_type="procedural")
    await server.memory.create_long_term_memory([how])
    assert " procedural " in (await server.run("search 'splice a rope' -u eve --search-mode keyword")).stdout


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ("-t bees,knots", {"m1"}),
        ("-e Ada", {"m1"}),
        ("'' -u ben", {"m2"}),
        ("paints --search-mode keyword", {"m3"}),
        ("paints --search-mode hybrid --hybrid-alpha 0.1 -u cleo", {"m3"}),
        ("'Cleo paints.' -d 0.3", {"m3"}),
        ("-u nobody", set()),
    ],
)
async def test_search_options_filter_results(server: Server, options: str, ids: set[str]) -> None:
    result = await server.run(f"search {options} --format json")
    assert result.exit_code == 0, result.stderr
    assert {one["id"] for one in json.loads(result.stdout)["memories"]} == ids


async def test_server_url_is_read_from_the_environment(server: Server) -> None:
    environment = {"AGENT_MEMORY_URL": server.url}
    result = await asyncio.to_thread(CliRunner(env=environment).invoke, app, ["search", "--format", "json"])
    assert json.loads(result.stdout)["total"] >= 2


async def test_delete_memory_asks_before_deleting(server: Server) -> None:
    await server.memory.create_long_term_memory([fact("gone/1", "An id with a slash.")])
    dry = await server.run("delete memory m3 gone/1 --dry-run")
    assert (dry.exit_code, "would be deleted: 2 memories" in dry.stdout) == (0, True)
    unasked = await server.run("delete memory m3")
    assert (unasked.exit_code, "--force" in unasked.stderr) == (2, True)
    foreign = await server.run("delete memory m3 -u ada -f")
    assert foreign.exit_code == 3
    assert (await server.memory.get_long_term_memory("m3")).text == "Cleo paints."
    done = await server.run("delete memory m3 gone/1 nobody --force")
    assert done.exit_code == 3
    assert "there is no memory nobody" in done.stderr
    assert "deleted: 2 memories" in done.stdout
    assert "nothing to delete" in (await server.run("delete memory --empty-text -f")).stdout
    assert (await server.run("delete memory")).exit_code == 2


async def test_show_top_and_prompt_print_sessions_work_and_memories(server: Server) -> None:
    shown = json.loads((await server.run("show 's 1' --session -u ada --json")).stdout)
    assert [message["content"] for message in shown["messages"]] == ["hello there"]
    assert (await server.run("show 's 1' --session -u ada")).stdout == "session s 1  user_id=ada\nuser: hello there\n"
    counted = json.loads((await server.run("top --json")).stdout)
    assert counted["work"]["memory"]["dead"] == 0
    lines = (await server.run("top")).stdout.splitlines()
    assert lines[0].split() == ["work", "waits", "dead", "oldest"]
    prompt = (await server.run("prompt 'who keeps bees' -u ada")).stdout
    assert "Ada keeps bees." in unwrapped(prompt)
    assert "{" not in prompt


async def test_show_prints_a_session_with_summary_memories_and_data(server: Server) -> None:
    messages = [MemoryMessage(role="user", content="Hives swarm.\nIn May."), MemoryMessage(role="assistant", content="Noted.")]
    session = WorkingMemory(session_id="full", messages=messages, context="They met.", data={"step": {"number": 2}})
    session.memories = [fact("full-1", "Hives swarm in May.")]  # pyright: ignore
    await server.memory.put_working_memory("full", session)
    shown = (await server.run("show full --session")).stdout
    assert shown.splitlines() == [
        "session full",
        "summary: They met.",
        "user: Hives swarm.",
        "    In May.",
        "assistant: Noted.",
        "memory: Hives swarm in May.",
        'data: {"step": {"number": 2}}',
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("show nope --json", "Memory with ID nope not found"),
        ("show nope --session --format json", "Session nope not found"),
        ("delete session nope -f --json", "Session nope not found"),
        ("call get /v1/operations/nope", "Operation nope not found"),
        ("token show nope --json", "`agent-memory token list`"),
    ],
)
async def test_error_is_one_json_document_if_the_output_is_json(server: Server, line: str, message: str) -> None:
    result = await server.run(line)
    assert isinstance(result.exception, NotFound)
    error = json.loads(result.stdout)
    assert list(error) == ["error"]
    assert message in error["error"]
    assert (await server.run(line.replace("--format json", "").replace("--json", ""))).stdout == (
        "" if "call" not in line else result.stdout
    )


async def test_long_memory_is_wrapped_as_text_and_unwrapped_as_json(server: Server) -> None:
    text = " ".join(f"word{number}" for number in range(60))
    await server.memory.create_long_term_memory([fact("long", text, user_id="lea")])
    lines = (await server.run("search '' -u lea")).stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert " ".join(" ".join(lines).split()).count(text) == 1
    assert json.loads((await server.run("search '' -u lea --json")).stdout)["memories"][0]["text"] == text


async def test_delete_session_deletes_only_in_its_user_scope(server: Server) -> None:
    assert isinstance((await server.run("delete session 's 1' -u ben -f")).exception, NotFound)
    assert (await server.run("delete session 's 1' -u ada -f")).exit_code == 0
    again = await server.run("delete session 's 1' -f")
    assert isinstance(again.exception, NotFound)
    assert "not found" in again.exception.message


async def test_schedule_task_runs_archived_task_names(server: Server) -> None:
    done = await server.run("schedule-task agent_memory_server.long_term_memory.compact_long_term_memories -a user_id=ada --json")
    assert "memories remaining" in json.loads(done.stdout)["status"]
    policy = shlex.quote('policy={"max_age_days": 3650}')
    done = await server.run(f"schedule-task forget_long_term_memories -a {policy} -a dry_run=true --json")
    assert json.loads(done.stdout)["deleted"] == 0
    assert (await server.run("schedule-task some.module:index_long_term_memories")).exit_code == 2
    assert (await server.run("schedule-task compact_long_term_memories -a colour=red")).exit_code == 2


def test_search_opens_configured_redis_without_a_server(server: Server, redis_url: str, tmp_path: Path) -> None:
    given = {"REDIS_URL": redis_url, "KEY_PREFIX": PREFIX, "AUTH_MODE": "token", "LOCAL_MODEL": "all-MiniLM-L6-v2", **LOCAL}
    found = agent_memory("search", "who keeps bees", "--format", "json", cwd=tmp_path, **given)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["memories"][0]["id"] == "m1"
    assert found.stderr.splitlines() == [f"agent-memory: store {shown_url(redis_url)}, keys {PREFIX}:"]


def test_command_opens_the_store_of_an_oauth_server(server: Server, redis_url: str, tmp_path: Path) -> None:
    oauth = {"AUTH_MODE": "token", "OAUTH_SERVER": "true", "PUBLIC_URL": "https://memory.example.com"}
    given = {"REDIS_URL": redis_url, "KEY_PREFIX": PREFIX, "LOCAL_MODEL": "all-MiniLM-L6-v2", **LOCAL, **oauth}
    found = agent_memory("search", "who keeps bees", "--format", "json", cwd=tmp_path, **given)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["memories"][0]["id"] == "m1"


def test_search_reports_that_no_server_answers() -> None:
    nobody = CliRunner().invoke(app, ["search", "x", "--url", "http://127.0.0.1:1"])
    assert isinstance(nobody.exception, StartupError)
    assert "no server answers at http://127.0.0.1:1" in nobody.exception.message
    assert nobody.stdout == ""
    assert json.loads(CliRunner().invoke(app, ["health", "--url", "http://127.0.0.1:1", "--json"]).stdout)["error"]


async def test_rebuild_index_rebuilds_every_index(redis_url: str, tmp_path: Path) -> None:
    from redis.asyncio import Redis

    from tests.support.rig import SCOPE, record

    prefix = f"{PREFIX}-rebuild"
    given = {"REDIS_URL": redis_url, "KEY_PREFIX": prefix, **LOCAL}
    async with open_runtime(load_settings(**given), redis_url) as runtime:
        await runtime[MemoryStore].write(SCOPE, [record("one"), record("two")])
    client = Redis.from_url(redis_url)
    for name in await client.execute_command("FT._LIST"):
        if name.startswith(f"{prefix}:{{0}}:ix:m:".encode()):
            await client.execute_command("FT.DROPINDEX", name)
    done = await asyncio.to_thread(agent_memory, "rebuild-index", "--embed", "--format", "json", cwd=tmp_path, **given)
    counts = {
        "memories": 2,
        "vectors": 0,
        "passages": 0,
        "sessions": 0,
        "history": 0,
        "changes": 0,
        "procedures": 0,
        "items": 0,
        "to_embed": 2,
    }
    assert json.loads(done.stdout) == counts
    await client.aclose()


async def test_successful_rebuild_logs_no_error(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    watches: list[StoreWatch] = []
    opening, drop = StoreWatch.open, reindex.drop_index

    async def open_watch(watch: StoreWatch) -> None:
        watches.append(watch)
        await opening(watch)

    async def drop_and_look(client: Any, name: str) -> None:
        await drop(client, name)
        for watch in watches:
            await watch.look(fresh=True)

    monkeypatch.setattr(StoreWatch, "open", open_watch)
    monkeypatch.setattr(reindex, "drop_index", drop_and_look)
    environment = {"REDIS_URL": redis_url, "KEY_PREFIX": f"{PREFIX}-watched", **light_model(), **LOCAL}
    async with open_runtime(load_settings(**environment), redis_url):
        watches.clear()
    done = await asyncio.to_thread(CliRunner(env=environment).invoke, app, ["rebuild", "--json"])
    assert json.loads(done.stdout)["memories"] == 0
    assert watches
    assert "not ready" not in done.stderr


async def test_agent_export_can_be_imported_under_another_agent_id(server: Server, tmp_path: Path) -> None:
    await server.memory.create_long_term_memory([fact("cap1", "The captain steers by stars.", user_id="eli", agent_id="captain")])
    file = tmp_path / "captain.jsonl"
    written = await server.run(f"export captain {file} --agent --format json")
    assert json.loads(written.stdout)["counts"]["memory"] == 1
    back = await server.run(f"import {file} --format json")
    assert (json.loads(back.stdout)["present"], back.exit_code) == ({"memory": 1}, 0)
    copied = await server.run(f"import {file} --agent-id mate --format json")
    assert json.loads(copied.stdout)["imported"] == {"memory": 1}


async def test_user_export_can_be_imported_after_the_user_was_deleted(server: Server, tmp_path: Path) -> None:
    await server.memory.create_long_term_memory([fact("e1", "Eli builds boats.", user_id="eli"), fact("e2", "Eli snores.", user_id="eli")])
    session = WorkingMemory(session_id="se", user_id="eli", messages=[MemoryMessage(role="user", content="ahoy", id="e-m")])
    await server.memory.put_working_memory("se", session)
    file = tmp_path / "eli.jsonl"
    written = await server.run(f"export eli {file} --format json")
    assert (written.exit_code, written.stderr) == (0, f"agent-memory: server {server.url}\n")
    assert json.loads(written.stdout)["counts"]["session"] == 1
    assert file.stat().st_mode & 0o077 == 0
    assert re.search(r": \d memories, 1 session$", unwrapped((await server.run(f"export eli {file} --force")).stdout))
    assert (await server.run(f"export eli {file}")).exit_code == 1, "nothing is written over"
    printed = await server.run("export eli --json")
    assert all(map(json.loads, printed.stdout.splitlines())), "one JSON object per line"
    assert printed.stdout.count("Eli builds boats.") >= 1

    def blocking() -> list[bytes]:
        with SyncMemoryAPIClient(MemoryClientConfig(base_url=server.url)) as client:
            lines = list(client.export_user("eli"))
            assert client.import_user("eli", lines).imported == {}
            return lines

    assert len(await asyncio.to_thread(blocking)) >= len(file.read_bytes().splitlines())
    gone = await server.memory.delete_user("eli", wait=20)
    assert gone.status == "ok"
    back = await server.run(f"import {file} --format json")
    assert (back.exit_code, back.stderr) == (0, f"agent-memory: server {server.url}\n")
    assert json.loads(back.stdout)["imported"]["session"] == 1
    assert (await server.memory.get_long_term_memory("e2")).text == "Eli snores."
    again = await server.run(f"import {file}")
    assert (again.exit_code, "imported: nothing" in again.stdout) == (0, True)
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([lines[0], b"{", *lines[1:-1]]))
    partly = await server.run(f"import {file}")
    assert partly.exit_code == 4
    assert "line 2" in partly.stderr
    assert "incomplete" in partly.stderr
    file.write_bytes(b"hello")
    assert (await server.run(f"import {file}")).exit_code == 1


async def test_import_shows_a_progress_bar_only_on_a_terminal(server: Server, tmp_path: Path) -> None:
    (tmp_path / "bees.csv").write_text("text,user_id\n" + "".join(f"Hive {number} is full.,gus\n" for number in range(3)))
    words = ["import", "--from", "table", "bees.csv", "--url", server.url]
    plain = await asyncio.to_thread(agent_memory, *words, cwd=tmp_path)
    assert (plain.returncode, plain.stderr) == (0, f"agent-memory: server {server.url}\n")
    assert plain.stdout.startswith("read: 3 memories, of 1 owner\nimported: 3 memories\n")
    terminal, slave = pty.openpty()
    with os.fdopen(terminal, "rb") as screen, (tmp_path / "out").open("w+") as output:
        process = WarmProcess(words, cwd=tmp_path, environment=clean_environment(TERM="xterm"), stdout=output.fileno(), stderr=slave)
        try:
            assert await asyncio.to_thread(process.wait, 60) == 0
        finally:
            process.kill()
            os.close(slave)
        shown = os.read(screen.fileno(), 65536).decode()
    assert "importing" in shown
    assert "\x1b[2K" in shown, "the bar is removed at the end"
    assert (tmp_path / "out").read_text().startswith("read: 3 memories, of 1 owner\nimported: nothing\nalready here: 3 memories\n")


async def test_text_of_a_memory_does_not_control_the_terminal(server: Server) -> None:
    await server.memory.create_long_term_memory([fact("esc", "Hal likes \x1b]0;owned\x07 tea\x9b2J.", user_id="hal")])
    shown = await server.run("search '' -u hal"), await server.run("show esc")
    for result in shown:
        assert "Hal likes ]0;owned" in result.stdout
        assert not set("\x1b\x07\x9b") & set(result.stdout)


async def test_previews_cut_long_texts_between_words(server: Server) -> None:
    await server.memory.create_long_term_memory([fact("tale", "A lighthouse " + "stood long ago " * 20, user_id="ivy")])
    for line in ("delete memory tale --dry-run", "forget --id tale --user ivy --dry-run"):
        shown = unwrapped((await server.run(line)).stdout)
        assert re.search(r"\b(stood|long|ago) …", shown), shown


async def test_call_sends_raw_requests_and_erase_deletes_a_user(server: Server) -> None:
    await server.memory.create_long_term_memory([fact("t1", "The page said ten.", user_id="zed")])
    found = await server.run("call post /v1/long-term-memory/search --data not-json")
    assert (found.exit_code, found.stdout) == (2, "")
    assert json.loads((await server.run("call get /v1/long-term-memory/t1")).stdout)["text"] == "The page said ten."
    assert (await server.run("erase zed")).exit_code == 2, "nobody can be asked"
    erased = await server.run("erase zed --force")
    assert (erased.exit_code, erased.stdout) == (0, "queued; follow it with `agent-memory top`\n")
    assert (await server.run("show t1")).exit_code != 0
