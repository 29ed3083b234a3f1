"""Test that prompt sections from features work the same over MCP and REST."""

from __future__ import annotations

import json
from typing import Any

from ulid import ULID

from agent_memory.foundation.text.prompt_marks import part_heading
from agent_memory.interfaces.mcp.server import listed_tools
from agent_memory_client.models.features.prompt_options import PromptOptions
from tests.interfaces.mcp.conftest import Server
from tests.support.mcp import Session, over_http
from tests.support.waiting import wait_until

QUERY = "What happened in March 2024?"
EVENT = "Ada flew to Rome."
RULE = "Ada is allergic to nuts."
SECTIONS: dict[str, Any] = {
    "profile": {"tokens": 300},
    "timeline": {"tokens": 300},
    "pinned": {"tokens": 300},
    "procedures": {"limit": 1, "tokens": 300},
    "blocks": {"counts": True},
}
SHOWN = {
    "profile": (part_heading("the user's profile"), RULE),
    "timeline": (part_heading("what happened to the user, by days"), EVENT),
    "pinned": (part_heading("pinned memories"), RULE),
    "procedures": ("- When:", QUERY),
    "blocks": ("In the archive are ", "Name: Ada"),
}
"""The beginning of each section's text, and a part of its content."""


async def known(session: Session, server: Server) -> dict[str, Any]:
    """Store data for every prompt section, and return the new user's scope."""
    scope = {"user_id": "ada", "namespace": f"sections-{ULID()}"}
    event = {"text": EVENT, "memory_type": "episodic", "event_date": "2024-03-05T00:00:00Z"}
    memories = [{**memory, **scope} for memory in (event, {"text": RULE, "pinned": True})]
    await session.call("create_long_term_memories", memories=memories)
    await session.call("save_procedure", when_to_use=QUERY, steps=["Look into the diary."], **scope)
    (await server.rest.put("/v1/blocks/human", params=scope, json={"value": "Name: Ada"})).raise_for_status()
    whose = {"user_id": {"eq": "ada"}, "namespace": {"eq": scope["namespace"]}}

    async def all_there() -> bool:
        texts = await parts(session, **whose, sections=SECTIONS)
        return all(any(head in text and line in text for text in texts) for head, line in SHOWN.values())

    await wait_until(all_there, "what the sections show")
    return whose


async def parts(session: Session, **arguments: Any) -> list[str]:
    """Return the text of each prompt message except the question."""
    *messages, _ = (await session.call("memory_prompt", query=QUERY, **arguments))["messages"]
    return [message["content"]["text"] for message in messages]


def shown(texts: list[str]) -> set[str]:
    return {name for name, (head, _) in SHOWN.items() if any(head in text for text in texts)}


async def test_prompt_shows_exactly_the_requested_sections(server: Server) -> None:
    assert SHOWN.keys() == PromptOptions.model_fields.keys()
    async with over_http(f"{server.url}/mcp") as session:
        whose = await known(session, server)
        assert shown(await parts(session, **whose)) == set()
        for name, option in SECTIONS.items():
            assert shown(await parts(session, **whose, sections={name: option})) == {name}
            assert shown(await parts(session, **whose, session_id={"eq": "new"}, sections={name: option})) == {name}


async def test_sections_match_those_of_rest(server: Server) -> None:
    async with over_http(f"{server.url}/mcp") as session:
        whose = await known(session, server)
        told = await parts(session, **whose, sections=SECTIONS)
    body = {"query": QUERY, "long_term_search": whose, **{name: value["eq"] for name, value in whose.items()}, **SECTIONS}
    answer = await server.rest.post("/v1/memory/prompt", json=body)
    texts = [message["content"]["text"] for message in answer.json()["messages"]]
    for head, _ in SHOWN.values():
        assert [text for text in told if head in text] == [text for text in texts if head in text] != []


async def test_sections_may_be_a_json_string_and_are_validated(server: Server) -> None:
    async with over_http(f"{server.url}/mcp") as session:
        whose = await known(session, server)
        assert shown(await parts(session, **whose, sections=json.dumps({"pinned": {"tokens": 100}}))) == {"pinned"}
        refused = await session.error("memory_prompt", query=QUERY, **whose, sections={"pinned": {"tokens": 9000}})
        assert refused.startswith("422: sections.pinned.tokens: "), refused
        ignored = await session.result("memory_prompt", query=QUERY, **whose, sections={"horoscope": {}})
        assert (ignored.meta or {})["agent-memory/ignored-fields"] == "sections.horoscope"


def test_schema_describes_each_section() -> None:
    (schema,) = [tool.input_schema for tool in listed_tools("all") if tool.name == "memory_prompt"]
    sections = schema["properties"]["sections"]["properties"]
    assert {name: shape["description"] for name, shape in sections.items()} == {
        name: field.description for name, field in PromptOptions.model_fields.items()
    }
