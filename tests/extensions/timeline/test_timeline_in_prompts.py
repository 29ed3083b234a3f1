"""Test that a prompt shows events from the requested time or else recent ones, within its limit."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from agent_memory.extensions.timeline.section import TIMELINE_HEADING
from agent_memory.features.memories.service import MemoryService
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.text.prompt_marks import DATA_NOTE
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, Rig
from tests.support.timelines import TRIP, close_periods, follow, prompt, store


async def test_prompt_shows_events_of_the_time_in_the_query(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await store(rig, *TRIP, ("may", "Ada sang on 9 May 2024"))
    assert "- 2024-03-04: Ada saw the Forum on 4 March 2024 (said by ada)" in await prompt(rig, "What happened in March 2024?")
    assert await prompt(rig, "What should I cook?") == "", "nothing is summarized yet"
    await close_periods(rig)
    march = await prompt(rig, "What happened in March 2024?")
    assert len(march.split("\n")) == 5
    assert "sang" not in march
    assert march.startswith("- 2024-03: Ada had a quiet March 2024"), "what is known of all of the month comes first"
    assert march.split("\n")[1:] == sorted(march.split("\n")[1:])
    assert await prompt(rig, "What happened on 9 May 2024?") == "- 2024-05-09: Ada sang on 9 May 2024 (said by ada)"
    assert await prompt(rig, "What happened in March 1999?") == ""
    latest = await prompt(rig, "What should I cook?")
    assert latest.split("\n")[-1] == "- 2024-05-09: Ada sang on 9 May 2024 (said by ada)"
    assert latest == await prompt(rig, "Which book shall I read?"), "the same bytes while nothing changed"
    assert len((await prompt(rig, "What happened in March 2024?", 90)).split("\n")) < 3
    sent = commands_of(rig, monkeypatch)
    assert await prompt(rig, "What happened in March 2024?", timeline=None) == ""
    without = len(sent)
    sent.clear()
    assert await prompt(rig, "What happened in March 2024?") == march
    assert len(sent) == without, "it is read in the prompt's own round trip"


async def test_prompt_never_shows_deleted_events(rig: Rig) -> None:
    await store(rig, *TRIP)
    await close_periods(rig)
    await rig.rt[MemoryService].delete(SCOPE, ["tooth"])
    await follow(rig)
    for query in ("What happened in March 2024?", "What should I cook?"):
        assert "tooth" not in await prompt(rig, query)
    assert "flew home" in await prompt(rig, "What happened in March 2024?"), "its events, while the summary waits"


async def test_yesterday_is_resolved_in_the_users_time_zone(rig: Rig) -> None:
    now = datetime(2024, 3, 10, 3, tzinfo=UTC)  # the evening of the ninth in New York
    await store(rig, *TRIP)
    search = {"text": "", "reference_time": now.isoformat(), "limit": 1}
    told = await prompt(rig, "What happened yesterday?", long_term_search={**search, "timezone": "America/New_York"})
    assert told == ""
    assert "flew home" in await prompt(rig, "What happened yesterday?", long_term_search=search)
    assert date(2024, 3, 9).isoformat() in await prompt(rig, "What happened yesterday?", long_term_search=search)


async def test_query_for_a_day_shows_only_events_known_to_that_day(rig: Rig) -> None:
    """A day shows longer events that cover it, but not events with only a month or year."""
    await store(rig, *TRIP, ("year", "Ada learned to sail in 2024"), ("oslo", "Ada was in Oslo from 28 February to 5 March 2024"))
    await store(rig, ("acme", "Ada has worked at Acme since 2020"))
    day = await prompt(rig, "What happened on 4 March 2024?")
    assert [line.partition(": ")[0] for line in day.split("\n")] == ["- since 2020-01-01", "- 2024-02-28 to 2024-03-05", "- 2024-03-04"]
    month = await prompt(rig, "What happened in March 2024?")
    assert "quiet March" in month
    assert "sail" not in month
    assert "sail" in await prompt(rig, "What happened in 2024?")


async def test_prompt_timeline_stays_within_its_token_limit(rig: Rig, counter: TokenCounter) -> None:
    await store(rig, *((f"e{number}", f"Ada met guest number {number} for tea on {number} March 2024") for number in range(1, 31)))
    await close_periods(rig)
    for query in ("What happened in March 2024?", "What happened on 9 March 2024?", "What should I cook?"):
        lines: list[int] = []
        for tokens in (32, 60, 90, 150, 300, 1_000, 4_000):
            text = await prompt(rig, query, tokens)
            assert text == await prompt(rig, query, tokens), "the same bytes while nothing changed"
            assert not text or counter.count(TIMELINE_HEADING + text + DATA_NOTE) <= tokens
            lines.append(len(text.split("\n")) if text else 0)
        assert lines == sorted(lines)
        assert lines[0] == 0
        assert lines[-1] > 0


async def test_prompt_timeline_contains_only_the_callers_scope(rig: Rig) -> None:
    await store(rig, *TRIP)
    await store(rig, ("bob", "Bob robbed a bank on 5 March 2024"), user_id="bob")
    await store(rig, ("choir", "Ada sang on 6 March 2024"), namespace="choir")
    await store(rig, ("robot", "Ada was scanned on 7 March 2024"), agent_id="robot")
    await close_periods(rig)
    for query in ("What happened in March 2024?", "What should I cook?"):
        hers = await prompt(rig, query)
        assert "Forum" in hers
        assert not [word for word in ("bank", "sang", "scanned") if word in hers]
        assert (await prompt(rig, query, namespace="choir")).count("\n") == 0
        assert "sang" in await prompt(rig, query, namespace="choir")
        assert "bank" in await prompt(rig, query, user_id="bob")
        assert await prompt(rig, query, user_id=None) == ""
        assert await prompt(rig, query, user_id="Ada") == ""
        for scope in (
            Scope("other"),
            Scope(SCOPE.tenant, users=frozenset({"bob"})),
            Scope(SCOPE.tenant, agents=frozenset({"robot"})),
            Scope(SCOPE.tenant, namespaces=frozenset({"choir", "work"})),
        ):
            assert await prompt(rig, query, scope=scope) == ""
