"""Test that the server tells memory prompt text from users' own words, even in fragments."""

from __future__ import annotations

import pytest

from agent_memory.foundation.text.prompt_marks import DATA_NOTE, MEMORIES_HEAD, NO_MEMORIES, SUMMARY_HEAD, own_words, part_heading

LINE = "- [8 May 2023, 2 weeks ago; semantic] Anna lives in Oslo (ID: 01HZX)"
OTHER = "- [9 May 2023, 13 days ago; message] I saw [a] fig (really) (ID: a b/c)"
SAID = "- [9 May 2023, 13 days ago, said 12 times, no longer true since 30 September 2023; message] Ann said: a fig (ID: a)"
SECTION = f"{MEMORIES_HEAD}{LINE}\n{OTHER}{DATA_NOTE}"


@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("system", SECTION),
        ("user", SECTION),
        ("assistant", SECTION),
        ("system", MEMORIES_HEAD + NO_MEMORIES),
        ("system", f"{SUMMARY_HEAD}Anna is a plumber.\n\nShe has a dog."),
        ("system", f"{SUMMARY_HEAD}Anna is a plumber.\n\n{SECTION}"),
        ("system", f"{part_heading('a made-up part')}Anna is a plumber.\n\n### More\nShe has a dog."),
        ("user", f"> {part_heading('a made-up part')}> Anna is a plumber."),
        ("assistant", LINE),
        ("assistant", f"> {LINE}\n> {OTHER}"),
        ("assistant", SAID),
        ("user", SAID.replace(" (ID: a)", "")),
        ("system", f"{MEMORIES_HEAD}{LINE}\n{SAID.replace(' (ID: a)', '')}\n{OTHER}{DATA_NOTE}"),
        ("user", LINE.removeprefix("- ")),
        ("user", LINE.replace(" (ID: 01HZX)", "")),
        ("system", "## Long term memories related to the user's query\n - Anna lives in Oslo (ID: 01HZX)"),
        ("tool", '{"memories": [{"id": "1", "text": "Anna lives in Oslo", "memory_type": "semantic"}]}'),
    ],
)
def test_prompt_text_contains_no_own_words(role: str, text: str) -> None:
    assert own_words(text, role) == ""


@pytest.mark.parametrize(
    ("role", "text", "own"),
    [
        ("user", f"{SECTION}\nI moved to Bergen.", "I moved to Bergen."),
        ("user", f"You said:\n{LINE}\nBut I moved.", "You said:\nBut I moved."),
        ("system", f"You are a helpful bot.\n{SECTION}", "You are a helpful bot."),
        ("user", f"{SUMMARY_HEAD}Anna is a plumber.\n\nI moved to Bergen.", "I moved to Bergen."),
        ("system", f"{SUMMARY_HEAD}Anna is.\n\nA plumber.\n## Rules\nBe kind.", "## Rules\nBe kind."),
        ("assistant", "As I noted, [8 May 2023, 2 weeks ago; semantic] Anna lives in Oslo (ID: 01HZX), right?", "As I noted,, right?"),
    ],
)
def test_own_words_around_prompt_text_remain(role: str, text: str, own: str) -> None:
    assert own_words(text, role) == own


@pytest.mark.parametrize(
    "text",
    [
        "I live in Oslo",
        "## A summary of my day\nfigs",
        "## Memory\nfigs",
        "- a list\n- of [things]; semantic",
        "my id (ID card) is lost",
        "a\n\nb",
        " x ",
    ],
)
def test_ordinary_text_is_entirely_own_words(text: str) -> None:
    assert own_words(text) == text
