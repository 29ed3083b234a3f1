"""Test CrewAI's memory with the memory server."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from crewai import LLM, Agent
from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord

from agent_memory_client import MemoryClient
from agent_memory_client.errors import MemoryClientError, MemoryUnavailableError
from agent_memory_client.integrations.crewai import AgentMemoryMemory, AgentMemoryStorage
from agent_memory_client.sync import SyncMemoryClient
from tests.integrations.conftest import NOBODY, ModelServer
from tests.integrations.contract import HOSTILE, RecallContract, in_thread, new_id


class TestRecall(RecallContract):
    raises_without_a_server = True

    async def recall(self, client: MemoryClient, user_id: str, question: str) -> str:
        memory = AgentMemoryMemory(client, user_id=user_id)
        return " ".join(match.record.content for match in await in_thread(memory.recall, question))

    async def test_memories_of_a_user_are_shown_to_that_user_only(self, client: MemoryClient) -> None:
        ada, bo = new_id(), new_id()
        for user, text in ((ada, "Ada is allergic to peanuts."), (bo, "Bo eats peanuts.")):
            await in_thread(AgentMemoryMemory(client, user_id=user).remember, text)
        assert await self.recall(client, ada, "peanuts") == "Ada is allergic to peanuts."
        assert await self.recall(client, bo, "peanuts") == "Bo eats peanuts."
        assert await self.recall(client, new_id(), "peanuts") == ""


def test_saved_records_are_returned_unchanged(blocking: SyncMemoryClient) -> None:
    storage = AgentMemoryStorage(blocking, user_id=new_id())
    assert isinstance(storage, StorageBackend)
    old = datetime.now(UTC) - timedelta(days=9)
    records = [
        MemoryRecord(content="Bees \U0001f600", scope="/a/b", categories=["x", "y"], metadata={"n": {"m": [None]}}, importance=0.9),
        MemoryRecord(content="Wasps", scope="/a", categories=["x"], source="ada", private=True),
        MemoryRecord(content="Ants", scope="/ab", created_at=old),
    ]
    storage.save(records)
    assert [storage.get_record(record.id) for record in records] == records
    assert [each.content for each in storage.list_records()][-1] == "Ants"
    assert storage.list_records("/a", limit=1, offset=1) == records[:1]
    assert (storage.count("/a"), storage.count("/a/b"), storage.count()) == (2, 1, 3)
    assert (storage.list_scopes(), storage.list_scopes("/a")) == (["/a", "/ab"], ["/a/b"])
    assert storage.list_categories() == {"x": 2, "y": 1}
    info = storage.get_scope_info("/a")
    assert (info.record_count, info.categories, info.child_scopes) == (2, ["x", "y"], ["/a/b"])
    storage.update(records[0].model_copy(update={"scope": "/c"}))
    assert (storage.count("/a"), storage.count("/c"), storage.count()) == (1, 1, 3)
    assert storage.delete(older_than=old + timedelta(days=1)) == 1
    assert storage.delete(categories=["y"], metadata_filter={"n": 3}) == 0
    assert storage.delete(record_ids=[records[0].id]) == 1
    storage.reset()
    assert storage.list_records() == []


async def test_memory_is_recalled_by_scope_category_and_source(client: MemoryClient, blocking: SyncMemoryClient) -> None:
    for made in (client, blocking):
        memory = AgentMemoryMemory(made, user_id=new_id(), root_scope="/crew")
        first = await memory.aremember("Ada keeps bees.", scope="/animals", categories=["hobby"], importance=0.8)
        assert first is not None
        assert first.scope == "/crew/animals"
        await memory.aremember_many(["Bees are at the lake.", "Bees make honey."], source="ada", private=True)
        assert [match.record.id for match in await memory.arecall("bees", scope="/animals")] == [first.id]
        assert [match.record.id for match in await memory.arecall("bees", categories=["hobby"])] == [first.id]
        assert [match.record.id for match in await memory.arecall("bees")] == [first.id]
        assert len(await memory.arecall("bees", source="ada")) == 3
        assert (await in_thread(memory.update, first.id, "Ada keeps goats.")).content == "Ada keeps goats."
        assert (await memory.arecall("goats"))[0].record.content == "Ada keeps goats."
        assert await in_thread(memory.forget, None, ["hobby"]) == 1
        await in_thread(memory.reset)
        assert await memory.arecall("bees", include_private=True) == []
    with pytest.raises(ValueError, match="not found"):
        await in_thread(memory.update, "nothing", "x")
    memory.read_only = True
    assert await memory.aremember("x") is None


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_ids_are_stored_unchanged(blocking: SyncMemoryClient, name: str) -> None:
    user = new_id()
    record = AgentMemoryMemory(blocking, user_id=name + user).remember("Bees.", scope=f"/{name}")
    assert AgentMemoryStorage(blocking, user_id=name + user).list_records(f"/{name}") == [record]
    assert AgentMemoryStorage(blocking, user_id=user).list_records() == []


def test_invalid_ids_are_refused(blocking: SyncMemoryClient) -> None:
    for user in ("", "x" * 2000):
        with pytest.raises((MemoryClientError, ValueError)):
            AgentMemoryMemory(blocking, user_id=user).remember("Bees.")
    with pytest.raises((MemoryClientError, ValueError)):
        AgentMemoryMemory(blocking, user_id="u").remember("Bees.", scope="/" + "x" * 2000)


def agent_of(model: ModelServer, memory: Any) -> Agent:
    llm = LLM(model="openai/m", base_url=model.url, api_key="sk-test-0000")
    return Agent(role="helper", goal="help", backstory="a helper", llm=llm, memory=memory)


def test_agent_gets_relevant_memories_in_its_prompt(blocking: SyncMemoryClient, model: ModelServer) -> None:
    memory = AgentMemoryMemory(blocking, user_id=new_id())
    memory.remember("Ada is allergic to peanuts.")
    model.script += ["Peanuts."]
    assert "Peanuts." in agent_of(model, memory).kickoff("May I eat peanuts?").raw
    assert "allergic to peanuts" in str(model.asked[0]["messages"])


def test_agent_answers_if_the_server_is_unreachable(model: ModelServer) -> None:
    began = time.monotonic()
    nobody = SyncMemoryClient(NOBODY)
    with pytest.raises(MemoryUnavailableError):
        AgentMemoryMemory(nobody).remember("x")
    model.script += ["Hello."]
    assert "Hello." in agent_of(model, AgentMemoryMemory(nobody)).kickoff("Hi").raw
    assert time.monotonic() - began < 60
