"""Test text extraction from various formats and from hostile files.

Hostile files must fail with a reason, in bounded time and memory.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agent_memory.extensions.files.media_types import DOCX, HTML, MARKDOWN, MAX_FILE_BYTES, PDF, TEXT, media_type_of
from agent_memory.extensions.files.passages import MOST_PASSAGES, passages_of
from agent_memory.extensions.files.text import UnreadableFile, read_pages
from agent_memory.foundation.api.errors import UnsupportedMedia
from agent_memory.foundation.core.errors import AgentMemoryError, BadInput, TooLarge
from tests.extensions.files import samples


async def test_text_is_extracted_from_plain_text_markdown_pdf_and_docx() -> None:
    assert await read_pages("Grüße\n".encode(), TEXT) == ["Grüße\n"]
    assert await read_pages("Grüße".encode("utf-16"), TEXT) == ["Grüße"]
    assert await read_pages(b"# Title\n\n- one", MARKDOWN) == ["# Title\n\n- one"]
    assert await read_pages(samples.pdf(["The gate opens at nine.", "", "Bring a coat."]), PDF) == [
        "The gate opens at nine.",
        "",
        "Bring a coat.",
    ]
    assert await read_pages(samples.docx(["First line", "Second"], [["Name", "Ada"]]), DOCX) == ["First line\nSecond\nName | Ada"]


async def test_html_loses_scripts_and_keeps_blocks_apart() -> None:
    page = "<html><head><title>Rules</title><style>p{color:red}</style></head><body><script>alert('no')</script>"
    page += "<h1>House &amp; garden</h1><p>No <b>smok</b>ing.<br>Thanks</p><img src='http://127.0.0.1:1/x'><ul><li>one<li>two</ul></body></html>"
    assert await read_pages(page.encode(), HTML) == ["Rules\nHouse & garden\nNo smoking.\nThanks\none\ntwo"]


@pytest.mark.parametrize(
    ("make", "media_type", "reason"),
    [
        (samples.encrypted_pdf, PDF, "encrypted"),
        (samples.nested_pdf, PDF, "nested|damaged"),
        (samples.circular_pdf, PDF, "nested|damaged"),
        (lambda: samples.pdf(["x"])[:150], PDF, "damaged"),
        (samples.zip_bomb, DOCX, "unpacks to more than 64 MiB"),
        (samples.billion_laughs, DOCX, "defines XML entities"),
        (samples.with_macros, DOCX, "macros"),
        (lambda: b"PK\x03\x04" + b"\0" * 100, DOCX, "damaged"),
        (lambda: b"\xff\x00\xfa", TEXT, "UTF-8"),
        (lambda: b"a\0b", TEXT, "NUL"),
    ],
)
async def test_hostile_file_fails_with_a_reason(make: Callable[[], bytes], media_type: str, reason: str) -> None:
    with pytest.raises(UnreadableFile, match=reason):
        await read_pages(make(), media_type)


async def test_huge_stream_ends_within_the_limits() -> None:
    # Either the library stops unpacking at some size, or the process stops at its limits.
    with suppress(UnreadableFile):
        assert not "".join(await read_pages(samples.huge_stream_pdf(), PDF)).strip()


async def test_external_entities_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("password")
    with pytest.raises(UnreadableFile, match="defines XML entities"):
        await read_pages(samples.external_entity(str(secret)), DOCX)


def test_media_type_follows_header_name_and_bytes() -> None:
    assert media_type_of("text/html; charset=utf-8", "x.txt", b"<p>") == HTML
    assert media_type_of("application/x-www-form-urlencoded", "A.PDF", b"%PDF-1.7") == PDF
    refused: list[tuple[str, str, bytes, type[AgentMemoryError], str]] = [
        ("", "x.docm", b"PK\x03\x04", UnsupportedMedia, "text, Markdown, HTML, PDF or DOCX"),
        ("application/vnd.ms-word.document.macroEnabled.12", "x", b"PK\x03\x04", UnsupportedMedia, "DOCX"),
        ("", "x.pdf", b"PK\x03\x04", BadInput, "not a file of the type application/pdf"),
        ("text/plain", "x.txt", b"%PDF-1.7", BadInput, "not a file of the type text/plain"),
        ("text/plain", "x.txt", b"", BadInput, "empty"),
        ("text/plain", "x.txt", b"a" * (MAX_FILE_BYTES + 1), TooLarge, str(MAX_FILE_BYTES)),
    ]
    for declared, name, data, error, words in refused:
        with pytest.raises(error, match=words):
            media_type_of(declared, name, data)


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_none(_: str) -> None: ...

    monkeypatch.setattr("agent_memory.extensions.files.media_types.find_spec", find_none)
    with pytest.raises(BadInput, match=r"\./client '\.\[files\]'.*\.whl\[files\]"):
        media_type_of("", "x.pdf", b"%PDF-1.7")


def test_passages_cover_the_text_with_their_places() -> None:
    pages = ["  Short.  ", "", "\n".join(f"Line {number} says something of its own." for number in range(4_000))]
    passages = passages_of(pages)
    assert passages[0] == (1, 2, 8, "Short.")
    assert {passage.page for passage in passages} == {1, 3}
    assert all(pages[page - 1][start:end] == text for page, start, end, text in passages)
    covered = {place for page, start, end, _ in passages if page == 3 for place in range(start, end)}
    assert all(place in covered for place, character in enumerate(pages[2]) if not character.isspace())
    with pytest.raises(UnreadableFile, match="text recognition"):
        passages_of(["", " "])
    with pytest.raises(UnreadableFile, match=str(MOST_PASSAGES)):
        passages_of(["word"] * (MOST_PASSAGES + 1))
