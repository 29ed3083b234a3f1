"""Test that a model server outage only delays summaries and facts."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from agent_memory_client import ClientMemoryRecord, MemoryAPIClient, MemoryClientConfig
from tests.support.cli import ROOT, clean_environment
from tests.support.lookalike import Lookalike
from tests.support.processes import running
from tests.support.waiting import settled, wait_until

pytestmark = pytest.mark.slow

MODEL = "my-litellm-model"
WINDOW = 1000
THINGS = ["a red kite", "two bicycles", "an old piano", "a garden in Porto", "three llamas", "a wooden boat", "a Swiss watch"]


@pytest.fixture(scope="module")
def model_server() -> Generator[Lookalike, None, None]:
    server = Lookalike(dimensions=256)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
async def modelled(model_server: Lookalike, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[str, None]:
    """Start a server that is configured with unknown model names."""
    environment = {
        "OPENAI_BASE_URL": model_server.url,
        "OPENAI_API_KEY": "sk-test-0000",
        "GENERATION_MODEL": MODEL,
        "EMBEDDING_MODEL": "my-embeddings",
        "EMBEDDING_DIMENSIONS": "256",
        "EXTRACTION_DEBOUNCE_SECONDS": "0.2",
        "QUERY_EMBEDDING_TIMEOUT_SECONDS": "1",
        "MODEL_TIMEOUT_SECONDS": "5",
    }
    async with running(tmp_path_factory.mktemp("modelled"), "serve", "--port", "0", warm=True, **environment) as server:
        yield await server.base_url()


@pytest.fixture
async def memory(modelled: str, model_server: Lookalike) -> AsyncGenerator[MemoryAPIClient, None]:
    model_server.forget()
    async with MemoryAPIClient(MemoryClientConfig(base_url=modelled, max_retries=0)) as client:
        yield client


async def talk(memory: MemoryAPIClient, user: str, numbers: range) -> None:
    """Append messages of about 30 tokens, each with a fact."""
    for number in numbers:
        thing = THINGS[number % len(THINGS)]
        text = f"Entry {number}: I have bought {thing} from my cousin and will pay {number + 20} euros for it before the end of the month."
        turn = {"id": f"{user}-{number}", "role": "user", "content": text}
        done = await memory.append_messages("diary", [turn], user_id=user, context_window_max=WINDOW)
        assert done.appended == 1


async def facts(memory: MemoryAPIClient, user: str) -> dict[str, list[str]]:
    """Return a user's facts with the ids of their source messages."""
    found = memory.search_all_long_term_memories("", user_id={"eq": user}, memory_type={"ne": "message"}, batch_size=100)
    return {record.text: record.extracted_from or [] async for record in found}


async def test_summaries_and_facts_come_from_the_model(memory: MemoryAPIClient, model_server: Lookalike) -> None:
    await talk(memory, "ada", range(40))
    await settled(memory)

    session = await memory.get_working_memory("diary", user_id="ada")
    assert session.context is not None
    assert session.context.startswith("Summary: "), "the model's words"
    remembered = await facts(memory, "ada")
    assert {source for sources in remembered.values() for source in sources} == {f"ada-{number}" for number in range(40)}
    assert all(text.startswith("User said: ") for text in remembered)
    assert {body["model"] for body in model_server.bodies("chat")} == {MODEL}
    assert {body["model"] for body in model_server.bodies("embeddings")} == {"my-embeddings"}


async def test_requests_succeed_during_model_outage_and_work_is_done_later(memory: MemoryAPIClient, model_server: Lookalike) -> None:
    await talk(memory, "ben", range(5))
    await settled(memory)
    model_server.stop()
    try:
        await talk(memory, "ben", range(5, 40))
        await memory.create_long_term_memory([ClientMemoryRecord(id="ben-fact", text="Ben repairs violins", user_id="ben")])
        prompt = await memory.memory_prompt("Which piano did I buy?", session_id="diary", user_id="ben", long_term_search=True)
        assert prompt.to_openai()[-1] == {"role": "user", "content": "Which piano did I buy?"}
        assert prompt.long_term_memories, "what cannot be found by meaning is found by words"
        found = await memory.search_long_term_memory("violins", search_mode="hybrid", user_id={"eq": "ben"})
        assert [record.id for record in found.memories] == ["ben-fact"]
        session = await memory.get_working_memory("diary", user_id="ben")
        assert {f"ben-{number}" for number in range(40)} == {message.id for message in session.messages}, "nothing leaves unsummarized"

        async def failed() -> bool:
            work = (await memory.ready())["checks"]["work"]
            return bool(work["session"]["pending"] and work["memory"]["pending"])

        await wait_until(failed, "the work that waits for the model")
    finally:
        model_server.start()

    await settled(memory, seconds=90)
    session = await memory.get_working_memory("diary", user_id="ben")
    assert session.context is not None
    assert session.context.startswith("Summary: ")
    assert len(session.messages) < 40
    sources = [source for cited in (await facts(memory, "ben")).values() for source in cited]
    assert set(sources) == {f"ben-{number}" for number in range(40)}
    assert len(sources) == len(set(sources)), "each once"
    near = await memory.search_long_term_memory("violins", search_mode="semantic", user_id={"eq": "ben"}, limit=1)
    assert near.memories[0].id == "ben-fact"


async def test_second_run_of_a_program_recalls_facts_of_the_first(memory: MemoryAPIClient, modelled: str, model_server: Lookalike) -> None:
    async def run(session_id: str, message: str) -> str:
        environment = {"MEMORY_URL": modelled, "OPENAI_BASE_URL": model_server.url, "OPENAI_API_KEY": "sk-any", "CHAT_MODEL": MODEL}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(Path(__file__).with_name("program.py")), session_id, message),
            env=clean_environment(**environment),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, problems = await process.communicate()
        assert process.returncode == 0, problems.decode()
        return output.decode()

    await run("monday", "My dog Zephyr sleeps in the wardrobe.")
    await settled(memory)
    answer = await run("tuesday", "Where does my dog sleep?")

    assert "My dog Zephyr sleeps in the wardrobe." in answer
    assert {body["model"] for body in model_server.bodies("chat")} == {MODEL}
