"""What somebody means who names what is to be forgotten: the very thing, in the words of each language, and nobody else's."""

from __future__ import annotations

import pytest

from agent_memory.features.privacy.forget.matching import Fit, fit, strike, subject_of

MEANT = [
    ("my brother's falcons", "My brother Caspian keeps falcons."),
    ("my brother's falcons", "User's brother Caspian keeps falcons."),
    ("my brother's address", "My brother has a new address: 5 Elm Road."),
    ("the combination of my locker", "My locker has the combination 7-7-2."),
    ("the combination of my locker", "The combination of my locker is 7-7-2."),
    ("Anna's address", "Anna's address is 5 Elm Road."),
    ("die Adresse meines Bruders", "Mein Bruder hat die neue Adresse Ulmenweg 5."),
    ("la dirección de mi hermano", "Mi hermano tiene la dirección Calle 5."),
    ("l'adresse de mon frère", "Mon frère a une nouvelle adresse, 5 rue des Ormes."),
    ("wo meine Bank ist", "Meine Bank ist in der Ulmenstraße."),
    ("dónde está mi banco", "Mi banco está en la calle Olmo."),
    ("где мой банк", "Мой банк на Вязовой улице."),
    ("我的牙医是谁", "我的牙医是李医生。"),
    ("私がピーナッツアレルギーだということ", "私はピーナッツアレルギーです。"),
    ("我对花生过敏", "对花生过敏。"),
    ("Lorenzo", "My ex Lorenzo keeps texting me."),
    ("Anna Berg", "I met my colleague Anna Berg yesterday."),
    ("my ex-husband Gregor", "My ex-husband is called Gregor and works in Dortmund."),
    ("mi exnovio Rodrigo", "Mi exnovio se llama Rodrigo y trabaja en Cádiz."),
    ("mein Nachbar Olaf", "Mein Nachbar heißt Olaf und hupt nachts."),
    ("my dog Rex", "My dog's name is Rex."),
    ("my PIN for the safe", "My PIN for the safe is 6021."),
    ("the code to the garden gate", "The code to the garden gate is 4471."),
    ("my scar on the chin", "I have a scar on my chin."),
    ("my appointment with Dr. Weiss", "My appointment with Dr. Weiss is on Monday."),
    ("der Code für das Tor", "Der Code für das Tor ist 4471."),
    ("mi cita con el dentista", "Mi cita con el dentista es el lunes."),
    ("le code pour la porte", "Le code pour la porte est 4471."),
    ("my bike lock combination", "The combination of my bike lock is 5590."),
    ("my gym locker code", "The code for my gym locker is 11."),
    ("the number of my locker", "My locker number at work is 318."),
    ("le mot de passe du wifi", "Le mot de passe du wifi de mon chalet est edelweiss77."),
    ("요나스에", "요나스는 항해를 좋아해."),
    ("la clave de la caja fuerte", "La clave de la caja fuerte del banco es 123."),
]
POSSIBLE = [
    ("my brother's falcons", "Anna's brother keeps falcons."),
    ("my brother's falcons", "Falcons are great, my brother says."),
    ("my brother's address", "My brother has an email address."),
    ("my brother's address", "My brother visits me, and Anna's address is new."),
    ("my bank's address", "My bank manager has the address 5 Elm Road."),
    ("the salary of my job", "My job is fun, Anna's job pays a salary of 3,000."),
    ("die Adresse meines Bruders", "Annas Bruder hat die Adresse Ulmenweg 5."),
    ("wo meine Bank ist", "Meine Schwester arbeitet bei einer Bank."),
    ("我的牙医是谁", "我妹妹的牙医是李医生。"),
    ("私がピーナッツアレルギーだということ", "私の妹はピーナッツアレルギーです。"),
    ("我对花生过敏", "我妹妹对花生过敏。"),
    ("address", "My email address is new."),
    ("my PIN for the safe", "Anna's PIN for the safe is 6021."),
    ("my PIN for the safe", "My PIN for the bank is secret, the safe has none."),
    ("my appointment with the dentist", "My appointment with the dentist's daughter is on Monday."),
    ("the key to the house", "The key to the house boat is lost."),
    ("my dog Rex", "My neighbour's dog is called Rex."),
    ("my sister Anna", "My sister met Anna in Graz."),
    ("my sister Anna", "My sister is Anna's boss."),
    ("mi exnovio Rodrigo", "Mi exnovio conoce a Rodrigo."),
    ("my email address", "My brother's email has an address of 5 words."),
    ("my home address", "My address book is at home."),
]


@pytest.mark.parametrize(("named", "said"), MEANT)
def test_a_thing_is_meant_by_its_words_and_its_owner(named: str, said: str) -> None:
    assert fit(subject_of(named), said, owner="ada") >= Fit.MEANT


@pytest.mark.parametrize(("named", "said"), POSSIBLE)
def test_what_is_somebody_elses_or_another_thing_is_only_possible(named: str, said: str) -> None:
    assert fit(subject_of(named), said, owner="ada") is Fit.POSSIBLE


def test_a_word_that_asks_elsewhere_is_a_name_in_english() -> None:
    assert subject_of("Dove soap").terms == ("dove", "soap")


@pytest.mark.parametrize(
    ("named", "said", "left"),
    [
        ("my address", "Anna's address is 5 Elm Road. I like tea.", "Anna's address is 5 Elm Road. I like tea."),
        ("that I am allergic to peanuts", "Anna has a peanut allergy. I like tea.", "Anna has a peanut allergy. I like tea."),
        ("Lorenzo", "My ex Lorenzo keeps texting me. I started pottery.", "I started pottery."),
        ("my falcon Iris", "I have a falcon. Her name is Iris. I like tea.", "I like tea."),
    ],
)
def test_two_sentences_go_only_when_neither_says_it_alone(named: str, said: str, left: str) -> None:
    assert strike(said, [subject_of(named)], owner="ada") == left
