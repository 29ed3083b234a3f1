"""Test scenarios with a weak real model.

Its prompts must contain at least what they would without a model, and every fact must occur in its
message.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.text.numbers import numbers
from agent_memory.foundation.text.terms import stems
from agent_memory_eval.api import Api
from agent_memory_eval.scenario_runner import ScenarioResult, ScenarioRun
from agent_memory_eval.scenarios import load_scenarios
from agent_memory_eval.scripted_model import INVENTION, REPEATED_INSTRUCTION
from tests.support.small_model import small_model
from tests.support.stack import stack

# The server would call an unavailable model again; a slow machine must not look like one.
pytestmark = [pytest.mark.real_model, pytest.mark.slow, pytest.mark.timeout(900)]
_NAMES = ("the assistant's words are no facts", "relative dates inside quotations stay")
_FILE = Path(__file__).parents[1] / "data" / "prompt_scenarios.yaml"
_SCENARIOS = [scenario for scenario in load_scenarios(_FILE) if scenario.name in _NAMES]
_CONTEXT = 4096


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with small_model(_CONTEXT, tmp_path_factory.mktemp("model") / "log.txt") as url:
        yield url


async def _run(redis_url: str, **model: Any) -> tuple[list[ScenarioResult], list[dict[str, Any]]]:
    """Return the results of checks that do not depend on facts, and all stored facts."""
    settings = load_settings(
        KEY_PREFIX=f"weak-{model['MODEL_PROVIDER']}",
        EMBEDDING_PROVIDER="local",
        EXTRACTION_DEBOUNCE_SECONDS=0,
        NEIGHBOURS_AFTER_SECONDS=0,
        WORKER_MAX_ATTEMPTS=1,
        **model,
    )
    async with stack(settings, redis_url) as url, Api(url) as api:
        results = await ScenarioRun(api, "weak", "none", await TokenCounter.open(), wait_seconds=600).run(_SCENARIOS)
        facts: list[dict[str, Any]] = []
        for kind in ("semantic", "episodic", "procedural"):
            body = {"memory_type": {"eq": kind}, "limit": 100}
            facts += (await api.call("POST", "/v1/long-term-memory/search", body))["memories"]
    return results, facts


async def test_weak_model_makes_no_prompt_worse(redis_url: str, model: str) -> None:
    alone, _ = await _run(redis_url, MODEL_PROVIDER="local")
    openai = {"OPENAI_BASE_URL": model, "OPENAI_API_KEY": "none", "GENERATION_MODEL": "smollm2", "MODEL_TIMEOUT_SECONDS": 500}
    helped, facts = await _run(redis_url, MODEL_PROVIDER="openai", **openai)

    failed = {(result.name, failure.question, str(failure.check)) for result in alone for failure in result.failures}
    new = [
        f"{failure.question!r}: {failure.check}: {failure.why}\n{failure.answer_text}"
        for result in helped
        for failure in result.failures
        if (result.name, failure.question, str(failure.check)) not in failed
    ]
    assert sum(result.checks for result in helped) == sum(result.checks for result in alone) > 0
    assert not new, "\n".join(new)

    said = [message.content for scenario in _SCENARIOS for day in scenario.days for message in day.messages]
    for fact in facts:
        text, quotes = fact["text"], [evidence["quote"] for evidence in fact["evidence"]]
        assert fact["extracted_from"], text
        assert all(any(part in message for message in said) for quote in quotes for part in quote.splitlines()), quotes
        words = set(stems(text)) - set(stems("user users user's assistant"))
        held = set(stems(" ".join(quotes)))
        assert 2 * len(words & held) >= len(words), f"{text!r} has too little of {quotes}"
        assert {n.value for n in numbers(text) if n.kind == "plain"} <= {n.value for n in numbers(" ".join(quotes))}
        assert text not in (INVENTION, REPEATED_INSTRUCTION)
