"""Run examples/memgpt.py against a real server and a scripted model."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from openai import OpenAI
from ulid import ULID

from agent_memory.foundation.core.settings import load_settings
from agent_memory_client import MemoryClientConfig, SyncMemoryClient
from tests.support.cli import ROOT
from tests.support.lookalike import Lookalike
from tests.support.stack import stack


@pytest.fixture(scope="module")
def memgpt() -> Any:
    """Import the example as a module."""
    spec = importlib.util.spec_from_file_location("memgpt_example", ROOT / "examples" / "memgpt.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
async def config(redis_url: str) -> AsyncGenerator[MemoryClientConfig]:
    settings = load_settings(KEY_PREFIX=f"t{str(ULID()).lower()}", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with stack(settings, redis_url) as url:
        yield MemoryClientConfig(base_url=url)


async def talk(memgpt: Any, config: MemoryClientConfig, model: Lookalike, user: str, *lines: str, limit: int = 2000) -> list[str]:
    """Run the program once in a new session, and return the agent's answers."""

    def run() -> list[str]:
        with SyncMemoryClient(config) as memory:
            agent = memgpt.Agent(memory, OpenAI(base_url=model.url, api_key="none", max_retries=0), "m", user, say=lambda line: None)
            agent.make_blocks(limit)
            return [said for line in lines for said in agent.answer(line)]

    return await asyncio.to_thread(run)


@pytest.mark.parametrize("away", [False, True], ids=["no model", "a model that is away"])
async def test_example_without_a_model_shows_blocks_and_past_messages(memgpt: Any, config: MemoryClientConfig, *, away: bool) -> None:
    user, shown = f"u{ULID()}", list[str]()

    def run(*lines: str) -> None:
        model = OpenAI(base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0) if away else None
        with SyncMemoryClient(config) as memory:
            agent = memgpt.Agent(memory, model, "m", user, say=shown.append)
            agent.make_blocks()
            for line in lines:
                assert agent.answer(line) == []
            memory.sessions.flush(agent.session, user_id=user, wait=True)

    await asyncio.to_thread(run, "I keep bees.")
    assert "I am a companion who remembers." in shown[-1]
    assert "Nothing was said yet." in shown[-1]
    await asyncio.to_thread(run, "Which animals do I keep?")
    assert "- I keep bees." in shown[-1]
    assert any("does not answer" in line for line in shown) is away


@pytest.fixture
def model(running_lookalike: Lookalike) -> Any:
    running_lookalike.forget()
    yield running_lookalike
    running_lookalike.forget()


async def test_core_memory_persists_to_next_run_and_imports_under_another_name(
    memgpt: Any, config: MemoryClientConfig, model: Lookalike
) -> None:
    user, other = f"u{ULID()}", f"o{ULID()}"
    known = {"label": "human", "content": "叫张三，Python开发者", "request_heartbeat": True}
    model.scripted.calls = {"我叫张三": [("core_memory_append", known)], "human: appended": [("send_message", {"message": "你好，张三"})]}
    assert await talk(memgpt, config, model, user, "我叫张三，是一名Python开发者") == ["你好，张三"]

    model.scripted.calls = {"我是谁": [("send_message", {"message": "张三"})]}
    assert await talk(memgpt, config, model, user, "我是谁？") == ["张三"]
    system = model.bodies("chat")[-1]["messages"]
    assert "叫张三，Python开发者" in str([message for message in system if message["role"] == "system"])
    assert not any(message["role"] == "assistant" for message in system), "a second run has no history"

    def move() -> str:
        with SyncMemoryClient(config) as memory:
            lines = list(memory.users.export(user))
            report = memory.users.import_lines(other, lines)
            assert report.problems == []
            return memory.blocks.get("human", user_id=other, agent_id="companion").value

    assert "张三" in await asyncio.to_thread(move)
    await talk(memgpt, config, model, other, "我是谁？")
    assert "叫张三，Python开发者" in str(model.bodies("chat")[-1]["messages"])


async def test_agent_moves_text_to_archive_when_block_is_full(memgpt: Any, config: MemoryClientConfig, model: Lookalike) -> None:
    user = f"u{ULID()}"
    long = "Ada grew up by the sea in Setúbal"
    moved = {"label": "human", "old_content": long, "new_content": ""}
    model.scripted.calls = {
        "childhood": [("core_memory_append", {"label": "human", "content": long})],
        "no gym": [("core_memory_append", {"label": "human", "content": "Trains at home, never in a gym"})],
        "is full": [
            ("archival_memory_insert", {"content": long}),
            ("core_memory_replace", {**moved, "request_heartbeat": True}),
        ],
        "human: replaced": [
            ("core_memory_append", {"label": "human", "content": "Trains at home, never in a gym", "request_heartbeat": True}),
        ],
        "human: appended": [("send_message", {"message": "I will remember."})],
    }
    said = await talk(memgpt, config, model, user, "This was my childhood", "I train at home, no gym", limit=52)
    assert said[-1] == "I will remember."

    def state() -> tuple[str, list[str]]:
        with SyncMemoryClient(config) as memory:
            found = memory.tools.resolve_function_call("archival_memory_search", {"query": "Setúbal"}, "s", user_id=user)
            assert found["result"] is not None
            texts = [hit["text"] for hit in found["result"]["memories"]]
            return memory.blocks.get("human", user_id=user, agent_id="companion").value, texts

    value, archived = await asyncio.to_thread(state)
    assert value.strip() == "Trains at home, never in a gym"
    assert archived == [long]
    refusals = [message for body in model.bodies("chat") for message in body["messages"] if "is full" in str(message.get("content"))]
    assert any("limit of 52" in message["content"] for message in refusals if message["role"] == "tool")
