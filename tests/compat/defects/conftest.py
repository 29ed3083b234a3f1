"""Provide fixtures for the defect tests, and a private namespace on a real server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from ulid import ULID

from tests.support.http_fixtures import *  # noqa: F403
from tests.support.rig_fixtures import *  # noqa: F403
from tests.support.waiting import wait_until

NOW = datetime.now(UTC)


def ago(days: float) -> str:
    return (NOW - timedelta(days=days)).isoformat()


class Space:
    """A private namespace for one test."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.name = f"d-{ULID()}"

    async def store(self, records: Mapping[str, Mapping[str, Any]]) -> None:
        """Store memories under short names and wait until they have vectors."""
        memories = [{"id": f"{self.name}:{name}", "text": name, "namespace": self.name, **more} for name, more in records.items()]
        answer = await self.client.post("/v1/long-term-memory/", json={"memories": memories, "deduplicate": False})
        assert answer.status_code == 200, answer.text

        async def embedded() -> bool:
            found = await self.search(text="x", search_mode="semantic", distance_threshold=2.0, limit=1)
            return found["total"] == len(records)

        await wait_until(embedded, "the vectors")

    async def search(self, **body: Any) -> dict[str, Any]:
        answer = await self.client.post("/v1/long-term-memory/search", json={"namespace": {"eq": self.name}, **body})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def names(self, **body: Any) -> list[str]:
        """Return the short names of the results, in order."""
        return self.short((await self.search(**body))["memories"])

    def short(self, memories: Sequence[Mapping[str, Any]]) -> list[str]:
        return [memory["id"].removeprefix(f"{self.name}:") for memory in memories]


@pytest.fixture
def space(worked: httpx.AsyncClient) -> Space:
    """Return a namespace on a server with a worker."""
    return Space(worked)
