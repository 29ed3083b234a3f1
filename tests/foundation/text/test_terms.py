"""Test the index terms extracted from texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.foundation.storage.search.syntax import having
from agent_memory.foundation.text.terms import content_of, fold, query_terms, terms, words

ANY_TEXT = st.text(max_size=200)


@given(ANY_TEXT)
def test_terms_are_plain_ascii_for_any_text(text: str) -> None:
    found = terms(text)
    assert all(term.isascii() and term.replace("_", "a").isalnum() and len(term) <= 50 for term in found)
    if found:
        having("@t:{00}", found)
    assert set(query_terms(text, limit=10_000)) == set(found)


@given(ANY_TEXT)
def test_any_text_matches_its_own_terms(text: str) -> None:
    assert set(query_terms(text)) <= set(terms(text))
    assert set(query_terms(text.upper().lower())) <= set(terms(text)) or not text.isascii()


@given(ANY_TEXT)
def test_folding_twice_changes_only_case(text: str) -> None:
    once = fold(text)
    assert fold(once).casefold() == fold(once.casefold()).casefold()


def test_styled_letters_have_the_terms_of_plain_ones() -> None:
    assert terms("𝐇𝐞𝐥𝐩𝐞𝐝 𝐓𝐡𝐞𝐲") == terms("helped they")


def test_latin_words_inside_text_without_spaces_are_found() -> None:
    assert set(query_terms("iPhone")) <= set(terms("昨日iPhoneを買った"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Café", "cafe"),
        ("ZÜRICH", "zurich"),
        ("Zu\u0308rich", "Zürich"),
        ("straße", "STRASSE"),
        ("ﬁg", "fig"),
        ("Ｆｉｇ", "fig"),
        ("Ångström", "angstrom"),
    ],
)
def test_spelling_variants_have_the_same_terms(one: str, other: str) -> None:
    assert terms(one) == terms(other) != []


@pytest.mark.parametrize(("one", "other"), [("leaves", "leaving"), ("trees", "tree"), ("Anna's", "anna")])
def test_word_forms_match_each_other(one: str, other: str) -> None:
    assert set(query_terms(other)) <= set(terms(one)) or set(query_terms(one)) & set(terms(other))


def test_marks_that_distinguish_letters_are_kept() -> None:
    assert terms("が") != terms("か")


@pytest.mark.parametrize("text", ["", " ", "?!", "the and of", "It was, and is.", "...", "-", "'", "\u200b", "😀", '- @ : { } | * \\ "'])
def test_query_without_words_has_no_terms(text: str) -> None:
    assert query_terms(text) == []


@pytest.mark.parametrize("exact", ["bob@example.com", "v1.2.3", "C++", "user_id=42", "ABC-12345/Z", "https://a.b/c?d=e#f", "#42", "10:30"])
def test_an_exact_string_is_a_term_of_its_own(exact: str) -> None:
    whole = [term for term in terms(f"see ({exact}), please") if term.startswith("x") and len(term) == 21]
    assert whole
    assert whole[0] in query_terms(f"{exact}?")
    assert whole[0] not in terms("bob at example dot com version 1 2 3")


def test_text_without_spaces_is_found_by_its_parts() -> None:
    indexed = set(terms("東京タワーに行きました"))
    for part in ("東京", "タワー", "行きました", "京"):
        assert set(query_terms(part)) <= indexed
    assert not set(query_terms("大阪")) & indexed


def test_terms_of_long_texts_and_words_are_bounded() -> None:
    assert len(terms("fig " * 10_000)) == 4096
    (long,) = terms("x" * 10_000)
    assert len(long) <= 48
    assert terms("x" * 10_000) != terms("x" * 10_001)
    (foreign,) = terms("ж" * 10_000)
    assert len(foreign) <= 48
    assert len(query_terms(" ".join(f"w{number}" for number in range(500)))) == 256


@pytest.mark.parametrize(
    "text",
    [
        "hi",
        "Hello!",
        "ok thanks",
        "Thank you!",
        "yes, sure",
        "haha lol",
        "Good morning!",
        "",
        "😀👍",
        "bye, see you later",
        "Wow, amazing!",
    ],
)
def test_small_talk_carries_no_information(text: str) -> None:
    assert not content_of(text)


@pytest.mark.parametrize("text", ["Thanks a lot", "Thank you so much!"])
def test_thanks_with_more_words_carry_no_information(text: str) -> None:
    assert not content_of(text)


@pytest.mark.parametrize("text", ["Oslo", "I like figs", "42", "hello Anna", "明日会いましょう", "my number is 5", "ok, at noon", "@bob"])
def test_statement_carries_information(text: str) -> None:
    assert content_of(text)


def test_underscores_alone_are_not_words() -> None:
    assert query_terms("secret _ __ tea") == ["secret", "tea"]
    assert words("_ a_b _c d_ __") == ["a_b", "_c", "d_"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我住在柏林的一家酒店", "酒店"),
        ("ฉันอาศัยอยู่ที่กรุงเทพ", "กรุงเทพ"),
        ("ຂ້ອຍຢູ່ວຽງຈັນ", "ວຽງຈັນ"),
        ("ខ្ញុំរស់នៅភ្នំពេញ", "ភ្នំពេញ"),
        ("ကျွန်တော်ရန်ကုန်မှာနေတယ်", "ရန်ကုန်"),
        ("서울에서 살아요", "서울"),
        ("मैं दिल्ली में रहता हूँ", "दिल्ली"),
        ("Я живу в большом городе", "город"),
        ("Мне нравятся зелёные яблоки", "яблоко"),
        ("Ich habe zwei Häuser und einen Garten", "Haus"),
        ("Los niños viven en el campo con mi madre", "niño"),
        ("أحب القَهْوَة", "القهوة"),
    ],
)
def test_words_in_other_languages_are_found(text: str, query: str) -> None:
    assert set(query_terms(query)) & set(terms(text))


def test_vowel_signs_do_not_split_words() -> None:
    assert words("मैं दिल्ली में") == ["मैं", "दिल्ली", "में"]
    assert len(words("กรุงเทพที่")) == 1
    assert not set(query_terms("ที่")) & set(terms("ทำ"))


@pytest.mark.parametrize(
    "text",
    ["I moved to Rio de la Plata in May", "The cafes of Los Angeles are on the list", "I like figs", "Das Boot is a film that I saw"],
)
def test_foreign_names_do_not_change_terms_of_english_texts(text: str) -> None:
    english = [term for word in words(text) for term in terms(word)]
    assert terms(text) == english
