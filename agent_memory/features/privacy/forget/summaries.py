"""Remove forgotten statements from a session's summary (pure)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from agent_memory.features.privacy.forget.content_words import content, content_forms, coverage, forms
from agent_memory.foundation.text.extractive_summary import Statement, layout, statements_of_summary
from agent_memory.foundation.text.passages.sentences import split_sentences
from agent_memory.foundation.text.summary_subjects import HEAD

_FROM_IT = 0.5


def without_statements(summary: str, subjects: Sequence[Sequence[str]], gone: Collection[str]) -> str:
    """Return an extractive summary without statements about a subject or mostly from removed messages.

    "" if nothing is left, and for a summary written by a model. `subjects` are content words, `gone` removed texts.
    """
    statements = statements_of_summary(summary, split_sentences, datetime.now(UTC))
    if not all(each.speaker for each in statements):
        return ""
    said = [each for each in statements if each.speaker != HEAD]
    left = [each for each in said if not _tells(each.text, subjects, gone)]
    named = _words_left([each.text for each in statements if each.speaker == HEAD], subjects, gone)
    lines = [layout(_dated(left)), f"{HEAD}: {named}" if named else ""]
    return "\n".join(line for line in lines if line)


def _tells(text: str, subjects: Sequence[Sequence[str]], gone: Collection[str]) -> bool:
    if any(terms and coverage(terms, text) == 1.0 for terms in subjects):
        return True
    words = list(dict.fromkeys(content(text)))
    return any(coverage(words, part) >= _FROM_IT for part in gone)


def _words_left(lines: Sequence[str], subjects: Sequence[Sequence[str]], gone: Collection[str]) -> str:
    of_subjects = " ".join(term for terms in subjects for term in terms)
    taken = frozenset().union(*(content_forms(part) for part in (*gone, of_subjects)))
    return " ".join(word for line in lines for word in line.split() if all(taken.isdisjoint(forms(term)) for term in content(word)))


def _dated(statements: Sequence[Statement]) -> list[Statement]:
    return [replace(each, at=each.at.replace(hour=0, minute=0, second=0, microsecond=0)) for each in statements]
