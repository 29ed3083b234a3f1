"""Test that backing up an embedded Redis yields a complete copy and does not change Redis."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio as redis

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.embedded.copying import copy_data_dir
from agent_memory.foundation.embedded.server import embedded_redis
from tests.support.waiting import wait_until


async def rewrite_log(client: redis.Redis, folder: Path) -> None:
    """Make Redis rewrite its append-only file and delete the old one, as an erasure would."""
    former = set(os.listdir(folder)) - {"appendonly.aof.manifest"}

    async def is_replaced() -> bool:
        return former.isdisjoint(os.listdir(folder))

    await client.bgrewriteaof()
    await wait_until(is_replaced, "the rewrite of the append-only file")


async def test_backup_is_complete_if_redis_rewrites_its_log_meanwhile(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "copies" / "copy"
    async with embedded_redis(source) as server, redis.Redis.from_url(server.url) as client:
        loop = asyncio.get_running_loop()
        await client.set("of", "base")
        await rewrite_log(client, source / "appendonlydir")
        await client.set("after", "base")

        def on_copied(copied: int, total: int) -> None:
            asyncio.run_coroutine_threadsafe(rewrite_log(client, source / "appendonlydir"), loop).result()

        await asyncio.to_thread(copy_data_dir, source, target, on_copied)
    async with embedded_redis(target) as copy, redis.Redis.from_url(copy.url) as client:
        assert await client.mget("of", "after") == [b"base", b"base"]
    assert os.listdir(target.parent) == ["copy"]
    log = target / "appendonlydir"
    paths = [target, log, *(log / name for name in os.listdir(log))]
    assert {stat.S_IMODE(os.stat(path).st_mode) & 0o077 for path in paths} == {0}, "only its owner can read a copy"


async def test_backup_changes_no_option_of_redis(tmp_path: Path) -> None:
    async with embedded_redis(tmp_path / "source") as server, redis.Redis.from_url(server.url) as client:
        loop, before = asyncio.get_running_loop(), await client.config_get("*")
        meanwhile: list[Any] = []

        def on_copied(copied: int, total: int) -> None:
            meanwhile.append(asyncio.run_coroutine_threadsafe(client.config_get("*"), loop).result())

        await asyncio.to_thread(copy_data_dir, tmp_path / "source", tmp_path / "copy", on_copied)
        assert meanwhile
        assert all(options == before for options in meanwhile), "a killed backup could not restore them"


async def test_failed_backup_leaves_no_partial_copy(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "copies" / "copy"
    async with embedded_redis(source):
        pass

    def on_copied(copied: int, total: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StartupError, match="No space left on device"):
        copy_data_dir(source, target, on_copied)
    assert os.listdir(target.parent) == []
    copy_data_dir(source, target, lambda copied, total: None)
    with pytest.raises(StartupError, match="File exists"):
        copy_data_dir(source, target, lambda copied, total: None)
    assert (target / "appendonlydir").is_dir()
