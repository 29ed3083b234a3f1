"""Test that no request loses another container's document or deletes one before replacing it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import httpx
import pytest

from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.errors import Conflict, RedisUnavailable
from agent_memory.foundation.core.scope import Principal, Role
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.compat.supermemory import service
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.compat.callers import OWNER, Callers
from tests.support.stack import working
from tests.support.waiting import wait_until

LINES = "The garden\nfigs grow there\nbees live there"


@pytest.fixture(scope="module")
async def callers(redis_url: str) -> AsyncGenerator[Callers]:
    settings = load_settings(KEY_PREFIX="sm-kept", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", COMPAT_APIS="supermemory")
    async with open_runtime(settings, redis_url) as runtime, working(runtime):
        yield Callers(create_app(settings, runtime))


class Containers:
    """Two containers with documents, and an app key that can access both."""

    def __init__(self, callers: Callers) -> None:
        self.api = callers(OWNER)
        self.ada, self.carl, self.name = (f"{part}-{uuid4().hex[:8]}" for part in ("ada", "carl", "notes"))

    async def call(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return await self.api.request(method, path, json=body)

    async def add(self, text: str, tag: str | None, **fields: Any) -> None:
        """Add a document under the test's id and wait until its memories exist."""
        owner = {} if tag is None else {"containerTag": tag}
        answer = await self.call("POST", "/v3/documents", {"content": text, "customId": self.name, **owner, **fields})
        assert answer.status_code == 200, answer.text
        await self.settled()

    async def settled(self) -> None:
        async def idle() -> bool:
            return not (await self.call("GET", "/v3/documents/processing")).json()["totalCount"]

        await wait_until(idle, "the documents are done")

    async def document(self, tag: str) -> str | None:
        answer = await self.call("GET", f"/ns/{tag}/document/{self.name}")
        return answer.json()["content"] if answer.status_code == 200 else None

    async def memories(self, tag: str) -> list[str]:
        found = (await self.call("POST", f"/ns/{tag}/list/memories", {"limit": 50})).json()["memories"]
        return sorted(memory["memory"] for memory in found)

    async def untagged(self) -> list[str]:
        """Return the memories from the document that has no container."""
        hits = (await self.call("POST", "/v4/search", {"q": "garden", "docId": self.name, "limit": 50})).json()["results"]
        own = set(await self.memories(self.ada)) | set(await self.memories(self.carl))
        return sorted({hit["memory"] for hit in hits} - own)


@pytest.fixture
def containers(callers: Callers) -> Containers:
    return Containers(callers)


async def test_document_without_container_keeps_same_id_documents_in_containers(containers: Containers) -> None:
    c = containers
    await c.add(f"Ada\n{LINES}", c.ada)
    await c.add(f"Ada\n{LINES}\nno container", None)
    assert (await c.document(c.ada), await c.memories(c.ada)) == (f"Ada\n{LINES}", [f"Ada\n{LINES}"])
    await c.add(f"Carl\n{LINES}", c.carl)
    await c.add(f"Ada\n{LINES}\nanother version", None)
    assert await c.untagged() == [f"Ada\n{LINES}\nanother version"]
    assert (await c.call("DELETE", f"/v3/documents/{c.name}")).status_code == 204
    assert await c.untagged() == []
    for tag, text in ((c.ada, f"Ada\n{LINES}"), (c.carl, f"Carl\n{LINES}")):
        assert (await c.document(tag), await c.memories(tag)) == (text, [text])


async def test_search_over_all_containers_separates_documents_with_one_id(containers: Containers) -> None:
    c = containers
    await c.add(f"Ada\n{LINES}", c.ada)
    await c.add(f"Carl\n{LINES}", c.carl)
    body = {"q": "garden figs", "docId": c.name, "includeFullDocs": True}
    results = (await c.call("POST", "/v3/search", body)).json()["results"]
    assert sorted(result["content"] for result in results) == [f"Ada\n{LINES}", f"Carl\n{LINES}"]


async def test_refused_move_keeps_the_document(callers: Callers, containers: Containers) -> None:
    c = containers
    bob = Principal("t1", "bob's", Role.WRITE, users=frozenset({c.carl}))
    await c.add(LINES, c.carl)
    for change in ({"containerTag": c.ada}, {"containerTag": c.ada, "content": "Moved"}):
        assert (await callers(bob).patch(f"/v3/documents/{c.name}", json=change)).status_code == 403
    assert (await c.document(c.carl), await c.memories(c.carl)) == (LINES, [LINES])


async def test_document_moves_with_its_memories(containers: Containers) -> None:
    c = containers
    await c.add(LINES, c.carl, metadata={"kind": "plot"})
    assert (await c.call("PATCH", f"/v3/documents/{c.name}", {"containerTag": c.ada})).status_code == 200
    await c.settled()
    assert (await c.document(c.carl), await c.memories(c.carl)) == (None, [])
    assert (await c.document(c.ada), await c.memories(c.ada)) == (LINES, [LINES])


async def test_delete_keeps_memories_shared_with_another_document(containers: Containers) -> None:
    c = containers
    await c.add(LINES, c.ada)
    kept = f"{c.name}-kept"
    await c.add(LINES, c.ada, customId=kept)
    assert (await c.call("DELETE", f"/ns/{c.ada}/document", {"ids": [c.name]})).json()["count"] == 1
    assert await c.memories(c.ada) == [LINES]
    assert (await c.call("GET", f"/ns/{c.ada}/document/{kept}?include=memories")).json()["memories"][0]["memory"] == LINES


async def test_resent_message_changes_nothing(containers: Containers) -> None:
    c = containers
    for text in ("user: I keep bees", "user: I bake bread", "user: I bake bread", "user: I keep bees"):
        await c.add(text, c.ada)
    assert await c.document(c.ada) == "user: I keep bees\nuser: I bake bread"
    assert await c.memories(c.ada) == ["user: I bake bread", "user: I keep bees"]


FAILING = {
    "append": lambda: patch.object(SessionService, "append", side_effect=RedisUnavailable("lost")),
    "delete session": lambda: patch.object(SessionStore, "delete", side_effect=RedisUnavailable("lost")),
    "delete memories": lambda: patch.object(service, "delete_memories_of", side_effect=RedisUnavailable("lost")),
}


@pytest.mark.parametrize("step", FAILING)
@pytest.mark.parametrize("kind", ["new version", "new text", "move", "delete"])
async def test_interrupted_change_loses_nothing_and_a_retry_completes_it(containers: Containers, kind: str, step: str) -> None:
    """If a step fails, the old text remains until the new state is written."""
    c, version = containers, LINES.replace("bees", "hens")
    path = f"/v3/documents/{c.name}"
    requests: dict[str, Callable[[], tuple[str, str, dict[str, Any] | None]]] = {
        "new version": lambda: ("POST", "/v3/documents", {"content": version, "customId": c.name, "containerTag": c.ada}),
        "new text": lambda: ("PATCH", path, {"content": version}),
        "move": lambda: ("PATCH", path, {"containerTag": c.carl, "content": version}),
        "delete": lambda: ("DELETE", path, None),
    }
    await c.add(LINES, c.ada)
    request = requests[kind]()
    with FAILING[step]():
        answer = await c.call(*request)
    if answer.status_code == 503 and kind != "delete":
        texts = [await c.document(tag) for tag in (c.ada, c.carl)]
        assert LINES in texts or version in texts
    if answer.status_code == 503:
        answer = await c.call(*request)
    assert answer.status_code in (200, 204), answer.text
    await c.settled()
    left = {"delete": (None, None), "move": (None, version)}.get(kind, (version, None))
    assert (await c.document(c.ada), await c.document(c.carl)) == left
    for tag, text in zip((c.ada, c.carl), left, strict=True):
        assert await c.memories(tag) == [text] * (text is not None)


async def test_concurrent_versions_of_a_document_leave_exactly_one(containers: Containers) -> None:
    c = containers
    texts = [f"{LINES}\nversion {number}" for number in range(8)]
    bodies = [{"content": text, "customId": c.name, "containerTag": c.ada} for text in texts]
    answers = await asyncio.gather(*(c.call("POST", "/v3/documents", body) for body in bodies))
    assert {answer.status_code for answer in answers} == {200}
    await c.settled()
    document = await c.document(c.ada)
    assert document in texts
    assert await c.memories(c.ada) == [document]


@pytest.mark.parametrize("kind", ["document", "batch", "change"])
async def test_refused_document_keeps_the_container_context(containers: Containers, kind: str) -> None:
    c = containers
    await c.add(LINES, c.ada, entityContext="Ada's garden")
    new = {"content": "Something else", "entityContext": "Nobody's garden", "containerTag": c.ada}
    method, path, body = {
        "document": ("POST", "/v3/documents", new),
        "batch": ("POST", "/v3/documents/batch", {"documents": [new]}),
        "change": ("PATCH", f"/ns/{c.ada}/document/{c.name}", {"content": "New", "supportingContext": "Nobody's garden"}),
    }[kind]
    with patch.object(SessionService, "append", side_effect=Conflict("refused")):
        refused = await c.call(method, path, body)
    assert refused.status_code == 409 or refused.json()["failed"] == 1, refused.text
    assert (await c.call("GET", f"/ns/{c.ada}")).json()["supportingContext"] == "Ada's garden"
    assert (await c.call(method, path, body)).status_code == 200
    assert (await c.call("GET", f"/ns/{c.ada}")).json()["supportingContext"] == "Nobody's garden"


@pytest.mark.parametrize("blank", [" \n", "\u200b\u3164"])
async def test_blank_text_does_not_replace_a_document(containers: Containers, blank: str) -> None:
    c = containers
    await c.add(LINES, c.ada)
    assert (await c.call("PATCH", f"/v3/documents/{c.name}", {"content": blank})).status_code == 400
    assert (await c.call("POST", "/v3/documents", {"content": blank, "customId": c.name, "containerTag": c.ada})).status_code == 400
    assert (await c.document(c.ada), await c.memories(c.ada)) == (LINES, [LINES])


@pytest.mark.parametrize("bulk", [False, True])
async def test_document_added_right_after_a_delete_survives(containers: Containers, bulk: bool) -> None:
    c = containers
    for turn in range(5):
        await c.add(LINES, c.ada)
        path = "/v3/documents/bulk" if bulk else f"/v3/documents/{c.name}"
        assert (await c.call("DELETE", path, {"ids": [c.name]} if bulk else None)).status_code in (200, 204)
        await c.add(f"I keep {turn} hens", c.ada)
        assert (await c.document(c.ada), await c.memories(c.ada)) == (f"I keep {turn} hens", [f"I keep {turn} hens"])
        await c.call("DELETE", f"/v3/documents/{c.name}")
