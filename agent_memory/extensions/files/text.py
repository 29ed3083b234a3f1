"""Extract a file's text, page by page.

Only a separate process opens callers' files. It runs with hard limits and no environment variables.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import sys
from contextlib import suppress
from html.parser import HTMLParser
from io import BytesIO
from typing import Any
from zipfile import BadZipFile, ZipFile

from agent_memory.foundation.core.errors import how_to_install

_CPU_SECONDS = 40
_WALL_SECONDS = 180.0
_MEMORY_BYTES = 1024 * 1024 * 1024
_MAX_ANSWER_BYTES = 32 * 1024 * 1024
_MAX_UNPACKED_BYTES = 64 * 1024 * 1024
_MAX_ENTRIES = 5_000
_MAX_PAGES = 5_000
_READ_BYTES = 1024 * 1024
_HIDDEN = frozenset({"script", "style", "template", "noscript", "svg", "iframe", "object"})
_BLOCKS = re.compile(
    r"(?:address|article|aside|blockquote|br|d[dlt]|div|fig.*|footer|form|h\d|header|hr|li|main|nav|[ou]l|option|p|pre|section|t.*)"
)


class UnreadableFile(Exception):
    """The file has no text that the server can read."""


async def read_pages(data: bytes, media_type: str) -> list[str]:
    """Return the text of each page. Raises UnreadableFile.

    Formats other than PDF have a single page.
    """
    command = (sys.executable, "-P", "-m", __name__, media_type)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, env={})
    try:
        async with asyncio.timeout(_WALL_SECONDS):
            _, answer = await asyncio.gather(_feed(process, data), _answer(process))
            status = await process.wait()
    except TimeoutError:
        raise UnreadableFile(f"reading takes longer than {_WALL_SECONDS:.0f} seconds: split the file") from None
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if status:
        raise UnreadableFile(
            f"reading needs more than {_CPU_SECONDS} seconds of CPU or {_MEMORY_BYTES >> 20} MiB of memory: split the file"
        )
    result = json.loads(answer)
    if isinstance(result, str):
        raise UnreadableFile(result)
    return result


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _answer(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    answer = bytearray()
    while piece := await process.stdout.read(_READ_BYTES):
        answer += piece
        if len(answer) > _MAX_ANSWER_BYTES:
            raise UnreadableFile(f"the text is larger than {_MAX_ANSWER_BYTES >> 20} MiB: split the file")
    return bytes(answer)


def extract_pages(data: bytes, media_type: str) -> list[str]:
    """Extract the text of each page. Raises UnreadableFile.

    Call this only in a process with resource limits.
    """
    if media_type == "application/pdf":
        return _pages_of_pdf(data)
    if media_type.startswith("application/vnd."):
        return [_text_of_docx(data)]
    text = _decoded(data)
    return [_text_of_html(text) if media_type == "text/html" else text]


def _decoded(data: bytes) -> str:
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        raise UnreadableFile("the text must be UTF-8, or UTF-16 with a byte order mark") from None
    if "\0" in text:
        raise UnreadableFile("the file is not text: it contains the character NUL")
    return text


class _HtmlText(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN
        self._break(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(self._hidden - (tag in _HIDDEN), 0)
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(" ".join(data.split()) if data.strip() else " ")
            if data[-1:].isspace() and data.strip():
                self.parts.append(" ")

    def _break(self, tag: str) -> None:
        if _BLOCKS.fullmatch(tag):
            self.parts.append("\n")


def _text_of_html(text: str) -> str:
    parser = _HtmlText()
    parser.feed(text)
    parser.close()
    lines = ("".join(parser.parts)).split("\n")
    return "\n".join(line for line in map(str.strip, lines) if line)


def _pages_of_pdf(data: bytes) -> list[str]:
    from pypdf import PdfReader  # noqa: PLC0415 - an extra
    from pypdf.errors import DependencyError, PyPdfError  # noqa: PLC0415 - an extra

    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableFile("the PDF is encrypted: remove its password")
        if len(reader.pages) > _MAX_PAGES:
            raise UnreadableFile(f"a PDF can have at most {_MAX_PAGES} pages: split the file")
        return [page.extract_text() for page in reader.pages]
    except DependencyError:
        raise UnreadableFile("the PDF is encrypted: remove its password") from None
    except PyPdfError as error:
        raise UnreadableFile(f"the PDF is damaged: {error}") from None


def _text_of_docx(data: bytes) -> str:
    from docx import Document  # noqa: PLC0415 - an extra
    from docx.table import Table  # noqa: PLC0415 - an extra

    _check_docx(data)
    document = Document(BytesIO(data))

    def lines(container: Any) -> list[str]:
        text_lines: list[str] = []
        for part in container.iter_inner_content():
            if isinstance(part, Table):
                rows = ([" ".join(lines(cell)) for cell in row.cells] for row in part.rows)
                text_lines += [" | ".join(dict.fromkeys(cells)) for cells in rows]
            else:
                text_lines.append(part.text)
        return [line for line in text_lines if line.strip()]

    return "\n".join(lines(document))


def _check_docx(data: bytes) -> None:
    """Raise UnreadableFile unless the data is a plain Word document within the limits."""
    with ZipFile(BytesIO(data)) as container:
        entries = container.infolist()
        if len(entries) > _MAX_ENTRIES or sum(entry.file_size for entry in entries) > _MAX_UNPACKED_BYTES:
            raise UnreadableFile(f"the document unpacks to more than {_MAX_UNPACKED_BYTES >> 20} MiB or {_MAX_ENTRIES} parts")
        for entry in entries:
            if entry.filename.lower().endswith("vbaproject.bin"):
                raise UnreadableFile("the document has macros: save it as .docx")
            if entry.filename.lower().endswith((".xml", ".rels")):
                part = container.read(entry).replace(b"\0", b"")
                if b"macroEnabled" in part and entry.filename == "[Content_Types].xml":
                    raise UnreadableFile("the document has macros: save it as .docx")
                if b"<!DOCTYPE" in part or b"<!ENTITY" in part:
                    raise UnreadableFile("the document defines XML entities, which no word processor does")


def _limit() -> None:
    """Limit this process's resources. Forbid file writes and core dumps."""
    limits = {"CPU": _CPU_SECONDS, "AS": _MEMORY_BYTES, "FSIZE": 0, "CORE": 0, "NOFILE": 64}
    for name, most in limits.items():
        hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))


def main() -> None:
    data, media_type = sys.stdin.buffer.read(), sys.argv[1]
    _limit()
    answer: list[str] | str
    try:
        answer = [page.encode("utf-8", "replace").decode() for page in extract_pages(data, media_type)]
    except UnreadableFile as error:
        answer = str(error)
    except ImportError:
        answer = f"this server cannot read the format: send text, or add its libraries: {how_to_install('files')}"
    except RecursionError:
        answer = "the file is nested too deeply"
    except BadZipFile:
        answer = "the file is damaged: it is not a ZIP container"
    except MemoryError:
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 - libraries raise any error for a damaged file
        answer = f"the file is damaged ({type(error).__name__})"
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
