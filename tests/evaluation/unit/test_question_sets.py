"""Test every question set format with small samples, and files in an unknown format."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_memory.foundation.core.errors import StartupError
from agent_memory_eval.question_sets import UNANSWERABLE, Conversation, load, load_all, parse

DATA = Path(__file__).parents[2] / "data"


def common(**changes: Any) -> dict[str, Any]:
    """Return a question set in the common format."""
    turn = {"id": "t1", "session": "s", "time": "2024-01-03T17:10:00Z", "role": "user", "text": "I moved."}
    asked = {"id": "q1", "text": "Who moved?", "time": None, "category": "fact/one", "evidence": ["t1"]}
    conversation = {"id": "c", "turns": [turn | {"speaker": "Ann"}], "questions": [asked | changes]}
    return {"name": "small", "language": "en", "conversations": [conversation]}


def locomo(sample_id: str = "s1", speaker: str = "Ann") -> dict[str, Any]:
    """Return a sample in LoCoMo's format, with the quirks of the published files."""
    return {
        "sample_id": sample_id,
        "conversation": {
            "speaker_a": speaker,
            "speaker_b": "Bo",
            "session_10_date_time": "1:56 pm on 8 May, 2023",
            "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "The tenth."}],
            "session_2_date_time": "12:05 am on 1 May, 2023",
            "session_2": [
                {"speaker": speaker, "dia_id": "D2:1", "text": "Look!", "blip_caption": "a red kite"},
                {"speaker": "Bo", "dia_id": "D2:2", "text": "Nice."},
            ],
            "session_3_date_time": "1:00 pm on 2 May, 2023",
        },
        "qa": [
            {"question": f"What did {speaker} show?", "evidence": ["D2:1; D:10:1"], "category": 1},
            {"question": "Nobody knows", "evidence": ["D9:9"], "category": 4},
            {"question": "What did Bo show?", "evidence": ["D2:1"], "category": 5, "adversarial_answer": "a kite"},
        ],
    }


def longmemeval(**changes: Any) -> dict[str, Any]:
    """Return a sample in LongMemEval's format."""
    return {
        "question_id": "q7",
        "question_type": "temporal-reasoning",
        "question": "When did I plant the pear tree?",
        "answer": "in March",
        "question_date": "2023/06/01 (Thu) 09:30",
        "haystack_session_ids": ["noise_1", "answer_1"],
        "haystack_dates": ["2023/03/01 (Wed) 08:00", "2023/03/05 (Sun) 18:21"],
        "haystack_sessions": [
            [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}],
            [
                {"role": "user", "content": "I planted a pear tree today.", "has_answer": True},
                {"role": "assistant", "content": "  "},
                {"role": "assistant", "content": "Lovely.", "has_answer": False},
            ],
        ],
        "answer_session_ids": ["answer_1"],
    } | changes


def conversations(data: object) -> tuple[Conversation, ...]:
    return parse(data, "file").conversations


def test_the_common_format_puts_the_speaker_before_the_text() -> None:
    found = parse(common(time="2024-02-01T08:00:00Z"), "file")
    (conversation,) = found.conversations
    assert (found.name, conversation.turns[0].text) == ("small", "Ann: I moved.")
    assert conversation.turns[0].time == datetime(2024, 1, 3, 17, 10, tzinfo=UTC)
    assert conversation.questions[0].time == datetime(2024, 2, 1, 8, 0, tzinfo=UTC)


def test_locomo_keeps_turns_in_order_and_drops_evidence_that_names_no_turn() -> None:
    (found,) = conversations([locomo()])
    assert [(turn.id, turn.session, turn.role) for turn in found.turns] == [
        ("D2:1", "2", "user"),
        ("D2:2", "2", "assistant"),
        ("D10:1", "10", "assistant"),
    ]
    assert found.turns[0].text == "Ann: Look! [shares a red kite]"
    assert found.turns[0].time == datetime(2023, 5, 1, 0, 5, tzinfo=UTC)
    assert found.turns[1].time > found.turns[0].time
    asked = [(question.category, question.evidence) for question in found.questions]
    assert asked == [("multi-hop", {"D2:1", "D10:1"}), ("adversarial", {"D2:1"})]


def test_locomo_asks_about_a_speaker_only_in_conversations_without_that_speaker() -> None:
    found = conversations([locomo(), locomo("s2", "Cleo")])
    borrowed = {one.id: [question.text for question in one.questions if question.category == UNANSWERABLE] for one in found}
    assert borrowed == {"s1": ["What did Cleo show?"], "s2": ["What did Ann show?"]}


def test_longmemeval_uses_labeled_turns_as_evidence_and_none_for_abstentions() -> None:
    found, unanswerable = conversations([longmemeval(), longmemeval(question_id="q8_abs")])
    assert [turn.id for turn in found.turns] == ["noise_1#1", "noise_1#2", "answer_1#1", "answer_1#3"]
    assert found.turns[2].time == datetime(2023, 3, 5, 18, 21, tzinfo=UTC)
    (question,) = found.questions
    assert (question.category, question.evidence) == ("temporal-reasoning", {"answer_1#1"})
    assert question.time == datetime(2023, 6, 1, 9, 30, tzinfo=UTC)
    assert [(asked.category, asked.evidence) for asked in unanswerable.questions] == [(UNANSWERABLE, frozenset())]


def test_longmemeval_omits_questions_without_labeled_turns() -> None:
    sample = longmemeval()
    del sample["haystack_sessions"][1][0]["has_answer"]
    assert [len(one.questions) for one in conversations([sample, longmemeval()])] == [0, 1]


def test_text_over_the_memory_limit_is_truncated() -> None:
    sample = longmemeval()
    sample["haystack_sessions"][0][0]["content"] = "ü" * 70_000
    assert len(conversations([sample])[0].turns[0].text.encode()) == 64 * 1024


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", "[1]", '[{"conversation": 1}]', '[{"haystack_sessions": []}]', '{"name": "x", "conversations": []}'],
)
def test_unknown_file_format_is_refused_with_one_line(content: str, tmp_path: Path) -> None:
    (tmp_path / "file.json").write_text(content)
    with pytest.raises(StartupError, match=r"file\.json") as caught:
        load(tmp_path / "file.json")
    assert "\n" not in caught.value.message


def test_evidence_that_names_no_turn_is_refused() -> None:
    with pytest.raises(ValueError, match="no turn t2"):
        parse(common(evidence=["t1", "t2"]), "file")


def test_folder_loads_all_its_files_and_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="no JSON file"):
        load_all([tmp_path])
    with pytest.raises(StartupError, match="cannot be read"):
        load_all([tmp_path / "nothing.json"])
    for name in ("b", "a"):
        (tmp_path / f"{name}.json").write_text(json.dumps(common() | {"name": name}))
    assert [one.name for one in load_all([tmp_path])] == ["a", "b"]


def test_own_conversations_load_with_all_evidence() -> None:
    found = load(DATA / "recall_conversations.json").conversations
    raw = json.loads((DATA / "recall_conversations.json").read_text(encoding="utf-8"))
    assert all(len({turn.id for turn in conversation.turns}) == len(conversation.turns) for conversation in found)
    evidence = [question.evidence for conversation in found for question in conversation.questions if question.evidence]
    assert len(evidence) == sum(len(sample["qa"]) for sample in raw)
    assert sum(map(len, evidence)) == sum(len(asked["evidence"]) for sample in raw for asked in sample["qa"])
