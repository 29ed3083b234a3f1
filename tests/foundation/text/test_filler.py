"""Test the detection of filler texts, which contain no information."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_memory.foundation.text.languages.filler import has_content, is_filler
from agent_memory.foundation.text.languages.phrases import CODES

_DATA = Path(__file__).parents[2] / "data"


def _lines(name: str) -> dict[str, list[str]]:
    """Return the lines of a data file by language."""
    lines: dict[str, list[str]] = {}
    for line in (_DATA / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            lines[line[2:]] = []
        elif line:
            lines[list(lines)[-1]].append(line)
    return lines


NOISE, FACTS = _lines("noise_lines.txt"), _lines("short_facts.txt")


def test_filler_samples_cover_every_language() -> None:
    for lines in (NOISE, FACTS):
        assert set(lines) == set(CODES)
        assert sum(map(len, lines.values())) >= 300
        assert all(len(of_language) >= 20 for of_language in lines.values())


@pytest.mark.parametrize("code", CODES)
def test_filler_lines_are_recognized(code: str) -> None:
    assert [line for line in NOISE[code] if not is_filler(line)] == []


@pytest.mark.parametrize("code", CODES)
def test_short_facts_are_not_filler(code: str) -> None:
    assert [line for line in FACTS[code] if is_filler(line)] == []


@pytest.mark.parametrize("text", ["", " ", "...", "?!", "👍🏽", "❤️❤️", "q", "asdfghjkl", "hjkl;hjkl", ":-)"])
def test_empty_emoji_and_keyboard_noise_are_filler(text: str) -> None:
    assert is_filler(text)


@pytest.mark.parametrize(
    "text", ["weekend", "rhythm", "tree", "power", "poi", "Krk", "HTML", "555 123", "k8s", "A1", "glass", "flasks", "水"]
)
def test_short_real_words_are_not_filler(text: str) -> None:
    assert not is_filler(text)


@pytest.mark.parametrize("query", ["thanks!", "ok", "x", "👍", "", "hm?", "谢谢", "danke dir!", "?", "back", "not really", "я тоже"])
def test_query_of_filler_has_no_content(query: str) -> None:
    assert not has_content(query)


@pytest.mark.parametrize("query", ["job", "What is my job?", "42", "猫", "thanks, and my flight?", "allergies"])
def test_query_with_a_content_word_has_content(query: str) -> None:
    assert has_content(query)
