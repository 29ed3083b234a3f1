"""Conversations with questions whose evidence is known, read from files in the public formats of LoCoMo and LongMemEval. Pure.

LoCoMo: Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents", ACL 2024.
LongMemEval: Wu et al., "LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory", ICLR 2025.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from agent_memory.core.errors import StartupError

LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""The numbers in the files. 5 asks about the wrong speaker on purpose: its questions have evidence and no answer."""
ADVERSARIAL = LOCOMO_CATEGORIES[5]

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_MAX_TEXT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One message of a conversation; `role` is "user" or "assistant"."""

    id: str
    session: str
    role: str
    text: str
    when: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the turns and sessions that hold its evidence. `turns` is empty where a file names only sessions.

    `asked` is when it is asked, where the file says so: "last week" means the week before.
    """

    text: str
    category: str
    turns: frozenset[str]
    sessions: frozenset[str]
    asked: datetime | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """All that one user said and was told, in order, and what is asked about it."""

    id: str
    turns: tuple[ConversationTurn, ...]
    questions: tuple[Question, ...]


def load(path: Path) -> list[Conversation]:
    """The conversations of a file in either format. Raises StartupError in one line for a file that cannot be read as one."""
    try:
        data: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StartupError(f"{path} cannot be read: {error}") from error
    try:
        return parse(data)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise StartupError(f"{path} is in neither LoCoMo's nor LongMemEval's format: {type(error).__name__} {error}") from error


def parse(data: object) -> list[Conversation]:
    """The conversations of a parsed file. Raises ValueError, KeyError or TypeError when it has another shape."""
    if not isinstance(data, list) or not data:
        raise ValueError("a list of samples is expected")
    samples = cast("list[Mapping[str, Any]]", data)
    if "conversation" in samples[0]:
        return [_locomo(sample, index) for index, sample in enumerate(samples)]
    if "haystack_sessions" in samples[0]:
        return [_longmemeval(sample) for sample in samples]
    raise ValueError("its samples have neither a conversation nor haystack_sessions")


def _locomo(sample: Mapping[str, Any], index: int) -> Conversation:
    said = sample["conversation"]
    turns: list[ConversationTurn] = []
    for number in sorted(int(key.split("_")[1]) for key in said if re.fullmatch(r"session_\d+", key)):
        # The data names no time zone; UTC is assumed. Turns of a session get a second each, so that their order stands in their times.
        start = datetime.strptime(said[f"session_{number}_date_time"].strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for second, turn in enumerate(said[f"session_{number}"]):
            picture = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            text = f"{turn['speaker']}: {turn['text']}{picture}"
            role = "user" if turn["speaker"] == said.get("speaker_a", turn["speaker"]) else "assistant"
            turns.append(ConversationTurn(turn["dia_id"], str(number), role, _bounded(text), start + timedelta(seconds=second)))
    session_of = {turn.id: turn.session for turn in turns}
    questions: list[Question] = []
    for asked in sample.get("qa", []):
        # Some entries hold several ids, or one misspelled ("D:11:26"); ids that name no turn are dropped.
        named = {f"D{int(a)}:{int(b)}" for entry in asked["evidence"] for a, b in _EVIDENCE.findall(entry)}
        evidence = frozenset(named & session_of.keys())
        if evidence:
            category = LOCOMO_CATEGORIES.get(asked["category"], str(asked["category"]))
            questions.append(Question(asked["question"], category, evidence, frozenset(session_of[turn] for turn in evidence)))
    return Conversation(str(sample.get("sample_id", index)), tuple(turns), tuple(questions))


def _longmemeval(sample: Mapping[str, Any]) -> Conversation:
    turns: list[ConversationTurn] = []
    evidence: set[str] = set()
    for session, date, said in zip(sample["haystack_session_ids"], sample["haystack_dates"], sample["haystack_sessions"], strict=True):
        start = _longmemeval_time(date)
        for number, turn in enumerate(said):
            if not turn["content"].strip():
                continue
            message = ConversationTurn(
                f"{session}#{number + 1}", str(session), turn["role"], _bounded(turn["content"]), start + timedelta(seconds=number)
            )
            turns.append(message)
            if turn.get("has_answer"):
                evidence.add(message.id)
    name = str(sample["question_id"])
    if name.endswith("_abs"):  # the question has no answer in the conversation, so nothing can be found
        return Conversation(name, tuple(turns), ())
    sessions = frozenset(map(str, sample["answer_session_ids"]))
    asked = _longmemeval_time(sample["question_date"]) if sample.get("question_date") else None
    question = Question(sample["question"], sample["question_type"], frozenset(evidence), sessions, asked)
    return Conversation(name, tuple(turns), (question,))


def _longmemeval_time(text: str) -> datetime:
    """ "2023/05/20 (Sat) 02:21", in UTC since the data names no time zone."""
    return datetime.strptime(re.sub(r"\s*\(\w+\)\s*", " ", text).strip(), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def _bounded(text: str) -> str:
    """As much of a text as one memory may hold."""
    return text if len(text) <= _MAX_TEXT_BYTES // 4 else text.encode()[:_MAX_TEXT_BYTES].decode(errors="ignore")


def sessions_of(turns: Sequence[ConversationTurn]) -> dict[str, list[ConversationTurn]]:
    """The turns by session, in order."""
    sessions: dict[str, list[ConversationTurn]] = {}
    for turn in turns:
        sessions.setdefault(turn.session, []).append(turn)
    return sessions
