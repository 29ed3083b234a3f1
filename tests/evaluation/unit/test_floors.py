"""Test the minimum values for a question set."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_memory.foundation.core.errors import StartupError
from agent_memory_eval.floors import judge, load_floors
from agent_memory_eval.metrics import Estimate
from agent_memory_eval.report import EVERY, NONE

REPORT = {
    EVERY: {"R@10": Estimate(0.8, 0.7, 0.9, 50), "MRR": Estimate(0.5494, 0.5, 0.6, 50)},
    NONE: {"nothing shown": Estimate(0.6, 0.5, 0.7, 40)},
}


def test_full_run_is_judged_by_mean_and_sample_by_interval() -> None:
    floors = {"R@10": 80, "MRR": 55, "nothing shown": 60, "precision": 99}
    assert [str(result) for result in judge(REPORT, floors, sampled=False)] == [
        "holds R@10: 80.0 % (at least 80 %)",
        "BELOW MRR: 54.9 % (at least 55 %)",
        "holds nothing shown: 60.0 % (at least 60 %)",
    ]
    assert all(result.holds for result in judge(REPORT, floors, sampled=True))
    assert not judge(REPORT, {"R@10": 90.1}, sampled=True)[0].holds


def test_default_floors_can_be_loaded() -> None:
    assert all("R@10" in figures for figures in load_floors(None).values())


@pytest.mark.parametrize("text", ["[x]\nR = 5", '[x]\n"R@10" = "5"', '[x]\n"R@10" = 101', "x = 5", "["])
def test_invalid_floor_is_refused_with_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "floors.toml").write_text(text)
    with pytest.raises(StartupError, match=r"floors\.toml") as caught:
        load_floors(tmp_path / "floors.toml")
    assert "\n" not in caught.value.message
