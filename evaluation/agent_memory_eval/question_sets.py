"""Read question sets: conversations, and questions with known evidence.

Supports our own format (docs/recall.md), LoCoMo and LongMemEval.

LoCoMo: Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents", ACL 2024.
LongMemEval: Wu et al., "LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory",
ICLR 2025.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from agent_memory.foundation.core.errors import StartupError

UNANSWERABLE = "unanswerable"
BORROWED = 40
"""The most questions without evidence that a LoCoMo file gets from other conversations."""
_LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_MAX_TEXT_BYTES = 64 * 1024
_SEED = 31


@dataclass(frozen=True, slots=True)
class Turn:
    """A message in a conversation. `role` is "user" or "assistant".

    If the speaker has a name, the text starts with it.
    """

    id: str
    session: str
    role: str
    text: str
    time: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the ids of its evidence turns, and the time it is asked, if that matters.

    A question with no evidence has no answer.
    """

    id: str
    text: str
    category: str
    evidence: frozenset[str]
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A user's turns in order, and the questions about them."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The conversations in a file. `name` determines which floors apply."""

    name: str
    conversations: tuple[Conversation, ...]


def load_all(paths: Sequence[Path]) -> list[QuestionSet]:
    """Load the given files and all JSON files in the given folders. Raises StartupError."""
    files = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    if not files:
        raise StartupError(f"{', '.join(map(str, paths))}: contains no JSON file")
    return [load(file) for file in files]


def load(path: Path) -> QuestionSet:
    """Load a file in any supported format. Raises StartupError."""
    try:
        data: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StartupError(f"{path} cannot be read: {error}") from error
    try:
        return parse(data, path.stem)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise StartupError(f"{path} is not a question set: {type(error).__name__} {error}") from error


def parse(data: object, name: str) -> QuestionSet:
    """Parse a question set. Raises ValueError, KeyError or TypeError if the format is wrong."""
    if isinstance(data, dict):
        values = cast("Mapping[str, Any]", data)
        question_set = QuestionSet(values["name"], tuple(map(_conversation, values["conversations"])))
    elif isinstance(data, list) and data:
        samples = cast("list[Mapping[str, Any]]", data)
        if "haystack_sessions" in samples[0]:
            question_set = QuestionSet(name, tuple(map(_longmemeval, samples)))
        else:
            question_set = QuestionSet(name, _with_borrowed_questions([_locomo(sample) for sample in samples]))
    else:
        raise ValueError("must be an object or a list of samples")
    if not any(conversation.questions for conversation in question_set.conversations):
        raise ValueError("contains no question")
    return question_set


def _conversation(values: Mapping[str, Any]) -> Conversation:
    turns = tuple(
        Turn(turn["id"], str(turn["session"]), turn["role"], _text(turn.get("speaker"), turn["text"]), _time(turn["time"]))
        for turn in values["turns"]
    )
    questions = tuple(
        Question(
            question["id"],
            question["text"],
            question["category"],
            frozenset(question["evidence"]),
            _time(question["time"]) if question.get("time") else None,
        )
        for question in values["questions"]
    )
    if unknown := frozenset().union(*(question.evidence for question in questions)) - {turn.id for turn in turns}:
        raise ValueError(f"{values['id']} has no turn {min(unknown)}")
    return Conversation(values["id"], turns, questions)


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _text(speaker: str | None, text: str) -> str:
    """Prefix a turn's text with the speaker's name, and truncate it to the maximum memory size."""
    turn_text = f"{speaker}: {text}" if speaker else text
    return turn_text if len(turn_text) <= _MAX_TEXT_BYTES // 4 else turn_text.encode()[:_MAX_TEXT_BYTES].decode(errors="ignore")


def _locomo(sample: Mapping[str, Any]) -> Conversation:
    conversation = sample["conversation"]
    turns: list[Turn] = []
    for number in sorted(int(key.split("_")[1]) for key in conversation if re.fullmatch(r"session_\d+", key)):
        # The data has no time zone. A session's turns are a second apart, so that their times preserve their order.
        start = datetime.strptime(conversation[f"session_{number}_date_time"].strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for second, turn in enumerate(conversation[f"session_{number}"]):
            picture = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            role = "user" if turn["speaker"] == conversation.get("speaker_a", turn["speaker"]) else "assistant"
            text = _text(turn["speaker"], turn["text"] + picture)
            turns.append(Turn(turn["dia_id"], str(number), role, text, start + timedelta(seconds=second)))
    turn_ids, name = {turn.id for turn in turns}, str(sample["sample_id"])
    questions: list[Question] = []
    for number, question in enumerate(sample.get("qa", [])):
        # Some entries contain several ids, or a misspelled id ("D:11:26"). Ids that match no turn are dropped.
        named = {f"D{int(a)}:{int(b)}" for entry in question["evidence"] for a, b in _EVIDENCE.findall(entry)}
        if evidence := frozenset(named & turn_ids):
            questions.append(Question(f"{name}-{number}", question["question"], _LOCOMO_CATEGORIES[question["category"]], evidence))
    return Conversation(name, tuple(turns), tuple(questions))


def _with_borrowed_questions(conversations: Sequence[Conversation]) -> tuple[Conversation, ...]:
    """Add unanswerable questions about speakers from other conversations."""
    rng = random.Random(_SEED)
    conversation_texts = ["\n".join(turn.text for turn in one.turns) for one in conversations]
    offers: list[tuple[Question, list[int]]] = []
    for giver in conversations:
        speakers = {turn.text.partition(":")[0] for turn in giver.turns}
        for question in giver.questions:
            named = [name for name in speakers if name in question.text]
            strangers = [number for number, text in enumerate(conversation_texts) if named and not any(name in text for name in named)]
            if strangers:
                offers.append((question, strangers))
    borrowed: dict[int, list[Question]] = {}
    for question, strangers in rng.sample(offers, min(BORROWED, len(offers))):
        other = replace(question, id=f"other-{question.id}", category=UNANSWERABLE, evidence=frozenset())
        borrowed.setdefault(rng.choice(strangers), []).append(other)
    return tuple(replace(one, questions=(*one.questions, *borrowed.get(number, ()))) for number, one in enumerate(conversations))


def _longmemeval(sample: Mapping[str, Any]) -> Conversation:
    turns: list[Turn] = []
    evidence: set[str] = set()
    for session, date, session_turns in zip(
        sample["haystack_session_ids"], sample["haystack_dates"], sample["haystack_sessions"], strict=True
    ):
        start = _longmemeval_time(date)
        for number, turn in enumerate(session_turns):
            if not turn["content"].strip():
                continue
            time = start + timedelta(seconds=number)
            turns.append(Turn(f"{session}#{number + 1}", str(session), turn["role"], _text(None, turn["content"]), time))
            if turn.get("has_answer"):
                evidence.add(turns[-1].id)
    name = str(sample["question_id"])
    category = UNANSWERABLE if name.endswith("_abs") else sample["question_type"]
    time = _longmemeval_time(sample["question_date"]) if sample.get("question_date") else None
    question = Question(name, sample["question"], category, frozenset() if category == UNANSWERABLE else frozenset(evidence), time)
    # Without labeled turns, the evidence is unknown, which is not the same as no evidence. Leave the question out.
    return Conversation(name, tuple(turns), (question,) if question.evidence or category == UNANSWERABLE else ())


def _longmemeval_time(text: str) -> datetime:
    """Parse a time such as "2023/05/20 (Sat) 02:21". Use UTC, because the data has no time zone."""
    return datetime.strptime(re.sub(r"\s*\(\w+\)\s*", " ", text).strip(), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)
