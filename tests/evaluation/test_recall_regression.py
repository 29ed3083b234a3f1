"""Test recall on our own conversations through a real server's API.

To get new minimum values, run `agent-memory-eval recall tests/data/recall_conversations.json`. They
are a few points below the measured values, because small numerical changes affect some questions.
"""

from __future__ import annotations

import pytest

from agent_memory_eval.report import EVERY, report_of
from agent_memory_eval.runner import Via
from tests.evaluation.conftest import Known

FLOORS = {"R@10": 0.94, "R@50": 0.99, "MRR": 0.73, "evidence": 0.95}


@pytest.mark.parametrize("via", ["memories", "sessions"])
async def test_recall_figures_stay_above_their_floors(known: Known, via: Via) -> None:
    found = {name: figure.mean for name, figure in report_of(known.rows[via])[EVERY].items()}
    assert {name: found[name] for name, floor in FLOORS.items() if found[name] < floor} == {}, f"below the floors: {found}"


async def test_recall_never_returns_other_users_data(known: Known) -> None:
    for rows in known.rows.values():
        for row in rows:
            assert not [turn for turn in row.ranked if turn.startswith("?")], row.question.text
