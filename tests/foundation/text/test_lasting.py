"""Test the detection of user statements that contain a name or a lasting fact."""

from __future__ import annotations

import pytest

from agent_memory.foundation.text.languages.lasting import is_lasting, lasting_terms, name_terms, says_name
from agent_memory.foundation.text.terms import terms

NAMES = [
    "By the way, my name is Mara Feldkamp.",
    "Ich heiße Korbinian und wohne in Passau.",
    "Me llamo Inés.",
    "Je m'appelle Solange.",
    "O meu nome é Brites.",
    "Mi chiamo Fiammetta.",
    "Ik heet Wiebrecht.",
    "Nazywam się Bogumiła.",
    "Benim adım Gülbahar.",
    "Меня зовут Дементий.",
    "我叫林若溪，在博物馆上班。",
    "私の名前は千早です。",
    "제 이름은 한서윤이고 도서관에서 일해요.",
    "اسمي رباب.",
    "मेरा नाम मृणालिनी है।",
]
LASTING = [
    "I live in Oslo",
    "Ich bin Veganerin",
    "Mi hija es alérgica",
    "J'habite à Lyon",
    "我对花生过敏",
    "Я работаю врачом",
    "딸이 있어요",
]
PASSING = ["The train was late", "Der Milchwagen ist rot", "El pan era duro", "外面下雨了", "電球が切れました", "Погода была туманная"]


@pytest.mark.parametrize("text", NAMES)
def test_name_statement_is_recognized_and_matches_the_name_terms(text: str) -> None:
    assert says_name(text)
    assert not set(name_terms()).isdisjoint(terms(text))


@pytest.mark.parametrize("text", LASTING)
def test_lasting_statement_is_recognized_and_matches_the_lasting_terms(text: str) -> None:
    assert is_lasting(text)
    assert not says_name(text)
    assert not set(lasting_terms()).isdisjoint(terms(text))


@pytest.mark.parametrize("text", [*PASSING, "my name is Mara " * 100])
def test_passing_statement_is_neither_name_nor_lasting(text: str) -> None:
    assert not says_name(text)
    assert not is_lasting(text)
