"""Test defects 1-4, 7, 8, 11 and 12 in the write path.

Stored data was overwritten, restored, lost, destroyed, skipped, refused or never expired.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory.features.memories.service import MemoryService
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.base import EmbeddingModel
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.interfaces.http.app import create_app
from agent_memory_worker.main import run_worker
from tests.support.api import serving
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, Rig, gathered, open_rig, record
from tests.support.waiting import wait_until

_SETTINGS = {
    "EXTRACTION_DEBOUNCE_SECONDS": 0,
    "DEFAULT_CONTEXT_WINDOW": 512,
    "COMPACTION_EVERY_MINUTES": 0,
    "COMPACTION_SIMILARITY": 0.8,
    "WORKER_RETRY_BASE_SECONDS": 0.2,
    "WORKER_RETRY_MAX_SECONDS": 0.4,
    "WORKER_MAX_ATTEMPTS": 1000,
}


@dataclass
class Server:
    http: httpx.AsyncClient
    rig: Rig
    model: Lookalike

    async def idle(self) -> None:
        """Wait until no work is pending."""

        async def nothing() -> bool:
            kinds = list(DueKind)
            return not any([await self.rig.marks(kind) for kind in kinds])

        await wait_until(nothing, "an empty backlog", 60)

    async def put(self, session: str, *texts: str, **more: Any) -> dict[str, Any]:
        messages = [{"id": text, "role": "user", "content": text, "created_at": "2026-01-02T03:04:05Z"} for text in texts]
        answer = await self.http.put(f"/v1/working-memory/{session}", json={"messages": messages, **more})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def get(self, session: str) -> dict[str, Any]:
        answer = await self.http.get(f"/v1/working-memory/{session}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def memories(self, session: str, strategy: str) -> list[str]:
        return sorted(one.text for one in await self.rig.stored() if one.session_id == session and one.extraction_strategy == strategy)


@pytest.fixture(scope="module")
async def whole(redis_url: str, local: EmbeddingModel, counter: TokenCounter, running_lookalike: Lookalike) -> AsyncGenerator[Server]:
    options = {"OPENAI_BASE_URL": running_lookalike.url, "OPENAI_API_KEY": "sk-test-0000", "MODEL_TIMEOUT_SECONDS": 5}
    chat = await OpenAIChat.open(load_settings(**options))
    async with open_rig(redis_url, local, counter, chat, **_SETTINGS) as rig:
        stop = asyncio.Event()
        worker = asyncio.create_task(run_worker(rig.rt, rig.settings, stop))
        async with serving(create_app(rig.settings, rig.rt)) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
            yield Server(http, rig, running_lookalike)
        stop.set()
        await worker


@pytest.fixture
def server(whole: Server) -> Generator[Server]:
    """Return the server, and repair its model after each test."""
    whole.model.forget()
    yield whole
    whole.model.latency_seconds = 0.0
    whole.model.forget()
    if not whole.model.running:
        whole.model.start()


@pytest.fixture
def session() -> str:
    return str(ULID())


async def test_01_background_work_never_overwrites_a_newer_put(server: Server, session: str) -> None:
    server.model.latency_seconds = 0.5
    await server.put(session, "Ana lives in Oslo", data={"step": 1})
    await server.model.wait_for_call("chat")
    said = ["Ana lives in Oslo", "Ana moved to Rome", "Ana bought a boat"]
    await server.put(session, *said, data={"step": 2})
    server.model.latency_seconds = 0.0
    seen = [await server.get(session)]
    await server.idle()
    seen.append(await server.get(session))
    for one in seen:
        assert [message["content"] for message in one["messages"]] == said
        assert one["data"] == {"step": 2}
    assert [message["discrete_memory_extracted"] for message in seen[-1]["messages"]] == ["t", "t", "t"]
    assert await server.memories(session, "discrete") == sorted(f"User said: {text}" for text in said)
    assert await server.memories(session, "message") == sorted(said)


async def test_02_session_deleted_during_extraction_stays_deleted(server: Server, session: str) -> None:
    server.model.latency_seconds = 0.5
    await server.put(session, "Ben lives in Cusco")
    await server.model.wait_for_call("chat")
    gone = await server.http.delete(f"/v1/working-memory/{session}", params={"memories": "true", "wait": "10"})
    assert gone.json()["status"] == "ok"
    await server.idle()
    assert (await server.http.get(f"/v1/working-memory/{session}")).status_code == 404
    assert await server.memories(session, "message") == await server.memories(session, "discrete") == []


async def test_03_no_append_or_versioned_update_is_lost(server: Server, session: str) -> None:
    async def append(number: int) -> None:
        body = {"messages": [{"role": "user", "content": f"note {number}", "created_at": "2026-01-02T03:04:05Z"}]}
        assert (await server.http.post(f"/v1/working-memory/{session}/messages", json=body)).status_code == 200

    await gathered(append(number) for number in range(10))
    read = await server.http.get(f"/v1/working-memory/{session}")
    assert sorted(message["content"] for message in read.json()["messages"]) == sorted(f"note {number}" for number in range(10))
    body = {"messages": read.json()["messages"]}
    puts = [server.http.put(f"/v1/working-memory/{session}", json=body, headers={"If-Match": read.headers["etag"]}) for _ in range(5)]
    statuses = sorted(answer.status_code for answer in await gathered(puts))  # type: ignore[arg-type]
    assert statuses == [200, 412, 412, 412, 412]


@pytest.mark.parametrize("fault", ["no_content", "empty_choices", "garbage", "refusal"])
async def test_04_failed_duplicate_check_deletes_no_memory(server: Server, session: str, fault: str) -> None:
    said = ["Carla plays the violin in Turin every Sunday", "Carla plays the violin in Turin each Sunday"]
    await server.put(session, *said, user_id=session)
    await server.idle()
    server.model.set_fault(fault, endpoint="chat")
    before = server.model.calls["chat"]
    assert (await server.http.post("/v1/long-term-memory/compact", params={"user_id": session})).status_code == 200
    await server.idle()
    assert server.model.calls["chat"] > before, "the model was asked whether they say the same"
    assert await server.memories(session, "discrete") == sorted(f"User said: {text}" for text in said)


async def test_07_messages_are_marked_extracted_only_after_success(server: Server, session: str) -> None:
    server.model.set_fault("garbage", endpoint="chat")
    await server.put(session, "Dora sails to Split")

    async def failed() -> bool:
        return bool(await server.rig.rt.outbox.reasons(DueKind.EXTRACTION))

    await wait_until(failed, "a failed try")
    (message,) = (await server.get(session))["messages"]
    assert message["discrete_memory_extracted"] == "f"
    assert await server.memories(session, "discrete") == []
    server.model.set_fault(None)
    await server.idle()
    (message,) = (await server.get(session))["messages"]
    assert message["discrete_memory_extracted"] == "t"
    assert await server.memories(session, "discrete") == ["User said: Dora sails to Split"]


async def test_08_messages_are_accepted_and_not_lost_while_model_is_down(server: Server, session: str) -> None:
    said = [
        f"In year {number} Emil repaired {number} old telescopes near the harbour of Galway, with Fatou and Goran" for number in range(30)
    ]
    server.model.stop()
    answer = await server.put(session, *said)
    assert [message["content"] for message in answer["messages"]] == said
    assert [message["content"] for message in (await server.get(session))["messages"]] == said
    prompt = await server.http.post("/v1/memory/prompt", json={"query": "telescopes", "session": {"session_id": session}})
    assert prompt.status_code == 200
    server.model.start()
    await server.idle()
    after = await server.get(session)
    left = [message["content"] for message in after["messages"]]
    assert after["context"]
    assert left == said[len(said) - len(left) :]
    assert len(await server.memories(session, "message")) == len(await server.memories(session, "discrete")) == len(said)


async def test_11_ids_are_per_tenant_and_overwrites_leave_no_gap(server: Server, session: str) -> None:
    other = scope_of_work(f"tenant-{session}")
    await server.rig.rt[MemoryService].store(SCOPE, [record("Hana's bike is red", session)])
    await server.rig.rt[MemoryService].store(other, [record("Ilya's bike is blue", session)])
    assert (await server.http.get(f"/v1/long-term-memory/{session}")).json()["text"] == "Hana's bike is red"
    assert (await server.rig.rt[MemoryService].get(other, session)).text == "Ilya's bike is blue"

    async def overwrite(number: int) -> None:
        await server.rig.rt[MemoryService].store(SCOPE, [record(f"Hana has {number} bikes", session)])

    reads = [server.http.get(f"/v1/long-term-memory/{session}") for _ in range(30)]
    answers = await gathered([*reads, *(overwrite(number) for number in range(30))])  # type: ignore[list-item]
    assert {answer.status_code for answer in answers[:30]} == {200}
    assert (await server.rig.rt[MemoryService].get(other, session)).text == "Ilya's bike is blue"


async def test_12_put_without_ttl_persists_session_and_background_work_keeps_ttl(server: Server, session: str) -> None:
    k = server.rig.keys.session(server.rig.sid(SessionRef(session)))

    async def ttls() -> list[int]:
        return [await server.rig.rt.client.ttl(key) for key in (k.meta, k.messages, k.ids, k.doc)]

    said = [f"Jorge measured {number} pianos in Rennes and carried them, one after the other, to the market" for number in range(30)]
    answer = await server.put(session, *said, ttl_seconds=100)
    assert answer["ttl_seconds"] == 100
    await server.idle()
    assert (await server.get(session))["context"], "it was summarized, promoted and extracted"
    assert all(0 < left <= 100 for left in await ttls())
    answer = await server.put(session, "Jorge is done")
    assert answer["ttl_seconds"] is None
    assert (await server.get(session))["ttl_seconds"] is None
    assert await ttls() == [-1, -1, -1, -1]
