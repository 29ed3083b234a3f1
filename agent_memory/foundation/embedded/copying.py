"""Copy an embedded Redis, even while a server uses it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from redis import Redis

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.embedded.server import has_data, running_redis

_REWRITES = "auto-aof-rewrite-percentage"
_POLL_SECONDS = 0.1
_NOT_DATA = shutil.ignore_patterns("*.lock", "*.log", "*.sock", "*.pid", "temp-*", ".writable")


_CHUNK_BYTES = 8 * 1024 * 1024

OnCopied = Callable[[int, int], object]
"""Takes the number of bytes copied and the approximate total."""


def copy_data_dir(data_dir: Path, target: Path, on_copied: OnCopied) -> None:
    """Copy a data directory to a new directory. Raises StartupError.

    The copy may lack changes that a running Redis appends in the meantime.
    """
    folder = data_dir.expanduser().absolute()
    if not has_data(folder):
        raise StartupError(f"there is no store in {folder}: name it with DATA_DIR or --data-dir")
    url = running_redis(folder)
    if url is None:
        _copy(folder, target, on_copied)
        return
    with Redis.from_url(url, decode_responses=True) as redis:
        before = cast("dict[str, str]", redis.config_get(_REWRITES))[_REWRITES]
        redis.config_set(_REWRITES, 0)
        try:
            while redis.info("persistence")["aof_rewrite_in_progress"]:
                time.sleep(_POLL_SECONDS)
            _copy(folder, target, on_copied)
        finally:
            redis.config_set(_REWRITES, before)


def _copy(folder: Path, target: Path, on_copied: OnCopied) -> None:
    copied, total = 0, sum(file.stat().st_size for file in (folder / "appendonlydir").glob("*"))

    def copy(source: str, destination: str) -> None:
        nonlocal copied
        with open(source, "rb") as reading, open(destination, "wb") as writing:
            while chunk := reading.read(_CHUNK_BYTES):
                writing.write(chunk)
                copied += len(chunk)
                on_copied(copied, max(copied, total))
        shutil.copystat(source, destination)

    try:
        shutil.copytree(folder, target, ignore=_NOT_DATA, copy_function=copy)
    except OSError as error:  # includes shutil.Error
        raise StartupError(f"cannot copy {folder} to {target}: {error.strerror or error}") from error
