"""Merge lessons from sessions into existing procedures.

A session only adds pitfalls to a procedure that a caller created. In a learned procedure, steps
from a success replace steps from a failure. Of two successes, steps from a model win, or else the
shorter list.
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
    """A lesson from one session. `by_model` is True if a model wrote it."""

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


def merged(existing: ProcedureContent, lesson: Lesson, now: datetime) -> ProcedureContent:
    """Merge a lesson into a procedure, replacing the session's earlier lesson."""
    existing = without_session(existing, lesson.source.session_id)
    draft = lesson.draft
    takes_steps = existing.origin == "learned" and _takes_steps(existing, lesson)
    steps = draft.steps if takes_steps else existing.steps
    new_pitfalls = list(draft.pitfalls)
    if not lesson.by_model and not lesson.succeeded and existing.result == "success":
        new_pitfalls += [f"{_TRIED}{step}"[:_MOST_PITFALL_CHARS] for step in draft.steps if step not in existing.steps]
    before = [f"{_TRIED}{step}"[:_MOST_PITFALL_CHARS] for step in existing.steps] if takes_steps and existing.result == "failure" else []
    own = [] if lesson.by_model else before
    pitfalls = new_pitfalls if lesson.by_model and existing.origin == "learned" else [*existing.pitfalls, *own, *new_pitfalls]
    result = "success" if lesson.succeeded or existing.result == "success" else "failure"
    return existing.model_copy(
        update={
            "steps": steps,
            "tools": _different([*(draft.tools if takes_steps else existing.tools)]),
            "pitfalls": _different(line for line in pitfalls if line.removeprefix(_TRIED) not in steps),
            "result": result if existing.origin == "learned" else existing.result,
            "learned_from": [*existing.learned_from, _source(lesson, _different(new_pitfalls))][-_MOST_SOURCES:],
            "updated_at": now,
        }
    )


def without_session(content: ProcedureContent, *session_ids: str) -> ProcedureContent:
    """Remove sessions from a procedure, along with the pitfalls that only they added."""
    removed_sources = [source for source in content.learned_from if source.session_id in session_ids]
    rest = [source for source in content.learned_from if source.session_id not in session_ids]
    removed_pitfalls = {line for source in removed_sources for line in source.pitfalls} - {
        line for source in rest for line in source.pitfalls
    }
    return content.model_copy(
        update={"learned_from": rest, "pitfalls": [line for line in content.pitfalls if line not in removed_pitfalls]}
    )


def _takes_steps(existing: ProcedureContent, lesson: Lesson) -> bool:
    if not lesson.draft.steps:
        return False
    if not lesson.succeeded:
        return existing.result == "failure" and lesson.by_model
    return existing.result == "failure" or lesson.by_model or len(lesson.draft.steps) < len(existing.steps) or not existing.steps


def _source(lesson: Lesson, pitfalls: Sequence[str]) -> ProcedureSource:
    return lesson.source.model_copy(update={"pitfalls": list(pitfalls)})


def _different(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))[:MAX_STEPS]
