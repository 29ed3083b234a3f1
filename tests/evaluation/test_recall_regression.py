"""Recall on conversations of our own, through the public API of a real server: a change that finds less is seen here first.

`agent-memory-eval tests/data/recall_conversations.json --entrance both` prints what is compared with the floors. They lie a few points
below what was measured, since small changes of the model's arithmetic move single questions.
"""

from __future__ import annotations

import pytest

from agent_memory_eval.report import groups, report_of
from agent_memory_eval.runner import Entrance
from tests.evaluation.conftest import Known

FLOORS = {"R@5": 0.90, "R@10": 0.94, "R@50": 0.99, "MRR": 0.73}


@pytest.mark.parametrize("entrance", ["memories", "sessions"])
async def test_evidence_is_found(known: Known, entrance: Entrance) -> None:
    run = known.runs[entrance]
    assert run.errors == []
    assert len(run.answers) == sum(len(conversation.questions) for conversation in known.conversations)
    found = groups(run.answers, "turn")["all"]
    assert {name: found[name] for name, floor in FLOORS.items() if found[name] < floor} == {}, f"below the floors: {found}"


@pytest.mark.parametrize("entrance", ["memories", "sessions"])
async def test_the_right_session_is_found(known: Known, entrance: Entrance) -> None:
    found = groups(known.runs[entrance].answers, "session")["all"]
    assert found["R@5"] >= 0.97, found


@pytest.mark.parametrize("entrance", ["memories", "sessions"])
async def test_prompts_hold_evidence(known: Known, entrance: Entrance) -> None:
    prompt = report_of(known.runs[entrance], "own")["prompt"]
    assert prompt["evidence"]["all"]["share"] >= 0.97, prompt
    assert prompt["tokens"]["max"] <= 4000, prompt


async def test_nothing_of_another_user_comes_back(known: Known) -> None:
    for run in known.runs.values():
        for answer in run.answers:
            assert not [name for name in answer.ranked if name.startswith("?")], answer.question.text
