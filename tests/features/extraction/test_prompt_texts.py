"""Compare prompts with reviewed copies, so that a changed prompt also gets a new version.

`python -m tests.features.extraction.test_prompt_texts` writes the files.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from agent_memory.features.extraction import prompts, reconcile_prompts, thread_prompts
from agent_memory.features.extraction.prompts import ExtractedFact, ExtractionTask, extract_messages, fill_template
from agent_memory.features.extraction.reconcile_prompts import ExistingNote, NewNote, ReconcileAnswer, reconcile_notes
from agent_memory.features.extraction.thread_prompts import ThreadSummary, summarize_thread
from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.text.data_fences import PromptMessage

FOLDER = Path(__file__).parents[2] / "data" / "prompts"
NOON = datetime(2024, 3, 5, 12, tzinfo=UTC)
NEW = [PromptMessage(1, "user", "I moved to Bergen.", NOON), PromptMessage(2, "tool", '{"n": 3}', NOON)]
BEFORE = [PromptMessage(-1, "assistant", "Where do you live?", NOON)]
RULES = ExtractionTask(
    strategy="preferences",
    instructions=["Only what concerns food.", "Never {names} of colleagues."],
    categories=[("food", "what somebody eats"), ("drink", "")],
    phrases=['sal"ary', "{0}"],
    zone=ZoneInfo("Asia/Tokyo"),
    language="German",
)
TEMPLATE = ' As {"allergy": [1]} from {message} at {current_datetime}; {unknown} {} '
CUSTOM = ExtractionTask(strategy="custom", custom=TEMPLATE, names={"message": "{unknown}"})
KEPT = ExistingNote("User lives in Oslo.", "semantic", "2024-01-01", "user.home_city")
INCOMING = [
    NewNote("User lives in Bergen.", "semantic", "2024-03-05", [1], "user.home_city"),
    NewNote("User moved.", "episodic", "2024-03-05", [1]),
]
PROMPTS: dict[str, tuple[str, list[ChatMessage]]] = {
    "extract-discrete": (prompts.VERSION, extract_messages(NEW, context=BEFORE)),
    "extract-preferences": (prompts.VERSION, extract_messages(NEW, task=RULES, max_facts=5)),
    "extract-custom": (prompts.VERSION, extract_messages(NEW, task=CUSTOM)),
    "reconcile": (reconcile_prompts.VERSION, reconcile_notes([KEPT], INCOMING)),
    "thread": (
        thread_prompts.VERSION,
        summarize_thread("So far.", NEW, max_words=100, instructions=["Be kind."], zone=ZoneInfo("Asia/Tokyo")),
    ),
}


def shown(version: str, messages: list[ChatMessage]) -> str:
    """Format a prompt as in its file."""
    return "\n\n".join([f"# {version}", *(f"## {message.role}\n{message.content}" for message in messages)]) + "\n"


@pytest.mark.parametrize("name", PROMPTS)
def test_prompt_matches_its_reviewed_text(name: str) -> None:
    assert shown(*PROMPTS[name]) == (FOLDER / f"{name}.txt").read_text("utf-8")


def test_template_values_are_not_expanded_again() -> None:
    assert fill_template("{a}{b} {c} {{a}}", {"a": "{b}", "b": "{a}"}) == "{b}{a} {c} {{b}}"
    assert fill_template("{a.b} {a!r} {}", {"a": "x"}) == "{a.b} {a!r} {}"
    assert fill_template("{a}", {}) == "{a}"


def test_invalid_optional_fields_of_a_fact_are_dropped() -> None:
    fact = ExtractedFact.model_validate(
        {"text": "x", "slot": ["a"], "category": 5, "speaker": " ", "valid_from": "soon", "valid_to": 7, "expires": "2024-03-05"}
    )
    assert (fact.slot, fact.category, fact.speaker, fact.valid_from, fact.valid_to) == (None, None, None, None, None)
    assert fact.expires == "2024-03-05T00:00:00"


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"decisions": "none"},
        {"decisions": [{"n": 1, "action": "DELETE", "of": [1]}]},
        {"decisions": [{"n": "one", "action": "ADD", "of": []}]},
        {"decisions": [{"n": 1, "action": "NONE", "of": ["01HZX"]}]},
    ],
)
def test_malformed_decisions_are_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        ReconcileAnswer.model_validate(value)


def test_empty_thread_summary_is_refused() -> None:
    assert ThreadSummary.model_validate({"summary": "s", "topics": ["a,b", "a b"]}).topics == ["a b"]
    with pytest.raises(ValidationError):
        ThreadSummary.model_validate({"summary": ""})


if __name__ == "__main__":
    for prompt, parts in PROMPTS.items():
        (FOLDER / f"{prompt}.txt").write_text(shown(*parts), "utf-8")
