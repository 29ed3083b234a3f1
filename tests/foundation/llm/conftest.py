"""Provide the look-alike server and settings that point to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent_memory.foundation.core.settings import Settings, load_settings
from tests.support.lookalike import Lookalike


@pytest.fixture
def at(lookalike: Lookalike) -> Callable[..., Settings]:
    """Return a function that creates settings for the look-alike."""

    def settings(**overrides: Any) -> Settings:
        return load_settings(
            **{"OPENAI_BASE_URL": lookalike.url, "OPENAI_API_KEY": "sk-test-0000", "MODEL_TIMEOUT_SECONDS": 20, **overrides}
        )

    return settings
