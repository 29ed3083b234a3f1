"""Test that reading a page of documents takes the same number of round trips for any page size."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from agent_memory.features.memories.usage.log import UsageLog
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.interfaces.compat.supermemory.requests import Document, DocumentListing, Search
from agent_memory.interfaces.compat.supermemory.service import SupermemoryService
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, MakeRig, Rig
from tests.support.rig_fixtures import *  # noqa: F403

PAGE = 40


@pytest.fixture
async def documents_rig(make_rig: MakeRig) -> AsyncGenerator[Rig]:
    async with make_rig(COMPAT_APIS="supermemory") as rig:
        yield rig


async def finish(rig: Rig) -> None:
    """Run all work, including work due a moment later."""
    await rig.work()
    await rig.make_due(DueKind.FOLLOW)
    await rig.work()


async def take_in(rig: Rig, tag: str, count: int) -> None:
    service = SupermemoryService(rig.rt, SCOPE)
    for number in range(count):
        content = f"Ferry number {number} to Bergen goes at nine"
        await service.add(Document(content=content, container_tags=[tag], metadata={"kind": "ferry"}))
    await finish(rig)


@pytest.mark.parametrize("with_model", [False, True])
async def test_round_trips_are_independent_of_document_count(
    make_rig: MakeRig, chat: OpenAIChat, monkeypatch: pytest.MonkeyPatch, with_model: bool
) -> None:
    async with make_rig(chat if with_model else None, COMPAT_APIS="supermemory") as rig:
        await take_in(rig, "few", 2)
        await take_in(rig, "many", PAGE)
        service, sent = SupermemoryService(rig.rt, SCOPE), commands_of(rig, monkeypatch)
        trips: dict[str, list[int]] = {"few": [], "many": []}
        shown: list[tuple[str, bytes]] = []  # the commands of each listing, to show after a failure
        for tag, count in (("few", 2), ("many", PAGE), ("few", 2)):
            trips[tag].clear()  # do not count what only the first request of a process reads
            for filters in (None, {"AND": [{"key": "kind", "value": "ferry"}]}):
                await rig.rt[UsageLog].flush()  # the server counts readings after the response
                sent.clear()
                listed, page = await service.list(DocumentListing(container_tag=tag, limit=PAGE, filters=filters))
                trips[tag].append(len(sent))
                shown += [(tag, command[:80]) for command in sent]
                assert (len(listed), page["totalItems"]) == (count, count)
                assert {document["status"] for document in listed} == {"done"}
            asked = Search(q="ferry to Bergen", container_tag=tag, limit=PAGE, search_mode="documents")
            found = [hit for hit, _ in await service.search(asked)]
            await rig.rt[UsageLog].flush()
            sent.clear()
            documents = await service.documents_of(found)
            trips[tag].append(len(sent))
            assert len(documents) == count
        assert trips["few"] == trips["many"], shown
        assert max(trips["many"]) <= 7, trips


async def test_document_is_queued_until_all_its_memories_are_processed(documents_rig: Rig) -> None:
    rig, service = documents_rig, SupermemoryService(documents_rig.rt, SCOPE)
    await take_in(rig, "ann", 2)
    late = await service.add(Document(content="The last ferry goes at ten", container_tags=["ann"]))

    async def states() -> dict[str, str]:
        listed, _ = await service.list(DocumentListing(container_tag="ann"))
        return {document["id"]: document["status"] for document in listed}

    first: Any = await states()
    assert (first.pop(late["id"]), set(first.values())) == ("queued", {"done"})
    await rig.work(DueKind.SESSION)
    assert (await states())[late["id"]] == "queued", "it is remembered, and the profile does not know of it yet"
    await finish(rig)
    assert set((await states()).values()) == {"done"}
