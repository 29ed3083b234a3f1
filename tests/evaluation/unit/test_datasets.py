"""Both public formats, in small samples of our own, and files that are in neither."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_memory.core.errors import StartupError
from agent_memory_eval.datasets import load, parse, sessions_of

DATA = Path(__file__).parents[2] / "data"


def locomo() -> dict[str, Any]:
    """A sample in LoCoMo's format, with the oddities of the published files."""
    return {
        "sample_id": "s1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bo",
            "session_10_date_time": "1:56 pm on 8 May, 2023",
            "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "The tenth."}],
            "session_2_date_time": "12:05 am on 1 May, 2023",
            "session_2": [
                {"speaker": "Ann", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a red kite"},
                {"speaker": "Bo", "dia_id": "D2:2", "text": "Nice."},
            ],
            "session_3_date_time": "1:00 pm on 2 May, 2023",
        },
        "qa": [
            {"question": "What did Ann show?", "evidence": ["D2:1; D:10:1"], "category": 1},
            {"question": "Nobody knows", "evidence": ["D9:9"], "category": 4},
            {"question": "What did Bo show?", "evidence": ["D2:1"], "category": 5, "adversarial_answer": "a kite"},
        ],
    }


def test_locomo() -> None:
    (found,) = parse([locomo()])
    assert found.id == "s1"
    assert [(turn.id, turn.session, turn.role) for turn in found.turns] == [
        ("D2:1", "2", "user"),
        ("D2:2", "2", "assistant"),
        ("D10:1", "10", "assistant"),
    ]
    assert found.turns[0].text == "Ann: Look! [shares a red kite]"
    assert found.turns[0].when == datetime(2023, 5, 1, 0, 5, tzinfo=UTC)
    assert found.turns[1].when > found.turns[0].when
    assert [(question.category, question.turns, question.sessions) for question in found.questions] == [
        ("multi-hop", {"D2:1", "D10:1"}, {"2", "10"}),
        ("adversarial", {"D2:1"}, {"2"}),
    ]
    assert list(sessions_of(found.turns)) == ["2", "10"]


def longmemeval(**changes: Any) -> dict[str, Any]:
    """A sample in LongMemEval's format."""
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


def test_longmemeval() -> None:
    found, unanswerable = parse([longmemeval(), longmemeval(question_id="q8_abs")])
    assert [(turn.id, turn.session) for turn in found.turns] == [
        ("noise_1#1", "noise_1"),
        ("noise_1#2", "noise_1"),
        ("answer_1#1", "answer_1"),
        ("answer_1#3", "answer_1"),
    ]
    assert found.turns[2].when == datetime(2023, 3, 5, 18, 21, tzinfo=UTC)
    (question,) = found.questions
    assert (question.category, question.turns, question.sessions) == ("temporal-reasoning", {"answer_1#1"}, {"answer_1"})
    assert question.asked == datetime(2023, 6, 1, 9, 30, tzinfo=UTC)
    assert unanswerable.questions == ()


def test_longmemeval_with_sessions_alone_labelled() -> None:
    sample = longmemeval()
    del sample["haystack_sessions"][1][0]["has_answer"], sample["question_date"]
    (question,) = parse([sample])[0].questions
    assert (question.turns, question.sessions, question.asked) == (frozenset(), {"answer_1"}, None)


def test_a_text_longer_than_a_memory_is_cut() -> None:
    sample = longmemeval()
    sample["haystack_sessions"][0][0]["content"] = "ü" * 70_000
    assert len(parse([sample])[0].turns[0].text.encode()) == 64 * 1024


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "[1]", '[{"conversation": 1}]', '[{"haystack_sessions": []}]', '[{"other": 1}]'])
def test_other_files_are_refused_in_one_line(content: str, tmp_path: Path) -> None:
    (tmp_path / "file.json").write_text(content)
    with pytest.raises(StartupError, match=r"file\.json") as caught:
        load(tmp_path / "file.json")
    assert "\n" not in caught.value.message


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="cannot be read"):
        load(tmp_path / "nothing.json")


def test_our_own_conversations_are_sound() -> None:
    found = load(DATA / "recall_conversations.json")
    raw = json.loads((DATA / "recall_conversations.json").read_text(encoding="utf-8"))
    assert [len(conversation.questions) for conversation in found] == [len(sample["qa"]) for sample in raw]
    assert all(len({turn.id for turn in conversation.turns}) == len(conversation.turns) for conversation in found)
    assert sum(len(question.turns) for conversation in found for question in conversation.questions) == sum(
        len(asked["evidence"]) for sample in raw for asked in sample["qa"]
    )
