"""Merge lessons of sessions into known procedures.

A caller's procedure keeps its words; a session only adds pitfalls. A learned one takes the steps of a success; of two
successes, those of the model that compared them, or the fewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agent_memory.extensions.procedures.learning.prompts import LearnedProcedure
from agent_memory_client.models.features.procedures import MAX_STEPS, ProcedureContent, ProcedureOwner, ProcedureSource

_MOST_SOURCES = 50
_TRIED = "In a session that failed: "
_MOST_PITFALL_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one session taught; a model's draft was compared with the procedure that it names as the same."""

    draft: LearnedProcedure
    source: ProcedureSource
    by_model: bool

    @property
    def succeeded(self) -> bool:
        return self.source.result == "success"


def new_procedure(lesson: Lesson, owner: ProcedureOwner, procedure_id: str, now: datetime) -> ProcedureContent:
    draft = lesson.draft
    return ProcedureContent(
        **owner.model_dump(include=set(ProcedureOwner.model_fields)),
        id=procedure_id,
        when_to_use=draft.when_to_use,
        steps=draft.steps,
        tools=draft.tools,
        pitfalls=draft.pitfalls,
        result=lesson.source.result,
        origin="learned",
        learned_from=[_source(lesson, draft.pitfalls)],
        created_at=now,
        updated_at=now,
    )


def merged(known: ProcedureContent, lesson: Lesson, now: datetime) -> ProcedureContent:
    """Return a procedure with one more session, replacing what that session added before."""
    known = without_session(known, lesson.source.session_id)
    draft = lesson.draft
    takes_steps = known.origin == "learned" and _takes_steps(known, lesson)
    steps = draft.steps if takes_steps else known.steps
    told = list(draft.pitfalls)
    if not lesson.by_model and not lesson.succeeded and known.result == "success":
        told += [f"{_TRIED}{step}"[:_MOST_PITFALL_CHARS] for step in draft.steps if step not in known.steps]
    before = [f"{_TRIED}{step}"[:_MOST_PITFALL_CHARS] for step in known.steps] if takes_steps and known.result == "failure" else []
    own = [] if lesson.by_model else before
    pitfalls = told if lesson.by_model and known.origin == "learned" else [*known.pitfalls, *own, *told]
    result = "success" if lesson.succeeded or known.result == "success" else "failure"
    return known.model_copy(
        update={
            "steps": steps,
            "tools": _different([*(draft.tools if takes_steps else known.tools)]),
            "pitfalls": _different(line for line in pitfalls if line.removeprefix(_TRIED) not in steps),
            "result": result if known.origin == "learned" else known.result,
            "learned_from": [*known.learned_from, _source(lesson, _different(told))][-_MOST_SOURCES:],
            "updated_at": now,
        }
    )


def without_session(content: ProcedureContent, *session_ids: str) -> ProcedureContent:
    """Remove sessions from a procedure, with the pitfalls that only they added."""
    gone = [source for source in content.learned_from if source.session_id in session_ids]
    rest = [source for source in content.learned_from if source.session_id not in session_ids]
    told = {line for source in gone for line in source.pitfalls} - {line for source in rest for line in source.pitfalls}
    return content.model_copy(update={"learned_from": rest, "pitfalls": [line for line in content.pitfalls if line not in told]})


def _takes_steps(known: ProcedureContent, lesson: Lesson) -> bool:
    if not lesson.draft.steps:
        return False
    if not lesson.succeeded:
        return known.result == "failure" and lesson.by_model
    return known.result == "failure" or lesson.by_model or len(lesson.draft.steps) < len(known.steps) or not known.steps


def _source(lesson: Lesson, pitfalls: Sequence[str]) -> ProcedureSource:
    return lesson.source.model_copy(update={"pitfalls": list(pitfalls)})


def _different(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))[:MAX_STEPS]
