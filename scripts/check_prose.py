"""Fails when a page is too long, a sentence has more than 30 words, or a phrase is one that readers stumble over.

Reads the paragraphs and list items of README.md and docs/; code and tables are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import markdown

ROOT = Path(__file__).resolve().parent.parent
MOST_WORDS_IN_ALL = 32_000
MOST_WORDS = 1_000
# Reference pages are looked up, not read.
REFERENCE = {"docs/guarantees.md": 1_600, "docs/glossary.md": 2_300, "docs/performance.md": 1_500, "docs/running/security.md": 1_900}
MOST_WORDS_IN_SENTENCE = 30
HARD_PHRASES = re.compile(
    r"\b(?:(?:is|are|be|was|were) (?:told|left alone|taken over)|a thing of its own|of what (?:is|was)|those that|(?:is|are) none|what (?:is|was) (?:said|new|gone)"
    r"|nobody else|who(?:ever)? (?:is|has) not|by itself alone|as such)\b",
    re.IGNORECASE,
)
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


def problems(pages: dict[str, str]) -> Iterator[str]:
    """Yield one line for each problem of the pages, given by name."""
    for name, page in pages.items():
        words = len(page.split())
        if words > (most := REFERENCE.get(name, MOST_WORDS)):
            yield f"{name}: {words} words, the limit is {most}"
        for sentence in sentences(page):
            if (words := len(sentence.split())) > MOST_WORDS_IN_SENTENCE:
                yield f"{name}: {words} words in a sentence: {sentence}"
            for phrase in HARD_PHRASES.finditer(sentence):
                yield f"{name}: {phrase[0]!r} is hard to read: {sentence}"
    if (words := sum(len(page.split()) for page in pages.values())) > MOST_WORDS_IN_ALL:
        yield f"README.md and docs/: {words} words, the limit is {MOST_WORDS_IN_ALL}"


def main() -> int:
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    lines = [*problems({str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths})]
    print("\n".join(lines) or "prose: ok")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
