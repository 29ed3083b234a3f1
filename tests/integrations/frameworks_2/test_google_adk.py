"""Test ADK's session and memory services with the memory server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from google.adk.agents import LlmAgent
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools import load_memory
from google.genai import types

from agent_memory_client import MemoryClient
from agent_memory_client.errors import MemoryClientError
from agent_memory_client.integrations.google_adk import AgentMemoryMemoryService, AgentMemorySessionService
from agent_memory_client.sync import SyncMemoryClient
from tests.integrations.conftest import ModelServer, mcp_tools
from tests.integrations.contract import HistoryContract, RecallContract, new_id

APP = "helper"


def event(author: str, *parts: types.Part, **more: Any) -> Event:
    return Event(
        id=new_id(), author=author, invocation_id="i", timestamp=1.5, content=types.Content(role=author, parts=list(parts)), **more
    )


EVENTS = [
    event("user", types.Part(text="I am Ada. \U0001f600")),
    event(
        "agent",
        types.Part(text="hm", thought=True, thought_signature=b"\xff\x00"),
        types.Part(function_call=types.FunctionCall(id="c1", name="f", args={"a": [1, {"b": None}]})),
    ),
    event("agent", types.Part(function_response=types.FunctionResponse(id="c1", name="f", response={"done": True}))),
    event("agent", types.Part(text="Hello Ada"), actions=EventActions(state_delta={"n": 1, "user:name": "Ada", "app:color": "red"})),
    event("user", types.Part(inline_data=types.Blob(data=b"\x89PNG\xff", mime_type="image/png"))),
]


async def test_gemini_accepts_the_schemas_of_the_mcp_tools(server_url: str) -> None:
    """Gemini's own type rejects every keyword that function declarations do not support."""
    for tool in await mcp_tools(server_url):
        declared = types.FunctionDeclaration(name=tool["name"], parameters=types.Schema.model_validate(tool["inputSchema"]))
        assert declared.parameters == types.Schema.from_json_schema(json_schema=types.JSONSchema.model_validate(tool["inputSchema"]))


class Adk:
    """A session service and the key of one session."""

    def __init__(self, service: AgentMemorySessionService, key: str, user: str) -> None:
        self.service = service
        self.ids = {"app_name": APP, "user_id": user, "session_id": key}


class TestSessions(HistoryContract):
    messages: ClassVar[Sequence[Any]] = EVENTS

    def make(self, client: MemoryClient, session_id: str, user_id: str | None) -> Any:
        return Adk(AgentMemorySessionService(client), session_id, str(user_id))

    async def add(self, history: Any, messages: Sequence[Any]) -> None:
        if not history.ids["session_id"]:
            pytest.skip("ADK makes an id of its own")
        session = await history.service.get_session(**history.ids) or await history.service.create_session(**history.ids)
        for message in messages:
            await history.service.append_event(session, message.model_copy(deep=True))

    async def get(self, history: Any) -> list[Any]:
        session = await history.service.get_session(**history.ids)
        return [] if session is None else session.events

    def say(self, text: str) -> Any:
        return event("user", types.Part(text=text))

    async def clear(self, history: Any) -> None:
        await history.service.delete_session(**history.ids)

    refused: ClassVar[Sequence[str]] = ("..", "\x00", "x" * 2000)


class TestSessionsByABlockingClient(TestSessions):
    def make(self, client: MemoryClient, session_id: str, user_id: str | None) -> Any:
        return super().make(SyncMemoryClient(client.config), session_id, user_id)  # type: ignore[arg-type]


class TestMemory(RecallContract):
    raises_without_a_server = True

    async def recall(self, client: MemoryClient, user_id: str, question: str) -> str:
        found = await AgentMemoryMemoryService(client).search_memory(app_name=APP, user_id=user_id, query=question)
        return " ".join(memory.content.parts[0].text for memory in found.memories)

    async def test_memories_of_a_user_are_shown_to_that_user_only(self, client: MemoryClient) -> None:
        service, ada, bo = AgentMemoryMemoryService(client), new_id(), new_id()
        for user, name in ((ada, "Ada"), (bo, "Bo")):
            entry = MemoryEntry(content=types.Content(parts=[types.Part(text=f"{name} eats walnuts.")]))
            await service.add_memory(app_name=APP, user_id=user, memories=[entry])
        assert await self.recall(client, ada, "Who eats walnuts?") == "Ada eats walnuts."
        assert await self.recall(client, bo, "Who eats walnuts?") == "Bo eats walnuts."
        assert await self.recall(client, new_id(), "Who eats walnuts?") == ""
        (memory,) = (await service.search_memory(app_name=APP, user_id=ada, query="walnuts")).memories
        await service.delete_memory(app_name=APP, user_id=bo, memory_id=memory.id)
        await service.delete_memory(app_name="another", user_id=ada, memory_id=memory.id)
        assert await self.recall(client, ada, "walnuts") == "Ada eats walnuts."
        await service.delete_memory(app_name=APP, user_id=ada, memory_id=memory.id)
        await service.delete_memory(app_name=APP, user_id=ada, memory_id=memory.id)
        assert await self.recall(client, ada, "walnuts") == ""


async def test_state_is_separate_for_session_user_and_app(client: MemoryClient) -> None:
    service, app, user = AgentMemorySessionService(client), new_id(), new_id()
    state = {"n": 0, "gone": [1], "user:name": "?", "temp:x": 1}
    first = await service.create_session(app_name=app, user_id=user, session_id=" s1 ", state=state)
    assert (first.id, first.state) == ("s1", {"n": 0, "gone": [1], "user:name": "?"})
    with pytest.raises(AlreadyExistsError):
        await service.create_session(app_name=app, user_id=user, session_id="s1")
    delta = EventActions(state_delta={"n": {"a": [None]}, "user:name": "Ada", "app:color": "red", "temp:y": 2})
    await service.append_event(first, event("user", types.Part(text="hi"), actions=delta))
    assert first.state["temp:y"] == 2
    again = await service.get_session(app_name=app, user_id=user, session_id="s1")
    assert again is not None
    assert again.state == {"n": {"a": [None]}, "gone": [1], "user:name": "Ada", "app:color": "red"}
    other = await service.create_session(app_name=app, user_id=user)
    assert other.state == {"user:name": "Ada", "app:color": "red"}
    assert (await service.create_session(app_name=app, user_id=new_id())).state == {"app:color": "red"}
    assert await service.get_user_state(app_name=app, user_id=user) == {"name": "Ada"}
    listed = (await service.list_sessions(app_name=app, user_id=user)).sessions
    assert {session.id for session in listed} == {"s1", other.id}
    assert all(session.events == [] for session in listed)
    await service.delete_session(app_name=app, user_id=user, session_id="s1")
    assert (await service.create_session(app_name=app, user_id=user, session_id="s1")).state == other.state
    with pytest.raises(SessionNotFoundError):
        await service.append_event(Session(id="s9", app_name=app, user_id=user), event("user", types.Part(text="hi")))


async def test_recent_events_are_returned_and_repeated_ones_ignored(client: MemoryClient) -> None:
    service, user = AgentMemorySessionService(client), new_id()
    session = await service.create_session(app_name=APP, user_id=user, session_id="s")
    for each in [*EVENTS, EVENTS[-1]]:
        await service.append_event(session, each.model_copy(deep=True))
    ids = {"app_name": APP, "user_id": user, "session_id": "s"}
    for config, wanted in (
        (GetSessionConfig(num_recent_events=2), EVENTS[-2:]),
        (GetSessionConfig(num_recent_events=0), []),
        (GetSessionConfig(after_timestamp=2), []),
        (GetSessionConfig(after_timestamp=1), EVENTS),
    ):
        found = await service.get_session(**ids, config=config)
        assert found is not None
        assert found.events == wanted
    await AgentMemoryMemoryService(client).add_session_to_memory(session)
    assert len((await service.get_session(**ids)).events) == len(EVENTS)  # type: ignore[union-attr]


async def test_events_and_sessions_equal_those_of_adks_own_service(client: MemoryClient) -> None:
    app, users = new_id(), [new_id(), new_id()]
    services = (AgentMemorySessionService(client), InMemorySessionService())
    for service in services:
        for user in users:
            session = await service.create_session(app_name=app, user_id=user, session_id="same/id")
            for number, each in enumerate([*EVENTS, *EVENTS]):
                await service.append_event(session, each.model_copy(deep=True, update={"id": f"e{number}", "timestamp": float(number)}))
    configs = [GetSessionConfig(num_recent_events=count) for count in range(len(EVENTS) * 2 + 2)]
    configs += [GetSessionConfig(after_timestamp=float(at), num_recent_events=7) for at in (0, 4, 20)]
    for config in (None, *configs):
        ids = {"app_name": app, "user_id": users[0], "session_id": "same/id"}
        ours, theirs = [await service.get_session(**ids, config=config) for service in services]
        assert ours is not None
        assert theirs is not None
        assert ours.events == theirs.events, config
    for user_id in (None, users[1]):
        listed = [(await service.list_sessions(app_name=app, user_id=user_id)).sessions for service in services]
        ours, theirs = [sorted((each.user_id, each.id, str(sorted(each.state))) for each in sessions) for sessions in listed]
        assert ours == theirs
    with pytest.raises(MemoryClientError):
        await AgentMemoryMemoryService(client).add_memory(app_name=app, user_id=users[0], memories=[MemoryEntry(content=types.Content())])


async def test_second_runner_continues_the_session_and_recalls_memories(client: MemoryClient, model: ModelServer) -> None:
    user = new_id()
    memory = AgentMemoryMemoryService(client)
    entry = MemoryEntry(content=types.Content(parts=[types.Part(text="Ada is allergic to peanuts.")]))
    await memory.add_memory(app_name=APP, user_id=user, memories=[entry])
    agent = LlmAgent(name="helper", model=LiteLlm(model="openai/m", api_base=model.url, api_key="sk-test-0000"), tools=[load_memory])
    services = {"session_service": AgentMemorySessionService(client), "memory_service": memory}
    model.script += [{"name": "load_memory", "arguments": {"query": "peanuts"}}, "Peanuts."]
    await Runner(app_name=APP, agent=agent, **services).run_debug("What may I not eat?", user_id=user, session_id="s", quiet=True)
    assert "allergic to peanuts" in str(model.asked[-1]["messages"])
    model.script += ["As I said."]
    events = await Runner(app_name=APP, agent=agent, **services).run_debug("Again?", user_id=user, session_id="s", quiet=True)
    assert events[-1].content.parts[0].text == "As I said."  # type: ignore[union-attr, index]
    said = [message["role"] for message in model.asked[-1]["messages"] if message["role"] != "system"]
    assert said == ["user", "assistant", "tool", "assistant", "user"]
