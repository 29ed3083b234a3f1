"""Check that other users' memories (the crowd) do not change a user's search results."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from agent_memory_eval.api import say
from agent_memory_eval.metrics import recall_scores
from agent_memory_eval.question_sets import Conversation, QuestionSet
from agent_memory_eval.runner import SERVER, EvaluationRun, Row

POINTS = 1.0
"""R@10 may move by this many points."""
_PER_USER = 200
_PER_SESSION = 20
# Servers cache the vectors of repeated texts, so ten thousand memories do not need ten thousand embeddings.
_REPEATED = 10
_SEED = 7


@dataclass(frozen=True, slots=True)
class CrowdResult:
    """R@10 in percent for one question set, before and after adding the crowd."""

    alone: float
    among: float

    @property
    def holds(self) -> bool:
        """True if R@10 changed by at most `POINTS`."""
        return abs(self.among - self.alone) <= POINTS

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "BEYOND"
        return f"{verdict} R@10 {self.alone:.1f} alone, {self.among:.1f} in the crowd (within {POINTS:g} point)"


def crowd_of(sets: Sequence[QuestionSet], size: int) -> list[Conversation]:
    """Return conversations of other users with `size` turns in total, sampled from all sets."""
    rng = random.Random(_SEED)
    turns = [turn for one in sets for conversation in one.conversations for turn in conversation.turns]
    turns = rng.sample(turns, min(len(turns), max(size // _REPEATED, 1)))
    drawn = [replace(rng.choice(turns), id=str(n), session=str(n % _PER_USER // _PER_SESSION)) for n in range(size)]
    return [Conversation(str(start), tuple(drawn[start : start + _PER_USER]), ()) for start in range(0, size, _PER_USER)]


async def check_crowd(
    measured: Mapping[str, tuple[EvaluationRun, Sequence[Row]]], crowd: Sequence[Conversation], others: EvaluationRun
) -> dict[str, CrowdResult]:
    """Store the crowd, repeat the questions from each set, and compare the results.

    Raises StartupError.
    """
    await others.store(crowd)
    results: dict[str, CrowdResult] = {}
    for name, (run, rows) in measured.items():
        judged = [row for row in rows if row.question.evidence]
        if not judged:
            continue
        again = [recall_scores(await run.search(row.conversation, row.question), row.question.evidence)["R@10"] for row in judged]
        results[name] = CrowdResult(100 * fmean(row.recall[SERVER]["R@10"] for row in judged), 100 * fmean(again))
        say(f"{name}: questions repeated with the crowd")
    return results
