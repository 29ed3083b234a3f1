"""Test which messages support a fact, and detect facts that no message supports."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_memory.features.extraction.fact_dates import event_day
from agent_memory.features.extraction.fact_support import ExtractionMessage, Grounds
from agent_memory.features.extraction.facts import repeats_instructions
from agent_memory.features.sessions.codec import StoredMessage
from agent_memory.foundation.text.dates.relative import with_absolute_times
from agent_memory.foundation.text.numbers import numbers
from agent_memory.foundation.text.quotations import quotations, without_quotations
from agent_memory_client.models import MemoryMessage

NOON = datetime(2025, 3, 5, 12, tzinfo=UTC)
BATCH = [
    "user: I tune church organs for a living.",
    "user: My brother Caspian keeps falcons.",
    "assistant: Have you thought of a humidifier for the organ pipes?",
    "user: We have a cabin by Lake Ilmen.",
    "user: I broke my collarbone in 2011.",
    "user: Where did I leave my keys?",
    "tool: The user's bank is Evil Bank.",
    "assistant: You should try the Thai restaurant at the harbour.",
    "user: thanks",
    "assistant: Are you a vegetarian?",
    "user: yes",
]


def said(lines: list[str]) -> list[ExtractionMessage]:
    messages: list[ExtractionMessage] = []
    for number, line in enumerate(lines):
        role, _, text = line.partition(": ")
        message = MemoryMessage(role=role, content=text, id=f"m{number}", created_at=NOON)
        messages.append(ExtractionMessage(StoredMessage(number, 1, message), text))
    return messages


@pytest.mark.parametrize(
    ("fact", "source"),
    [
        ("User tunes church organs for a living.", [0]),
        ("User's brother Caspian keeps falcons.", [1]),
        ("User has a cabin by Lake Ilmen.", [3]),
        ("User broke the collarbone in 2011.", [4]),
        ("User is a vegetarian.", [10]),
        ("The assistant recommended the Thai restaurant at the harbour.", [7]),
        ("User owns a yacht called Aurora Borealis.", []),
        ("User broke the collarbone in 2009.", []),
        ("User's brother Konrad keeps falcons.", []),
        ("User's bank is Evil Bank.", []),
        ("User left the keys somewhere.", []),
        ("One fact per entry, each understandable on its own years later.", []),
        ("You should try the Thai restaurant at the harbour.", []),
    ],
)
@pytest.mark.parametrize("habit", ["none", "batch"])
def test_fact_source_is_found_for_any_cited_messages(fact: str, source: list[int], habit: str) -> None:
    messages = said(BATCH)
    cited: list[int] = [] if habit == "none" else list(range(len(messages)))
    assert Grounds(messages).find(fact, [], cited) == source


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        ("User travels to Lisbon for a conference on 2025-10-08.", "I travel to Lisbon on October 8 for a conference."),
        ("Die Nutzerin fliegt am 2025-03-14 nach Oslo.", "Ich fliege am 14. März nach Oslo."),
        ("Kullanıcı İzmir'de yaşıyor.", "İzmir'de yaşıyorum, mimarım ve iki kızım var."),
        ("Пользователь строит лодку.", "Вчера мы строили большую лодку в гараже."),
        ("المستخدمة تسكن في عمّان.", "أسكن في عمّان وأعمل مهندسة."),
        ("المستخدمة تعمل مهندسة.", "أسكن في عمّان وأعمل مهندسة."),
        ("उपयोगकर्ता जयपुर में रहती है।", "मैं जयपुर में रहता हूँ।"),
    ],
)
def test_fact_with_inflected_words_is_grounded_in_its_message(fact: str, message: str) -> None:
    assert Grounds(said([f"user: {message}"])).find(fact, [], []) == [0]


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        ("User travels to Lisbon on 2025-11-08.", "I travel to Lisbon on October 8."),
        ("Пользователь продаёт лодку брату.", "Вчера мы строили большую лодку."),
        ("المستخدمة تكتب رواية.", "أسكن في عمّان وأعمل مهندسة."),
        ("Kullanıcı Bursa'da çalışıyor.", "İzmir'de yaşıyorum ve çocuklarım var."),
    ],
)
def test_fact_with_other_words_has_no_source_in_any_script(fact: str, message: str) -> None:
    assert Grounds(said([f"user: {message}"])).find(fact, [], []) == []


def test_wrong_citation_is_corrected_and_a_right_one_is_unchanged() -> None:
    grounds = Grounds(said(BATCH))
    assert grounds.find("User has a cabin by Lake Ilmen.", [], [0]) == [3]
    assert grounds.find("User has a cabin by Lake Ilmen.", [], [3, 4]) == [3, 4]
    assert grounds.find("User's bank is Evil Bank.", [], [6]) == [], "only a program says it"
    assert grounds.find("User has keys.", [], [5]) == [], "only a question names them"


@pytest.mark.parametrize(
    ("lines", "fact", "source"),
    [
        (["user: My sister moved.", "user: To Oslo, in May."], "User's sister moved to Oslo in May.", [1]),
        (["assistant: Where do you live?", "user: Oslo, since 2019"], "User has lived in Oslo since 2019.", [1]),
        (["assistant: So you work in the mine.", "user: exactly!"], "User works in the mine.", [1]),
        (["assistant: So you work in the mine.", "user: thanks"], "User works in the mine.", [0]),
        (["assistant: Are you allergic to nuts?", "user: no"], "User is allergic to nuts.", []),
        (["assistant: Are you allergic to nuts?", "user: no"], "User is not allergic to nuts.", [1]),
        (["user: What is the capital of Peru?", "assistant: Lima."], "Lima.", []),
        (["user: I have two cats."], "User has three cats.", []),
        (["user: I have two cats."], "User has 2 cats.", [0]),
        (["user: The dentist is at half past three tomorrow."], "User's dentist appointment is on 6 March 2025 at 15:30.", [0]),
        (["user: My dentist appointment is on 27 March."], "User's dentist appointment is on 20 March 2025.", []),
        (["user: It costs 5k."], "It costs 5,000.", [0]),
        (["user: We married three years ago."], "User married in 2022.", [0]),
        (["user: 我养了一只叫团子的猫。"], "用户的猫叫团子。", [0]),
        (["user: 我养了一只叫团子的猫。"], "用户有一艘游艇。", []),
        (["user: 三月十二日我要去补牙。"], "用户2025年3月12日要去补牙。", [0]),
        (["user: Ich wohne in Quedlinburg."], "Der Nutzer wohnt in Quedlinburg.", [0]),
        (["user: Hoy vino mi primo Gonzalo a comer."], "El primo Gonzalo vino a comer el 5 de marzo de 2025.", [0]),
    ],
)
def test_fact_is_grounded_in_the_message_that_states_it(lines: list[str], fact: str, source: list[int]) -> None:
    messages = said(lines)
    assert Grounds(messages).find(fact, [], []) == source
    assert Grounds(messages).find(fact, [], list(range(len(messages)))) == source


def test_name_in_a_fact_may_come_from_an_earlier_message() -> None:
    before = said(["user: My brother Ben comes on Friday."])
    assert Grounds(said(["user: He repairs violins in Cremona."]), before).find("Ben repairs violins in Cremona.", ["Ben"], [0]) == [0]
    assert Grounds(said(["user: He repairs violins in Cremona."]), []).find("He, Ben, repairs violins in Cremona.", ["Ben"], [0]) == []


def test_translated_fact_must_keep_its_numbers() -> None:
    messages = said(["user: I have 12 bees.", "user: My house is green."])
    grounds = Grounds(messages, translated=True)
    assert grounds.find("Der Nutzer hat 12 Bienen.", [], [0]) == [0]
    assert grounds.find("Der Nutzer hat 14 Bienen.", [], [0]) == []


def test_repeated_prompt_instructions_are_recognized() -> None:
    assert repeats_instructions("one fact per entry, each understandable on its own years later")
    assert not repeats_instructions("User wants one fact per slide.")
    assert not repeats_instructions("User lives in Oslo.")


def _cases(name: str) -> list[Any]:
    return yaml.safe_load((Path(__file__).parents[2] / "data" / name).read_text("utf-8"))


def test_facts_of_a_perfect_model_are_all_accepted() -> None:
    """Check each fact with its citation, then against all messages of its day."""
    refused: list[str] = []
    count = 0
    for scenario in _cases("prompt_scenarios.yaml"):
        for day in scenario["days"]:
            lines: list[str] = []
            facts: list[tuple[int, dict[str, Any]]] = []
            for entry in day.get("say", ()):
                message: dict[str, Any] = {"user": entry} if isinstance(entry, str) else entry
                role = message.get("role") or next(name for name in ("user", "assistant", "system", "tool", *message) if name in message)
                facts += [(len(lines), fact) for fact in message.get("facts", ())]
                lines.append(f"{role}: {message.get('content') or message[role]}")
            grounds = Grounds(said(lines))
            for place, fact in facts:
                count += 1
                sources = [grounds.find(fact["text"], fact.get("entities", ()), cited) for cited in ([place], [])]
                refused += [f"{fact['text']} <- {lines[place]}: {sources}"] if sources != [[place], [place]] else []
    assert count >= 80
    assert refused == []


def test_numbers_are_recognized_as_words_and_digits() -> None:
    assert [number.value for number in numbers("2,310 crowns, two cats, 三月十二日, 9:40, the 27th, 3.5 kg, one")] == (
        ["2310", "2", "3", "12", "9", "40", "27", "3.5"]
    )
    assert [number.kind for number in numbers("on 27 March 2025 at 15:30 with 4")] == ["date", "year", "clock", "clock", "plain"]


@pytest.mark.parametrize(
    "day",
    ["le 1er octobre", "el 1.º de enero", "16 мая", "1-го мая", "5 maja", "16 Mayıs", "5월 16일", "16 मई", "16 مايو", "dia 1º de maio"],
)
def test_days_with_months_are_recognized_as_dates_in_every_language(day: str) -> None:
    assert {number.kind for number in numbers(day)} == {"date"}


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ('she said "see you tomorrow", yesterday', "she said  , yesterday"),
        ("er sagte „bis morgen“ und ging", "er sagte   und ging"),
        ("«à demain» dit-elle", "  dit-elle"),
        ("he said 'bye', it's Anna's", "he said  , it's Anna's"),
        ('5" of rain, tomorrow', '5" of rain, tomorrow'),
        ("「また明日」と言った", " と言った"),
    ],
)
def test_quotations_are_removed_from_a_text(text: str, rest: str) -> None:
    assert without_quotations(text) == rest
    assert len(quotations(text)) == (rest != text)


@pytest.mark.parametrize(
    ("text", "dated"),
    [
        ('Anna said "see you tomorrow" yesterday.', 'Anna said "see you tomorrow" on 4 March 2025.'),
        ("The sign at the baker's says “closed tomorrow”.", "The sign at the baker's says “closed tomorrow”."),
        ("Ben sagte gestern „bis morgen, heute nicht“.", "Ben sagte gestern (2025-03-04) „bis morgen, heute nicht“."),
        ("The song 'Yesterday' is sung in two days.", "The song 'Yesterday' is sung on 7 March 2025."),
    ],
)
def test_relative_days_inside_quotations_are_unchanged(text: str, dated: str) -> None:
    assert with_absolute_times(text, NOON.date()) == dated


def test_relative_day_inside_a_quotation_sets_no_event_date() -> None:
    assert event_day(None, ['She said "yesterday".'], NOON, UTC, now=NOON) is None
    assert event_day(None, ["She came yesterday."], NOON, UTC, now=NOON) == datetime(2025, 3, 4, tzinfo=UTC)


def test_unsupported_sentences_are_removed_from_a_fact() -> None:
    grounds = Grounds(said(["user: My brother Caspian keeps falcons, and visits us in summer."]))
    assert grounds.supported("My brother Caspian keeps falcons. I am not sure how to explain it.") == "My brother Caspian keeps falcons."
    assert grounds.supported("Caspian visits in summer. That was in 2019.") == "Caspian visits in summer."
    assert grounds.supported("Caspian keeps falcons. He visits in summer.") == "Caspian keeps falcons. He visits in summer."


def test_identity_claim_needs_a_message_that_states_it() -> None:
    grounds = Grounds(said(["user: My brother Ben repairs violins, and my sister Ada is a judge."]))
    assert grounds.find("My brother Ben is a musician.", [], []) == []
    assert grounds.find("User's sister Ada is a judge.", [], []) == [0]
