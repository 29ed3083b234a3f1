"""Floors under the figures of a report."""

from __future__ import annotations

import pytest

from agent_memory.core.errors import StartupError
from agent_memory_eval.floors import floors_of, judge_floors

REPORT = {
    "turn": {"all": {"n": 9, "R@10": 0.8, "MRR": 0.5499}, "without adversarial": {"n": 7, "R@10": 0.7649}},
    "session": {"all": {"n": 9, "R@10": 0.9}},
    "prompt": {"evidence": {"all": {"n": 9, "share": 0.85}}},
}


def test_a_floor_is_kept_by_what_is_not_below_it() -> None:
    kept = judge_floors(REPORT, "turn", floors_of("R@10=80, answerable:R@10=76.6,MRR=55,prompt=85,R@50=1"))
    assert [one.holds for one in kept] == [True, False, True, True, False]
    assert [str(one) for one in kept[:2]] == [
        "holds R@10, all: 80.0 % (at least 80 %)",
        "FAILS R@10, without adversarial: 76.5 % (at least 76.6 %)",
    ]
    assert "not measured" in str(kept[-1])
    assert judge_floors(REPORT, "session", floors_of("R@10=90"))[0].holds
    assert not judge_floors(REPORT | {"prompt": None}, "turn", floors_of("prompt=1"))[0].holds


def test_no_floors_are_none() -> None:
    assert floors_of(None) == floors_of("") == []


@pytest.mark.parametrize("text", ["R@10", "R@10=", "R@10=101", "R@10=-1", "R@10=nan", "everyone:R@10=5", "P@10=5", "answerable:=5"])
def test_what_is_no_floor_is_refused_with_the_form_of_one(text: str) -> None:
    with pytest.raises(StartupError, match="FIGURE=PERCENT"):
        floors_of(text)
