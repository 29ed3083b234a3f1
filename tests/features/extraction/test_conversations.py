"""Test that each scripted conversation produces exactly the expected facts, history and evidence.

All conversations run on one server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import Runtime, open_runtime
from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_client.models import MemoryRecord
from agent_memory_worker.main import run_worker
from tests.features.extraction.cases import CASES, Conversation, Memory, read_memories, write_script
from tests.support.api import serving
from tests.support.lookalike import Lookalike

PREFIX = "conversations"
NAMES = [case["name"] for case in CASES]


@dataclass
class Talked:
    """The store after all conversations."""

    runtime: Runtime
    conversations: dict[str, Conversation]
    memories: dict[str, Memory]
    model: Lookalike
    everything: str


@pytest.fixture(scope="module")
async def talked(redis_url: str) -> AsyncGenerator[Talked, None]:
    model = Lookalike().start()
    write_script(model)
    settings = load_settings(
        KEY_PREFIX=PREFIX,
        OPENAI_BASE_URL=model.url,
        OPENAI_API_KEY="sk-test-0000",
        EMBEDDING_PROVIDER="local",
        EXTRACTION_DEBOUNCE_SECONDS=3600,
        COMPACTION_EVERY_MINUTES=0,
        WORKER_RETRY_BASE_SECONDS=30,
        WORKER_RETRY_MAX_SECONDS=30,
    )
    async with open_runtime(settings, redis_url) as runtime:
        stop = asyncio.Event()
        worker = asyncio.create_task(run_worker(runtime, settings, stop))
        try:
            async with (
                serving(create_app(settings, runtime)) as url,
                MemoryAPIClient(MemoryClientConfig(base_url=url, max_retries=0)) as api,
            ):
                conversations = {case["name"]: Conversation(api, runtime, Keys(PREFIX), case) for case in CASES}
                await asyncio.gather(*(conversation.run() for conversation in conversations.values()))
                memories = await read_memories(runtime, Keys(PREFIX))
                yield Talked(runtime, conversations, memories, model, await _everything(runtime))
        finally:
            stop.set()
            await worker
            model.stop()


async def _everything(runtime: Runtime) -> str:
    """Return the long-term memory as one text."""
    parts: list[str] = []
    async for key in runtime.client.scan_iter(match=f"{PREFIX}:*", count=1000):
        place = key.decode().split(":")[2]
        if place in ("m", "h", "ev", "ch"):
            parts += [value.decode("utf-8", "replace") for value in (await runtime.client.hgetall(key)).values()]
    return "\n".join(parts)


def _field(memory: Memory, mid: str, record: MemoryRecord, name: str) -> Any:
    match name:
        case "evidence":
            return len(memory.evidence[mid])
        case "source":
            return record.source_class
        case "speaker":
            return memory.evidence[mid][0]["role"]
        case "strategy":
            return record.extraction_strategy
        case "memory_type":
            return record.memory_type.value
        case "supersedes":
            texts = {one.record.id: one.record.text for one in memory.history}
            return [texts[earlier] for earlier in record.supersedes or []]
        case _:
            return getattr(record, name)


def _expected(value: Any, actual: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(actual, datetime) else value


@pytest.mark.parametrize("name", NAMES)
async def test_conversation_leaves_exactly_the_expected_memories(talked: Talked, name: str) -> None:
    conversation = talked.conversations[name]
    case = conversation.case
    memory = talked.memories[name]
    wanted: dict[str, dict[str, Any]] = case["expect"]["current"]
    times = {text: fields.get("times", 1) for text, fields in wanted.items()}
    assert sorted(one.record.text for one in memory.current) == sorted(text for text in wanted for _ in range(times[text]))
    past: dict[str, dict[str, Any]] = case["expect"].get("history", {})
    assert {one.record.text for one in memory.history if one.record.text not in wanted or one.record.text in past} == set(past)
    for found in memory.current:
        assert all(one.get("message_ids") for one in memory.evidence[found.mid]), "each piece cites its messages"
        for field, value in wanted[found.record.text].items():
            if field == "extracted":
                said = [message.id for message in conversation.said]
                assert found.record.extracted_from == [said[place] for place in value], found.record.text
            elif field != "times":
                actual = _field(memory, found.mid, found.record, field)
                assert actual == _expected(value, actual), (found.record.text, field)
    for text, fields in past.items():
        versions = [one for one in memory.history if one.record.text == text]
        for field, value in fields.items():
            told = [getattr(one.record, field) for one in versions]
            assert datetime.fromisoformat(value) in told, (text, field, told)
    for absent in case.get("absent", []):
        assert not talked.everything.count(absent)
        assert not any(absent in str(body) for body in talked.model.bodies("chat"))
    if "fails" in case:
        assert case["fails"] in await conversation.failure()
    if "calls" in case:
        texts = [text for step in case["steps"] for _, _, text in step.get("say", [])]
        asked = [body for body in talked.model.bodies("chat") if any(text in str(body) for text in texts)]
        assert len(asked) == case["calls"]


async def test_each_batch_costs_at_most_two_model_calls(talked: Talked) -> None:
    """One call extracts the facts, and at most one more compares them with existing memories."""
    prompts = [body["messages"][-1]["content"] for body in talked.model.bodies("chat")]
    new = [_texts(prompt.split("New messages", 1)[-1]) for prompt in prompts if "New messages" in prompt]
    notes = [_texts(prompt.split("New notes", 1)[-1]) for prompt in prompts if "New notes" in prompt]
    for name, conversation in talked.conversations.items():
        steps = conversation.case["steps"]
        texts = {text for step in steps for _, _, text in step.get("say", [])}
        facts = {fact["text"] for step in steps for fact in step.get("facts", [])}
        batches = sum("say" in step or "prompt" in step or "again" in step for step in steps)
        if "fails" not in conversation.case:
            assert sum(not texts.isdisjoint(some) for some in new) <= batches, name
            assert sum(not facts.isdisjoint(some) for some in notes) <= batches, name


def _texts(prompt: str) -> set[str]:
    return {json.loads(line)["text"] for line in prompt.splitlines() if line.startswith('{"n": ')}
