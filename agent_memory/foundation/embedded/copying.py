"""Copy an embedded Redis, even while a server is using it."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.embedded.server import has_data

_LOG_FOLDER = "appendonlydir"
_MANIFEST = "appendonly.aof.manifest"
_ATTEMPTS = 100
_NOT_DATA = ("*.lock", "*.log", "*.sock", "*.pid", "*.new", "temp-*", ".writable")
_CHUNK_BYTES = 8 * 1024 * 1024

OnCopied = Callable[[int, int], object]
"""Takes the number of bytes copied and the approximate total."""


def copy_data_dir(data_dir: Path, target: Path, on_copied: OnCopied) -> None:
    """Copy a data directory to a new directory. Raises StartupError.

    The new directory appears only once it is complete. It may lack changes that a running Redis
    makes in the meantime.
    """
    folder, target = data_dir.expanduser().absolute(), target.absolute()
    if not has_data(folder):
        raise StartupError(f"there is no store in {folder}: name it with DATA_DIR or --data-dir")
    partial: Path | None = None
    try:
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        partial = target.with_name(f"{target.name}.part-{secrets.token_hex(4)}")
        partial.mkdir(mode=0o700, parents=True)
        (partial / _LOG_FOLDER).mkdir(mode=0o700)
        with ExitStack() as stack:
            log_files = _open_log(folder / _LOG_FOLDER, stack)
            skipped = shutil.ignore_patterns(*_NOT_DATA, partial.name)
            shutil.copytree(
                folder,
                partial,
                ignore=lambda path, names: {*skipped(path, names), *([_LOG_FOLDER] if Path(path) == folder else [])},
                dirs_exist_ok=True,
            )
            _copy_log(log_files, partial / _LOG_FOLDER, on_copied)
        partial.rename(target)
    except OSError as error:  # includes shutil.Error
        raise StartupError(f"cannot copy {folder} to {target}: {error.strerror or error}") from error
    finally:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)


def _open_log(folder: Path, stack: ExitStack) -> list[BinaryIO]:
    """Open all files of the append-only log. Raises StartupError.

    Redis may rewrite the log and delete its files at any time, but open files stay readable.
    """
    for _ in range(_ATTEMPTS):
        with ExitStack() as opened:
            try:
                before = (folder / _MANIFEST).read_bytes()
                paths = [path for path in folder.iterdir() if not path.name.startswith("temp-")]
                files: list[BinaryIO] = [opened.enter_context(path.open("rb")) for path in paths]
                after = (folder / _MANIFEST).read_bytes()
            except FileNotFoundError:
                continue
            if before == after:
                stack.enter_context(opened.pop_all())
                return files
    raise StartupError(f"cannot copy {folder}: its files keep changing, or {_MANIFEST} is missing")


def _copy_log(files: Sequence[BinaryIO], target: Path, on_copied: OnCopied) -> None:
    copied, total = 0, sum(os.fstat(file.fileno()).st_size for file in files)
    for file in files:
        with open(target / Path(file.name).name, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as writing:
            while chunk := file.read(_CHUNK_BYTES):
                writing.write(chunk)
                copied += len(chunk)
                on_copied(copied, max(copied, total))
