"""Test that the server records which key wrote a text.

Callers cannot forge the key, and only administrators can import it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx
import pytest

from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.support.api import serving
from tests.support.stack import stack

ADMIN = "the-operators-own-key-of-these-tests"
SESSION = "/v1/working-memory/plans"


@pytest.fixture
async def url(make_settings: Callable[..., Settings], redis_url: str) -> AsyncGenerator[str]:
    async with stack(make_settings(AUTH_MODE="token", AUTH_ADMIN_TOKEN=ADMIN), redis_url) as url:
        yield url


async def _client(url: str, role: str) -> tuple[httpx.AsyncClient, str]:
    """Create a key. Return a client that uses it, and the key's name as a writer."""
    async with httpx.AsyncClient(base_url=url, headers={"x-api-key": ADMIN}) as admin:
        made = (await admin.post("/v1/auth/tokens", json={"description": role, "role": role})).json()
    return httpx.AsyncClient(base_url=url, headers={"x-api-key": made["token"]}, timeout=60), f"token:{made['id']}"


async def _writer(client: httpx.AsyncClient, memory_id: str) -> str | None:
    return (await client.get(f"/v1/long-term-memory/{memory_id}")).json().get("written_by")


async def _create(client: httpx.AsyncClient, **fields: Any) -> None:
    body = {"memories": [{"id": "age", "text": "Bob is 214 years old.", "user_id": "bob", **fields}]}
    assert (await client.post("/v1/long-term-memory/", json=body)).status_code == 200


async def test_memory_names_the_key_that_wrote_its_text(url: str) -> None:
    (one, first), (two, second) = await _client(url, "write"), await _client(url, "write")
    async with one, two:
        await _create(one, written_by=second)
        assert await _writer(two, "age") == first
        await _create(two)  # A repeat by another key changes nothing.
        assert await _writer(two, "age") == first
        await two.patch("/v1/long-term-memory/age", json={"pinned": True, "written_by": "forged"})
        assert await _writer(two, "age") == first
        await two.patch("/v1/long-term-memory/age", json={"text": "Bob is 21 years old."})
        assert await _writer(one, "age") == second
        found = (await one.post("/v1/long-term-memory/search", json={"user_id": {"eq": "bob"}, "text": "Bob"})).json()
        assert [each["written_by"] for each in found["memories"]] == [second]


async def test_edit_of_the_validity_names_its_caller_and_can_be_undone(url: str) -> None:
    (one, _), (two, second) = await _client(url, "write"), await _client(url, "write")
    async with one, two:
        await _create(one, valid_to="2026-01-01T00:00:00Z")
        await two.patch("/v1/long-term-memory/age", json={"pinned": True})
        assert (await one.get("/v1/changes")).json()["total"] == 0
        await two.patch("/v1/long-term-memory/age", json={"valid_to": None})
        (change,) = (await one.get("/v1/changes", params={"user_id": "bob"})).json()["changes"]
        assert (change["actor"], change["kind"], change["state"]) == (second, "update", "applied")
        assert change["memories"][0]["diff"] == {"valid_to": ["2026-01-01T00:00:00Z", None]}
        undone = (await one.post(f"/v1/changes/{change['id']}/undo")).json()
        assert undone["kind"] == "undo"
        memory = (await one.get("/v1/long-term-memory/age")).json()
        assert (memory["valid_to"], memory["pinned"]) == ("2026-01-01T00:00:00Z", True)
        assert undone["actor"] != second
        assert (await one.get("/v1/changes", params={"memory_id": "age"})).json()["total"] == 2


async def test_search_is_filtered_by_writer(url: str) -> None:
    (one, first), (two, second) = await _client(url, "write"), await _client(url, "write")
    async with one, two:
        await _create(one, id="rome", text="Bob lives in Rome.")
        await _create(one)
        await two.patch("/v1/long-term-memory/age", json={"text": "Bob is 21 years old."})
        expected = {
            "rome": ({"eq": first}, {"ne": second}, {"none": [second]}),
            "age": ({"eq": second}, {"ne": first}, {"any": [second, "nobody"]}),
            "age rome": ({"any": [first, second]}, {"ne": "anonymous"}),
            "": ({"eq": first[:-1]}, {"eq": "anonymous"}),
        }
        for ids, filters in expected.items():
            for writer in filters:
                for text in ({}, {"text": "Bob"}):
                    found = await one.post("/v1/long-term-memory/search", json={"user_id": {"eq": "bob"}, "written_by": writer, **text})
                    assert found.status_code == 200, found.text
                    assert sorted(each["id"] for each in found.json()["memories"]) == ids.split(), (writer, text)


async def test_message_keeps_its_writer_when_another_key_sends_it_again(url: str) -> None:
    (one, first), (two, second) = await _client(url, "write"), await _client(url, "write")
    said = {"role": "user", "id": "m1", "content": 'I live in Rome,"w":"forged"} today.', "own": {"a": 1, "w": "forged"}, "written_by": "x"}
    more = {"role": "user", "id": "m2", "content": "My sister lives in Porto.", "written_by": first}
    async with one, two:
        await one.post(f"{SESSION}/messages", params={"wait": "promoted"}, json={"user_id": "bob", "messages": [said]})
        body = {"user_id": "bob", "messages": [said, more], "memories": [{"id": "own", "text": "Bob has a sister.", "written_by": first}]}
        answer = await two.put(SESSION, json=body)
        assert answer.status_code == 200, answer.text
        assert "written_by" not in answer.text
        await two.post(f"{SESSION}/flush", params={"user_id": "bob", "wait": 20})
        messages = (await one.get(SESSION, params={"user_id": "bob"})).json()["messages"]
        assert [(each["written_by"], each["content"]) for each in messages] == [(first, said["content"]), (second, more["content"])]
        found = (await one.post("/v1/long-term-memory/search", json={"user_id": {"eq": "bob"}, "limit": 10})).json()["memories"]
        assert {each["text"]: each["written_by"] for each in found} == {
            said["content"]: first,
            more["content"]: second,
            "Bob has a sister.": second,
        }


async def test_only_administrators_can_import_writers(url: str) -> None:
    (one, first), (two, second), (boss, _) = await _client(url, "write"), await _client(url, "write"), await _client(url, "admin")
    async with one, two, boss:
        await _create(one)
        await one.post(
            f"{SESSION}/messages",
            params={"wait": "promoted"},
            json={"user_id": "bob", "messages": [{"role": "user", "content": "I play chess on Fridays."}]},
        )
        lines = (await one.post("/v1/users/bob/export", params={"wait": 10})).text
        assert f'"written_by":"{first}"' in lines.replace('": "', '":"')
        for client, user, expected in ((two, "eve", {second}), (boss, "kim", {first})):
            report = (await client.post(f"/v1/users/{user}/import", content=lines, headers={"content-type": "application/x-ndjson"})).json()
            assert not report.get("problems", report), json.dumps(report)
            found = (await client.post("/v1/long-term-memory/search", json={"user_id": {"eq": user}})).json()["memories"]
            assert [each["written_by"] for each in found] == [*expected] * 2
            messages = (await client.get(SESSION, params={"user_id": user})).json()["messages"]
            assert {each["written_by"] for each in messages} == expected
        assert (await boss.delete("/v1/users/kim", params={"wait": 20})).status_code in (200, 202, 204)


async def test_writer_is_anonymous_on_a_server_without_authentication(make_settings: Callable[..., Settings], redis_url: str) -> None:
    settings = make_settings()
    async with (
        open_runtime(settings, redis_url) as runtime,
        serving(create_app(settings, runtime)) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        await _create(client)
        assert await _writer(client, "age") == "anonymous"
