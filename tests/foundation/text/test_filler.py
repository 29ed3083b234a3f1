"""What says nothing, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_memory.foundation.text.languages.filler import has_content, is_filler
from agent_memory.foundation.text.languages.phrases import CODES

_DATA = Path(__file__).parents[2] / "data"


def _lines(name: str) -> dict[str, list[str]]:
    """The lines of a data file by language."""
    lines: dict[str, list[str]] = {}
    for line in (_DATA / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            lines[line[2:]] = []
        elif line:
            lines[list(lines)[-1]].append(line)
    return lines


NOISE, FACTS = _lines("noise_lines.txt"), _lines("short_facts.txt")


def test_there_are_enough_lines_of_every_language() -> None:
    for lines in (NOISE, FACTS):
        assert set(lines) == set(CODES)
        assert sum(map(len, lines.values())) >= 300
        assert all(len(of_language) >= 20 for of_language in lines.values())


@pytest.mark.parametrize("code", CODES)
def test_noise_is_recognized(code: str) -> None:
    assert [line for line in NOISE[code] if not is_filler(line)] == []


@pytest.mark.parametrize("code", CODES)
def test_short_facts_are_none(code: str) -> None:
    assert [line for line in FACTS[code] if is_filler(line)] == []


@pytest.mark.parametrize(
    "text", ["", " ", "...", "?!", "👍🏽", "❤️❤️", "q", "asdfghjkl", "lkjhgfdsa", "zxcvzxcv", "sdkfjhskdjf", "hjkl;hjkl", ":-)"]
)
def test_shapes_of_noise(text: str) -> None:
    assert is_filler(text)


@pytest.mark.parametrize(
    "text", ["weekend", "rhythm", "tree", "power", "poi", "Krk", "HTML", "555 123", "k8s", "A1", "glass", "flasks", "水"]
)
def test_words_that_look_like_noise(text: str) -> None:
    assert not is_filler(text)


@pytest.mark.parametrize("query", ["thanks!", "ok", "x", "👍", "", "hm?", "谢谢", "danke dir!", "?", "back", "not really", "я тоже"])
def test_queries_without_content(query: str) -> None:
    assert not has_content(query)


@pytest.mark.parametrize("query", ["job", "What is my job?", "42", "猫", "thanks, and my flight?", "allergies"])
def test_queries_with_content(query: str) -> None:
    assert has_content(query)
