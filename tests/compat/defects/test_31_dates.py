"""Test defect 31: relative dates ignored the message's time and the user's time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from agent_memory.features.extraction.fact_dates import event_day, instant
from agent_memory.features.extraction.prompts import ExtractionTask, extract_messages
from agent_memory.foundation.text.data_fences import PromptMessage
from agent_memory.foundation.text.dates.relative import with_absolute_times

SAID = datetime(2023, 5, 8, 22, 30, tzinfo=UTC)
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
TOKYO = ZoneInfo("Asia/Tokyo")


def test_model_sees_each_message_with_its_time_in_the_users_zone() -> None:
    message = PromptMessage(1, "user", "I met Ana yesterday", SAID)
    assert "2023-05-09T07:30:00+09:00 Tuesday" in extract_messages([message], task=ExtractionTask(zone=TOKYO))[1].content
    assert "2023-05-08T22:30:00Z Monday" in extract_messages([message])[1].content
    assert NOW.date().isoformat() not in extract_messages([message])[1].content


@pytest.mark.parametrize(
    ("text", "utc", "tokyo"),
    [
        ("User met Ana yesterday.", "User met Ana on 7 May 2023.", "User met Ana on 8 May 2023."),
        ("Tomorrow User flies to Rome.", "On 9 May 2023 User flies to Rome.", "On 10 May 2023 User flies to Rome."),
        ("User moves in 2 weeks.", "User moves in the week of 22 May 2023.", "User moves in the week of 22 May 2023."),
        ("User ging gestern schwimmen.", "User ging gestern (2023-05-07) schwimmen.", "User ging gestern (2023-05-08) schwimmen."),
        ("用户昨天游泳了。", "用户昨天 (2023-05-07)游泳了。", "用户昨天 (2023-05-08)游泳了。"),
        ("ユーザーは昨日泳いだ。", "ユーザーは昨日泳いだ。", "ユーザーは昨日泳いだ。"),
        ("User met Ana on 3 May 2023.", "User met Ana on 3 May 2023.", "User met Ana on 3 May 2023."),
        ("User flies next Friday.", "User flies next Friday.", "User flies next Friday."),
    ],
)
def test_relative_dates_become_absolute_dates(text: str, utc: str, tokyo: str) -> None:
    assert with_absolute_times(text, SAID.date()) == utc
    assert with_absolute_times(text, SAID.astimezone(TOKYO).date()) == tokyo


@pytest.mark.parametrize("given", [None, NOW - timedelta(days=1), SAID, SAID - timedelta(days=2)])
def test_wrong_or_missing_event_day_is_corrected(given: datetime | None) -> None:
    assert event_day(given, ["I met Ana yesterday"], SAID, UTC, now=NOW) == datetime(2023, 5, 7, tzinfo=UTC)
    assert event_day(given, ["I met Ana yesterday"], SAID, TOKYO, now=NOW) == datetime(2023, 5, 7, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    "texts", [["I met Ana"], ["yesterday or today"], ["Yesterday I read that Rome burnt in May 1964"], ["yesterday", "tomorrow"]]
)
def test_ambiguous_day_is_taken_from_the_model(texts: list[str]) -> None:
    given = datetime(1990, 5, 1, tzinfo=UTC)
    assert event_day(given, texts, SAID, UTC, now=NOW) == given
    assert event_day(None, texts, SAID, UTC, now=NOW) is None


def test_day_given_by_the_model_is_in_the_users_zone() -> None:
    assert instant("2023-05-08", TOKYO) == datetime(2023, 5, 7, 15, tzinfo=UTC)
    assert instant("2023-05-08T10:00:00+02:00", TOKYO) == datetime(2023, 5, 8, 8, tzinfo=UTC)
    assert instant("0001-01-01T00:00:00+14:00", UTC) is None
