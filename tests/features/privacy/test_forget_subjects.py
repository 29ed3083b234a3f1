"""Test which forget requests match with certainty, and which are only guesses.

A certain match has all the words, the same person and the same negation.
"""

from __future__ import annotations

import pytest

from agent_memory.features.privacy.forget.matching import name_different_things, repetitions, requested, states, values_of

STATED = [
    ("I am allergic to peanuts", "User has a peanut allergy."),
    ("I am allergic to peanuts", "User says she is allergic to peanuts."),
    ("that I am vegetarian", "Since you're vegetarian, no meat today."),
    ("that I am vegetarian", "No, I am vegetarian."),
    ("that I am not vegetarian", "I'm not vegetarian anymore."),
    ("dass ich Vegetarierin bin", "Ich bin Vegetarierin, kein Fleisch also."),
    ("que soy vegetariana", "Soy vegetariana."),
    ("que je suis végétarienne", "Je suis végétarienne."),
    ("我对花生过敏", "对花生过敏。"),
    ("私がピーナッツアレルギーだということ", "私はピーナッツアレルギーです。"),
    ("my brother's falcons", "My brother Caspian keeps falcons."),
    ("the combination of my locker", "My locker has the combination 7-7-2."),
    ("die Adresse meines Bruders", "Mein Bruder hat die neue Adresse Ulmenweg 5."),
    ("la dirección de mi hermano", "Mi hermano tiene la dirección Calle 5."),
    ("l'adresse de mon frère", "Mon frère a une nouvelle adresse, 5 rue des Ormes."),
    ("Anna's address", "Anna's address is 5 Elm Road."),
    ("Lorenzo", "My ex Lorenzo keeps texting me."),
    ("everything about Lorenzo", "I do not miss Lorenzo."),
    ("my PIN for the safe", "My PIN for the safe is 6021."),
]
GUESSED = [
    ("that I am vegetarian", "I'm not vegetarian anymore."),
    ("that I am vegetarian", "I never was vegetarian."),
    ("dass ich Vegetarierin bin", "Ich bin keine Vegetarierin mehr, aber Ines ist Vegetarierin."),
    ("que soy vegetariana", "Ya no soy vegetariana."),
    ("que je suis végétarienne", "Je ne suis plus végétarienne."),
    ("我吃素", "我不再吃素了。"),
    ("我对花生过敏", "我妹妹对花生过敏。"),
    ("I am allergic to peanuts", "My daughter is allergic to peanuts."),
    ("I am allergic to peanuts", "I am allergic to shrimps."),
    ("I am allergic to peanuts", "I am not allergic to peanuts."),
    ("I am not allergic to penicillin", "I am allergic to penicillin."),
    ("I am allergic to peanuts", "He is allergic to peanuts."),
    ("that I can swim", "I can't swim."),
    ("dass ich verheiratet bin", "Ich bin nicht verheiratet."),
    ("que soy vegetariano", "No soy vegetariano."),
    ("我喜欢猫", "他喜欢猫。"),
    ("ピーナッツアレルギーです", "ピーナッツアレルギーではありません。"),
    ("I live in Rome", "She lives in Rome."),
    ("my address", "His address is 1 High Street."),
    ("my address", "Anna's address is 5 Elm Road."),
    ("my address", "My email address is a@b.example."),
    ("my brother's address", "My brother visits me."),
]


@pytest.mark.parametrize(("named", "said"), STATED)
def test_sentence_with_all_words_about_the_same_person_matches(named: str, said: str) -> None:
    assert states(requested(named), said, owner="ada")


@pytest.mark.parametrize(("named", "said"), GUESSED)
def test_negation_other_person_or_missing_words_do_not_match(named: str, said: str) -> None:
    assert not states(requested(named), said, owner="ada")


def test_italian_question_word_is_a_name_in_an_english_request() -> None:
    assert requested("Dove soap").terms == ("dove", "soap")


def test_different_statements_about_a_name_are_ambiguous() -> None:
    assert name_different_things(requested("Anna"), ["Anna is my sister.", "I met Anna in Rome."])
    assert not name_different_things(requested("Anna"), ["Anna is my sister.", "Anna is the sister I mentioned."])


def test_slot_matches_only_with_all_of_its_words() -> None:
    assert states(requested("my home city"), "User lives in Graz", slot="home.city")
    assert not states(requested("my city"), "User lives in Graz", slot="home.city")


def test_assistant_repetition_is_matched_by_its_words() -> None:
    said = [("user", "My PIN is 4417.", True), ("user", "I drive a blue Saab.", False), ("assistant", "Got it: 4417.", False)]
    assert repetitions([*said, ("assistant", "A blue Saab is a good car.", False), ("assistant", "Anything else?", False)]) == [2]


def test_assistants_own_earlier_words_are_no_repetition() -> None:
    said = [
        ("user", "Which parrot should I get?", False),
        ("assistant", "A parrot needs a library of toys.", False),
        ("user", "My PIN is 4417, and the library lent me a parrot.", True),
        ("assistant", "The library is a good place, and the parrot will like it.", False),
        ("assistant", "I noted 4417.", False),
    ]
    assert repetitions(said) == [4]


def test_distinctive_values_are_words_found_in_no_other_text() -> None:
    assert values_of(["My PIN is 4417."], ["My PIN is secret."]) == ["4417"]
