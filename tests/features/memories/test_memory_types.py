"""Test procedural memories for current clients, and for archived ones that do not know the type."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from ulid import ULID

KNOWS = {"X-Agent-Memory-Types": "procedural"}
HOW = "To descale the espresso machine, run citric acid through it twice."
FACT = "The espresso machine stands beside the window."


class Space:
    """A new namespace with one procedural memory (`how`) and one semantic memory (`fact`)."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.name = f"types-{ULID()}"
        self.how, self.fact = f"how-{self.name}", f"fact-{self.name}"

    async def fill(self) -> None:
        records = [
            {"id": self.how, "text": HOW, "memory_type": "procedural", "namespace": self.name, "user_id": "ada"},
            {"id": self.fact, "text": FACT, "memory_type": "semantic", "namespace": self.name, "user_id": "ada"},
        ]
        answer = await self.client.post("/v1/long-term-memory/", json={"memories": records})
        assert answer.status_code == 200, answer.text

    async def search(self, headers: dict[str, str] | None = None, **body: Any) -> dict[str, str]:
        """Return the types of the memories found, keyed by short id."""
        asked = {"text": "espresso machine", "namespace": {"eq": self.name}, **body}
        answer = await self.client.post("/v1/long-term-memory/search", json=asked, headers=headers)
        assert answer.status_code == 200, answer.text
        return self._types(answer.json()["memories"])

    async def prompt(self, headers: dict[str, str] | None = None, **search: Any) -> dict[str, str]:
        asked = {"query": "espresso machine", "long_term_search": {"namespace": {"eq": self.name}, **search}}
        answer = await self.client.post("/v1/memory/prompt", json=asked, headers=headers)
        assert answer.status_code == 200, answer.text
        return self._types(answer.json()["long_term_memories"])

    async def type_of(self, memory_id: str, headers: dict[str, str] | None = None) -> str:
        answer = await self.client.get(f"/v1/long-term-memory/{memory_id}", headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()["memory_type"]

    async def session(self, method: str, headers: dict[str, str] | None = None, **body: Any) -> list[dict[str, Any]]:
        """Return the memories in the response for session `s`."""
        where = {"params": {"namespace": self.name}} if method == "GET" else {"json": {"namespace": self.name, **body}}
        answer = await self.client.request(method, "/v1/working-memory/s", headers=headers, **where)
        assert answer.status_code == 200, answer.text
        return answer.json()["memories"]

    def _types(self, memories: list[dict[str, Any]]) -> dict[str, str]:
        return {memory["id"].removesuffix(f"-{self.name}"): memory["memory_type"] for memory in memories}


@pytest.fixture
async def space(live: httpx.AsyncClient) -> Space:
    space = Space(live)
    await space.fill()
    return space


async def test_procedural_memory_is_shown_as_semantic_by_default(space: Space) -> None:
    shown = {"how": "semantic", "fact": "semantic"}
    assert await space.search() == shown
    assert await space.search(text=None) == shown
    assert await space.prompt() == shown
    assert await space.type_of(space.how) == "semantic"


async def test_procedural_type_is_shown_to_callers_that_send_the_header(space: Space) -> None:
    shown = {"how": "procedural", "fact": "semantic"}
    assert await space.search(KNOWS) == shown
    assert await space.search(KNOWS, text=None) == shown
    assert await space.prompt(KNOWS) == shown
    assert await space.type_of(space.how, KNOWS) == "procedural"
    assert await space.type_of(space.how, {"X-Agent-Memory-Types": "future, Procedural"}) == "procedural"


async def test_header_without_the_procedural_type_changes_nothing(space: Space) -> None:
    assert await space.type_of(space.how, {"X-Agent-Memory-Types": "future"}) == "semantic"


@pytest.mark.parametrize(
    "named",
    [
        {"memory_type": {"eq": "procedural"}},
        {"memory_type": {"any": ["procedural", "episodic"]}},
        {"memory_type": {"in_": ["procedural"]}},
        {"memory_type": {"ne": "semantic", "none": ["message"], "any": ["procedural"]}},
        {"filter": {"or": [{"memory_type": {"eq": "procedural"}}, {"topics": {"eq": "none"}}]}},
        {"filter": {"not": {"not": {"memory_type": {"eq": "procedural"}}}}},
    ],
)
async def test_procedural_type_is_shown_if_a_filter_names_it(space: Space, named: dict[str, Any]) -> None:
    assert await space.search(**named) == {"how": "procedural"}
    assert await space.prompt(**named) == {"how": "procedural"}


@pytest.mark.parametrize(
    ("wanted", "by_default", "knowing"),
    [
        ({"memory_type": {"eq": "semantic"}}, {"how", "fact"}, {"fact"}),
        ({"memory_type": {"any": ["episodic", "semantic"]}}, {"how", "fact"}, {"fact"}),
        ({"memory_type": {"in_": ["semantic"], "eq": "semantic"}}, {"how", "fact"}, {"fact"}),
        ({"memory_type": {"all": ["semantic"]}}, {"how", "fact"}, {"fact"}),
        ({"memory_type": {"ne": "semantic"}}, set(), {"how"}),
        ({"memory_type": {"not_eq": "semantic"}}, set(), {"how"}),
        ({"memory_type": {"not_in": ["semantic", "episodic"]}}, set(), {"how"}),
        ({"memory_type": {"any": ["semantic"], "none": ["semantic"]}}, set(), set()),
        ({"memory_type": {"ne": "episodic"}}, {"how", "fact"}, {"how", "fact"}),
        ({"memory_type": {"eq": "episodic"}}, set(), set()),
        ({"filter": {"memory_type": {"eq": "semantic"}}}, {"how", "fact"}, {"fact"}),
        ({"filter": {"and": [{"not": {"memory_type": {"eq": "semantic"}}}]}}, set(), {"how"}),
        ({"filter": {"or": [{"memory_type": {"ne": "semantic"}}, {"memory_type": {"eq": "message"}}]}}, set(), {"how"}),
    ],
)
async def test_type_filter_matches_the_types_shown_to_the_caller(
    space: Space, wanted: dict[str, Any], by_default: set[str], knowing: set[str]
) -> None:
    assert set(await space.search(**wanted)) == by_default
    assert set(await space.search(KNOWS, **wanted)) == knowing


async def test_explain_applies_the_same_type_visibility_as_search(space: Space) -> None:
    body = {
        "memory_id": space.how,
        "search": {"text": "espresso", "namespace": {"eq": space.name}, "memory_type": {"eq": "semantic"}},
    }
    by_default = (await space.client.post("/v1/long-term-memory/explain", json=body)).json()
    knowing = (await space.client.post("/v1/long-term-memory/explain", json=body, headers=KNOWS)).json()
    assert (by_default["reason"], knowing["reason"]) == ("returned", "filtered")


async def test_patch_with_the_displayed_type_changes_nothing(space: Space) -> None:
    path = f"/v1/long-term-memory/{space.how}"
    before = (await space.client.get(path, headers=KNOWS)).json()
    answer = await space.client.patch(path, json={"memory_type": "semantic"})
    assert (answer.status_code, answer.json()["memory_type"]) == (200, "semantic")
    after = (await space.client.get(path, headers=KNOWS)).json()
    assert {**after, "last_accessed": None, "access_count": None} == {**before, "last_accessed": None, "access_count": None}


async def test_patch_with_the_displayed_type_still_applies_other_fields(space: Space) -> None:
    path = f"/v1/long-term-memory/{space.how}"
    answer = await space.client.patch(path, json={"memory_type": "semantic", "topics": ["coffee"]})
    assert (answer.json()["memory_type"], answer.json()["topics"]) == ("semantic", ["coffee"])
    after = (await space.client.get(path, headers=KNOWS)).json()
    assert (after["memory_type"], after["topics"]) == ("procedural", ["coffee"])


@pytest.mark.parametrize(
    ("headers", "given", "kept"), [(KNOWS, "semantic", "semantic"), ({}, "episodic", "episodic"), ({}, "procedural", "procedural")]
)
async def test_patch_with_another_type_changes_the_type(space: Space, headers: dict[str, str], given: str, kept: str) -> None:
    answer = await space.client.patch(f"/v1/long-term-memory/{space.how}", json={"memory_type": given}, headers=headers)
    assert answer.json()["memory_type"] == given
    assert await space.type_of(space.how, KNOWS) == kept


async def test_session_memories_show_types_by_the_same_rule(space: Space) -> None:
    memory = {"id": f"own-{space.name}", "text": "To open the shed, lift the latch.", "memory_type": "procedural"}
    await space.session("PUT", KNOWS, memories=[memory])
    assert [one["memory_type"] for one in await space.session("GET")] == ["semantic"]
    assert [one["memory_type"] for one in await space.session("GET", KNOWS)] == ["procedural"]


async def test_session_sent_back_as_displayed_keeps_its_types(space: Space) -> None:
    memory = {"id": f"own-{space.name}", "text": "To open the shed, lift the latch.", "memory_type": "procedural"}
    await space.session("PUT", KNOWS, memories=[memory])
    messages = [{"role": "user", "content": "Hello"}]
    stored = await space.session("PUT", memories=await space.session("GET"), messages=messages)
    assert [one["memory_type"] for one in stored] == ["semantic"]
    assert [one["memory_type"] for one in await space.session("GET", KNOWS)] == ["procedural"]
    changed = await space.session("PUT", memories=[{**memory, "memory_type": "episodic"}])
    assert [one["memory_type"] for one in changed] == ["episodic"]
    assert [one["memory_type"] for one in await space.session("GET", KNOWS)] == ["episodic"]
