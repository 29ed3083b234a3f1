"""A file in LongMemEval's public format, as its authors publish it, through the evaluation and a real server; the talk in it is our own."""

from __future__ import annotations

from pathlib import Path

from agent_memory.llm.tokens import TokenCounter
from agent_memory_eval.datasets import load
from agent_memory_eval.report import groups, report_of
from agent_memory_eval.runner import Options, run
from tests.evaluation.conftest import Known

FILE = Path(__file__).parents[1] / "data" / "longmemeval_sample.json"


async def test_a_file_in_the_public_format_is_measured(known: Known) -> None:
    conversations = load(FILE)
    assert [(one.id, len(one.questions)) for one in conversations] == [("a1f0c2d4", 1), ("b77e01aa", 1), ("c0ffee12_abs", 0)]
    found = await run(Options(known.url, "longmemeval"), conversations, await TokenCounter.open(), lambda *_: None)
    assert found.errors == []
    assert found.turns == sum(len(one.turns) for one in conversations)
    for unit in ("turn", "session"):
        of = groups(found.answers, unit)
        assert {"all", "single-session-user", "temporal-reasoning"} <= of.keys()
        assert of["all"]["R@5"] == 1.0, of
    assert report_of(found, FILE.name)["prompt"]["evidence"]["all"]["share"] == 1.0
