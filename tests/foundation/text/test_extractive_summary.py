"""Test extractive summaries, which need no model."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agent_memory.foundation.text.extractive_summary import SpokenMessage, Statement, statements_of, statements_of_summary, summarize
from agent_memory.foundation.text.passages.sentences import split_sentences
from agent_memory.foundation.text.summary_subjects import Subjects

AT = datetime(2026, 3, 11, 12, tzinfo=UTC)


def _count(text: str) -> int:
    return len(text.split())


def test_summary_contains_statements_with_speakers_and_dates_without_pleasantries() -> None:
    said = [
        Statement("Hi, how are you?", "user", AT),
        Statement("Wow, yesterday I flew to Lisbon with Ana.", "user", AT),
        Statement("Thanks a lot!", "assistant", AT),
        Statement("The budget is 300 euros.", "assistant", AT),
    ]
    assert summarize(said, 100, _count, UTC) == (
        "11 March 2026:\nuser: On 10 March 2026 I flew to Lisbon with Ana.\nassistant: The budget is 300 euros."
    )


def test_summary_stays_within_its_budget_without_repetition() -> None:
    said = [Statement(f"Ana likes figs and plum number {number}.", "user", AT) for number in range(50)]
    summary = summarize(said, 40, _count, UTC)
    assert 0 < _count(summary) <= 40
    assert summarize([said[0], said[0]], 100, _count, UTC).count("figs") == 1


def test_written_summary_is_parsed_back_into_the_same_statements() -> None:
    said = [
        Statement("Ana likes figs.", "user", datetime(2025, 1, 2, tzinfo=UTC)),
        Statement("Bo flew to Oslo.", "assistant", datetime(2025, 1, 3, tzinfo=UTC)),
        Statement("Cleo bought 7 lamps.", "user", datetime(2026, 1, 3, tzinfo=UTC)),
    ]
    summary = summarize(said, 100, _count, UTC)
    assert summary == (
        "2 January 2025:\nuser: Ana likes figs.\n3 January:\nassistant: Bo flew to Oslo.\n3 January 2026:\nuser: Cleo bought 7 lamps."
    )
    assert statements_of_summary(summary, lambda text: [text], AT) == said


def test_lines_of_other_summary_formats_are_read_as_statements() -> None:
    assert statements_of_summary("user: Ana likes figs.\nBo is well.", lambda text: [text], AT) == [
        Statement("user: Ana likes figs.", "", AT),
        Statement("Bo is well.", "", AT),
    ]


def test_name_prefix_of_a_message_is_read_as_its_speaker() -> None:
    said = [
        SpokenMessage("Ana: I like figs.", "user", AT),
        SpokenMessage("Ana: Me too.", "user", AT),
        SpokenMessage("Note: 3 figs are left.", "assistant", AT),
    ]
    said += [SpokenMessage("They are ripe.", "assistant", AT)]
    speakers = [statement.speaker for statement in statements_of(said, lambda text: [text])]
    assert speakers == ["Ana", "Ana", "assistant", "assistant"]


def test_frequent_words_of_omitted_statements_are_listed() -> None:
    said = [
        Statement(f"We talked of beekeeping near Lake {name} with Ana and {name}.", "user", AT)
        for name in ("Garda", "Como", "Iseo", "Orta")
    ]
    said += [Statement(f"The {word} of the beekeeping club is Mr {word.title()}.", "user", AT) for word in ("baker", "cooper", "mason")]
    summary = summarize(said, 24, _count, UTC)
    line = summary.splitlines()[-1]
    assert _count(summary) <= 24
    assert line.startswith("Also spoken of: ")
    shown = summary.removesuffix(line).lower()
    assert all(word not in shown for word in line.removeprefix("Also spoken of: ").split())


def test_listed_words_keep_their_accents() -> None:
    said = [Statement(f"Nochmals die Übergabe: {name} prüft den Mähdrescher.", "user", AT) for name in ("Ana", "Bo", "Cem", "Dov", "Eva")]
    line = Subjects([each.text for each in said]).line("", 60, _count)
    assert {"mähdrescher", "prüft", "übergabe"} <= set(line.removeprefix("Also spoken of: ").split())


def test_word_list_of_a_former_summary_is_kept() -> None:
    former = "10 March 2026:\nuser: Ana likes figs.\nAlso spoken of: beekeeping sailing"
    statements = statements_of_summary(former, lambda text: [text], AT)
    summary = summarize([*statements, Statement("Bo bought 7 lamps in Oslo.", "user", AT)], 60, _count, UTC)
    assert sorted(summary.splitlines()[-1].removeprefix("Also spoken of: ").split()) == ["beekeeping", "sailing"]
    assert "Ana likes figs." in summary
    assert "Bo bought 7 lamps in Oslo." in summary


def test_users_names_and_numbers_rank_before_advice_and_pleasantries() -> None:
    said = [
        Statement("That sounds wonderful!", "assistant", AT),
        Statement("Das klingt ja wirklich spannend!", "assistant", AT),
        Statement(
            "People in general like gardens that have plants, paths and quiet corners with benches under the old trees.", "assistant", AT
        ),
        Statement("We hired Mrs Okonkwo for 450 euros.", "user", AT),
        Statement("I'm vegan.", "user", AT),
    ]
    summary = summarize(said, 14, _count, UTC)
    assert "Okonkwo" in summary
    assert "I'm vegan." in summary
    assert "wonderful" not in summary
    assert "spannend" not in summarize(said, 100, _count, UTC)


def test_word_with_an_inner_capital_counts_as_a_name() -> None:
    said = [
        Statement("Missing values stand in columns, which is ugly.", "user", AT),
        Statement("We decided that SQLite is what we use.", "user", AT),
    ]
    assert "SQLite" in summarize(said, 14, _count, UTC)


@pytest.mark.parametrize(
    ("lines", "small", "named"),
    [
        (
            ["Ist aber etwas aus Holz, wird es warm.", "Stahl ist kühl, aber etwas laut.", "Keramik ist nicht aus Holz, aber etwas teuer."],
            "aber",
            "holz",
        ),
        (
            ["La mesa está hecha de roble y es muy cara.", "El roble está seco, pero muy sano.", "Hay roble que está muy lejos."],
            "muy",
            "roble",
        ),
        (
            ["La table est en chêne, mais très lourde.", "Le chêne est très sec ici.", "Ce chêne est vieux, mais très beau."],
            "très",
            "chêne",
        ),
        (["Стол очень тяжёлый, он из дуба.", "Дуба было очень мало.", "Этот кусок дуба очень сухой."], "очень", "дуба"),
    ],
)
def test_stop_words_of_other_languages_are_not_subjects(lines: list[str], small: str, named: str) -> None:
    line = Subjects(lines).line("", 100, _count)
    assert line == "" or small not in line.split()
    assert named in Subjects([*lines, *(f"{named} {word}" for word in ("kiwi", "kiwi", "kiwi"))]).line("", 100, _count).split()


def test_statements_without_full_stops_are_separated() -> None:
    said = [Statement(text, "user", AT) for text in ("my mum Samira moves in until october", "we took the Babyzen pram for 420 euros")]
    summary = summarize(said, 100, _count, UTC)
    assert "until october. we took" in summary


@pytest.mark.parametrize(
    ("said", "facts", "greeting"),
    [
        ("你好！\n我住在里斯本。\n我吃素。\n谢谢", ["我住在里斯本", "我吃素"], "你好"),
        ("こんにちは\n来週の火曜日に大阪へ引っ越します。妻は看護師です。\nありがとう", ["大阪", "看護師"], "こんにちは"),
        ("สวัสดี\nฉันทำงานที่โรงพยาบาลในเชียงใหม่\nฉันแพ้ถั่ว", ["โรงพยาบาล", "แพ้ถั่ว"], None),
        ("ຂ້ອຍມັກກິນເຂົ້າໜຽວ", ["ກິນເຂົ້າໜຽວ"], None),
    ],
    ids=["Chinese", "Japanese", "Thai", "Lao"],
)
def test_summary_covers_languages_without_spaces(said: str, facts: list[str], greeting: str | None) -> None:
    summary = summarize(statements_of([SpokenMessage(said, "user", AT)], split_sentences), 400, lambda text: len(text.encode()) // 2, UTC)
    assert all(fact in summary for fact in facts)
    assert greeting is None or greeting not in summary


def test_clauses_without_spaces_are_not_listed_as_frequent_words() -> None:
    said = [Statement(f"我在里斯本养了{number}只叫豆豆的狗", "user", AT) for number in ("一", "两", "三", "四")]
    assert "Also spoken of" not in summarize(said, 60, lambda text: len(text.encode()) // 2, UTC)
