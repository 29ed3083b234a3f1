"""Test whether two facts in the same slot have the same meaning."""

from __future__ import annotations

import pytest

from agent_memory.features.extraction.fact_wording import says_same


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("User works at Kestrel school.", "The user is working at the Kestrel school."),
        ("User works at Harlan Optics in the lens lab.", "User is employed at Harlan Optics."),
        ("User's dog is Bruno.", "User's dog is Bruno, a spaniel."),
        ("User lives at Mill Lane 4.", "User lives in Mill Lane 4, second floor."),
        ("User has 3 children.", "User is a parent of 3 children."),
        ("User trains on Tuesday.", "User trains on Tuesdays."),
    ],
)
def test_paraphrased_facts_count_as_the_same(text: str, other: str) -> None:
    assert says_same(text, other)
    assert says_same(other, text)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("User's dog Bruno eats chicken.", "User's dog Bruno eats salmon."),
        ("Der Hund Bruno frisst Huhn.", "Der Hund Bruno frisst Lachs."),
        ("User's cousin Hedda is a pilot in Bergen.", "User's cousin Hedda runs a bakery in Bergen."),
        ("User trains at the hall on Tuesdays.", "User trains at the hall on Thursdays."),
        ("User lives in Graz.", "User lives in Turku."),
        ("User's budget is 800 crowns.", "User's budget is 1200 crowns."),
        ("User eats meat.", "User does not eat meat."),
        ("User swims 5 km on Mondays.", "User runs 5 km on Mondays."),
    ],
)
def test_facts_with_another_value_count_as_different(text: str, other: str) -> None:
    assert not says_same(text, other)
    assert not says_same(other, text)
