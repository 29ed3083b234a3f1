"""Pages are short, and their sentences are easy to read.

Sentences are those of paragraphs and list items; code and tables are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import markdown
import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_WORDS_IN_ALL = 28_000
MOST_WORDS = 1_000
# Reference pages are looked up, not read.
REFERENCE = {"docs/guarantees.md": 1_300, "docs/glossary.md": 1_900}
MOST_WORDS_IN_SENTENCE = 30
HARD_PHRASES = re.compile(
    r"\b(?:(?:is|are|be|was|were) (?:told|left alone|taken over)|a thing of its own|of what (?:is|was)|those that"
    r"|(?:is|are) none|what (?:is|was) (?:said|new|gone)|nobody else|who(?:ever)? (?:is|has) not|by itself alone|as such)\b",
    re.IGNORECASE,
)
_FENCED = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+")


class _Paragraphs(HTMLParser):
    """Collects the text of paragraphs and list items; a piece of code counts as one word."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._skipped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("p", "li"):
            self.texts.append("")
        elif tag in ("code", "pre", "table", "h1", "h2", "h3", "h4"):
            self._skipped += 1
            if tag == "code" and self.texts:
                self.texts[-1] += "code"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("code", "pre", "table", "h1", "h2", "h3", "h4"):
            self._skipped -= 1

    def handle_data(self, data: str) -> None:
        if not self._skipped and self.texts:
            self.texts[-1] += data


def sentences(page: str) -> Iterator[str]:
    """Yield the sentences of a Markdown text, without code, tables and headings."""
    reader = _Paragraphs()
    reader.feed(markdown.markdown(page, extensions=["tables", "fenced_code", "attr_list"]))
    for text in reader.texts:
        yield from (sentence for sentence in _SENTENCE_END.split(" ".join(text.split())) if sentence)


def count_words(page: str) -> int:
    """Return the number of words of a page, without code blocks."""
    return sum(any(map(str.isalnum, word)) for word in _FENCED.sub("", page).split())


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page_is_short_and_its_sentences_are_plain(path: Path) -> None:
    page = path.read_text("utf-8")
    assert count_words(page) <= REFERENCE.get(str(path.relative_to(ROOT)), MOST_WORDS)
    text = [*sentences(page)]
    assert not [sentence for sentence in text if len(sentence.split()) > MOST_WORDS_IN_SENTENCE]
    assert not [sentence for sentence in text if HARD_PHRASES.search(sentence)]


def test_all_pages_keep_to_the_word_budget() -> None:
    assert sum(count_words(path.read_text("utf-8")) for path in PAGES) <= MOST_WORDS_IN_ALL
