"""Test that running processes report and rebuild a missing or incomplete index (F15)."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import httpx
import pytest
from redis.asyncio import Redis

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.storage.search import indexes
from agent_memory.foundation.storage.search.indexes import (
    ensure_index,
    has_index,
    memory_index_name,
    session_index_name,
    shared_schemas,
    vector_index_name,
)
from agent_memory.interfaces.http.app import create_app
from agent_memory_client.models import SearchRequest
from tests.support.api import serving
from tests.support.rig import SCOPE, MakeRig, Rig, record
from tests.support.waiting import wait_until
from tests.system.conftest import MakeChat
from tests.system.faults.pictures import finished

pytestmark = pytest.mark.slow

_SEARCH = {"text": "violins in Lisbon", "limit": 100}


def names(rig: Rig) -> dict[str, str]:
    spec = rig.rt.spec
    return {
        "memories": memory_index_name(rig.keys),
        "vectors": vector_index_name(rig.keys, spec),
        "sessions": session_index_name(rig.keys),
    }


async def filled(rig: Rig) -> None:
    await rig.rt[MemoryService].store(SCOPE, [record(f"Ana bought {number} violins in Lisbon") for number in range(40)])
    await rig.append("s", "I moved to Porto")
    await finished(rig)


@pytest.mark.parametrize("which", ["memories", "vectors", "sessions"])
async def test_dropped_index_gives_503_and_is_rebuilt_without_restart(make_rig: MakeRig, which: str) -> None:
    async with make_rig() as rig:
        await filled(rig)
        async with serving(create_app(rig.settings, rig.rt)) as base_url, httpx.AsyncClient(base_url=base_url) as http:
            whole = (await http.post("/v1/long-term-memory/search", json=_SEARCH)).json()
            assert whole["total"] >= 40

            async def ask() -> httpx.Response:
                if which == "sessions":
                    return await http.get("/v1/working-memory/")
                return await http.post("/v1/long-term-memory/search", json=_SEARCH)

            async def gone() -> bool:
                # It may exist again before the next request.
                await rig.rt.client.execute_command("FT.DROPINDEX", names(rig)[which])
                answer = await ask()
                if answer.status_code == 200:
                    return False
                assert answer.status_code == 503, answer.text
                assert names(rig)[which] in answer.json()["detail"]
                assert int(answer.headers["retry-after"]) >= 1
                return True

            async def back() -> bool:
                return (await ask()).status_code == 200

            await wait_until(gone, "an answer without the index")
            assert (await http.get("/v1/working-memory/s")).status_code == 200, "what needs no index is served"
            await wait_until(back, "the index")
            again = (await http.post("/v1/long-term-memory/search", json=_SEARCH)).json()
            assert again["total"] == whole["total"]
            assert {one["id"] for one in again["memories"]} == {one["id"] for one in whole["memories"]}
            assert (await http.get("/v1/working-memory/")).json()["total"] == 1


async def test_index_alias_is_set_only_after_paused_writes_resume(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Setting an alias during the pause would crash redis-server 8.2."""
    complete = getattr(indexes, "_complete")  # noqa: B009

    async def complete_and_held(client: Redis, name: str) -> None:
        await complete(client, name)
        await client.execute_command("CLIENT", "PAUSE", 300, "WRITE")  # As another process that builds another index.

    async with make_rig() as rig:
        await filled(rig)
        process = (await rig.rt.client.info("server"))["process_id"]
        monkeypatch.setattr(indexes, "_complete", complete_and_held)
        await rig.rt.client.execute_command("FT.DROPINDEX", names(rig)["sessions"])
        await ensure_index(rig.rt.client, rig.keys, shared_schemas(rig.keys, rig.rt.spec)["sessions"])
        assert (await rig.rt.client.info("server"))["process_id"] == process
        assert await has_index(rig.rt.client, names(rig)["sessions"])


async def test_search_timeout_is_an_error_not_a_partial_result(make_rig: MakeRig) -> None:
    """By default, the engine returns partial results."""
    async with make_rig() as rig:
        await filled(rig)
        before = await rig.rt.client.execute_command("FT.CONFIG", "GET", "ON_TIMEOUT")
        assert b"fail" in str(before).lower().encode(), before
        whole = await rig.rt[SearchService].search(SCOPE, SearchRequest(text="violins", limit=100))
        assert whole.total >= 40


async def test_index_counts_match_keys_after_writes_and_deletes(make_rig: MakeRig, make_chat: MakeChat) -> None:
    async with make_rig(await make_chat(), EXTRACTION_DEBOUNCE_SECONDS=0) as rig:
        await filled(rig)
        gone = [one.id for one in await rig.stored()][::3]
        await rig.rt[MemoryService].delete(SCOPE, gone)
        await rig.rt[MemoryService].store(SCOPE, [record(f"Ben sold {number} maps in Oslo") for number in range(10)])
        await finished(rig)
        keys = await rig.raw_keys()
        for which, prefix in (("memories", "m:"), ("vectors", "v:"), ("sessions", "wd:")):
            info = await rig.rt.client.execute_command("FT.INFO", names(rig)[which])
            assert int(info[b"num_docs"]) == sum(key.startswith(prefix) for key in keys), which
            assert int(info[b"hash_indexing_failures"]) == 0, which


async def test_command_on_the_recovery_page_counts_memories_by_tenant(make_rig: MakeRig) -> None:
    page = (Path(__file__).parents[2] / "docs" / "running" / "recovery.md").read_text("utf-8")
    command = re.search(r"redis-cli (FT\.AGGREGATE .+)", page)
    assert command is not None
    async with make_rig() as rig:
        for tenant, number in (("acme", 3), ("globex", 5)):
            await rig.rt[MemoryService].store(scope_of_work(tenant), [record(f"{tenant} sold {each} maps") for each in range(number)])
        words = shlex.split(command[1].replace("am:{0}:", rig.keys.root))
        rows = (await rig.rt.client.execute_command(*words))[b"results"]
        counts = [(bytes.fromhex(row[b"extra_attributes"][b"t"].decode()).decode(), row[b"extra_attributes"][b"memories"]) for row in rows]
        assert counts == [("globex", b"5"), ("acme", b"3")]
