"""Test `--help`, `doctor`, and startup errors."""

from __future__ import annotations

import importlib.metadata
import json
import re
import runpy
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import typer.main
from redis import Redis
from typer.testing import CliRunner

from agent_memory import __version__
from agent_memory.foundation.core.settings import variables
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.store_marker import StoreFile
from agent_memory.interfaces.cli.app import app
from tests.support.cli import COMMAND, ROOT, agent_memory, clean_environment, unwrapped
from tests.support.lookalike import Lookalike
from tests.support.waiting import wait_until
from tests.support.warm import WarmProcess

HEAVY = (
    "agent_memory.runtime",
    "agent_memory.interfaces.http",
    "agent_memory_worker",
    "uvicorn",
    "redisvl",
    "redis",
    "docket",
    "numpy",
    "pydantic",
)


def refused(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    """Assert exit code 1, no stdout, and one stderr message that contains all parts."""
    assert result.returncode == 1, result.stderr
    assert result.stdout == ""
    first, *more = result.stderr.splitlines()
    assert first.startswith("agent-memory: ")
    assert all(line.startswith("    ") for line in more), result.stderr
    for part in parts:
        assert part in unwrapped(result.stderr)


def test_help_names_every_command() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in ("serve", "api", "worker", "redis", "doctor", "health", "version"):
        assert re.search(rf"^\s+{command}\s", result.stdout, re.MULTILINE)


def test_help_groups_commands_and_shows_full_summary_lines() -> None:
    shown = CliRunner().invoke(app, ["--help"]).stdout
    titles = ("Run:", "Look:", "Change:", "Operate:", "Everything else:", "Names of the archived server:")
    assert [line for line in shown.splitlines() if line in titles] == list(titles)
    serve, search, doctor, former = (shown.index(f"\n  {name} ") for name in ("serve", "search", "migrate", "task-worker"))
    assert serve < search < doctor < former
    assert "..." not in shown.partition(titles[0])[2], "no line is cut"
    root = typer.main.get_command(app)
    for command in root.commands:  # pyright: ignore[reportAttributeAccessIssue]
        assert len(re.findall(rf"^  {command}  ", shown, re.MULTILINE)) == 1, command


def _commands(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Return all commands, including those inside groups."""
    for word, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, f"{name} {word}".strip())
    if name and not getattr(command, "commands", {}):
        yield name, command


def test_help_fits_100_columns() -> None:
    for name, _ in [("", None), *_commands(typer.main.get_command(app))]:
        shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200"}).stdout
        assert [line for line in shown.splitlines() if len(line) > 100] == [], name


def test_help_shows_values_without_nested_brackets_or_python_types() -> None:
    for name, _ in _commands(typer.main.get_command(app)):
        shown = CliRunner().invoke(app, [*name.split(), "--help"]).stdout
        assert re.findall(r"\[\[|<list\[|<\w+ range>|Usage: .*\[[a-z]+\]", shown) == [], name


def test_every_command_with_output_has_a_json_option() -> None:
    silent = {"serve", "api", "worker", "task-worker", "mcp"}
    offered = {name for name, command in _commands(typer.main.get_command(app)) if any("--json" in each.opts for each in command.params)}
    assert {name for name, _ in _commands(typer.main.get_command(app))} - offered == silent


def test_user_and_server_options_have_the_same_name_in_every_command() -> None:
    named: Counter[str] = Counter()
    for name, command in _commands(typer.main.get_command(app)):
        options = {option: parameter for parameter in command.params for option in parameter.opts}
        if {"--user", "--user-id"} & set(options):
            named["user"] += 1
            assert options.get("--user") is options.get("--user-id") is not None, name
        if "--api-key" in options:
            named["url"] += 1
            assert "--url" in options, name
    assert min(named["user"], named["url"]) >= 8


def test_help_does_not_load_the_server() -> None:
    code = f"import sys, agent_memory.interfaces.cli.app\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, env=clean_environment())
    assert done.stdout.strip() == "[]"


def app_with(monkeypatch: pytest.MonkeyPatch, command: str) -> Any:
    """Return the CLI app as if an installed package added this command."""
    monkeypatch.syspath_prepend(ROOT / "examples" / "extension")
    points = [EntryPoint(command, "nickname_command:nickname", "agent_memory.commands")]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points if group == points[0].group else [])
    return runpy.run_path(str(ROOT / "agent_memory" / "interfaces" / "cli" / "app.py"))["app"]


def test_help_shows_the_command_of_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = CliRunner().invoke(app_with(monkeypatch, "nickname"), ["--help"]).stdout
    assert re.search(r"^  nickname  +Print a user's nickname\.$", shown.partition("Everything else:")[2], re.MULTILINE)


def test_package_cannot_replace_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="two commands are named erase"):
        app_with(monkeypatch, "erase")


def test_environment_variables_in_help_exist_in_settings() -> None:
    root = typer.main.get_command(app)
    named: set[str] = set()
    for command in root.commands.values():  # pyright: ignore[reportAttributeAccessIssue]
        for option in command.params:
            found = re.search(r"\[env: (\w+)\]", getattr(option, "help", "") or "")
            if found:
                named.add(found[1])
    assert {"HOST", "PORT", "DATA_DIR", "REDIS_URL", "LOG_LEVEL", "EMBEDDED_REDIS_PORT"} <= named
    assert named <= set(variables())


def test_version_command_prints_the_version(tmp_path: Path) -> None:
    result = agent_memory("version", cwd=tmp_path, cold=True)
    assert (result.returncode, result.stdout.strip()) == (0, __version__)


def test_an_unknown_option_is_refused(tmp_path: Path) -> None:
    result = agent_memory("serve", "--nope", cwd=tmp_path, cold=True)
    assert result.returncode != 0
    assert "--nope" in result.stderr


@pytest.mark.parametrize("command", ["serve", "api"])
def test_taken_port_is_reported_before_anything_starts(command: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        url = {"REDIS_URL": "redis://127.0.0.1:1/0"} if command == "api" else {}
        result = agent_memory(command, "--port", port, cwd=tmp_path, **url)
    refused(result, f"port {port} on 127.0.0.1 is taken", "--port or PORT")
    assert list(tmp_path.iterdir()) == []


def test_port_is_read_from_the_environment(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused(agent_memory("serve", cwd=tmp_path, cold=True, PORT=port), f"port {port} on 127.0.0.1 is taken")


@pytest.mark.parametrize(
    ("arguments", "environment", "part"),
    [
        (["serve", "--port", "eighty"], {}, "setting PORT"),
        (["serve"], {"PORT": "70000"}, "setting PORT"),
        (["serve", "--log-level", "LOUD"], {}, "setting LOG_LEVEL"),
        (["serve", "--redis-url", "localhost:6379"], {}, "setting REDIS_URL"),
        (["serve"], {"REDIS_URL": "http://user:secret@host"}, "setting REDIS_URL"),
        (["serve", "--host", "no such host"], {}, "'no such host' is not an address"),
        (["serve", "--host", "203.0.113.7", "--port", "0"], {}, "203.0.113.7 is not an address of this machine"),
        (["worker"], {"WORKER_CONCURRENCY": "0"}, "setting WORKER_CONCURRENCY"),
        (["api"], {}, "needs REDIS_URL"),
        (["worker"], {}, "`agent-memory serve` runs everything"),
        (["redis", "--data-dir", "/dev/null/x"], {}, "the data directory /dev/null/x cannot be used"),
    ],
)
def test_startup_error_is_one_line_without_secrets(arguments: list[str], environment: dict[str, str], part: str, tmp_path: Path) -> None:
    result = agent_memory(*arguments, cwd=tmp_path, **environment)
    refused(result, part)
    assert "secret" not in result.stderr


def test_unreachable_redis_is_reported_in_one_line_without_password(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{nobody.getsockname()[1]}"
        result = agent_memory("api", "--port", "0", "--redis-url", f"redis://:secret@{place}/0", cwd=tmp_path)
    refused(result, "cannot reach Redis", place)
    assert "secret" not in result.stderr


def test_redis_command_prints_its_url_and_shuts_down_cleanly(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "redis", "--data-dir", "data"],
        cwd=tmp_path,
        env=clean_environment(USE_DOCKET="true", LOG_FORMAT="json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        about, url = process.stdout.readline(), process.stdout.readline()
        assert about.startswith("Redis: embedded (")
        assert re.fullmatch(r"REDIS_URL=redis://:\S{32,}@127\.0\.0\.1:\d+/0\n", url)
        second = agent_memory("redis", "--data-dir", "data", "--json", cwd=tmp_path)
        assert (second.returncode, list(json.loads(second.stdout))) == (1, ["error"])
        assert f"is in use by another agent-memory (process {process.pid}" in unwrapped(second.stderr)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        _, said = process.communicate()
    named = [line for line in map(json.loads, said.splitlines()) if line.get("setting") == "USE_DOCKET"]
    assert len(named) == 1, "what is set in vain is said once"
    assert named[0]["level"] == "warning"
    assert "not read any more" in named[0]["hint"]
    assert "Redis is now ready to exit" in (tmp_path / "data" / "redis.log").read_text()


def test_doctor_reports_that_serve_would_start_and_hides_secrets(tmp_path: Path) -> None:
    result = agent_memory("doctor", "--port", "0", cwd=tmp_path, OPENAI_API_KEY="sk-sesame-sesame", EMBEDDING_PROVIDER="local")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "serve would start" in result.stdout
    assert "sesame" not in result.stdout + result.stderr
    assert re.search(r"OPENAI_API_KEY\s+\(hidden\)\s+\(set\)", result.stdout)
    assert result.stdout.startswith("Findings")
    assert "LOG_LEVEL" not in result.stdout, "a default is no news"
    assert "does not start" not in result.stdout, "an engine that nobody needs is no finding"
    everything = agent_memory("doctor", "--all", "--port", "0", cwd=tmp_path, MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    assert re.search(r"LOG_LEVEL\s+INFO\n", everything.stdout)
    assert [line for line in everything.stdout.splitlines() if len(line) > 100] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tells", "set_to", "shown"),
    [
        ("vllm", None, r"any-name at http://.*/v1 takes 3500 tokens \(reported by the server\)"),
        ("vllm", 2500, r"any-name at http://.*/v1 takes 2500 tokens \(set by MODEL_CONTEXT_WINDOWS\)"),
        (None, None, r"any-name at http://.*/v1 takes 16000 tokens \(assumed: the server does not report it"),
        (None, 1200, "takes 1200 tokens .*; that is too little for extracting facts"),
    ],
)
def test_doctor_shows_context_window_and_its_source(tmp_path: Path, tells: str | None, set_to: int | None, shown: str) -> None:
    server = Lookalike().start()
    server.context.tokens, server.context.tells = 3500, tells
    try:
        more = {} if set_to is None else {"MODEL_CONTEXT_WINDOWS": json.dumps({"any-name": set_to})}
        given = {"OPENAI_BASE_URL": server.url, "GENERATION_MODEL": "any-name", "EMBEDDING_PROVIDER": "local", **more}
        result = agent_memory("doctor", "--port", "0", cwd=tmp_path, **given)
    finally:
        server.stop()
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(shown, unwrapped(result.stdout)), result.stdout


def test_doctor_shows_context_limit_learned_by_workers(tmp_path: Path, redis_url: str) -> None:
    key = Keys("doctor-context").context_limit("http://127.0.0.1:9/v1", "any-name")
    with Redis.from_url(redis_url) as client:
        client.set(key, "4096", px=60_000)
        given = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "GENERATION_MODEL": "any-name", "EMBEDDING_PROVIDER": "local"}
        result = agent_memory("doctor", "--port", "0", "--redis-url", redis_url, cwd=tmp_path, KEY_PREFIX="doctor-context", **given)
        client.delete(key)
    assert "any-name at http://127.0.0.1:9/v1 takes 4096 tokens (learned from a refusal)" in result.stdout, result.stdout


def test_doctor_names_the_model_that_the_store_uses_instead_of_the_configured_one(tmp_path: Path, redis_url: str) -> None:
    config = Keys("doctor-model").config
    choice = {"choice": ["local", "multilingual-e5-small", None], "replaces": [["local", "all-MiniLM-L6-v2", None]]}
    with Redis.from_url(redis_url) as client:
        client.hset(config, "choice", json.dumps(choice))
        given = {"KEY_PREFIX": "doctor-model", "LOCAL_MODEL": "all-MiniLM-L6-v2", "MODEL_PROVIDER": "local"}
        result = agent_memory("doctor", "--json", "--port", "0", "--redis-url", redis_url, cwd=tmp_path, **given)
        for key in client.scan_iter(match="doctor-model:*"):
            client.delete(key)
    found = {finding["check"]: finding["message"] for finding in json.loads(result.stdout)["findings"]}
    assert found["models"].startswith("multilingual-e5-small in "), result.stdout
    assert "to change the model, run `agent-memory reembed all-MiniLM-L6-v2`" in found["models"]


def test_doctor_reports_a_lost_bucket(tmp_path: Path, redis_url: str) -> None:
    home, lost = (Keys("doctor-lost", number).config for number in range(2))
    with Redis.from_url(redis_url) as client:
        client.hset(home, mapping={"store": "aaaa", "made": 1, "buckets": 2})
        client.hset(lost, "lost", "bbbb")
        given = {"KEY_PREFIX": "doctor-lost", "REDIS_BUCKETS": "2", "MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local"}
        result = agent_memory("doctor", "--port", "0", "--redis-url", redis_url, cwd=tmp_path, **given)
        for key in client.scan_iter(match="doctor-lost:*"):
            client.delete(key)
    assert (result.returncode, "it contained the store bbbb" in unwrapped(result.stdout)) == (1, True), result.stdout


def test_doctor_reports_a_wrong_number_of_buckets_of_a_data_directory(tmp_path: Path) -> None:
    (tmp_path / "data" / "appendonlydir").mkdir(parents=True)
    (tmp_path / "data" / "appendonlydir" / "appendonly.aof.manifest").touch()
    for number in range(4):
        StoreFile(tmp_path / "data").note(Keys(bucket=number), f"store{number}")
    result = agent_memory("doctor", "--port", "0", "--data-dir", "data", cwd=tmp_path, MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    assert (result.returncode, "has 4 buckets, not 1" in unwrapped(result.stdout)) == (1, True), result.stdout


def test_doctor_lists_problems_that_would_stop_serve(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        shape = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 16, "vocab_size": 9}
        (tmp_path / "config.json").write_text(json.dumps({**shape, "max_position_embeddings": 128}))
        given = {"SLOW_MODEL": "gpt-5", "EMBEDDING_PROVIDER": "local", "LOCAL_MODEL": str(tmp_path)}
        result = agent_memory("doctor", "--port", port, "--redis-url", "redis://127.0.0.1:1/0", cwd=tmp_path, **given)
    assert result.returncode == 1
    assert "SLOW_MODEL is not read any more: GENERATION_MODEL does its work" in result.stdout
    assert f"would stop serve: port {port} on 127.0.0.1 is taken" in result.stdout
    assert "would stop serve: cannot reach Redis" in result.stdout
    assert f"python scripts/build_graph.py {tmp_path}" in unwrapped(result.stdout)


def test_group_help_names_only_commands_that_exist() -> None:
    root: Any = typer.main.get_command(app)
    named = root.commands["token"].help.removesuffix(".").partition(": ")[2].split(", ")
    assert sorted(named) == sorted(root.commands["token"].commands)


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("erase --user ada", ["No such option: --user. Write the user without --user"]),
        ("export --user ada", ["No such option: --user. Write the user without --user"]),
        ("top --user ada", ["Error: No such option: --user"]),
        ("search x --limit 0", ["Invalid value for '--limit' / '-l': must be at least 1"]),
        ("search x --limt 3", ["No such option: --limt (Possible options: --limit)"]),
        ("token make", ["No such command 'make'"]),
        ("reembed confrim --dry-run --url http://127.0.0.1:1", ["there is no action confrim: write confirm"]),
        ("schedule-task nonsense --url http://127.0.0.1:1", ["there is no task nonsense; use one of: compact_long_term_memories,"]),
    ],
)
def test_wrong_command_line_is_explained_within_100_columns(command: str, parts: list[str], tmp_path: Path) -> None:
    result = agent_memory(*command.split(), cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, ""), result.stderr
    shown = unwrapped(result.stderr)
    assert [part for part in parts if part not in shown] == []
    assert "--url)" not in shown, "no option with a different meaning is suggested"


def test_data_of_small_commands_is_printed_as_json(tmp_path: Path) -> None:
    assert json.loads(CliRunner().invoke(app, ["version", "--json"]).stdout) == {"version": __version__}
    assert "agent-memory" in json.loads(CliRunner().invoke(app, ["migrate-prompt", "--json"]).stdout)["prompt"]
    findings = json.loads(agent_memory("doctor", "--json", "--port", "0", cwd=tmp_path).stdout)["findings"]
    assert {tuple(finding) for finding in findings} == {("check", "ok", "message")}


async def test_redis_command_prints_its_url_as_json(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w+") as output:
        process = WarmProcess(
            ["redis", "--json"], cwd=tmp_path, environment=clean_environment(), stdout=output.fileno(), stderr=output.fileno()
        )
        try:

            async def is_printed() -> bool:
                return (tmp_path / "out").read_text().endswith("}\n")

            await wait_until(is_printed, "the URL")
            assert json.loads((tmp_path / "out").read_text())["url"].startswith("redis://:")
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()


def test_interrupted_command_exits_with_code_130_without_traceback(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, (tmp_path / "err").open("w+") as errors:
        words = ["search", "x", "--url", f"http://127.0.0.1:{silent.getsockname()[1]}"]
        process = WarmProcess(words, cwd=tmp_path, environment=clean_environment(), stdout=errors.fileno(), stderr=errors.fileno())
        try:
            silent.settimeout(60)
            with silent.accept()[0] as connection:
                connection.recv(1)
                process.send_signal(signal.SIGINT)
                assert process.wait(30) == 130
        finally:
            process.kill()
    assert (tmp_path / "err").read_text() == ""


def test_health_fails_when_no_server_answers(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        refused(agent_memory("health", cwd=tmp_path, PORT=str(port)), f"no server answers at http://127.0.0.1:{port}")
