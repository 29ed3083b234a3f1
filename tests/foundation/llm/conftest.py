"""The look-alike, and settings that point to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent_memory.core.settings import Settings, load_settings, variables
from tests.support.lookalike import Lookalike


@pytest.fixture(autouse=True)
def _no_settings_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """The developer's own keys must not reach a test."""
    for name in variables():
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def _lookalike() -> Iterator[Lookalike]:
    server = Lookalike().start()
    yield server
    server.stop()


@pytest.fixture
def lookalike(_lookalike: Lookalike) -> Iterator[Lookalike]:
    """A look-alike without faults."""
    _lookalike.forget()
    yield _lookalike
    _lookalike.forget()
    if not _lookalike.running:  # a test took it down
        _lookalike.start()


@pytest.fixture
def at(lookalike: Lookalike) -> Callable[..., Settings]:
    """Settings that point to the look-alike: `at(GENERATION_MODEL=…)`."""

    def settings(**overrides: Any) -> Settings:
        return load_settings(
            **{"OPENAI_BASE_URL": lookalike.url, "OPENAI_API_KEY": "sk-test-0000", "MODEL_TIMEOUT_SECONDS": 20, **overrides}
        )

    return settings
