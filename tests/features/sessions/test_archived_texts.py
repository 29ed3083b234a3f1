"""Test response texts that the archived server's clients and tests compare."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from ulid import ULID

SEARCH, PROMPT = "/v1/long-term-memory/search", "/v1/memory/prompt"


@pytest.mark.parametrize("search", [{}, {"long_term_search": None}, {"long_term_search": False}], ids=str)
async def test_prompt_without_session_or_search_returns_the_archived_error(live: httpx.AsyncClient, search: dict[str, Any]) -> None:
    answer = await live.post(PROMPT, json={"query": "And now?", **search})
    assert (answer.status_code, answer.json()["detail"]) == (400, "Either session or long_term_search must be provided")


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
async def test_distance_threshold_in_another_mode_returns_the_archived_error(live: httpx.AsyncClient, mode: str) -> None:
    search = {"search_mode": mode, "distance_threshold": 0.5}
    for path, body in ((SEARCH, {"text": "x", **search}), (PROMPT, {"query": "x", "long_term_search": search})):
        answer = await live.post(path, json=body)
        assert answer.status_code == 400
        assert "distance_threshold is only supported for semantic search mode" in answer.json()["detail"]


async def test_messages_without_times_return_the_archived_deprecation_warning(live: httpx.AsyncClient) -> None:
    path = f"/v1/working-memory/{ULID()}"
    answer = await live.put(path, json={"messages": [{"role": "user", "content": "Hello"}]})
    assert "created_at" in answer.headers["X-Deprecation-Warning"]
    assert "required" in answer.headers["X-Deprecation-Warning"]
    timed = {"role": "user", "content": "Hello", "created_at": "2026-01-02T00:00:00Z"}
    assert "X-Deprecation-Warning" not in (await live.put(path, json={"messages": [timed]})).headers


@pytest.mark.parametrize("sent", [{}, {"discrete_memory_extracted": "f"}, {"discrete_memory_extracted": "t"}], ids=str)
async def test_memory_created_by_a_client_counts_as_extracted(live: httpx.AsyncClient, sent: dict[str, Any]) -> None:
    memory = {"id": str(ULID()), "text": f"A fact of {ULID()}", **sent}
    for _ in range(2):
        assert (await live.post("/v1/long-term-memory/", json={"memories": [memory]})).status_code == 200
    assert (await live.get(f"/v1/long-term-memory/{memory['id']}")).json()["discrete_memory_extracted"] == "t"
    changes = (await live.get(f"/v1/long-term-memory/{memory['id']}/history")).json()
    assert len(changes["versions"]) == 1, "the same write again is the same"
