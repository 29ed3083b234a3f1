"""Test timelines through the client, model tools, command line and export."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from datetime import UTC, date, datetime
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.cli.app import app
from agent_memory_client import MemoryAPIClient, MemoryClientConfig, MemoryServerError
from agent_memory_client.models import MemoryMessage
from agent_memory_client.models.features.timeline import Timeline, TimelineQuery
from tests.support.lookalike import Lookalike
from tests.support.stack import stack
from tests.support.waiting import wait_until

SAID = datetime(2026, 3, 9, 12, tzinfo=UTC)  # a Monday
MESSAGES = ["I love pasta. Yesterday I swam in the sea.", "On 3 March I flew to Rome", "What did I do in March?"]
EVENTS = [("On 3 March I flew to Rome", date(2026, 3, 3)), ("Yesterday I swam in the sea.", date(2026, 3, 8))]
FACTS = {
    MESSAGES[0]: [
        {"text": "User loves pasta", "type": "semantic"},
        {"text": "User swam in the sea", "type": "episodic", "event_date": "2026-03-08"},
    ],
    MESSAGES[1]: [{"text": "User flew to Rome", "type": "episodic", "event_date": "2026-03-03", "entities": ["Rome"]}],
}
EXTRACTED = [("User flew to Rome", date(2026, 3, 3)), ("User swam in the sea", date(2026, 3, 8))]
MARCH = TimelineQuery(from_=date(2026, 3, 1), to=date(2026, 3, 31))


@pytest.fixture(scope="module", params=["keyless", "model"])
async def server(redis_url: str, request: pytest.FixtureRequest) -> AsyncGenerator[tuple[str, MemoryAPIClient, bool]]:
    """Start a server with and without a language model."""
    options: dict[str, Any] = {"KEY_PREFIX": f"timeline-{request.param}", "EMBEDDING_PROVIDER": "local", "MODEL_PROVIDER": "local"}
    model = Lookalike().start()
    if request.param == "model":
        model.scripted.silent = True
        model.scripted.facts.update(FACTS)
        options |= {"MODEL_PROVIDER": "openai", "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test-0000"}
    try:
        async with stack(load_settings(EXTRACTION_DEBOUNCE_SECONDS=0, **options), redis_url) as url:
            client = MemoryAPIClient(MemoryClientConfig(base_url=url, max_retries=0))
            messages = [MemoryMessage(role="user", content=text, created_at=SAID) for text in MESSAGES]
            await client.append_messages("s", messages, user_id="ada")
            await client.flush_working_memory("s", user_id="ada", wait=20)
            yield url, client, request.param == "model"
            await client.close()
    finally:
        model.stop()


async def timeline_of(client: MemoryAPIClient, user: str) -> Timeline:
    """Wait until a user has two events in March, and return the timeline."""
    last: list[Timeline] = []

    async def told() -> bool:
        last[:] = [await client.timeline.get(user, which=MARCH)]
        return last[0].total == 2

    await wait_until(told, "two events")
    return last[0]


async def test_stated_events_are_listed_by_day(server: tuple[str, MemoryAPIClient, bool]) -> None:
    url, client, has_model = server
    events = EXTRACTED if has_model else EVENTS
    assert [(event.text, event.start) for event in (await timeline_of(client, "ada")).events] == events
    weeks = await client.timeline.get("ada", which=MARCH.model_copy(update={"granularity": "week"}))
    assert [period.name for period in weeks.periods or ()] == ["2026-W10"]
    assert not (await client.timeline.get("ada", which=TimelineQuery(from_=date(2026, 3, 9)))).events
    with pytest.raises(MemoryServerError, match="must not be after"):
        await client.timeline.get("ada", which=TimelineQuery(from_=date(2026, 3, 9), to=date(2026, 3, 8)))
    for query, named in (({"from": "soon", "user_id": "ada"}, "from"), ({}, "user_id")):
        refused = await asyncio.to_thread(httpx.get, f"{url}/v1/timeline", params=query)
        assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["query", named])
    call = {"name": "get_timeline", "arguments": {"from": "2026-03-01", "to": "2026-03-07"}}
    result = await client.resolve_tool_call(call, "s", user_id="ada")
    assert result["result"] is not None, result
    assert [event["text"] for event in result["result"]["events"]] == [events[0][0]]
    asked = ["call", "GET", "/v1/timeline?user_id=ada&from=2026-03-04&granularity=month", "--url", url]
    printed = await asyncio.to_thread(CliRunner().invoke, app, asked)
    assert printed.exit_code == 0, printed.output
    (period,) = json.loads(printed.stdout)["periods"]
    assert [event["text"] for event in period["events"]] == [events[1][0]]


async def test_import_rebuilds_the_timeline_and_erasure_deletes_it(server: tuple[str, MemoryAPIClient, bool]) -> None:
    _, client, has_model = server
    await timeline_of(client, "ada")
    lines = [line async for line in client.users.export("ada")]
    assert not [line for line in lines if json.loads(line)["kind"] == "timeline"]
    await client.users.import_lines("bob", lines)
    events = (await timeline_of(client, "bob")).events
    assert [(event.text, event.start) for event in events] == (EXTRACTED if has_model else EVENTS)
    await client.users.delete("bob", wait=20)

    async def erased() -> bool:
        return not (await client.timeline.get("bob")).total

    await wait_until(erased, "nothing of bob")
    assert (await timeline_of(client, "ada")).total == 2
    await client.timeline.rebuild("ada")
    assert (await timeline_of(client, "ada")).total == 2


async def test_request_time_zone_decides_event_days(server: tuple[str, MemoryAPIClient, bool]) -> None:
    """Late evening in UTC is the next day in Berlin."""
    url, client, _ = server
    late = {"id": "late", "user_id": "zoe", "text": "Zoe moved to Porto", "event_date": "2026-03-08T23:30:00Z", "memory_type": "episodic"}
    async with httpx.AsyncClient(base_url=url, timeout=60) as http:
        assert (await http.post("/v1/long-term-memory/", json={"memories": [late]})).status_code == 200

        async def days(**query: str) -> list[str]:
            answer = (await http.get("/v1/timeline", params={"user_id": "zoe", **query})).json()
            return [event["start"] for event in answer["events"]]

        async def followed() -> bool:
            return len(await days()) == 1

        await wait_until(followed, "the timeline follows")
        assert await days() == await days(timezone="UTC") == ["2026-03-08"]
        assert await days(timezone="Europe/Berlin") == await days(timezone="Europe/Berlin", **{"from": "2026-03-09"}) == ["2026-03-09"]
        for path in ("/v1/timeline", "/v1/profile"):
            refused = await http.get(path, params={"user_id": "zoe", "timezone": "Europe/Atlantis"})
            assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["query", "timezone"])
    found = await client.timeline.get("zoe", which=TimelineQuery(timezone="Europe/Berlin"))
    assert [event.start for event in found.events] == [date(2026, 3, 9)]


async def test_time_zone_accepts_events_at_the_ends_of_the_calendar(server: tuple[str, MemoryAPIClient, bool]) -> None:
    """In Berlin, the last second of year 9999 would be in year 10000."""
    dates = {"end": "9999-12-31T23:59:59Z", "start": "0001-01-01T00:00:01Z"}
    events = [
        {"id": name, "user_id": "eve", "text": "Eve sings", "event_date": at, "memory_type": "episodic"} for name, at in dates.items()
    ]
    async with httpx.AsyncClient(base_url=server[0], timeout=60) as http:
        assert (await http.post("/v1/long-term-memory/", json={"memories": events})).status_code == 200

        async def followed() -> bool:
            return (await http.get("/v1/timeline", params={"user_id": "eve"})).json()["total"] == 2

        await wait_until(followed, "the timeline follows")
        for zone in ("Europe/Berlin", "America/New_York"):
            for path in ("timeline", "profile"):
                answer = await http.get(f"/v1/{path}", params={"user_id": "eve", "timezone": zone})
                assert answer.status_code == 200, (zone, answer.text)
            for now in dates.values():
                search = {"text": "What does Eve sing today?", "user_id": {"eq": "eve"}, "timezone": zone, "reference_time": now}
                body = {"query": search["text"], "user_id": "eve", "long_term_search": search, "timeline": {}, "profile": {}}
                answer = await http.post("/v1/memory/prompt", json=body)
                assert answer.status_code == 200, (zone, answer.text)
                assert "Eve sings" in answer.text


async def test_time_of_a_read_without_a_zone_is_in_utc(server: tuple[str, MemoryAPIClient, bool]) -> None:
    home = {"id": "home", "user_id": "kim", "text": "Kim lives in Rome", "event_date": "2026-01-01", "valid_to": "2030-01-01T00:00:00Z"}
    async with httpx.AsyncClient(base_url=server[0], timeout=60) as http:
        assert (await http.post("/v1/long-term-memory/", json={"memories": [home]})).status_code == 200
        for path in ("timeline", "profile"):
            answer = await http.get(f"/v1/{path}", params={"user_id": "kim", "as_of": "2029-03-01T00:00:00"})
            assert (answer.status_code, answer.json().get("as_of")) == (200, "2029-03-01T00:00:00Z"), answer.text
