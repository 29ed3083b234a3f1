"""Test the content of memory prompts with no model, a good model and a bad model.

`agent-memory-eval prompts tests/data/prompt_scenarios.yaml` prints failed checks with their
prompts. The scenarios in `tests/data/prompt_scenarios` were written later, from the documentation.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory_eval.api import Api
from agent_memory_eval.scenario_runner import ScenarioResult, ScenarioRun
from agent_memory_eval.scenarios import EXTRACTORS, Extractor, load_scenarios
from agent_memory_eval.scripted_model import model_server
from tests.support.stack import stack

# The first test waits until all scenarios have run.
pytestmark = pytest.mark.timeout(900)

_DATA = Path(__file__).parents[1] / "data"
SCENARIOS = [scenario for name in ("prompt_scenarios.yaml", "prompt_scenarios") for scenario in load_scenarios(_DATA / name)]
RUNS = [(scenario.name, extractor) for extractor in EXTRACTORS for scenario in SCENARIOS if scenario.concerns(extractor)]

Results = dict[tuple[str, Extractor], ScenarioResult]


async def _run(redis_url: str, extractor: Extractor, **model: str) -> Results:
    settings = load_settings(
        KEY_PREFIX=f"prompts-{extractor}", EMBEDDING_PROVIDER="local", EXTRACTION_DEBOUNCE_SECONDS=0, NEIGHBOURS_AFTER_SECONDS=0, **model
    )
    counter = await TokenCounter.open()
    async with stack(settings, redis_url) as url, Api(url) as api:
        results = await ScenarioRun(api, extractor, extractor, counter).run(SCENARIOS)
    return {(result.name, extractor): result for result in results}


@pytest.fixture(scope="module")
async def results(redis_url: str) -> Results:
    found = await _run(redis_url, "none", MODEL_PROVIDER="local")
    for extractor in ("perfect", "sloppy"):
        with model_server(SCENARIOS, extractor) as url:
            model = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-test-0000", "GENERATION_MODEL": "scripted"}
            found |= await _run(redis_url, extractor, MODEL_PROVIDER="openai", **model)
    return found


@pytest.mark.parametrize(("name", "extractor"), RUNS)
def test_prompts_pass_all_scenario_checks(results: Results, name: str, extractor: Extractor) -> None:
    result = results[name, extractor]
    failures = [f"{failure.question!r}: {failure.check}: {failure.why}\n{failure.answer_text}" for failure in result.failures]
    assert not failures, "\n".join(failures)


def test_scenario_names_are_unique() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)


def test_scenarios_cover_every_point_in_several_languages() -> None:
    groups = [group.checks for scenario in SCENARIOS for day in scenario.days for group in (*day.calls, *day.questions)]
    checks = [check for group in groups for check in group]
    assert len(checks) >= 500
    assert {str(number) for number in range(1, 10)} <= {check.point for check in checks}
    assert len({scenario.language for scenario in SCENARIOS}) >= 15
