"""Test that days follow one time zone: the request's, or else the user's, or else UTC.

A plain date covers the entire day.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory.foundation.core.settings import load_settings
from tests.support.stack import stack
from tests.support.waiting import wait_until

MET = {"text": "Met Lena in Porto", "memory_type": "episodic", "event_date": "2023-11-14T23:30:00-08:00"}
MOVED = {"text": "Moved to Porto", "memory_type": "episodic", "event_date": "2023-11-14"}
ROOM = {"profile": {"tokens": 300}, "timeline": {"tokens": 300}}


class Home:
    """A server with the Mem0-compatible API, and one user."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.user = f"user-{ULID()}"

    async def call(self, method: str, path: str, body: Any = None, status: int = 200, **params: Any) -> Any:
        answer = await self.http.request(method, path, json=body, params=params)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def live_in(self, zone: str) -> None:
        await self.call("PUT", "/v1/extraction-rules", {"timezone": zone}, user_id=self.user)

    async def store(self, *records: dict[str, Any]) -> Any:
        """Store memories, and wait until they are searchable and in the profile."""
        memories = [{"id": str(ULID()), "user_id": self.user, **record} for record in records]
        answer = await self.call("POST", "/v1/long-term-memory/", {"memories": memories}, wait=15)

        async def shown() -> bool:
            profile = await self.call("GET", "/v1/profile", user_id=self.user)
            return len(profile["dynamic"]) + len(profile["static"]) >= len(records)

        if any("event_date" in record for record in records):
            await wait_until(shown, "the profile has them")
        return answer

    async def prompt(self, query: str, **body: Any) -> str:
        session = {"session_id": "new", "user_id": self.user}
        answer = await self.call("POST", "/v1/memory/prompt", {"query": query, "session": session, "format": "text", **ROOM, **body})
        return answer["text"]

    async def found(self, **wanted: Any) -> list[str]:
        """Return the texts of all search results."""
        body = {"user_id": {"eq": self.user}, "limit": 50, **wanted}
        answer = await self.call("POST", "/v1/long-term-memory/search", body)
        return sorted(memory["text"] for memory in answer["memories"])


@pytest.fixture(scope="module")
async def http(redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    settings = load_settings(KEY_PREFIX="days", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", COMPAT_APIS="mem0")
    async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        yield client


@pytest.fixture
def home(http: httpx.AsyncClient) -> Home:
    return Home(http)


async def test_all_parts_of_a_prompt_use_days_of_one_time_zone(home: Home) -> None:
    await home.live_in("America/Los_Angeles")
    await home.store(MET, MOVED)
    zones: list[tuple[dict[str, Any], str, str]] = [
        ({"long_term_search": True}, "14 November 2023", "2023-11-14"),
        ({"long_term_search": {"limit": 5}, "timezone": "Asia/Tokyo"}, "15 November 2023", "2023-11-15"),
        ({"long_term_search": {"limit": 5, "timezone": "Asia/Tokyo"}}, "15 November 2023", "2023-11-15"),
        ({"long_term_search": {"limit": 5, "timezone": "UTC"}, "timezone": "UTC"}, "15 November 2023", "2023-11-15"),
    ]
    for body, day, date in zones:
        text = await home.prompt("Who did I meet in Porto in November 2023?", **body)
        line = next(line for line in text.split("\n") if "episodic] Met Lena" in line)
        assert line.startswith(f"- [{day}, "), body
        dated = [line for line in text.split("\n") if "Met Lena" in line and line.startswith("- 20")]
        assert len(dated) == 2, "one line of the profile, one of the timeline"
        assert all(line.startswith(f"- {date}: ") for line in dated), dated
        moved = [line for line in text.split("\n") if "Moved to Porto" in line]
        assert all("2023-11-14" in line or "14 November 2023" in line for line in moved), "a plain day is that day in each zone"
        assert len(moved) == 3


async def test_day_in_a_question_is_a_day_in_the_users_time_zone(home: Home) -> None:
    await home.live_in("America/Los_Angeles")
    await home.store(MET, MOVED)
    for question, known in (("What happened on 14 November 2023?", True), ("What happened on 15 November 2023?", False)):
        text = await home.prompt(question, timeline={"tokens": 300}, profile=None)
        assert ("2023-11-14: Met Lena" in text) == known, question
        found = await home.call("POST", "/v1/long-term-memory/search", {"text": question, "user_id": {"eq": home.user}, "explain": True})
        in_time = [memory["text"] for memory in found["memories"] if memory["explanation"]["in_time"]]
        assert sorted(in_time) == ([MET["text"], MOVED["text"]] if known else []), question


async def test_unknown_or_conflicting_time_zone_is_refused(home: Home) -> None:
    for body in (
        {"timezone": "Nowhere"},
        {"timezone": ""},
        {"timezone": "Nowhere", "session": {"session_id": "x"}},
        {"timezone": "UTC", "long_term_search": {"timezone": "Asia/Tokyo"}},
    ):
        answer = await home.call("POST", "/v1/memory/prompt", {"query": "x", "long_term_search": True, **body}, status=422)
        assert "timezone" in str(answer)
    await home.call("POST", "/v1/long-term-memory/search", {"text": "x", "timezone": "Nowhere"}, status=422)


async def test_plain_day_in_a_filter_follows_the_users_time_zone(home: Home) -> None:
    """Covers native filters, conditions, dates in metadata, and Mem0's filters."""
    names = {"evening": "2026-03-10T02:00:00Z", "noon": "2026-03-10T20:00:00Z", "next": "2026-03-11T09:00:00Z"}
    records = [{"text": name, "created_at": at, "namespace": "mem0", "metadata": {"due": at}} for name, at in names.items()]
    await home.store(*records)
    day: dict[str, Any] = {"gte": "2026-03-10", "lte": "2026-03-10"}
    mem0 = {"AND": [{"user_id": home.user}, {"created_at": day}]}

    async def by_mem0(body: dict[str, Any]) -> list[str]:
        return sorted(memory["memory"] for memory in (await home.call("POST", "/v3/memories/", body))["results"])

    for zone, wanted in ((None, ["evening", "noon"]), ("America/Los_Angeles", ["noon"])):
        if zone is not None:
            await home.live_in(zone)
        assert await home.found(created_at=day) == await home.found(created_at="2026-03-10") == wanted
        assert await home.found(filter={"and": [{"created_at": day}, {"not": {"created_at": {"gt": "2026-03-10"}}}]}) == wanted
        assert await home.found(created_at=day, timezone="UTC") == ["evening", "noon"]
        assert await home.found(metadata={"due": day}) == ["evening", "noon"], "days of metadata are those of UTC"
        assert await home.found(metadata={"due": {"gt": "2026-03-10"}}) == ["next"]
        beyond = {"AND": [*mem0["AND"], {"keywords": {"icontains": "n"}}]}
        bounds = {"filters": {"user_id": home.user}, "start_date": "2026-03-10", "end_date": "2026-03-10"}
        assert await by_mem0({"filters": mem0}) == await by_mem0({"filters": beyond}) == await by_mem0(bounds) == wanted


async def test_metadata_date_is_read_in_common_formats_and_unreadable_ones_are_reported(home: Home) -> None:
    ways = ("2023-11-14", "20231114", "14 Nov 2023", "Tue, 14 Nov 2023 10:00:00 GMT", "2023-11-14T10:00:00Z", 1699956000, "1699956000000")
    for number, way in enumerate(ways):
        message = {"role": "user", "content": f"Yesterday I met Lena in Porto {number}", "metadata": {"date": way}}
        answer = await home.call(
            "POST", f"/v1/working-memory/s{number}/messages", {"user_id": home.user, "messages": [message]}, wait="searchable"
        )
        assert "notices" not in answer, way
        assert await home.found(created_at="2023-11-14", timezone="UTC", text=f"Porto {number}", search_mode="keyword") != [], way
    assert len(await home.found(created_at="2023-11-14", timezone="UTC")) == len(ways)
    unreadable = {"role": "user", "content": "I met Bo", "metadata": {"date": "one fine day"}}
    memory = {"id": str(ULID()), "text": "Met Bo", "user_id": home.user, "metadata": {"date": ["2023"]}}
    session = {"session_id": "put", "user_id": home.user, "messages": [unreadable]}
    said = {"messages": "I met Bo again", "user_id": home.user, "metadata": {"date": "someday"}, "infer": False}
    for method, path, body, word in (
        ("POST", "/v1/working-memory/bad/messages", {"user_id": home.user, "messages": [unreadable]}, "one fine day"),
        ("PUT", "/v1/working-memory/put", session, "one fine day"),
        ("POST", "/v1/long-term-memory/", {"memories": [memory]}, "list"),
        ("PATCH", f"/v1/long-term-memory/{memory['id']}", {"metadata": {"date": "never"}}, "never"),
        ("POST", "/v3/memories/add/", said, "someday"),
    ):
        (notice,) = (await home.call(method, path, body))["notices"]
        assert "metadata.date" in notice, path
        assert word in notice, path
