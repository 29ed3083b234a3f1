"""Test that `agent-memory serve` stops cleanly and loses no data after a kill."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import httpx
import pytest

from agent_memory.foundation.llm.local.e5 import NAME
from agent_memory_client import ClientMemoryRecord, MemoryAPIClient, MemoryClientConfig, MemoryClientError
from tests.support.processes import Running, running, tree
from tests.support.waiting import settled

pytestmark = pytest.mark.slow

WRITERS = 8
ENOUGH = 120


def client(base_url: str) -> MemoryAPIClient:
    return MemoryAPIClient(MemoryClientConfig(base_url=base_url, max_retries=0, timeout=60))


async def test_serve_keeps_data_over_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path, "serve", "--port", "0", "--data-dir", "data", LOCAL_MODEL=NAME) as first:  # as users start it
        base_url = await first.base_url()
        async with httpx.AsyncClient(base_url=base_url) as http:
            assert (await http.get("/v1/health")).status_code == 200
            ready = await http.get("/v1/ready")
            assert (ready.status_code, ready.json()["ready"]) == (200, True)
        assert "Redis:" in first.output
        assert "Models:" in first.output
        assert f"curl '{base_url}" in first.output
        assert len(tree(first.process.pid)) >= 2, "the embedded Redis is a process of its own below it"
        async with client(base_url) as memory:
            await memory.append_messages("s", [{"id": "m", "role": "user", "content": "My bicycle is yellow."}], user_id="ada")
            await memory.create_long_term_memory([ClientMemoryRecord(id="fact", text="Ada rides to work", user_id="ada")])
            await settled(memory)
        assert await first.stop() == 0, first.output

    async with running(tmp_path, "serve", "--port", "0", "--data-dir", "data", warm=True, LOCAL_MODEL=NAME) as second:
        async with client(await second.base_url()) as memory:
            session = await memory.get_working_memory("s", user_id="ada")
            assert [message.content for message in session.messages] == ["My bicycle is yellow."]
            assert (await memory.get_long_term_memory("fact")).text == "Ada rides to work"
            prompt = await memory.memory_prompt("Which colour has my bicycle?", session_id="t", user_id="ada", long_term_search=True)
            assert "My bicycle is yellow." in [record.text for record in prompt.long_term_memories or []]
        assert await second.stop(signal.SIGINT) == 0, second.output


async def test_printed_curl_command_succeeds(served_process: Running) -> None:
    line = await served_process.said(r"Try: +(curl .*)")
    done = await asyncio.create_subprocess_shell(line, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL)
    output, _ = await done.communicate()
    assert done.returncode == 0
    # Another test may have written to the same session of this server before.
    assert b'"appended":1' in output
    assert b'"reached":"searchable"' in output
    assert served_process.output.count("curl ") == 1


async def test_startup_output_explains_stopping_and_data_privacy(served_process: Running) -> None:
    assert "nothing leaves this machine" in await served_process.said(r"(Stop: .*)")
    assert "AUTH_MODE=token" in await served_process.said(r"(AUTH_MODE=disabled: .*)")


class Journal:
    """Writes data and records what the server acknowledged."""

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.reached = asyncio.Event()
        self.messages: dict[str, set[str]] = {}
        self.memories: set[str] = set()

    @property
    def count(self) -> int:
        return len(self.memories) + sum(map(len, self.messages.values()))

    async def write(self, memory: MemoryAPIClient, writer: int) -> None:
        """Alternate between writing messages and memories until the server stops."""
        session = f"session-{writer}"
        number = 0
        while True:
            number += 1
            message, fact = f"message-{writer}-{number}", f"memory-{writer}-{number}"
            try:
                said = {"id": message, "role": "user", "content": f"I own {number} books of series {writer}."}  # one memory each
                await memory.append_messages(session, [said], user_id="ada")
                self.messages.setdefault(session, set()).add(message)
                await memory.create_long_term_memory([ClientMemoryRecord(id=fact, text=f"Ada has read {number} books", user_id="ben")])
                self.memories.add(fact)
            except MemoryClientError:
                return
            if self.count >= self.enough:
                self.reached.set()

    async def check(self, memory: MemoryAPIClient) -> None:
        """Assert that every acknowledged write exists."""
        for session, messages in self.messages.items():
            stored = await memory.get_working_memory(session, user_id="ada")
            ids = [message.id for message in stored.messages]
            assert messages <= set(ids), f"lost: {sorted(messages - set(ids))}"
            assert len(ids) == len(set(ids)), "nothing is there twice"
        for fact in self.memories:
            assert (await memory.get_long_term_memory(fact)).id == fact


async def killed_while_writing(server: Running, journal: Journal) -> None:
    """Kill all processes while multiple writers are active."""
    async with client(await server.base_url()) as memory, asyncio.timeout(60):
        writers = [asyncio.create_task(journal.write(memory, writer)) for writer in range(WRITERS)]
        await journal.reached.wait()
        await server.kill()
        await asyncio.gather(*writers)


async def test_acknowledged_writes_survive_sigkill_of_all_processes(tmp_path: Path) -> None:
    journals = [Journal(ENOUGH), Journal(ENOUGH)]
    for journal in journals:
        async with running(tmp_path, "serve", "--port", "0", "--data-dir", "data", warm=True) as server:
            await killed_while_writing(server, journal)
    async with (
        running(tmp_path, "serve", "--port", "0", "--data-dir", "data", warm=True) as server,
        client(await server.base_url()) as memory,
    ):
        for journal in journals:
            await journal.check(memory)
        await settled(memory)  # the new worker does what the killed ones had claimed
        promoted = {r.extracted_from[0] async for r in memory.search_all_long_term_memories("", user_id={"eq": "ada"}) if r.extracted_from}
        assert set().union(*(ids for journal in journals for ids in journal.messages.values())) <= promoted


async def test_acknowledged_writes_survive_a_stop_under_load(tmp_path: Path) -> None:
    journal = Journal(ENOUGH // 2)
    async with (
        running(tmp_path, "serve", "--port", "0", "--data-dir", "data", warm=True) as server,
        client(await server.base_url()) as memory,
    ):
        writers = [asyncio.create_task(journal.write(memory, writer)) for writer in range(2)]
        await journal.reached.wait()
        assert await server.stop() == 0, server.output
        await asyncio.gather(*writers)
    async with (
        running(tmp_path, "serve", "--port", "0", "--data-dir", "data", warm=True) as server,
        client(await server.base_url()) as memory,
    ):
        await journal.check(memory)
