"""Test that pages, docstrings and comments are short and easy to read."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import markdown
import pytest
from proselint.checks import __register__ as CHECKS
from proselint.config import DEFAULT
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

from tests.docs.pages import MARKDOWN
from tests.docs.test_names import PACKAGES, docstrings, files

ROOT = Path(__file__).resolve().parents[2]
MOST_WORDS_IN_ALL = 30_000
MOST_WORDS = 1_000
# Readers look up reference pages and do not read them in full.
REFERENCE = {"docs/guarantees.md": 1_300, "docs/memory/not-shown.md": 1_100}
MOST_WORDS_IN_SENTENCE = 30
MOST_WORDS_IN_README_BULLET = 8
PASSIVE_SHARE = {"pages": 0.065, "docstrings": 0.087, "tests": 0.1}
# Noun phrases instead of nouns, private verbs, legal words and filler.
BANNED = re.compile(
    r"(?i:\b(?:(?:is|are|be|was|were) (?:told|left alone|taken over)|a thing of its own|of what (?:is|was)|nobody else|by itself alone"
    r"|what (?:is|was) (?:said|new|gone|known|forgotten|remembered|learned|stored)|who(?:ever)? (?:is|has) not|those (?:that|who|with)"
    r"|as such|somebody|whoever|anybody|anew|lest|namely|where(?:by|in|of)|there(?:by|in|of|upon)|stands? (?:in|there|by|beside)"
    r"|in order to|utilize|leverage|obviously|simply|seamless(?:ly)?)\b)|(?<!there )\b(?:is|are) none\b"
)
PASSIVE = re.compile(
    r"\b(?:am|is|are|was|were|be|been|being|gets?|got) (?:(?:not|never|also|only|always|then|still|now|already|\w+ly) )*"
    r"(?:\w{2,}ed|begun|bound|broken|brought|built|chosen|cut|done|drawn|found|given|held|hidden|kept|known|left|lost|made|put|read|run"
    r"|seen|sent|set|shown|split|stuck|taken|thrown|understood|written)\b",
    re.IGNORECASE,
)
# Names that may have capital letters inside a heading, beside acronyms and the first word of a sentence.
# Typography is not for plain text. The others misread code: `ne` as the French word, and two pieces of code as one piece, repeated.
CheckRegistry().register_many(CHECKS)
PROSELINT: dict[str, bool] = {"misc.preferred_forms": False, **DEFAULT["checks"], "typography": False, "lexical_illusions": False}
NAMES = re.compile(
    r"`[^`]+`|Agent Framework|Agents SDK|Google|March|Mem0|Python|Redis Cluster|JSON Web Tokens|class Memory|Supermemory|OpenAI"
)
_FENCED = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
_GENERATED = re.compile(r"<!-- (\w+): begin -->.*?<!-- \1: end -->", re.DOTALL)
_LINK_TARGET = re.compile(r"(?<=\])\([^)]*\)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_TABLE_ROW = re.compile(r"\S {2,}\S|^\s*\||──")
_CAPITALIZED = re.compile(r"(?<=[^.:?\"`] )[A-Z][a-z]")
_COMMENT = re.compile(r"(?:^|\s) *# .+", re.MULTILINE)
_PYTHON_COMMENT = re.compile(r"(?:^ *# .+\n)+|(?<=\S) +# .+", re.MULTILINE)
_LUA_COMMENT = re.compile(r"--+ .+")
_TS_COMMENT = re.compile(r"(?:/\*\*|//|^ *\*) .+", re.MULTILINE)
_WORD_LIST = re.compile("[^A-Z.,:;()]+")
_BULLET = re.compile(r"\s*(?:[-*]|\d+\.) ")


class _Paragraphs(HTMLParser):
    """Collects the text of paragraphs and list items. Each piece of code counts as one word."""

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


def split_sentences(texts: list[str]) -> Iterator[str]:
    for text in texts:
        yield from (sentence for sentence in _SENTENCE_END.split(" ".join(text.split())) if sentence)


def page_sentences(page: str) -> list[str]:
    """Return the sentences on a Markdown page, excluding code, tables and headings."""
    reader = _Paragraphs()
    reader.feed(markdown.markdown(page, extensions=["tables", "fenced_code", "attr_list"]))
    return [*split_sentences(reader.texts)]


def docstring_sentences(docstring: str) -> list[str]:
    """Return the sentences in a docstring, excluding indented code and table rows."""
    paragraphs = [""]
    for line in inspect.cleandoc(docstring).splitlines():
        if not line.strip() or _BULLET.match(line):
            paragraphs.append("")
        if not _TABLE_ROW.search(line) and (not line.startswith("    ") or _BULLET.match(line)):
            paragraphs[-1] += " " + re.sub(r"``?[^`]+``?", "code", line)
    return [*split_sentences(paragraphs)]


def count_words(page: str) -> int:
    """Count the words on a page, excluding code blocks."""
    return sum(any(map(str.isalnum, word)) for word in _FENCED.sub("", page).split())


def comments(path: Path) -> list[str]:
    """Return the sentences in a file's comments."""
    if path.suffix == ".py":
        return [
            sentence
            for comment in _PYTHON_COMMENT.finditer(path.read_text("utf-8"))
            for sentence in docstring_sentences(re.sub(r"^ *# ?", "", comment[0], flags=re.MULTILINE))
        ]
    pattern = _LUA_COMMENT if path.suffix == ".lua" else _TS_COMMENT if path.suffix == ".ts" else _COMMENT
    is_text = path.suffix in (".lua", ".ts", ".sh", ".toml", ".yml") or path.name in ("Makefile", "Dockerfile")
    return [*split_sentences(pattern.findall(path.read_text("utf-8")))] if is_text else []


def messages(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines and texts of strings with at least three words, except docstrings.

    They include command-line help, errors, API descriptions and log events.
    """
    nodes: list[ast.AST] = [ast.parse(source)]
    for node in nodes:  # grows
        if isinstance(node, ast.JoinedStr | ast.Constant):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "code" for part in parts)
            if len(text.split()) >= 3 and not (len(text.split()) > MOST_WORDS_IN_SENTENCE and _WORD_LIST.fullmatch(text)):
                yield node.lineno, text
        elif not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            is_word_list = isinstance(node, ast.Attribute) and node.attr == "split"
            nodes += () if is_word_list else ast.iter_child_nodes(node)


SOURCES = ("agent_memory", "worker", "client", "evaluation", "scripts", "benchmarks", "examples", "client-ts")
# Prompts, their headings and examples are for models. Measurements depend on their words.
FOR_MODELS = re.compile(r"prompts\.py|prompt_marks\.py")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@cache
def all_sentences(kind: str) -> list[tuple[str, str]]:
    """Return the locations and sentences of pages, docstrings, messages or comments."""
    if kind == "pages":
        return [(str(path.relative_to(ROOT)), sentence) for path in MARKDOWN for sentence in page_sentences(path.read_text("utf-8"))]
    tops = {"docstrings": SOURCES, "tests": ("tests",)}.get(kind, (*SOURCES, "tests"))
    sources = sorted(path for path in files(*tops) if "_sync" not in path.parts)
    if kind == "comments":
        sources += [ROOT / name for name in ("Makefile", "Dockerfile", "docker-compose.yml", "mkdocs.yml", "pyproject.toml")]
        return [(str(path.relative_to(ROOT)), comment) for path in sources for comment in comments(path)]
    if kind == "messages":
        sources = [path for path in sources if path.relative_to(ROOT).parts[0] in PACKAGES and not FOR_MODELS.search(path.name)]
    return [
        (f"{path.relative_to(ROOT)}:{line}", sentence)
        for path in sources
        if path.suffix == ".py"
        for source in [path.read_text("utf-8")]
        for line, docstring in (messages(source) if kind == "messages" else docstrings(source).items())
        for sentence in docstring_sentences(docstring)
    ]


@pytest.mark.parametrize("kind", [*PASSIVE_SHARE, "comments", "messages"])
def test_sentences_are_short(kind: str) -> None:
    assert not [(place, sentence) for place, sentence in all_sentences(kind) if len(sentence.split()) > MOST_WORDS_IN_SENTENCE]


@pytest.mark.parametrize("kind", [*PASSIVE_SHARE, "comments", "messages"])
def test_sentences_have_no_banned_phrases(kind: str) -> None:
    assert not [(place, match[0], sentence) for place, sentence in all_sentences(kind) if (match := BANNED.search(sentence))]


@pytest.mark.parametrize("kind", ["pages", "docstrings"])
def test_proselint_accepts_sentences(kind: str) -> None:
    text = "\n\n".join(sentence for _, sentence in all_sentences(kind))
    results = LintFile(source=kind, content=text).lint({**DEFAULT, "checks": PROSELINT, "max_errors": 1_000})
    assert not [(result.check_result.message, text[slice(*result.check_result.span)]) for result in results]


def test_test_names_have_no_banned_phrases() -> None:
    sources = (path for path in files("tests") if path.suffix == ".py")
    names = (name for path in sources for name in re.findall(r"\bdef (test_\w+)", path.read_text("utf-8")))
    assert not [name for name in names if BANNED.search(name.replace("_", " "))]


@pytest.mark.parametrize("kind", list(PASSIVE_SHARE))
def test_few_sentences_are_passive(kind: str) -> None:
    sentences = [sentence for _, sentence in all_sentences(kind)]
    assert sum(bool(PASSIVE.search(sentence)) for sentence in sentences) / len(sentences) <= PASSIVE_SHARE[kind]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page_is_short_and_its_headings_are_in_sentence_case(path: Path) -> None:
    page = path.read_text("utf-8")
    assert count_words(_GENERATED.sub("", page)) <= REFERENCE.get(str(path.relative_to(ROOT)), MOST_WORDS)
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", page), re.MULTILINE)
    assert not [heading for heading in headings if _CAPITALIZED.search(NAMES.sub("x", heading))]


def test_readme_bullets_are_short() -> None:
    bullets = re.findall(r"^- (.+(?:\n  .+)*)", _FENCED.sub("", (ROOT / "README.md").read_text("utf-8")), re.MULTILINE)
    assert bullets
    assert not [bullet for bullet in bullets if count_words(_LINK_TARGET.sub("", bullet)) > MOST_WORDS_IN_README_BULLET]


def test_all_pages_keep_to_the_word_budget() -> None:
    assert sum(count_words(path.read_text("utf-8")) for path in PAGES) <= MOST_WORDS_IN_ALL
