"""Test that a time in a question orders the memories in a prompt.

Unrelated events from that time are not added.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agent_memory.features.recall.service import RecallService
from agent_memory_client.models import MemoryPromptRequest
from tests.support.rig import SCOPE, Rig, record

FRIDAY = datetime(2025, 3, 7, 9, tzinfo=UTC)
ASKED = datetime(2025, 3, 12, 18, tzinfo=UTC)


async def shown(rig: Rig, query: str) -> list[str]:
    search = {"user_id": {"eq": "u"}, "limit": 20, "reference_time": ASKED.isoformat()}
    body = {"query": query, "long_term_search": search}
    prompt = await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))
    return [memory.text for memory in prompt.long_term_memories or []]


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("Who visited me on Friday?", "My cousin Ruben visited me"),
        ("¿Quién visitó mi taller el viernes pasado?", "Rosalía visitó el taller y le gustó mucho"),
    ],
)
async def test_question_with_a_day_shows_only_matching_memories_of_that_day(rig: Rig, query: str, meant: str) -> None:
    others = ["The dishwasher leaks", "The jam did not set", "The printer jams again"]
    await rig.remember(*[record(text, user_id="u", created_at=FRIDAY, memory_type="message") for text in (meant, *others)])
    assert await shown(rig, query) == [meant]


async def test_matching_facts_of_the_day_come_first(rig: Rig) -> None:
    await rig.remember(
        record("The user sold tickets for a raffle", user_id="u", created_at=FRIDAY),
        record("Aunt Hedwig visits the user", user_id="u", created_at=datetime(2025, 3, 3, tzinfo=UTC)),
        record("Cousin Ruben visits the user", user_id="u", created_at=FRIDAY),
    )
    texts = await shown(rig, "Who visited me on Friday?")
    assert texts[0] == "Cousin Ruben visits the user"
    assert "Aunt Hedwig visits the user" in texts


async def test_question_about_a_day_alone_shows_everything_of_that_day(rig: Rig) -> None:
    told = ["The dishwasher leaks", "We sold tickets for the raffle"]
    await rig.remember(*[record(text, user_id="u", created_at=FRIDAY, memory_type="message") for text in told])
    assert set(await shown(rig, "What happened last Friday?")) == set(told)


async def test_question_about_plans_shows_only_what_is_planned_for_that_day(rig: Rig) -> None:
    before, then = datetime(2025, 3, 3, 9, tzinfo=UTC), datetime(2025, 3, 13, 10, tzinfo=UTC)
    await rig.remember(
        record(
            "I do not have to do my taxes on 9 March, I have to do them on 13 March", user_id="u", created_at=before, memory_type="message"
        ),
        record("The user visits the mill", user_id="u", created_at=before, event_date=then),
        record("I have to do something about the dishwasher", user_id="u", created_at=ASKED, memory_type="message"),
        record("I have to do the garden on 20 March", user_id="u", created_at=before, memory_type="message"),
    )
    taxes = "I do not have to do my taxes on 9 March, I have to do them on 13 March"
    assert set(await shown(rig, "What do I have to do tomorrow?")) == {taxes, "The user visits the mill"}


@pytest.mark.parametrize("query", ["What will happen on 20 March?", "What happens on 20 March?", "What is on 20 March?"])
async def test_date_without_a_year_in_a_plan_means_the_coming_one(rig: Rig, query: str) -> None:
    told = "I was wrong about the job: I do not start on 9 March, I start on 20 March"
    others = ["The dishwasher broke on 3 March", "We sold tickets for the raffle", "My sister Ines visits me on Friday"]
    await rig.remember(*[record(text, user_id="u", created_at=FRIDAY, memory_type="message") for text in (told, *others)])
    assert await shown(rig, query) == [told]


async def test_question_about_a_day_without_plans_falls_back_to_near_memories(rig: Rig) -> None:
    told = "The dishwasher is broken, I have to repair it"
    await rig.remember(record(told, user_id="u", created_at=FRIDAY, memory_type="message"))
    assert await shown(rig, "What do I have to repair tomorrow?") == [told]


@pytest.mark.parametrize("between", [". ", "; ", ", but "])
async def test_past_event_in_a_message_does_not_hide_its_plan(rig: Rig, between: str) -> None:
    said, then = datetime(2025, 3, 11, 9, tzinfo=UTC), datetime(2025, 3, 14, tzinfo=UTC)
    plan = f"I was ill last week{between}my aunt comes on Friday"
    await rig.remember(
        record(plan, user_id="u", created_at=said, memory_type="message"),
        record("The user visits the mill", user_id="u", created_at=said, event_date=then),
        record("On Friday I met Ben", user_id="u", created_at=said, memory_type="message"),
    )
    assert set(await shown(rig, "What will happen on Friday?")) == {plan, "The user visits the mill"}


async def test_plans_of_a_period_are_found_among_many_similar_statements(rig: Rig) -> None:
    before = datetime(2025, 3, 1, 9, tzinfo=UTC)
    chat = [f"Next time I have a week off, I want to do something nice on day {number}" for number in range(60)]
    plans = ["Picking up the new glasses on Friday the 21st", "Oslo from 17 to 19 March with Tom", "Grandpa turns 90 on March 22"]
    others = ["Dentist on 25 March", "The cinema was nice on 18 February"]
    texts = (*chat, *plans, *others)
    await rig.remember(*[record(text, user_id="u", created_at=before, memory_type="message") for text in texts])
    assert set(await shown(rig, "What do I have next week?")) == set(plans)
