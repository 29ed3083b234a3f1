"""Test that all text functions and patterns run in linear time on any input."""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import pkgutil
import re
import signal
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

import agent_memory
import agent_memory_worker
from agent_memory.features.memories.search.document_frequency import TermStatistics
from agent_memory.features.privacy.forget.matching import subject_of
from agent_memory.features.sessions.codec import StoredMessage
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.llm.openai.structured import UnusableAnswer
from agent_memory.foundation.llm.tokens import TokenCounter, load_encoding
from agent_memory.foundation.text.blocked_phrases import Blocklist
from agent_memory.foundation.text.dates.question_time import Span
from agent_memory.foundation.text.statements import StatementFilter
from agent_memory_client.models import MemoryMessage, SearchRequest
from tests.support.hostile_texts import PARTS, hostile_text

_NOW = datetime(2024, 3, 4, tzinfo=UTC)
_MEGABYTE = 1_000_000
# Parameter names of texts: every function of ours that reads a text uses one of them.
_TEXTS = ("text", "texts", "detail", "template", "bad")
# Programs that operators run on their own data.
_ASIDE = ("agent_memory.interfaces.cli",)


class _Answer(BaseModel):
    summary: str


_MESSAGE = MemoryMessage(role="user", content="-", id="m")
# Values of the other parameters, by name.
_GIVEN: dict[str, Any] = {
    "now": _NOW,
    "stated_at": _NOW,
    "given": None,
    "form": "NFKC",
    "answered": None,
    "other": "a word",
    "zone": UTC,
    "today": _NOW.date(),
    "at": _NOW,
    "start": 4_000,
    "most": 100,
    "end": 4_010,
    "begin": 0,
    "stop": _MEGABYTE,
    "boundary": re.compile("[.,]"),
    "span": Span(_NOW, _NOW, "w"),
    "dropped": frozenset({"x"}),
    "of_user": False,
    "answer": _Answer,
    "label": "x",
    "name": "x",
    "position": 0,
    "made": _NOW,
    "metadata": None,
    "names": {"message": "a", "context": "b"},
    "status": 400,
    "ref": SessionRef("s", None, None),
    "stored": StoredMessage(1, 1, _MESSAGE),
    "request": SearchRequest(),
    "query": "-",
    "terms": (),
    "statistics": TermStatistics(),
    "subject": subject_of("my address"),
    "role": "user",
    "message": _MESSAGE,
    "messages": (),
    "problem": UnusableAnswer("-"),
    "redacts": True,
    "literal": "r",
    "query_terms": frozenset({"x", "r"}),
    "max_tokens": 100,
    "vectors": np.zeros((1, 384), dtype=np.float32),
}

Reader = Callable[[str], object]


def _modules() -> Generator[ModuleType]:
    for package in (agent_memory, agent_memory_worker):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.startswith(_ASIDE) and "__main__" not in found.name:
                yield importlib.import_module(found.name)


def _functions() -> dict[str, Reader]:
    """Return every public function that has a text parameter."""
    readers: dict[str, Reader] = {}
    for module in _modules():
        for name, value in vars(module).items():
            function = inspect.unwrap(value) if callable(value) else value
            if name.startswith("_") or not inspect.isfunction(function) or function.__module__ != module.__name__:
                continue
            parameters = inspect.signature(function).parameters
            if (place := next((text for text in _TEXTS if text in parameters), None)) is not None:
                readers[f"{module.__name__}.{name}"] = _reading(value, place, parameters)
    return readers


def _reading(function: Callable[..., object], place: str, parameters: Any) -> Reader:
    needed = [name for name, one in parameters.items() if name != place and one.default is one.empty]
    several = place == "texts" or "Sequence[str]" in str(parameters[place].annotation)

    def read(text: str) -> object:
        if missing := [name for name in needed if name not in _GIVEN]:
            raise AssertionError(f"say in _GIVEN what this function is given as {missing}")
        found = function(**{name: _GIVEN[name] for name in needed}, **{place: [text] if several else text})
        return list(found) if isinstance(found, Iterable) and not isinstance(found, str | list | tuple) else found

    # A cached result would hide the cost.
    clear = getattr(function, "cache_clear", None)
    return read if clear is None else lambda text: (clear(), read(text))


def _methods() -> dict[str, Reader]:
    """Return the methods that read text."""
    counter = TokenCounter(load_encoding())
    phrases = Blocklist(["secret project", "the of", "- -"])
    hearing = StatementFilter(phrases, redacts=True)

    def message(text: str) -> MemoryMessage:
        return _MESSAGE.model_copy(update={"content": text})

    return {
        "TokenCounter.count": counter.count,
        "TokenCounter.truncate": lambda text: counter.truncate(text, 100_000),
        "Blocklist.holds": phrases.holds,
        "Hearing.text": lambda text: hearing.text(message(text)),
    }


def _finding(pattern: re.Pattern[str]) -> Reader:
    return lambda text: [None for _ in pattern.finditer(text)]


def _patterns() -> dict[str, Reader]:
    """Return every regular expression in our modules."""
    readers: dict[str, Reader] = {}

    def keep(name: str, value: Any, depth: int = 0) -> None:
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            readers[name] = _finding(value)
        elif isinstance(value, list | tuple) and depth < 3:
            for place, inner in enumerate(value):
                keep(f"{name}[{place}]", getattr(inner, "pattern", inner) if not isinstance(inner, re.Pattern) else inner, depth + 1)

    for module in _modules():
        for name, value in vars(module).items():
            keep(f"{module.__name__}.{name}", value)
    return readers


@pytest.fixture(scope="module")
def bound() -> float:
    """Return the CPU time limit for a megabyte, scaled to this machine's speed."""
    began = time.thread_time()
    for _ in range(5):
        sum(map(ord, "x" * _MEGABYTE))
    return max(4.0, 40 * (time.thread_time() - began))


class _TooSlow(BaseException):
    pass


@contextmanager
def cpu_seconds(most: float) -> Generator[None]:
    """Interrupt code that uses more CPU time than the limit."""

    def stop(*_: object) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


_text = functools.cache(hostile_text)


def _seconds(read: Reader, text: str, most: float) -> float:
    """Return the CPU time for reading a text, or infinity if it exceeds `most`."""
    began = time.thread_time()
    try:
        # A refused text was read, too.
        with cpu_seconds(most), suppress(UnusableAnswer, ValueError):
            read(text)
    except _TooSlow:
        return math.inf
    return time.thread_time() - began


def _is_slow(read: Reader, kind: str, size: int, bound: float) -> bool:
    """True if reading `size` bytes takes longer than `bound`.

    To save time, measure small parts first, each of them twice because a pause looks like growth.
    If that is not conclusive, measure the entire text.
    """
    if any(_grows_linearly(read, kind, size, parts, bound) for parts in (30, 30, 10, 10)):
        return False
    return _seconds(read, hostile_text(kind, size), bound) == math.inf


def _grows_linearly(read: Reader, kind: str, size: int, parts: int, bound: float) -> bool:
    """True if one part of a text proves that all `parts` take less than `bound`.

    The time is a + b·n + c·n² seconds. If a part takes at most bound / (2·parts²), the text takes
    at most half of `bound`, even if the time is purely quadratic. If a part takes less than 11.5
    times as long as a tenth of it, c·n² is less than 1/59 of b·n for that tenth. The text then
    takes less than parts · (1 + parts / 5.9) times as long as the part.
    """
    part = _seconds(read, _text(kind, size // parts), bound)
    if part < bound / (2 * parts**2):
        return True
    if part > bound / (parts * (1 + parts / 5.9)):
        return False
    # The minimum of two: a pause of the machine would hide growth.
    tenth = min(_seconds(read, _text(kind, size // (10 * parts)), bound) for _ in range(2))
    return part < 11.5 * tenth


def _slow(readers: Mapping[str, Reader], size: int, bound: float) -> list[str]:
    """Return the readers and kinds of text that take longer than `bound` for `size` bytes."""
    return [f"{name}: {kind}" for name, read in sorted(readers.items()) for kind in PARTS if _is_slow(read, kind, size, bound)]


_READERS = {**_functions(), **_methods()}


def test_text_readers_and_patterns_are_discovered() -> None:
    assert {
        "agent_memory.foundation.text.dates.named_times.names_time",
        "agent_memory.foundation.text.injection.suspicion",
        "agent_memory.foundation.text.dates.question_time.question_time",
    } <= _READERS.keys()
    assert len(_READERS) >= 40
    assert len(_patterns()) >= 100
    assert len(PARTS) >= 40


@pytest.mark.parametrize(
    ("pattern", "kind", "slow"), [(r"\s+$", "blanks", True), (r"(?:a|b)+c", "one word", True), (r"a\b", "one word", False)]
)
def test_quadratic_pattern_is_detected(pattern: str, kind: str, slow: bool) -> None:
    assert _is_slow(_finding(re.compile(pattern)), kind, _MEGABYTE // 8, 1.0) is slow


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_reader_takes_linear_time_on_a_quarter_megabyte(bound: float) -> None:
    # Quadratic time would take minutes.
    assert _slow(_READERS, _MEGABYTE // 4, bound / 2) == []


@pytest.mark.slow
def test_every_pattern_takes_linear_time(bound: float) -> None:
    # An eighth of a megabyte: quadratic time would still take a minute.
    assert _slow(_patterns(), _MEGABYTE // 8, bound) == []
