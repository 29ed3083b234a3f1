"""Implement `agent-memory-eval prompts`, which runs scenarios and prints the failed checks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory_eval.api import Api, say
from agent_memory_eval.commands.server import evaluation_server
from agent_memory_eval.scenario_runner import ScenarioResult, ScenarioRun
from agent_memory_eval.scenarios import EXTRACTORS, Extractor, Scenario, load_scenarios
from agent_memory_eval.scripted_model import model_server

Chosen = Literal["none", "perfect", "sloppy", "configured"]
"""The extractor: none, the scripted model with either of its habits, or the model in the environment's settings."""

_NO_MODEL = {"MODEL_PROVIDER": "local", "OPENAI_BASE_URL": "", "OPENAI_API_KEY": "", "GENERATION_MODEL": ""}
# The conversation's day is over, so background work need not wait for further messages.
_AT_ONCE = {"EXTRACTION_DEBOUNCE_SECONDS": "0", "NEIGHBOURS_AFTER_SECONDS": "0"}


def evaluate_prompts(file: Path, chosen: Chosen | Literal["all"], names: Sequence[str], *, as_json: bool) -> int:
    """Run scenarios and print the results. Return 1 if a check failed, otherwise 0.

    Raises StartupError.
    """
    scenarios = _selected(load_scenarios(file), names)
    extractors: Sequence[Chosen] = EXTRACTORS if chosen == "all" else (chosen,)
    runs: dict[Chosen, list[ScenarioResult]] = {extractor: asyncio.run(_results(scenarios, extractor)) for extractor in extractors}
    if as_json:
        print(json.dumps({"file": file.name, "runs": {name: _run_values(results) for name, results in runs.items()}}, ensure_ascii=False))
    else:
        for name, results in runs.items():
            _show(name, results)
    return 1 if any(result.failures for results in runs.values() for result in results) else 0


def _selected(scenarios: list[Scenario], names: Sequence[str]) -> list[Scenario]:
    scenario_names = {scenario.name for scenario in scenarios}
    if unknown := [name for name in names if name not in scenario_names]:
        raise StartupError(f"unknown scenario {unknown[0]!r}")
    return [scenario for scenario in scenarios if not names or scenario.name in names]


async def _results(scenarios: Sequence[Scenario], chosen: Chosen) -> list[ScenarioResult]:
    counter = await TokenCounter.open()
    with _server(scenarios, chosen) as url:
        async with Api(url) as api:
            # Checks that apply to every extractor must also pass with a real model, whose facts are unpredictable.
            extractor: Extractor = "none" if chosen == "configured" else chosen
            return await ScenarioRun(api, f"eval-{chosen}", extractor, counter).run(scenarios, _say_day)


@contextmanager
def _server(scenarios: Sequence[Scenario], chosen: Chosen) -> Generator[str]:
    """Start a server with the given extractor and yield its URL."""
    if chosen == "configured":
        with evaluation_server(settings=_AT_ONCE) as url:
            yield url
    elif chosen == "none":
        with evaluation_server(settings={**_AT_ONCE, **_NO_MODEL, "EMBEDDING_PROVIDER": "local"}) as url:
            yield url
    else:
        with model_server(scenarios, chosen) as model_url:
            model = {"MODEL_PROVIDER": "openai", "OPENAI_BASE_URL": model_url, "OPENAI_API_KEY": "sk-none", "GENERATION_MODEL": "scripted"}
            with evaluation_server(settings={**_AT_ONCE, **model, "EMBEDDING_PROVIDER": "local"}) as url:
                yield url


def _say_day(number: int, total: int) -> None:
    say(f"day {number} of {total}")


def _run_values(results: Sequence[ScenarioResult]) -> dict[str, Any]:
    failures = [
        {
            "scenario": result.name,
            "point": failure.check.point,
            "question": failure.question,
            "check": {failure.check.kind: failure.check.value},
            "why": failure.why,
            "shown": failure.answer_text,
        }
        for result in results
        for failure in result.failures
    ]
    checks = sum(result.checks for result in results)
    return {"scenarios": len(results), "checks": checks, "passed": checks - len(failures), "failures": failures}


def _show(name: Chosen, results: Sequence[ScenarioResult]) -> None:
    for result in results:
        printed = ""
        for failure in result.failures:
            print(f"{name}: {result.name}: {failure.question!r}: {failure.check}: {failure.why}")
            if failure.answer_text != printed:
                print("".join(f"    {line}\n" for line in failure.answer_text.splitlines()), end="")
            printed = failure.answer_text
    checks, failed = sum(result.checks for result in results), sum(len(result.failures) for result in results)
    print(f"extractor {name}: {checks - failed} of {checks} checks hold in {len(results)} scenarios")
