"""Test text output, including counts, tables, descriptions of JSON data, and shortened texts."""

from __future__ import annotations

from agent_memory.foundation.core.listing import counted, describe, shorten, table


def test_counts_have_the_right_number_and_no_zeros() -> None:
    assert counted({"memory": 4000, "session": 1, "view": 0}) == "4000 memories, 1 session"
    assert counted({"memories": 1, "session_messages": 1, "summaries": 2, "facts": 1}) == "1 memory, 1 session message, 2 summaries, 1 fact"
    assert counted({"tool_memory": 2}) == "2 tool memories"
    assert counted({"memory": 0}) == counted({}) == "nothing"


def test_table_aligns_columns_and_numbers() -> None:
    assert table([("work", "waits"), ("memory", 12), ("order", 3)]) == ["work    waits", "memory     12", "order       3"]
    assert table([]) == []


def test_description_has_a_line_for_each_value_that_is_not_empty() -> None:
    data = {"id": "m1", "topics": ["a", "b"], "user": None, "tags": [], "messages": [{"role": "user", "n": 0}, {"role": "tool"}]}
    assert describe(data) == ["id: m1", "topics: a, b", "messages.1.role: user", "messages.1.n: 0", "messages.2.role: tool"]
    assert describe("text") == ["text"]
    assert describe({}) == describe(None) == []


def test_text_is_shortened_between_words() -> None:
    assert shorten("the old\nlighthouse", 12) == "the old …"
    assert shorten("the old\nlighthouse", 18) == "the old lighthouse"
    assert shorten("灯台" * 20, 10) == "灯台" * 5 + " …"
