"""Summaries without a model."""

from __future__ import annotations

from datetime import UTC, datetime

from agent_memory.text.extractive_summary import Statement, statement_of_line, summarize

AT = datetime(2026, 3, 11, 12, tzinfo=UTC)


def _count(text: str) -> int:
    return len(text.split())


def test_it_holds_statements_with_speakers_and_dates_and_no_pleasantries() -> None:
    said = [
        Statement("Hi, how are you?", "user", AT),
        Statement("Wow, yesterday I flew to Lisbon with Ana.", "user", AT),
        Statement("Thanks a lot!", "assistant", AT),
        Statement("The budget is 300 euros.", "assistant", AT),
    ]
    assert summarize(said, 100, _count, UTC) == (
        "[2026-03-11 user] on 10 March 2026 I flew to Lisbon with Ana.\n[2026-03-11 assistant] The budget is 300 euros."
    )


def test_it_keeps_to_its_budget_and_says_nothing_twice() -> None:
    said = [Statement(f"Ana likes figs and plum number {number}.", "user", AT) for number in range(50)]
    summary = summarize(said, 40, _count, UTC)
    assert 0 < _count(summary) <= 40
    assert summarize([said[0], said[0]], 100, _count, UTC).count("figs") == 1


def test_lines_of_a_former_summary_keep_their_day() -> None:
    (statement,) = statement_of_line("[2025-01-02 user] Ana likes figs.", lambda text: [text], AT)
    assert (statement.text, statement.head) == ("Ana likes figs.", "[2025-01-02 user] ")
