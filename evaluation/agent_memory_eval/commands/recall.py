"""Implement `agent-memory-eval recall`, which compares a server with simple baselines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ulid import ULID

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.profiles import profile_of
from agent_memory.foundation.llm.providers import open_models
from agent_memory.foundation.llm.wrappers.caching import CachingEmbedder
from agent_memory.foundation.llm.wrappers.profiled import ProfiledEmbedder
from agent_memory_eval.api import Api
from agent_memory_eval.baselines import Baselines
from agent_memory_eval.commands.server import evaluation_server
from agent_memory_eval.crowd import check_crowd, crowd_of
from agent_memory_eval.floors import Floors, judge, load_floors
from agent_memory_eval.question_sets import QuestionSet, load_all
from agent_memory_eval.report import SetReport, report_of, set_table, summary_table, values_of
from agent_memory_eval.runner import EvaluationRun, Row, Via, choose


@dataclass(frozen=True, slots=True)
class RecallOptions:
    paths: Sequence[Path]
    sets: Sequence[str]
    questions: int | None
    prompts: int
    base_url: str | None
    via: Via
    baselines: bool
    crowd: int
    floors: Path | None
    json: Path | None


def evaluate(options: RecallOptions) -> int:
    """Measure recall and print the results. Return 1 if a floor or the crowd check fails.

    Raises StartupError.
    """
    floors = load_floors(options.floors)
    if options.json is not None and not options.json.absolute().parent.is_dir():
        raise StartupError(f"{options.json} cannot be written: there is no directory {options.json.parent}")
    question_sets = load_all(options.paths)
    with evaluation_server(options.base_url) as url:
        return asyncio.run(_evaluate(options, question_sets, _selected(question_sets, options.sets), floors, url))


def _selected(question_sets: Sequence[QuestionSet], names: Sequence[str]) -> list[QuestionSet]:
    if unknown := set(names) - {one.name for one in question_sets}:
        raise StartupError(f"unknown set {min(unknown)!r}, choose from {', '.join(one.name for one in question_sets)}")
    return [one for one in question_sets if not names or one.name in names]


async def _evaluate(
    options: RecallOptions, question_sets: Sequence[QuestionSet], chosen: Sequence[QuestionSet], floors: Floors, url: str
) -> int:
    name = f"eval-{str(ULID()).lower()}"
    measured: dict[str, tuple[EvaluationRun, Sequence[Row]]] = {}
    reports: dict[str, SetReport] = {}
    async with Api(url) as api, _baselines(api, enabled=options.baselines) as baselines:
        for one in chosen:
            run, rows = EvaluationRun(api, f"{name}-{one.name}", options.via), choose(one, options.questions, options.prompts)
            await run.measure(rows, baselines)
            measured[one.name], reports[one.name] = (run, rows), report_of(rows)
            print(f"{set_table(one.name, reports[one.name])}\n", flush=True)
        others = EvaluationRun(api, f"{name}-crowd")
        crowded = await check_crowd(measured, crowd_of(question_sets, options.crowd), others) if options.crowd else {}
    judged = {one: judge(report, floors[one], sampled=options.questions is not None) for one, report in reports.items() if one in floors}
    print(summary_table(reports, {one: [result.figure for result in results if not result.holds] for one, results in judged.items()}))
    if options.json is not None:
        values = {one: values_of(report, measured[one][1]) for one, report in reports.items()}
        options.json.write_text(json.dumps({"sets": values}, ensure_ascii=False) + "\n", encoding="utf-8")
    failures = [f"{one}: {result}" for one, results in judged.items() for result in results if not result.holds]
    failures += [f"{one}: {result}" for one, result in crowded.items() if not result.holds]
    print("".join(f"\n{one}: {result}" for one, result in crowded.items() if result.holds), end="")
    print("".join(f"\n{line}" for line in failures))
    return 1 if failures else 0


@asynccontextmanager
async def _baselines(api: Api, *, enabled: bool) -> AsyncGenerator[Baselines | None]:
    """Yield the baselines. Raises StartupError if the server uses a different embedding model."""
    if not enabled:
        yield None
        return
    models = await open_models(load_settings())
    embedder = ProfiledEmbedder(CachingEmbedder(models.embedder, entries=0), profile_of(models.embedder.model))
    try:
        server_models = str((await api.call("GET", "/v1/ready"))["checks"].get("models", ""))
        if embedder.model not in server_models:
            raise StartupError(f"the server uses {server_models or 'unknown models'}, the settings {embedder.model}: use --no-baselines")
        yield Baselines(embedder)
    finally:
        await models.close()
