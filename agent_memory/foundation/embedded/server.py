"""Run a redis-server with the query engine on a data directory.

The server listens only on 127.0.0.1, requires a password from the data directory, and writes an
append-only file. It restarts if it crashes, and stops when this process ends.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import secrets
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from redis.exceptions import AuthenticationError, BusyLoadingError, RedisError, ResponseError

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.embedded.engine import (
    SEARCH_OPTIONS,
    Engine,
    connect,
    find_engine,
    forget_engine,
    last_words,
    quote,
    spawn,
    stop,
)
from agent_memory.foundation.embedded.upkeep import EngineUpkeep

log = get_logger(__name__)

_LOG_LIMIT_BYTES = 10 * 1024 * 1024
_FIRST_ANSWER_SECONDS = 15.0
_ORPHAN_SECONDS = 20.0
_POLL_SECONDS = 0.1
# Ports below the kernel's range for outgoing connections. In that range, a client that reconnects to a restarting Redis
# could connect to itself and occupy the port.
_PORTS = range(20000, 30000)
# Stores records and vectors in one block (listpack), which takes a fifth less memory.
RECORD_OPTIONS = (b"hash-max-listpack-value 4096",)


@dataclass(slots=True)
class EmbeddedRedis:
    """A running embedded Redis. Only `url` contains the password. `pid` changes on restart."""

    url: str = field(repr=False)
    port: int
    engine: str
    data_dir: Path
    pid: int
    restarts: int = 0

    @property
    def description(self) -> str:
        """A readable summary of the engine, address, and data directory."""
        return f"embedded ({self.engine}) on 127.0.0.1:{self.port}, data in {self.data_dir}"


@asynccontextmanager
async def embedded_redis(data_dir: Path, *, port: int = 0, stop_seconds: float = 10.0) -> AsyncGenerator[EmbeddedRedis, None]:
    """Start Redis on `data_dir`, and yield the server once its data is loaded.

    Creates `data_dir` if it does not exist. If `port` is 0, uses any free port. Call this from the
    main thread, because the server stops when the calling thread ends. Raises StartupError.
    """
    folder = _make_data_dir(data_dir)
    with _Locks(folder) as locks:
        password = await _settle_predecessor(folder, locks)
        server = await _start_first(folder, locks, password, port)
        running = EmbeddedRedis(
            url=f"redis://:{password}@127.0.0.1:{server.port}/0",
            port=server.port,
            engine=server.engine.name,
            data_dir=folder,
            pid=server.process.pid,
        )
        watch = asyncio.create_task(_supervise(server, running), name="embedded-redis")
        try:
            yield running
        finally:
            # A cancellation during a connect is lost, because it becomes a connection error. Cancel again.
            while not watch.done():
                watch.cancel()
                await asyncio.wait([watch], timeout=_POLL_SECONDS)
            await stop(server.process, seconds=stop_seconds)


def running_redis(data_dir: Path) -> str | None:
    """Return the URL of the Redis that another process runs on `data_dir`, or None."""
    folder = data_dir.expanduser().absolute()
    try:
        handle = os.open(folder / "owner.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        password, port = _read_conf(folder / "redis.conf")
        return f"redis://:{password}@127.0.0.1:{port}/0" if password and port else None
    finally:
        os.close(handle)
    return None


# -------------------------------------------------------------------------------------------------- directory and locks


def has_data(data_dir: Path) -> bool:
    """True if the directory contains an embedded Redis store or a copy of one."""
    return (data_dir / "appendonlydir").is_dir()


def check_data_dir(folder: Path) -> None:
    """Raise StartupError if a data directory is not writable or cannot be created."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise StartupError(f"the data directory {folder} cannot be written")


def _make_data_dir(data_dir: Path) -> Path:
    folder = data_dir.expanduser().absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch(mode=0o600)
        probe.unlink()
    except OSError as error:
        raise StartupError(f"the data directory {folder} cannot be used: {error.strerror or error}") from error
    return folder


class _Locks:
    """Two file locks: `owner.lock` for this process, and `redis.lock` for the redis-server.

    If only `redis.lock` is taken, a redis-server from an earlier run is still running.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._owner = -1
        self.redis = -1

    def __enter__(self) -> _Locks:
        self._owner = self._open("owner.lock")
        if not self._take(self._owner):
            pid = os.pread(self._owner, 32, 0).decode("ascii", "replace").strip() or "unknown"
            self.__exit__()
            raise StartupError(f"the data directory {self._folder} is in use by another agent-memory (process {pid})")
        os.ftruncate(self._owner, 0)
        os.pwrite(self._owner, str(os.getpid()).encode(), 0)
        self.redis = self._open("redis.lock")
        return self

    def __exit__(self, *_: object) -> None:
        for handle in (self.redis, self._owner):
            if handle >= 0:
                os.close(handle)
        self.redis = self._owner = -1

    def take_redis(self) -> bool:
        """Try to lock `redis.lock`. Return False if an earlier redis-server holds it."""
        return self._take(self.redis)

    def _open(self, name: str) -> int:
        return os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @staticmethod
    def _take(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


async def _settle_predecessor(folder: Path, locks: _Locks) -> str:
    """Stop any redis-server from an earlier run, and return the password to use.

    Raises StartupError if the old server does not exit within 20 s.
    """
    password, port = _read_conf(folder / "redis.conf")
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _ORPHAN_SECONDS
    shutdown_requested = False
    while not locks.take_redis():
        if not shutdown_requested and password and port:
            log.warning("redis-server of an earlier run still uses the folder; waiting until it exits", folder=folder)
            shutdown_requested = await _ask_to_end(port, password)
        if loop.time() > deadline:
            raise StartupError(f"the redis-server of an earlier run still uses the data directory {folder}: stop it and start again")
        await asyncio.sleep(0.05)
    return password or secrets.token_urlsafe(32)


async def _ask_to_end(port: int, password: str) -> bool:
    client = connect(port=port, password=password)
    try:
        await client.shutdown()
    except (RedisError, OSError):
        return False
    finally:
        await client.aclose()
    return True


# -------------------------------------------------------------------------------------------------------- configuration


def _read_conf(conf: Path) -> tuple[str | None, int | None]:
    words: dict[str, str] = {}
    try:
        for line in conf.read_text("utf-8", "replace").splitlines():
            name, _, value = line.partition(" ")
            words[name] = value.strip('"')
    except OSError:
        return None, None
    port = words.get("port", "")
    return words.get("requirepass") or None, int(port) if port.isdigit() else None


def _write_conf(folder: Path, engine: Engine, password: str, port: int) -> Path:
    """Write a redis.conf that only its owner can read, and return its path."""
    lines = [
        b"# Written at every start; changes are lost.",
        b"bind 127.0.0.1",
        b"protected-mode yes",
        b"port %d" % port,
        b"requirepass " + quote(password),
        b"daemonize no",
        b"dir " + quote(str(folder)),
        b'logfile "redis.log"',
        b"databases 1",
        b'save ""',
        b"appendonly yes",
        b"appendfsync everysec",
        b"maxmemory 0",
        b"maxmemory-policy noeviction",
        *RECORD_OPTIONS,
        b"shutdown-timeout 5",
        # Skip the memory test after a crash, so that Redis restarts quickly.
        b"crash-memcheck-enabled no",
        *engine.config_lines(),
        b"",
    ]
    conf, fresh = folder / "redis.conf", folder / "redis.conf.new"
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(b"\n".join(lines))
    fresh.replace(conf)
    return conf


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    for _ in range(200):
        port = random.choice(_PORTS)
        if _is_free(port):
            return port
    raise StartupError(f"no free port on 127.0.0.1 between {_PORTS.start} and {_PORTS.stop}")


# -------------------------------------------------------------------------------------------------------------- running


@dataclass(slots=True)
class _Server:
    folder: Path
    engine: Engine
    password: str
    port: int
    lock: int
    process: subprocess.Popen[bytes]

    @property
    def logfile(self) -> Path:
        return self.folder / "redis.log"


def _launch(folder: Path, engine: Engine, password: str, port: int, lock: int) -> _Server:
    logfile = folder / "redis.log"
    try:
        if logfile.exists() and logfile.stat().st_size > _LOG_LIMIT_BYTES:
            os.truncate(logfile, 0)
        conf = _write_conf(folder, engine, password, port)
        process = spawn(engine.server, conf, cwd=folder, log=logfile, pass_fds=(lock,))
    except OSError as error:
        raise StartupError(f"the embedded Redis cannot be started: {error}") from error
    return _Server(folder, engine, password, port, lock, process)


async def _start_first(folder: Path, locks: _Locks, password: str, port: int) -> _Server:
    """Start Redis, trying up to three times. Raises StartupError."""
    if port and not _is_free(port):
        raise StartupError(f"port {port} on 127.0.0.1 is taken; choose another for the embedded Redis with EMBEDDED_REDIS_PORT")
    attempts = 3
    while True:
        engine = await find_engine(folder)
        server: _Server | None = None
        try:
            server = _launch(folder, engine, password, port or _free_port(), locks.redis)
            await _wait_ready(server)
        except BaseException as error:  # or canceled while Redis loads its data: end its process
            if server is not None:
                await stop(server.process)
            if not isinstance(error, StartupError):
                raise
            forget_engine(folder)
            attempts -= 1
            if not attempts:
                raise
        else:
            return server


async def _wait_ready(server: _Server) -> None:
    loop = asyncio.get_running_loop()
    deadline, next_notice = loop.time() + _FIRST_ANSWER_SECONDS, loop.time() + 5
    client = connect(port=server.port, password=server.password)
    try:
        while True:
            if server.process.poll() is not None:
                raise StartupError(f"redis-server ended while starting: {last_words(server.logfile)} (see {server.logfile})")
            try:
                await client.ping()
                break
            except BusyLoadingError:
                deadline = loop.time() + _FIRST_ANSWER_SECONDS
                if loop.time() > next_notice:
                    next_notice = loop.time() + 5
                    log.info("Redis is loading its data", folder=server.folder)
            except AuthenticationError as error:
                raise StartupError(f"port {server.port} on 127.0.0.1 is taken by another Redis") from error
            except (RedisError, OSError):
                if loop.time() > deadline:
                    raise StartupError(f"redis-server does not answer on port {server.port} (see {server.logfile})") from None
            await asyncio.sleep(0.01)
        await client.execute_command("FT._LIST")
        if server.engine.module is None:
            for name, value in SEARCH_OPTIONS:
                await client.execute_command("FT.CONFIG", "SET", name, value)
    except ResponseError as error:
        raise StartupError(f"the query engine of {server.engine.name} refuses: {error}") from error
    finally:
        await client.aclose()


async def _supervise(server: _Server, running: EmbeddedRedis) -> None:
    """Restart Redis on the same port whenever it dies, with increasing delays."""
    pause, upkeep = 0.0, EngineUpkeep()
    while True:
        await asyncio.sleep(_POLL_SECONDS)
        code = server.process.poll()
        if code is None:
            await upkeep.look(server.process.pid, port=server.port, password=server.password)
            continue
        log.error("redis-server exited; restarting it", exit_code=code, log_file=server.logfile)
        await asyncio.sleep(pause)
        try:
            server.process = _launch(server.folder, server.engine, server.password, server.port, server.lock).process
            running.pid = server.process.pid
            await _wait_ready(server)
        except StartupError as error:
            pause = min(10.0, pause * 2 or 0.5)
            log.error("redis-server did not restart; trying again", retry_after=pause, error=error)
            if server.process.poll() is None:
                await stop(server.process)
            continue
        except RedisError as error:  # Redis answered and then died; the next round restarts it
            log.error("redis-server failed during its restart", error=error)
            continue
        pause, upkeep = 0.0, EngineUpkeep()
        running.restarts += 1
        log.warning("redis-server restarted", port=server.port, starts=running.restarts + 1)
