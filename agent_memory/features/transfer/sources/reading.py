"""Read untrusted files (JSON, JSON Lines, ZIP, SQLite) with bounded memory."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from codecs import getincrementaldecoder
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import quote

import ijson

from agent_memory.features.transfer.sources.model import Fields, Item, LeftOut, NotUtf8, Unusable, guarded

MAX_RECORD = 128 * 1024 * 1024
"""Maximum record size in bytes. The largest ChatGPT conversations are about 20 MiB."""
_MAX_MEMBERS = 1_000
_MAX_UNPACKED = 16 * 1024**3
# JSON compresses to a tenth of its size, a ZIP bomb to a thousandth.
_MAX_RATIO, _RATIO_FROM = 100, 32 * 1024 * 1024
# If an object ends within the first line, the file has an object on each line.
_FIRST_LINE = 8 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A record from a file. `name` describes its location, and `key` is its list, if any."""

    name: str
    key: str
    value: Any


class _Stream:
    """A stream that rejects text that is not UTF-8 and records longer than `MAX_RECORD` bytes."""

    def __init__(self, stream: BinaryIO, head: bytes, name: str) -> None:
        self._stream, self._head, self._name, self.left = stream, head, name, MAX_RECORD
        self._decoder = getincrementaldecoder("utf-8")()

    def read(self, size: int = -1) -> bytes:
        if size == 0:  # ijson checks whether a stream has bytes.
            return b""
        head, self._head = self._head, b""
        data = head or self._stream.read(size)
        try:
            self._decoder.decode(data)
        except UnicodeDecodeError:
            raise NotUtf8(self._name) from None
        self.left -= len(data)
        if self.left < 0:
            raise Unusable(f"a record is larger than {MAX_RECORD >> 20} MiB: the rest of the file was not read")
        return data


def records(path: Path, *lists: str) -> Iterator[SourceRecord | LeftOut]:
    """Yield the records in a JSON file, one at a time.

    The file must contain an array, an object with the records in `lists`, or one object per line.
    """
    with path.open("rb") as stream:
        yield from stream_records(stream, path.name, *lists)


def stream_records(stream: BinaryIO, name: str, *lists: str) -> Iterator[SourceRecord | LeftOut]:
    """Like `records`, but for an open JSON file."""
    head = b""
    while not head.strip() and (more := stream.readline(_FIRST_LINE)):
        head = more.removeprefix(_BOM).lstrip()
    first = head[:1]
    if b"\0" in head[:4]:  # UTF-16 and UTF-32
        raise NotUtf8(name)
    if first not in (b"[", b"{"):
        raise Unusable(f"{name} is {'neither JSON nor JSON Lines' if head else 'empty'}")
    if first == b"{" and _is_line(head):
        yield from _lines(stream, name, head, lists)
        return
    source = _Stream(stream, head, name)
    count = 0
    try:
        for key, value in _elements(source, lists if first == b"{" else None):
            count += 1
            source.left = MAX_RECORD
            yield SourceRecord(f"{name} {key or 'record'} {count}", key, value)
    except NotUtf8:
        raise
    except (ijson.JSONError, UnicodeDecodeError, Unusable) as error:  # UnicodeDecodeError: a key with half a character
        reason = str(error) if isinstance(error, Unusable) else "the file is not valid JSON from here on"
        yield LeftOut(f"{name} after record {count}", reason)


def _is_line(head: bytes) -> bool:
    """True if the first line is a complete JSON object."""
    try:
        return isinstance(json.loads(head), dict)
    except (ValueError, RecursionError):
        return False


def _lines(stream: BinaryIO, name: str, head: bytes, lists: tuple[str, ...]) -> Iterator[SourceRecord | LeftOut]:
    number, line = 1, head
    while line:
        place = f"{name} line {number}"
        if len(line) >= MAX_RECORD and not line.endswith(b"\n"):
            yield LeftOut(place, f"is larger than {MAX_RECORD >> 20} MiB")
            while (line := stream.readline(MAX_RECORD)) and not line.endswith(b"\n"):
                pass
        elif line.strip():
            try:
                value = json.loads(line.decode())
            except UnicodeDecodeError:
                raise NotUtf8(name) from None
            except (ValueError, RecursionError):
                yield LeftOut(place, "is not JSON")
            else:
                # `{"results": [...]}` on one line is a list, too.
                inner_lists = {key: inner for key in lists if isinstance(inner := _member(value, key), list)}
                for position, (key, each) in enumerate(((key, each) for key, inner in inner_lists.items() for each in inner), 1):
                    yield SourceRecord(f"{place} {key} {position}", key, each)
                if not inner_lists:
                    yield SourceRecord(place, "", value)
        line, number = stream.readline(MAX_RECORD), number + 1


def _member(value: Any, path: str) -> Any:
    """Return an object's member. The path may name a member of a member, like `data.profiles`."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _elements(source: _Stream, lists: tuple[str, ...] | None) -> Iterator[tuple[str, Any]]:
    if lists is None:
        yield from (("", value) for value in ijson.items(source, "item", use_float=True))
        return
    prefixes = {f"{name}.item": name for name in lists}
    builder: Any = None
    depth, key, has_list = 0, "", False
    for prefix, event, value in ijson.parse(source, use_float=True):
        if builder is None:
            has_list = has_list or (prefix in lists and event == "start_array")
            if prefix not in prefixes or event.startswith("end"):
                source.left = MAX_RECORD
                continue
            builder, depth, key = ijson.ObjectBuilder(), 0, prefixes[prefix]
        builder.event(event, value)
        depth += event.startswith("start") - event.startswith("end")
        if depth == 0:
            yield key, builder.value
            builder = None
    if not has_list:
        raise Unusable(f"the file has none of the lists {', '.join(lists)}")


def each(source_records: Iterator[SourceRecord | LeftOut], convert: Callable[[Fields, str], Iterator[Item]]) -> Iterator[Item]:
    """Convert each record with `convert(fields, key)`. Failures become `LeftOut` items."""
    for record in source_records:
        if isinstance(record, LeftOut):
            yield record
            continue
        # Bind the record now, because `guarded` runs later.
        yield from guarded(record.name, _converted(record, convert))


def _converted(record: SourceRecord, convert: Callable[[Fields, str], Iterator[Item]]) -> Iterator[Item]:
    yield from convert(Fields.of(record.value), record.key)


@contextmanager
def members(path: Path, stem: str) -> Generator[Iterator[tuple[str, BinaryIO]]]:
    """Open a JSON file, or all matching JSON files in a folder or ZIP archive.

    File names must start with `stem`. Yields (name, stream) pairs. Raises Unusable for archives
    that are too large when unpacked.
    """
    if not path.is_dir() and not zipfile.is_zipfile(path):
        with path.open("rb") as stream:
            yield iter([(path.name, stream)])
        return
    if path.is_dir():
        names = [each for each in sorted(path.iterdir()) if each.name.startswith(stem) and each.suffix in (".json", ".jsonl")]
        yield _open_files(path, stem, ((each.name, each.open("rb")) for each in names), count=len(names))
        return
    try:
        with zipfile.ZipFile(path) as archive:
            infos = [info for info in archive.infolist() if Path(info.filename).name.startswith(stem) and info.filename.endswith(".json")]
            _refuse_bombs(path, infos)
            infos.sort(key=lambda info: info.filename)
            yield _open_files(path, stem, ((info.filename, archive.open(info)) for info in infos), count=len(infos))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise Unusable(f"{path.name} cannot be unpacked: {error}") from None


def _open_files(path: Path, stem: str, opened: Iterator[tuple[str, Any]], *, count: int) -> Iterator[tuple[str, BinaryIO]]:
    if not count:
        raise Unusable(f"{path.name} contains no file {stem}.json")
    for name, stream in opened:
        with closing(stream):
            yield name, cast("BinaryIO", stream)


def _refuse_bombs(path: Path, infos: list[zipfile.ZipInfo]) -> None:
    if len(infos) > _MAX_MEMBERS or sum(info.file_size for info in infos) > _MAX_UNPACKED:
        raise Unusable(f"{path.name} would unpack to more than {_MAX_MEMBERS} files or {_MAX_UNPACKED >> 30} GiB")
    if any(info.file_size > _RATIO_FROM and info.file_size > _MAX_RATIO * max(info.compress_size, 1) for info in infos):
        raise Unusable(f"{path.name} is packed more than {_MAX_RATIO}-fold: unpack it yourself if you trust it")


def rows(path: Path, table: str, columns: str, order: str = "rowid") -> Iterator[Mapping[str, Any]]:
    """Yield rows from a table in an SQLite file, opened read-only. Raises Unusable."""
    if not path.is_file():
        raise Unusable(f"{path.name} is not a file")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            database.execute("PRAGMA trusted_schema=OFF")
            database.row_factory = sqlite3.Row
            database.text_factory = bytes.decode
            for row in database.execute(f"SELECT {columns} FROM {table} ORDER BY {order}"):
                yield dict(row)
    except UnicodeDecodeError:
        raise Unusable(f"{path.name} contains text that is not UTF-8: correct it in the database") from None
    except sqlite3.Error as error:
        raise Unusable(f"{path.name}: {error}") from None


def has_table(path: Path, table: str) -> bool:
    """True if a file is an SQLite database with this table."""
    with path.open("rb") as stream:
        if stream.read(16) != b"SQLite format 3\0":
            return False
    return any(row["name"] == table for row in rows(path, "sqlite_master", "name"))
