"""Test that large request bodies do not delay other requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.stalls.watched import Watched, watched_server


def _large_bodies() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield maximum-size bodies, some with long texts and some with many small values."""
    text, values = "word " * 1_600, [{}] * 45_000
    turns = [{"role": "user", "content": "word " * 120} for _ in range(9_900)]
    for own in ({"metadata": {f"k{number}": text[:60] for number in range(90_000)}}, {"metadata": {"a": values}}):
        yield "POST", "/v1/working-memory/large-1/messages", {"messages": [{"role": "user", "content": "hello", **own}]}
        yield "POST", "/v1/long-term-memory/", {"memories": [{"id": "large-1", "text": "hello", **own}]}
        yield "POST", "/v1/memories/", {"user_id": "large", "infer": False, "messages": "hello", **own}
        yield "POST", "/v3/documents", {"containerTag": "large", "content": "hello", **own}
    yield "PUT", "/v1/working-memory/large-2", {"messages": turns}
    yield "PUT", "/v1/working-memory/large-3", {"data": {"a": values}}
    yield "PUT", "/v1/working-memory/large-4", {"memories": [{"id": f"own-{number}", "text": text[:600]} for number in range(9_900)]}
    small = [{"id": f"large-{number}", "user_id": "large", "text": f"{number}"} for number in range(9_900)]
    yield "POST", "/v1/long-term-memory/", {"memories": small}
    yield "POST", "/v1/long-term-memory/", {"memories": [{}] * 9_900}
    yield "POST", "/v1/long-term-memory/search", {"text": "hello", "filter": {"and": [{"topics": {"any": ["a"]}}] * 9_900}}
    yield "POST", "/v2/memories/search/", {"query": "hello", "filters": {"AND": [{"user_id": "large"}] * 49_000}}
    yield "POST", "/v1/memories/", {"user_id": "large", "infer": False, "messages": [{"role": "user", "content": text}] * 500}
    yield "POST", "/v4/search", {"q": "hello", "containerTag": "large", "filters": {"AND": [{"key": "a", "value": "b"}] * 30_000}}
    yield "POST", "/v4/conversations", {"conversationId": "large", "containerTags": ["large"], "messages": turns}
    for memories in (small, [{}] * 9_900, json.dumps(small), [json.dumps({"text": "a", "metadata": {"a": values}})] * 8):
        call = {"name": "create_long_term_memories", "arguments": {"memories": memories}}
        yield "POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    yield "POST", "/mcp", {"a": values}


async def test_large_bodies_do_not_block_the_event_loop(redis_url: str, tmp_path: Path) -> None:
    accepted = 0
    async with watched_server(redis_url, tmp_path, WATCHED_WORKER="no") as (client, bound):
        watched = Watched(client, bound)
        await client.get("/held")  # the cost of the start
        for number, (method, url, body) in enumerate(_large_bodies()):
            request = client.build_request(method, url, json=body, headers={"accept": "application/json, text/event-stream"})
            answer = await watched.send(f"{method} {url}, the large body {number}", request)
            accepted += answer.status_code == 200
    assert accepted > 12
    assert not watched.found, "\n".join(watched.found)
