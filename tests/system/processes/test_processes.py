"""Test Redis, the API and workers as separate processes while workers start and stop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from tests.support.processes import running
from tests.support.waiting import settled

pytestmark = pytest.mark.slow

# Half of the messages exceed the window of the conversation.
WINDOW = 300
MESSAGES = 30


async def talk(memory: MemoryAPIClient, user: str, numbers: range) -> None:
    for number in numbers:
        text = f"Entry {number}: this week I planted {number + 3} apple trees behind the house of my grandmother and watered all of them."
        turn = {"id": f"{user}-{number}", "role": "user", "content": text}
        await memory.append_messages("garden", [turn], user_id=user, context_window_max=WINDOW)


async def kept(memory: MemoryAPIClient, user: str) -> set[str]:
    """Return the ids of a user's messages that became memories."""
    records = memory.search_all_long_term_memories("", user_id={"eq": user}, batch_size=100)
    return {record.extracted_from[0] async for record in records if record.extracted_from}


async def test_work_continues_while_workers_start_and_stop(tmp_path: Path) -> None:
    async with running(tmp_path, "redis", "--data-dir", "data") as redis:
        url = await redis.said(r"REDIS_URL=(\S+)")
        async with (
            running(tmp_path, "api", "--port", "0", warm=True, REDIS_URL=url) as api,
            running(tmp_path, "worker", REDIS_URL=url) as first,  # as users start it; the other processes are forked warm
            running(tmp_path, "worker", warm=True, REDIS_URL=url) as second,
            MemoryAPIClient(MemoryClientConfig(base_url=await api.base_url(), max_retries=0)) as memory,
        ):
            for worker in (first, second):
                await worker.said(r"(agent-memory worker)")
            users = [f"user-{number}" for number in range(2)]

            await asyncio.gather(*(talk(memory, user, range(MESSAGES // 2)) for user in users))
            assert await first.stop() == 0, first.output
            await asyncio.gather(*(talk(memory, user, range(MESSAGES // 2, MESSAGES)) for user in users))
            await second.kill()
            async with running(tmp_path, "worker", warm=True, REDIS_URL=url) as third:
                await third.said(r"(worker ready)")
                await settled(memory, 120)

                for user in users:
                    assert await kept(memory, user) == {f"{user}-{number}" for number in range(MESSAGES)}
                    session = await memory.get_working_memory("garden", user_id=user)
                    assert session.context
                    assert len(session.messages) < MESSAGES
                    prompt = await memory.memory_prompt("How many trees?", session_id="new", user_id=user, long_term_search=True)
                    assert prompt.long_term_memories
                assert await third.stop() == 0, third.output
            assert await api.stop() == 0, api.output
        assert await redis.stop() == 0, redis.output
