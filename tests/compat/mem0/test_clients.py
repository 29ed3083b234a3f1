"""Run Mem0's unmodified clients, in the latest version and the tutorials' version."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from agent_memory.foundation.core.settings import load_settings
from tests.support.foreign_clients import run_program
from tests.support.lookalike import Lookalike
from tests.support.stack import stack

PROGRAM = Path(__file__).parent / "coach_program.py"
LINES = ("2", "1", "0.1")
pytestmark = pytest.mark.integrations


async def run_coach(line: str, home: Path, url: str, kind: str) -> dict[str, Any]:
    """Run the coach program with one release line of the client."""
    return await run_program(PROGRAM, f"mem0-{line}", url, "any-key", kind, MEM0_TELEMETRY="False", MEM0_DIR=str(home))


@pytest.fixture
async def keyless_url(redis_url: str, request: pytest.FixtureRequest) -> AsyncGenerator[str]:
    settings = load_settings(
        KEY_PREFIX=f"mem0-{id(request)}",
        MODEL_PROVIDER="local",
        EMBEDDING_PROVIDER="local",
        COMPAT_APIS="mem0",
    )
    async with stack(settings, redis_url) as url:
        yield url


@pytest.mark.parametrize("line", LINES)
async def test_coach_program_works_without_a_model(keyless_url: str, line: str, tmp_path: Path) -> None:
    check_coach(await run_coach(line, tmp_path, keyless_url, "keyless"))


async def test_coach_program_works_with_a_model(
    redis_url: str, lookalike: Lookalike, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    settings = load_settings(
        KEY_PREFIX=f"mem0-{id(request)}-model",
        OPENAI_BASE_URL=lookalike.url,
        OPENAI_API_KEY="test",
        EMBEDDING_PROVIDER="local",
        COMPAT_APIS="mem0",
    )
    goal, knee = "Anna wants to run a marathon in under 4 hours", "Anna's left knee hurts when she runs downhill"
    changed = "Anna wants to run a marathon under 3:45"
    lookalike.scripted.facts = {
        "I want to run a marathon in under 4 hours": [{"text": goal, "category": "goals"}],
        "My left knee hurts when I run downhill": [{"text": knee, "category": "constraints"}],
        "Make that marathon under 3:45 now": [{"text": changed, "category": "goals"}],
    }
    lookalike.scripted.decisions = {changed: ["SUPERSEDE", goal]}
    lookalike.scripted.silent = True
    async with stack(settings, redis_url) as url:
        seen = await run_coach("2", tmp_path, url, "model")
    check_coach(seen)
    assert seen["goals"] == [changed]
    assert seen["goal_history"] == [goal, changed]


def check_coach(seen: dict[str, Any]) -> None:
    """Check the results that all runs of the coach must have in common."""
    assert seen["project"] == {
        "custom_instructions": "Remember what matters for training.",
        "custom_categories": [
            {"goals": "races and times that the runner aims for"},
            {"constraints": "injuries, pain, what the runner must avoid"},
        ],
    }
    assert len(seen["facts"]) == 1
    assert "marathon in under 4 hours" in seen["facts"][0]
    assert seen["fact_metadata"]["source"] == "chat"
    assert seen["goal"] == seen["facts"]
    assert 0 < seen["score"] <= 1
    (constraint,) = seen["constraints"]
    assert "left knee hurts" in constraint
    assert seen["knee_categories"] == ["constraints"]
    for coach, style in (("coach", "Short answers, one workout at a time"), ("other-coach", "Long answers with the reasons")):
        assert [text for text in seen[f"for_{coach}"] if "answers" in text] == [style]
        assert "10x400m intervals on the track" in seen[f"for_{coach}"]
    assert seen["async"] == seen["async_all"] == ["Bora likes hill sprints"]
    assert seen["async_after"] == []
    assert seen["by_metadata"] == seen["not"] == ["10x400m intervals on the track"]
    assert seen["or"] == 2
    assert seen["coach"] == ["Short answers, one workout at a time"]
    assert seen["both"] == 4
    assert seen["healing"] == ["Ankle is sprained"]
    assert seen["expires"]
    assert seen["boston"] == ["Boston starts in corral three"]
    assert seen["boston_after"] == []
    assert seen["nyc_after"] == ["New York starts in wave two"]
    assert seen["updated"] == "12x400m intervals on the track"
    old, new = "10x400m intervals on the track", "12x400m intervals on the track"
    assert seen["history"] == [["ADD", None, old], ["UPDATE", old, new]]
    assert seen["batch_updated"] == "8x400m intervals on the track"
    assert seen["entities"] == [["agent", "coach"], ["agent", "other-coach"], ["run", "nyc-2025"], ["user", "anna"]]
    assert "not found" in seen["missing"]
    assert "POST /v1/summary is not supported" in seen["unsupported"]
    assert seen["profile"] == "anna"
    assert seen["anna_after"] == []
    assert seen["coach_after"] == ["Short answers, one workout at a time"]
