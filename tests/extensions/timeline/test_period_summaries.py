"""Test summaries of days, weeks and months. They never contain deleted or changed events."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from agent_memory.extensions.timeline.follower import TimelineFollower
from agent_memory.extensions.timeline.store import TimelineKeys
from agent_memory.extensions.timeline.summaries.store import SummaryStore
from agent_memory.extensions.timeline.summaries.summarizer import PeriodSummarizer
from agent_memory.features.jobs.order_store import JobOrder, OrderStore
from agent_memory.features.memories.service import MemoryService
from agent_memory.foundation.core.errors import ModelUnavailable
from agent_memory.foundation.core.feature import Owner
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory_client.models import EditMemoryRecordRequest
from agent_memory_worker.timeline import order_summaries
from tests.support.commands import commands_of
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig
from tests.support.timelines import OWNER, TRIP, close_periods, follow, periods, store, stored_bytes, text_of


async def test_finished_periods_are_summarized_with_days_and_sources(rig: Rig) -> None:
    await store(rig, *TRIP)
    assert {name: period.state for name, period in (await periods(rig)).items()} == {"2024-03": "pending"}
    await close_periods(rig)
    lines = (await text_of(rig)).split("\n")
    assert lines == [
        "2024-03: Ada had a quiet March 2024 (said by ada)",
        "2024-03-03: Ada flew to Rome on 3 March 2024 (said by ada)",
        "2024-03-04: Ada saw the Forum on 4 March 2024 (said by ada)",
        "2024-03-09: Ada flew home on 9 March 2024 (said by ada)",
        "2024-03-09: Ada lost a tooth on 9 March 2024 (said by ada)",
    ]
    weeks = await periods(rig, "week")
    assert {name: (period.summary.events, period.summary.by) for name, period in weeks.items() if period.summary} == {
        "2024-03": (5, "events"), "2024-W09": (1, "events"), "2024-W10": (3, "events")
    }  # fmt: skip
    assert (await text_of(rig, "2024-03-09", "day")).split("\n") == lines[-2:]
    assert await rig.rt[SummaryStore].waiting_timelines(10) == []


async def test_current_period_is_open_and_not_summarized(rig: Rig) -> None:
    today = datetime.now(UTC).replace(hour=12)
    await store(rig, ("now", "Ada baked bread"), event_date=today + timedelta(days=1))
    await close_periods(rig)
    assert [(period.state, period.summary) for period in (await periods(rig, "day")).values()] == [("open", None)]
    assert await rig.rt[PeriodSummarizer].summarize(OWNER.name, OWNER.tenant) == 0


async def test_edited_event_invalidates_only_summaries_of_its_periods(rig: Rig) -> None:
    await store(rig, *TRIP, ("april", "Ada moved on 4 April 2024"))
    await close_periods(rig)
    await rig.rt[MemoryService].patch(SCOPE, "home", EditMemoryRecordRequest(text="Ada sailed home on 9 March 2024"))
    await follow(rig)
    states = {name: period.state for name, period in ((await periods(rig, "day")) | (await periods(rig))).items()}
    assert states == {
        "2024-03": "pending", "2024-03-03": "current", "2024-03-04": "current", "2024-03-09": "pending", "2024-04-04": "current",
        "2024-04": "current",
    }  # fmt: skip
    assert "flew home" not in await stored_bytes(rig)
    await close_periods(rig)
    assert "Ada sailed home" in await text_of(rig)
    await store(rig, ("late", "Ada bought a hat on 5 March 2024"))
    assert (await periods(rig))["2024-03"].state == "pending"
    await close_periods(rig)
    assert "bought a hat" in await text_of(rig)


async def test_summaries_contain_nothing_of_deleted_memories(rig: Rig) -> None:
    await store(rig, *TRIP)
    await close_periods(rig)
    await rig.rt[MemoryService].delete(SCOPE, ["tooth"])
    await follow(rig)
    assert "tooth" not in await stored_bytes(rig)
    await close_periods(rig)
    assert "tooth" not in await text_of(rig)
    await rig.rt[TimelineFollower].erase_owner(SCOPE, Owner(None, "ada"))
    assert await stored_bytes(rig) == ""


async def test_summary_of_changed_events_is_not_stored(rig: Rig) -> None:
    await store(rig, *TRIP)
    summaries = rig.rt[SummaryStore]
    inputs = await summaries.read_inputs(OWNER.name, key := "d19791")
    assert [event["id"] for event in inputs.events] == ["home", "tooth"]
    await rig.rt[MemoryService].delete(SCOPE, ["tooth"])
    await follow(rig)
    summary = {"text": "Ada lost a tooth", "by": "model", "events": 2, "made_at": datetime.now(UTC).isoformat()}
    assert not await summaries.put_summary(OWNER.name, key, inputs, summary)
    assert not await summaries.put_off(OWNER.name, key, inputs, 9e9)
    await rig.rt[TimelineFollower].erase_owner(SCOPE, Owner(None, "ada"))
    assert not await summaries.put_summary(OWNER.name, key, inputs, summary)
    assert await stored_bytes(rig) == ""


async def test_summary_with_expired_memory_is_hidden_before_a_worker_runs(rig: Rig) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    await store(rig, *TRIP)
    await store(rig, ("code", "Ada's code came on 9 March 2024"), expires_at=soon)
    await close_periods(rig)
    assert "code" in await text_of(rig)
    key = TimelineKeys(rig.keys.root).timeline(OWNER.name) + ":s"
    # An hour later, the time in the stored summaries and events is in the past.
    for name, value in (await rig.rt.client.hgetall(key)).items():
        await rig.rt.client.hset(key, name, re.sub(rb'"until":\d+', b'"until":1', value))
    assert {period.state for period in (await periods(rig)).values()} == {"pending"}


async def test_summaries_and_events_are_read_in_one_round_trip(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await store(rig, *TRIP)
    await close_periods(rig)
    await periods(rig)
    sent = commands_of(rig, monkeypatch)
    assert (await periods(rig))["2024-03"].summary is not None
    assert len(sent) == 1
    of_topic = await periods(rig, topic="travel")
    assert [period.summary for period in of_topic.values()] == [None] * len(of_topic)


async def test_model_summarizes_each_day_once_and_outage_keeps_periods_pending(
    make_rig: MakeRig, lookalike: Lookalike, chat: OpenAIChat
) -> None:
    async with make_rig(chat=chat, MODEL_PROVIDER="openai", OPENAI_BASE_URL=lookalike.url, OPENAI_API_KEY="sk-test") as rig:
        await store(rig, *TRIP, ("gelato", "Ada ate gelato on 9 March 2024"))
        lookalike.set_fault("500")
        with pytest.raises(ModelUnavailable):
            await rig.rt[PeriodSummarizer].summarize(OWNER.name, OWNER.tenant)
        assert (await periods(rig))["2024-03"].state == "pending"
        lookalike.set_fault(None)
        lookalike.scripted.raw["Events of 2024-03-09"] = '{"summary": "On 9 March Ada flew home, lost a tooth and ate gelato."}'
        before = len(lookalike.bodies("chat"))
        await rig.rt[PeriodSummarizer].summarize(OWNER.name, OWNER.tenant)
        # The model summarizes the day with three events and the month of three days; the two-day week is quoted as it is.
        assert len(lookalike.bodies("chat")) - before == 2
        assert await text_of(rig, "2024-03-09", "day") == "On 9 March Ada flew home, lost a tooth and ate gelato."
        month = str(lookalike.bodies("chat")[-1])
        assert "On 9 March Ada flew home, lost a tooth" in month
        assert "Ada lost a tooth on 9 March 2024" not in month, "a month is made of its days"
        await rig.rt[MemoryService].delete(SCOPE, ["tooth"])
        await follow(rig)
        assert "lost a tooth" not in await stored_bytes(rig)
        lookalike.scripted.raw["Events of 2024-03-09"] = '{"summary": "none"}'
        await rig.rt[PeriodSummarizer].summarize(OWNER.name, OWNER.tenant)
        assert (await periods(rig, "day"))["2024-03-09"].state == "current", "two events are said as they are"


async def test_unusable_model_answer_reschedules_the_period(make_rig: MakeRig, lookalike: Lookalike, chat: OpenAIChat) -> None:
    async with make_rig(chat=chat, MODEL_PROVIDER="openai", OPENAI_BASE_URL=lookalike.url, OPENAI_API_KEY="sk-test") as rig:
        await store(rig, *((f"e{number}", f"Ada did {number} things on 9 March 2024") for number in range(4)))
        lookalike.scripted.raw["Events of 2024-03-09"] = '{"summary": "none"}'
        assert await rig.rt[PeriodSummarizer].summarize(OWNER.name, OWNER.tenant) == 0
        states = {period.state for unit in ("day", "week", "month") for period in (await periods(rig, unit)).values()}
        assert states == {"pending"}, "a week waits for its days"
        asked = len(lookalike.bodies("chat"))
        await rig.rt[PeriodSummarizer].summarize(OWNER.name, OWNER.tenant)
        assert len(lookalike.bodies("chat")) == asked, "it is not asked again at once"
        assert await rig.rt.client.zscore(TimelineKeys(rig.keys.root).waiting, OWNER.name) > datetime.now(UTC).timestamp()


async def test_summary_order_contains_no_user_id(rig: Rig) -> None:
    await store(rig, *TRIP)
    await order_summaries(rig.rt)
    (name,) = await rig.marks(DueKind.ORDER)
    order = await rig.rt[OrderStore].load_order(name)
    assert order == JobOrder("summarize-periods", SCOPE.tenant, {"timeline": OWNER.name})
