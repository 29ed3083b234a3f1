"""Test that the scripted model finds its facts in the server's real prompts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from agent_memory.features.extraction.prompts import extract_messages
from agent_memory.features.extraction.reconcile_prompts import ExistingNote, NewNote, reconcile_notes
from agent_memory.features.sessions.prompts import summarize_messages
from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.text.data_fences import PromptMessage
from agent_memory_eval.scenarios import Scenario, load_scenarios
from agent_memory_eval.scripted_model import INVENTION, REPEATED_INSTRUCTION, Habits, ScenarioModel, model_server

_OLD = {"text": "User lives in Oslo.", "slot": "user.home", "value": "oslo"}
_NEW = {"text": "User lives in Bergen.", "slot": "user.home", "value": "bergen", "event_date": "2025-03-01"}
_SAID = [{"user": "I live in Oslo.", "facts": [_OLD]}, {"user": "Please remember that I moved to Bergen.", "facts": [_NEW]}]


def _scenarios(folder: Path, *days: Any) -> list[Scenario]:
    path = folder / "scenarios.yaml"
    path.write_text(yaml.safe_dump([{"name": "x", "days": [{"at": "2025-03-03", "say": say} for say in days or (_SAID,)]}]))
    return load_scenarios(path)


def _prompt(messages: list[ChatMessage]) -> str:
    return "\n".join(message.content for message in messages)


def _extracted(model: ScenarioModel, *said: tuple[str, str]) -> list[dict[str, Any]]:
    now = datetime(2025, 3, 3, tzinfo=UTC)
    messages = [PromptMessage(number, role, text, now) for number, (role, text) in enumerate(said, start=1)]
    return json.loads(model.answer(_prompt(extract_messages(messages))))["memories"]


def test_perfect_model_returns_facts_and_cites_messages(tmp_path: Path) -> None:
    model = ScenarioModel(_scenarios(tmp_path), "perfect")
    facts = _extracted(model, ("user", "Hello."), ("user", "I live in Oslo."), ("user", "I moved to Bergen."))
    assert [(fact["text"], fact["slot"], fact["messages"]) for fact in facts] == [
        ("User lives in Oslo.", "user.home", [2]),
        ("User lives in Bergen.", "user.home", [3]),
    ], "a message of which a part is shown holds its facts, too"
    assert facts[1]["event_date"] == "2025-03-01"


def test_sloppy_model_adds_invented_facts(tmp_path: Path) -> None:
    model = ScenarioModel(_scenarios(tmp_path), "sloppy")
    facts = _extracted(model, ("user", "I live in Oslo."), ("assistant", "Oslo has a fine opera."), ("user", "I moved to Bergen."))
    texts = [fact["text"] for fact in facts]
    assert texts == ["User lives in Oslo.", "User lives in Bergen.", "Oslo has a fine opera.", REPEATED_INSTRUCTION, INVENTION]
    assert facts[3]["messages"] == [1, 2, 3]


@pytest.mark.parametrize(("habits", "actions"), [("perfect", ["SUPERSEDE", "NONE"]), ("sloppy", ["ADD", "ADD"])])
def test_facts_are_compared_by_slot_and_value(habits: Habits, actions: list[str], tmp_path: Path) -> None:
    model = ScenarioModel(_scenarios(tmp_path), habits)
    kept = [ExistingNote("User lives in Oslo.", "semantic", "2025-03-01", "user.home")]
    new = [NewNote(text, "semantic", "2025-03-03", [1], "user.home") for text in ("User lives in Bergen.", "User lives in Oslo.")]
    decisions = json.loads(model.answer(_prompt(reconcile_notes(kept, new))))["decisions"]
    assert [decision["action"] for decision in decisions] == actions
    assert [decision["of"] for decision in decisions] == [[1] if action != "ADD" else [] for action in actions]


def test_summary_contains_previous_summary_and_messages(tmp_path: Path) -> None:
    model = ScenarioModel(_scenarios(tmp_path), "perfect")
    leaving = [PromptMessage(1, "user", "I bake cakes.", datetime(2025, 3, 3, tzinfo=UTC))]
    answer = json.loads(model.answer(_prompt(summarize_messages("They spoke of apples.", leaving, max_words=50))))
    assert answer["summary"] == "They spoke of apples.\nuser said: I bake cakes."


def test_same_message_with_different_facts_is_refused(tmp_path: Path) -> None:
    scenarios = _scenarios(tmp_path, _SAID, [{"user": "i live in oslo.", "facts": []}])
    with pytest.raises(StartupError, match="with different facts"):
        ScenarioModel(scenarios, "perfect")


def test_scripted_model_answers_over_http(tmp_path: Path) -> None:
    with model_server(_scenarios(tmp_path), "perfect") as url, httpx.Client(trust_env=False) as client:
        prompt = _prompt(extract_messages([PromptMessage(1, "user", "I live in Oslo.", datetime(2025, 3, 3, tzinfo=UTC))]))
        body = {"model": "scripted", "messages": [{"role": "user", "content": prompt}]}
        answer = client.post(f"{url}/chat/completions", json=body).json()
        assert "User lives in Oslo." in answer["choices"][0]["message"]["content"]
        assert client.get(f"{url}/models").status_code == 404
