"""Test that hosted memory services' clients remember data across processes."""

from __future__ import annotations

import time
from uuid import uuid4

import pytest

from tests.integrations.conftest import ROOT, ModelServer
from tests.integrations.test_pages import run

TRAINER, COACH = str(ROOT / "examples" / "supermemory_trainer.py"), str(ROOT / "examples" / "mem0_coach.py")
HOME = "I only train at home, no gym."


def run_until(wanted: str, *command: str, said: str, **environment: str) -> str:
    """Rerun a program until its output contains `wanted`, and return the output."""
    ends = time.monotonic() + 60
    while wanted not in (printed := run(*command, said=said, **environment)):
        assert time.monotonic() < ends, printed
    return printed


def test_trainer_example_remembers_in_another_process(server_url: str) -> None:
    athlete = f"a-{uuid4()}"
    told = {"SUPERMEMORY_BASE_URL": server_url, "SUPERMEMORY_API_KEY": "local"}
    run(TRAINER, "--athlete", athlete, said=f"Performed bench press: 4 sets of 5 reps at 185.0 lbs\n{HOME}\n", **told)
    question = "What should I do for my workout today?\n"
    printed = run_until(HOME, TRAINER, "--athlete", athlete, said=question, **told)
    assert "bench press" in printed
    assert "Nothing is known yet." in run(TRAINER, "--athlete", f"{athlete}-2", said=question, **told)


def test_trainer_agent_uses_tools_and_keeps_its_session(server_url: str, model: ModelServer) -> None:
    athlete = f"a-{uuid4()}"
    told = {
        "SUPERMEMORY_BASE_URL": server_url,
        "SUPERMEMORY_API_KEY": "local",
        "OPENAI_BASE_URL": model.url,
        "OPENAI_API_KEY": "sk-test-0000",
    }
    model.script += [{"name": "log_workout", "arguments": {"text": HOME}}, "Logged."]
    assert run(TRAINER, "--athlete", athlete, said=f"{HOME}\n", **told) == "Logged.\n"
    run_until(HOME, TRAINER, "--athlete", athlete, said="What do I do today?\n", **(told | {"OPENAI_BASE_URL": "", "OPENAI_API_KEY": ""}))
    model.script[:] = [{"name": "suggest_next_session", "arguments": {"question": "What should I do today?"}}, "Push-ups at home."]
    assert run(TRAINER, "--athlete", athlete, said="What should I do today?\n", **told) == "Push-ups at home.\n"
    asked = model.asked[-1]["messages"]
    assert HOME in next(message["content"] for message in reversed(asked) if message["role"] == "tool")
    assert "Logged." in str(asked)


@pytest.mark.parametrize("with_model", [False, True])
def test_coach_example_remembers_the_runner_and_its_style(server_url: str, model: ModelServer, *, with_model: bool) -> None:
    runner = f"r-{uuid4()}"
    keyless = {"MEM0_TELEMETRY": "False"}
    told = keyless | ({"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test-0000"} if with_model else {})
    command = (COACH, "--host", server_url, "--runner", runner)
    goal = "I want to run a marathon in under 4 hours"
    run(*command, said=f"hey\n{goal}\ncool thanks\n", **told)
    question = "What is my marathon goal?\n"
    printed = run_until(goal, *command, said=question, **keyless)
    assert "one workout at a time" in printed
    assert "cool thanks" not in printed
    if with_model:
        model.script[:] = ["Under four hours."]
        assert run(*command, said=question, **told) == "Under four hours.\n"
        assert goal in model.asked[-1]["messages"][0]["content"]
