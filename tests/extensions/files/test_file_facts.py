"""Test that facts from a file disappear after a new version, a deletion or a purge."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.extensions.files.service import FileService, NewFile, order_of
from agent_memory.extensions.files.store import FileStore, ref_of
from agent_memory.features.privacy.forget.service import ForgetService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.errors import Conflict
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory_client.models import ForgetMemoryRequest, MemoryRecord, PurgeRequest
from agent_memory_client.models.features.files import StoredFile
from agent_memory_worker.files import read_file
from agent_memory_worker.privacy.purge import purge_source
from agent_memory_worker.privacy.unreadable import UnreadableRecords
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig

NINE, TEN = "The greenhouse opens at nine in summer.", "The greenhouse opens at ten in summer."
FACTS = {text: [{"text": text.replace("The greenhouse", "The greenhouse of the garden club")}] for text in (NINE, TEN)}


@pytest.fixture(autouse=True)
def scripted(lookalike: Lookalike) -> None:
    lookalike.scripted.facts = FACTS
    lookalike.scripted.silent = True


async def upload(rig: Rig, text: str, name: str = "club.txt") -> StoredFile:
    file = await rig.rt[FileService].upload(SCOPE, NewFile(name, text.encode(), "", None, "ada"))
    await read_file(rig.rt, order_of(SCOPE, file))
    await rig.work()
    await rig.make_due(DueKind.EXTRACTION)
    await rig.work()
    return file


async def facts(rig: Rig) -> list[MemoryRecord]:
    return [record for record in await rig.stored() if record.memory_type != "message"]


async def purge(rig: Rig, **source: Any) -> dict[str, int]:
    counts, _ = await purge_source(rig.rt, SCOPE, PurgeRequest(**source), (None, "ada"), UnreadableRecords())
    return {name: count for name, count in counts.items() if count}


async def test_facts_of_a_file_record_their_passage_and_are_deleted_with_the_file(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike
) -> None:
    async with make_rig(chat) as rig:
        file = await upload(rig, NINE)
        (fact,) = await facts(rig)
        assert fact.text == FACTS[NINE][0]["text"]
        assert (fact.source_class, fact.trust, fact.session_id, fact.user_id) == ("tool", 0.3, file.id, "ada")
        assert {name: fact.metadata[name] for name in ("file", "file_id", "page", "start", "end")} == {
            "file": "club.txt",
            "file_id": file.id,
            "page": 1,
            "start": 0,
            "end": len(NINE),
        }
        prompt = lookalike.bodies("chat")[-1]["messages"][-1]["content"]
        assert '"role": "document"' in prompt
        assert "passages of a file" in prompt
        again = await upload(rig, NINE, "copy.txt")
        assert (again.id, len(await facts(rig)), len(await rig.stored())) == (file.id, 1, 2), "the same bytes are one file"
        await upload(rig, TEN)
        assert sorted(record.text for record in await rig.stored()) == sorted([TEN, FACTS[TEN][0]["text"]])
        await rig.rt[FileService].delete_file(SCOPE, ref_of(file))
        assert await rig.stored() == []


async def test_users_statement_survives_deletion_of_a_file_with_the_same_fact(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike
) -> None:
    said = "Our greenhouse opens at nine in summer."
    lookalike.scripted.facts = FACTS | {said: FACTS[NINE]}
    async with make_rig(chat) as rig:
        file = await upload(rig, NINE)
        await rig.append("talk", said, user_id="ada")
        await rig.work()
        await rig.make_due(DueKind.EXTRACTION)
        await rig.work()
        await rig.rt[FileService].delete_file(SCOPE, ref_of(file))
        assert {(record.text, record.session_id) for record in await rig.stored()} == {(said, "talk")}


@pytest.mark.parametrize("source", ["session_id", "metadata", "source_class"])
async def test_purged_file_is_gone_and_can_be_uploaded_again(make_rig: MakeRig, chat: OpenAIChat, source: str) -> None:
    async with make_rig(chat) as rig:
        file = await upload(rig, NINE)
        sources = {"session_id": file.id, "metadata": {"file_id": file.id}, "source_class": ["tool"]}
        counts = await purge(rig, **{source: sources[source]})
        assert (counts["matched"], counts["files"]) == (2, 1)
        assert await rig.stored() == []
        assert (await rig.rt[FileStore].load(SCOPE, ref_of(file))).file is None
        assert await rig.rt[SessionStore].get(SCOPE, ref_of(file)) is None
        assert len(await facts(rig)) == 0
        await upload(rig, NINE)
        assert len(await rig.stored()) == 2


async def test_purge_of_a_page_corrects_the_count_of_passages(rig: Rig) -> None:
    text = "".join(f"Paragraph {number} describes the pump. " * 30 + "\n" for number in range(3))
    file = await upload(rig, text)
    before = len(await rig.stored())
    start = min(record.metadata["start"] for record in await rig.stored())
    await purge(rig, metadata={"file_id": file.id, "start": start})
    row = await rig.rt[FileStore].load(SCOPE, ref_of(file))
    assert row.file is not None
    assert row.file.passages == len(await rig.stored()) == before - 1


async def test_forgetting_a_passage_keeps_the_rest_of_the_file_and_can_be_undone(make_rig: MakeRig, chat: OpenAIChat) -> None:
    async with make_rig(chat) as rig:
        file = await upload(rig, NINE)
        before = [record.id for record in await rig.stored()]
        (fact,) = await facts(rig)
        passage = next(name for name in before if name != fact.id)
        gone = await rig.rt[ForgetService].forget(SCOPE, ForgetMemoryRequest(ids=[passage], user_id="ada"))
        assert {match.id for match in gone.matches if match.kind == "fact"} == set()
        assert await facts(rig) != []
        row = await rig.rt[FileStore].load(SCOPE, ref_of(file))
        assert row.file is not None
        assert row.file.passages == 0
        await rig.rt[ForgetService].undo(SCOPE, gone.receipt_id or "")
        row = await rig.rt[FileStore].load(SCOPE, ref_of(file))
        assert row.file is not None
        assert row.file.passages == 1
        assert sorted(record.id for record in await rig.stored()) == sorted(before)
        session = await rig.rt[SessionStore].get(SCOPE, ref_of(file))
        assert session is not None
        assert [stored.message.content for stored in session.messages] == [NINE]


async def test_file_without_passages_can_be_uploaded_again(rig: Rig) -> None:
    await upload(rig, NINE)
    (passage,) = await rig.stored()
    await rig.rt[ForgetService].forget(SCOPE, ForgetMemoryRequest(ids=[passage.id], user_id="ada"))
    assert await rig.stored() == []
    await upload(rig, NINE)
    assert [record.text for record in await rig.stored()] == [NINE]


async def test_refused_upload_leaves_the_bytes_of_the_accepted_one(rig: Rig) -> None:
    service, store = rig.rt[FileService], rig.rt[FileStore]
    file = await service.upload(SCOPE, NewFile("a.txt", b"accepted", "", None, "ada"))
    outdated = await store.load(SCOPE, ref_of(file.model_copy(update={"id": "other"})))
    assert not await store.swap(SCOPE, ref_of(file), outdated, file, b"of a process that was late")
    assert await store.load_bytes(SCOPE, ref_of(file)) == b"accepted"
    with pytest.raises(Conflict):
        await service.upload(SCOPE, NewFile("a.txt", b"x", "", None, "ada", "another-agent", file.id))
    assert await store.load_bytes(SCOPE, ref_of(file)) == b"accepted"
