"""Test that erased data leaves no proposal that could restore it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.commit import ChangeOrigin, MemoryCommits, Supersede
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.errors import Conflict
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.interfaces.http.app import create_app
from agent_memory_client.models import Evidence
from tests.support.rig import SCOPE, MakeRig, Rig, record

OLD, NEW = "Ana lives in Paris", "Ana lives in Oslo"
SAID = "I moved to Oslo."


@pytest.fixture
async def rig(make_rig: MakeRig) -> AsyncGenerator[Rig]:
    async with make_rig(COMPAT_APIS="mem0,supermemory") as rig:
        yield rig


@pytest.fixture
async def http(rig: Rig) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(rig.settings, rig.rt))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


async def call(http: httpx.AsyncClient, method: str, path: str, **more: Any) -> Any:
    answer = await http.request(method, path, **more)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


async def propose(rig: Rig, session: SessionRef, message: str, name: str = "new") -> str:
    """Propose a fact from this session's message in place of a fact without a session."""
    owner: dict[str, Any] = {"namespace": session.namespace, "user_id": session.user_id}
    await rig.remember(record(f"{OLD} {name}", f"old-{name}", **owner))
    (old,) = await rig.rt[MemoryStore].find(SCOPE, [f"old-{name}"])
    assert old is not None
    source: dict[str, Any] = {"session_id": session.session_id, "extracted_from": [message]}
    evidence = [Evidence(source="user", session_id=session.session_id, message_ids=[message], quote=SAID)]
    new = record(f"{NEW} {name}", name, evidence=evidence, **owner, **source)
    outcome = await rig.rt[MemoryCommits].commit(SCOPE, [Supersede([old], new)], ChangeOrigin("tests"), review=True)
    assert outcome.changes[0] is not None
    return outcome.changes[0]


async def proposals(rig: Rig) -> list[str]:
    return [change.id for change in (await rig.rt[HistoryService].read_changes(SCOPE, {"st": "proposed"}, None, 0, 10)).changes]


async def facts(rig: Rig) -> set[str]:
    return {memory.id for memory in await rig.stored() if memory.memory_type != "message"}


async def source_of(rig: Rig, text: str) -> tuple[SessionRef, str]:
    """Return the session and the id of the message with this text."""
    memory = next(memory for memory in await rig.stored() if memory.text == text)
    assert memory.extracted_from is not None
    return SessionRef(memory.session_id or "", memory.namespace, memory.user_id), memory.extracted_from[0]


async def session(rig: Rig, http: httpx.AsyncClient) -> tuple[SessionRef, str]:
    body = {"messages": [{"role": "user", "content": SAID}], "user_id": "ana", "agent_id": "coach"}
    await call(http, "POST", "/v1/working-memory/s/messages", json=body)
    await rig.work()
    return await source_of(rig, SAID)


async def file(rig: Rig, http: httpx.AsyncClient, text: str = SAID) -> tuple[SessionRef, str]:
    await call(http, "POST", "/v1/files", params={"user_id": "ana", "name": "notes.md"}, content=text.encode())
    await rig.work(DueKind.ORDER)
    return await source_of(rig, text)


async def run(rig: Rig, http: httpx.AsyncClient) -> tuple[SessionRef, str]:
    body = {"messages": [{"role": "user", "content": SAID}], "user_id": "ana", "run_id": "s"}
    await call(http, "POST", "/v3/memories/add/", json=body)
    await rig.work()
    return await source_of(rig, SAID)


async def document(rig: Rig, http: httpx.AsyncClient) -> tuple[SessionRef, str]:
    await call(http, "POST", "/v3/documents", json={"content": SAID, "containerTag": "ana", "customId": "doc"})
    await rig.work()
    return await source_of(rig, SAID)


@pytest.mark.parametrize(
    ("add", "method", "path"),
    [
        (session, "DELETE", "/v1/working-memory/s?user_id=ana&memories=true"),
        (session, "DELETE", "/v1/agents/coach"),
        (file, "DELETE", "/v1/files/{session}?user_id=ana"),
        (run, "DELETE", "/v1/memories/?user_id=ana&run_id=s"),
        (run, "DELETE", "/v1/memories/?run_id=s"),
        (document, "DELETE", "/v3/documents/doc"),
    ],
    ids=["session", "agent", "file", "mem0-of-user", "mem0", "supermemory"],
)
async def test_erasure_ends_proposals_made_of_the_erased_data(rig: Rig, http: httpx.AsyncClient, add: Any, method: str, path: str) -> None:
    ref, message = await add(rig, http)
    erased, kept = await propose(rig, ref, message), await propose(rig, replace(ref, session_id="other"), "m1", "kept")
    of_other = await propose(rig, replace(ref, user_id="bob"), message, "other-user")
    await call(http, method, path.format(session=ref.session_id))
    await rig.work(DueKind.DELETION)
    of_all_users = path.endswith("/?run_id=s")
    assert set(await proposals(rig)) == ({kept} if of_all_users else {kept, of_other})
    with pytest.raises(Conflict):
        await rig.rt[HistoryService].approve_proposal(SCOPE, erased)
    assert await facts(rig) == {"old-new", "old-kept", "old-other-user"}
    hashes = [await rig.rt.client.hgetall(rig.keys.root + key) for key in await rig.raw_keys() if key.startswith("ch:")]
    assert not any(f"{NEW} new".encode() in value for fields in hashes for value in fields.values())


async def test_new_version_of_a_file_ends_only_proposals_of_the_old_version(rig: Rig, http: httpx.AsyncClient) -> None:
    ref, message = await file(rig, http)
    await propose(rig, ref, message)
    _, new_message = await file(rig, http, "I moved to Rome.")
    assert await proposals(rig) == []
    kept = await propose(rig, ref, new_message, "kept")
    await file(rig, http, "I moved to Rome.")
    assert await proposals(rig) == [kept]


async def test_erasure_of_a_session_without_a_user_ends_its_proposals(rig: Rig, http: httpx.AsyncClient) -> None:
    message = {"id": "m1", "role": "user", "content": SAID}
    await call(http, "POST", "/v1/working-memory/s/messages", json={"messages": [message]})
    await propose(rig, SessionRef("s", None, None), "m1")
    kept = await propose(rig, SessionRef("s", None, "ana"), "m1", "kept")
    await call(http, "DELETE", "/v1/working-memory/s?memories=true")
    await rig.work(DueKind.DELETION)
    assert await proposals(rig) == [kept]


@pytest.mark.parametrize(
    ("add", "path"),
    [
        (session, "/v1/working-memory/s?user_id=ana&memories=true"),
        (run, "/v1/memories/?run_id=s"),
        (file, "/v1/files/{session}?user_id=ana"),
    ],
)
async def test_undo_of_a_forget_request_restores_no_proposal_of_an_erased_session(
    rig: Rig, http: httpx.AsyncClient, add: Any, path: str
) -> None:
    ref, message = await add(rig, http)
    await propose(rig, ref, message)
    await rig.remember(record(f"{NEW} old", "stated-before", namespace=ref.namespace, user_id="ana"))
    receipt = (await call(http, "POST", "/v1/memory/forget", json={"text": NEW, "user_id": "ana"}))["receipt_id"]
    assert await proposals(rig) == []
    await call(http, "DELETE", path.format(session=ref.session_id))
    await rig.work(DueKind.DELETION)
    assert (await http.post(f"/v1/memory/forget/{receipt}/undo")).status_code == 404
    assert await proposals(rig) == []


@pytest.mark.parametrize("chosen", ["message", "fact"])
async def test_forgetting_by_ids_deletes_proposals_based_on_the_chosen_memories(rig: Rig, http: httpx.AsyncClient, chosen: str) -> None:
    ref, message = await session(rig, http)
    (said,) = await rig.stored()
    evidence = [Evidence(source="user", session_id="s", message_ids=[message])]
    await rig.remember(record("Ana moved", "fact", user_id="ana", session_id="s", evidence=evidence))
    await propose(rig, ref, message)
    kept = await propose(rig, ref, "another-message", "kept")
    ids = [said.id if chosen == "message" else "fact"]
    receipt = (await call(http, "POST", "/v1/memory/forget", json={"ids": ids, "user_id": "ana"}))["receipt_id"]
    assert await proposals(rig) == [kept]
    await call(http, "POST", f"/v1/memory/forget/{receipt}/undo")
    assert len(await proposals(rig)) == 2


async def test_forgetting_by_ids_deletes_proposals_that_cite_the_chosen_fact(rig: Rig, http: httpx.AsyncClient) -> None:
    await rig.remember(record("Ana moved", "fact", user_id="ana"), record(OLD, "old", user_id="ana"))
    (old,) = await rig.rt[MemoryStore].find(SCOPE, ["old"])
    assert old is not None
    new = record(NEW, "new", user_id="ana", evidence=[Evidence(source="user", memory_id="fact")])
    await rig.rt[MemoryCommits].commit(SCOPE, [Supersede([old], new)], ChangeOrigin("tests"), review=True)
    await call(http, "POST", "/v1/memory/forget", json={"ids": ["fact"], "user_id": "ana"})
    assert await proposals(rig) == []
