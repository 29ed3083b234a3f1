"""Test that a question with a time ranks memories from that time first.

Days follow the user's calendar. The cases are labeled in three time zones, and many memories are
close to midnight, so that the right answer depends on the zone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.foundation.llm.base import EmbeddingModel
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory_client.models import SearchRequest
from tests.support.rig import SCOPE, Rig, open_rig, record

# Thursday afternoon in Los Angeles, Friday half past one in Berlin, Friday morning in Tokyo.
ASKED = datetime(2023, 6, 15, 23, 30, tzinfo=UTC)
DINNERS = {
    "Ana": "2023-04-30T23:00",  # in Berlin and Tokyo it is May
    "Ben": "2023-05-10T12:00",
    "Cleo": "2023-05-31T20:00",  # in Tokyo it is June
    "Dora": "2023-06-01T03:00",  # in Los Angeles it is May
    "Emil": "2023-03-15T12:00",
    "Fay": "2022-03-20T12:00",
    "Gus": "2023-06-07T12:00",
    "Hal": "2023-06-14T12:00",
    "Ida": "2023-06-15T10:00",
    "Jon": "2023-06-14T23:00",
    "Kim": "2023-06-04T16:00",  # in Tokyo it is Monday
    "Lea": "2023-06-11T23:00",  # in Los Angeles it is Sunday
    "Mia": "2023-05-08T03:00",
    "Ned": "2023-05-08T18:00",
    "Oda": "2022-05-08T12:00",
    "Pia": "2021-06-05T12:00",
}
LA, BERLIN, TOKYO = "America/Los_Angeles", "Europe/Berlin", "Asia/Tokyo"
CASES = [
    ("Who did I have dinner with in May 2023?", LA, "Ben Cleo Dora Mia Ned"),
    ("Who did I have dinner with in May 2023?", BERLIN, "Ana Ben Cleo Mia Ned"),
    ("Who did I have dinner with in May 2023?", TOKYO, "Ana Ben Mia Ned"),
    ("Who did I meet for dinner on 8 May 2023?", LA, "Ned"),
    ("Who did I meet for dinner on 8 May 2023?", BERLIN, "Mia Ned"),
    ("Who did I meet for dinner on 8 May 2023?", TOKYO, "Mia"),
    ("Who came to dinner last week?", LA, "Gus Lea"),
    ("Who came to dinner last week?", BERLIN, "Gus"),
    ("Who came to dinner last week?", TOKYO, "Gus Kim"),
    ("Where was dinner yesterday?", LA, "Hal Jon"),
    ("Where was dinner yesterday?", BERLIN, "Ida Jon"),
    ("Where was dinner yesterday?", TOKYO, "Ida Jon"),
    *(("With whom was the dinner in March?", zone, "Emil") for zone in (LA, BERLIN, TOKYO)),
    *(("Who came to dinner in May 2022?", zone, "Oda") for zone in (LA, BERLIN, TOKYO)),
    *(("Who came to dinner two years ago?", zone, "Pia") for zone in (LA, BERLIN, TOKYO)),
    # The memories share no words with the question except those of time, or it only asks about the time.
    ("What did I eat yesterday?", LA, "Hal Jon"),
    ("What did I eat yesterday?", BERLIN, "Ida Jon"),
    ("What did I eat yesterday?", TOKYO, "Ida Jon"),
    ("What happened last week?", LA, "Gus Lea"),
    ("What happened last week?", BERLIN, "Gus"),
    ("What happened last week?", TOKYO, "Gus Kim"),
    ("Who came to dinner between 8 May and 1 June 2023?", LA, "Ben Cleo Dora Ned"),
    ("Who came to dinner between 8 May and 1 June 2023?", BERLIN, "Ben Cleo Dora Mia Ned"),
    ("Who came to dinner between 8 May and 1 June 2023?", TOKYO, "Ben Cleo Dora Mia Ned"),
    *(("Who came to dinner before May 2022?", zone, "Fay Pia") for zone in (LA, BERLIN, TOKYO)),
]


@pytest.fixture(scope="module")
async def dinners(module_rig: Rig) -> Rig:
    """Store dinner memories, alternately dated by creation time and by event date."""
    records = []
    for number, (name, when) in enumerate(DINNERS.items()):
        moment = datetime.fromisoformat(when).replace(tzinfo=UTC)
        dates = {"created_at": moment} if number % 2 else {"created_at": datetime(2025, 1, 1, tzinfo=UTC), "event_date": moment}
        records.append(record(f"Had dinner with {name} at the harbour", name, **dates))
    # Texts of another time that match the question better: first one that quotes its words of time, then one with all of its words.
    others = (
        "In May I may have dinner",
        "Dinner last week was mentioned",
        "Whom to meet for dinner on 8 May 2023?",
        "yesterday's dinner",
        "Where was dinner yesterday? Yesterday's dinner, where was it?",
        "Who did I have dinner with in May 2023?",
        "In May 2023 dinner, in May 2023 dinner, in May 2023 dinner",
        "dinner last week, dinner last week",
        "With whom was the dinner last March? Last March the dinner was with whom?",
        "dinners of May 2022, dinners of May 2022",
        "Who came to dinner two years ago? To dinner two years ago came Zoe",
        "what I ate yesterday",
        "What I ate last week: what I ate last week",
        "What happened last week is what happened",
        "Who did I have dinner with? With Zoe",
        "I had dinner",
        "Zoe came to dinner, we had the dinner at home",
        "Where the dinner was",
    )
    records += [record(text, created_at=datetime(2024, 2, 2, tzinfo=UTC)) for text in others]
    records += [record(f"Bought {n} plum trees", created_at=datetime(2019, 1, n, tzinfo=UTC)) for n in range(1, 21)]
    await module_rig.remember(*records)
    return module_rig


@pytest.fixture(scope="module")
async def module_rig(redis_url: str, local: EmbeddingModel, counter: TokenCounter) -> AsyncGenerator[Rig]:
    async with open_rig(redis_url, local, counter, None) as one:
        yield one


@pytest.mark.parametrize(("question", "zone", "expected"), CASES)
@pytest.mark.parametrize("mode", ["default", "hybrid"])
async def test_memories_of_the_requested_time_come_before_others_that_fit(
    dinners: Rig, question: str, zone: str, expected: str, mode: str
) -> None:
    wanted = {"text": question, "timezone": zone, "reference_time": ASKED, "limit": 50} | (
        {} if mode == "default" else {"search_mode": mode}
    )
    found = await dinners.rt[SearchService].search(SCOPE, SearchRequest.model_validate(wanted))
    # A quotation of the question matches better than any dinner.
    names = [memory.id for memory in found.memories if memory.id in DINNERS]
    assert set(names[: len(expected.split())]) == set(expected.split()), names


async def test_matching_memories_come_before_others_of_the_requested_time(dinners: Rig) -> None:
    """The twenty memories from January 2019 that do not mention dinner rank lower."""
    wanted = {"text": "Who came to dinner in January 2019?", "reference_time": ASKED, "limit": 10}
    found = await dinners.rt[SearchService].search(SCOPE, SearchRequest.model_validate(wanted))
    assert "dinner" in found.memories[0].text
    assert not any(memory.text.startswith("Bought") for memory in found.memories[:5])


async def test_question_about_a_time_alone_returns_all_of_that_time_first(dinners: Rig) -> None:
    wanted = {"text": "What happened in January 2019?", "reference_time": ASKED, "limit": 30, "explain": True}
    found = await dinners.rt[SearchService].search(SCOPE, SearchRequest.model_validate(wanted))
    assert all(memory.text.startswith("Bought") for memory in found.memories[:20])
    scores = [memory.score or 0.0 for memory in found.memories]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert [memory.explanation.in_time for memory in found.memories if memory.explanation] == [True] * 20 + [False] * (len(scores) - 20)
