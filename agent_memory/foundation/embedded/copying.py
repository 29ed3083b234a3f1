"""Copy an embedded Redis's data, even while a server is using it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import cast

from redis import Redis

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.embedded.server import has_data, running_redis

_REWRITES = "auto-aof-rewrite-percentage"
_POLL_SECONDS = 0.1
_NOT_DATA = shutil.ignore_patterns("*.lock", "*.log", "*.sock", "*.pid", "temp-*", ".writable")


def copy_data_dir(data_dir: Path, target: Path) -> None:
    """Copy a data directory to a new directory. Raises StartupError.

    A running Redis does not rewrite its append-only files during the copy. The copy may lack changes that Redis appends
    in the meantime.
    """
    folder = data_dir.expanduser().absolute()
    if not has_data(folder):
        raise StartupError(f"there is no store in {folder}: name it with DATA_DIR or --data-dir")
    url = running_redis(folder)
    if url is None:
        _copy(folder, target)
        return
    with Redis.from_url(url, decode_responses=True) as redis:
        before = cast("dict[str, str]", redis.config_get(_REWRITES))[_REWRITES]
        redis.config_set(_REWRITES, 0)
        try:
            while redis.info("persistence")["aof_rewrite_in_progress"]:
                time.sleep(_POLL_SECONDS)
            _copy(folder, target)
        finally:
            redis.config_set(_REWRITES, before)


def _copy(folder: Path, target: Path) -> None:
    try:
        shutil.copytree(folder, target, ignore=_NOT_DATA)
    except OSError as error:  # includes shutil.Error
        raise StartupError(f"cannot copy {folder} to {target}: {error.strerror or error}") from error
