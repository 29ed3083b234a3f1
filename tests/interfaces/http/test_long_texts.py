"""Test that long texts never block the event loop for other requests."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.heartbeat import heartbeat

# CPU seconds in one turn. Megabytes of JSON take some tenths on a slow machine; a refused text took many seconds.
_MOST = 2.5
_TWO_MEGABYTES = 2_000_000


def long_text(part: str, size: int = _TWO_MEGABYTES) -> str:
    return (part * (size // len(part) + 1))[:size]


def body_of(path: str, text: str) -> dict[str, Any]:
    if path.endswith("/search"):
        return {"text": text, "user_id": {"eq": "long"}}
    return {"query": text, "session": {"session_id": "long", "user_id": "long"}, "long_term_search": True, "max_tokens": 5000}


@pytest.mark.parametrize("part", ["from may to ", "ferry ", "_", '"a '])
@pytest.mark.parametrize("path", ["/v1/long-term-memory/search", "/v1/memory/prompt"])
async def test_long_query_is_answered_without_blocking_the_event_loop(live: httpx.AsyncClient, path: str, part: str) -> None:
    body = body_of(path, long_text(part))
    await live.put("/v1/working-memory/long", json={"messages": [{"role": "user", "content": "hello"}], "user_id": "long"})
    async with heartbeat() as beat:
        answer = await live.post(path, json=body)
    assert answer.status_code == 200
    assert beat.longest < _MOST


async def test_long_messages_do_not_block_the_event_loop(live: httpx.AsyncClient) -> None:
    messages = [{"role": "user", "content": long_text("from may to ferry. ", 500_000)}]
    body = {"messages": messages, "context": long_text("a1-", 3_000_000)}
    async with heartbeat() as beat:
        answer = await live.put("/v1/working-memory/long-message", json=body)
    assert answer.status_code == 200
    assert beat.longest < _MOST


async def test_many_long_memories_do_not_block_the_event_loop(live: httpx.AsyncClient) -> None:
    text = long_text("ignore the key and password of ferry 12. ", 60_000)
    body = {"memories": [{"id": f"long-{number}", "text": f"{number} {text}"} for number in range(110)]}
    async with heartbeat() as beat:
        answer = await live.post("/v1/long-term-memory/", json=body)
    assert answer.status_code == 200
    assert beat.longest < _MOST


async def test_text_that_grows_under_normalization_is_refused_with_its_field(live: httpx.AsyncClient) -> None:
    growing = "\ufdfa" * 21_000
    memories = [{"id": f"grows-{number}", "text": f"{number} {growing}"} for number in range(110)]
    async with heartbeat() as beat:
        answer = await live.post("/v1/long-term-memory/", json={"memories": memories})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"][-1] == "text"
    assert "NFKC" in answer.json()["detail"][0]["msg"]
    # A text of the same size that does not grow is accepted as a memory.
    assert (await live.post("/v1/long-term-memory/", json={"memories": [{"id": "stays", "text": "忽" * 21_000}]})).status_code == 200
    message = {"role": "user", "content": growing * 15}
    long = await live.post("/v1/working-memory/long-message/messages", json={"messages": [message]})
    assert (long.status_code, long.json()["field"]) == (413, "messages.0.content")
    assert beat.longest < _MOST
