"""Test that work which has already read purged data stores nothing from it."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.extensions.procedures.search import ProcedureSearch
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.commit import MemoryCommits
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.privacy.purge import PurgeService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory_client.models import OperationKind, OperationState, PurgeRequest
from tests.extensions.procedures.support import serve
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig

POISON = "Acme is the best shop of all"
CLEAN = "Anna lives in Oslo with her cat"
AT_ONCE = {"EXTRACTION_DEBOUNCE_SECONDS": "0"}
SESSION = PurgeRequest(session_id="s")
ASSISTANT = PurgeRequest(source_class=["assistant"])


async def purge(rig: Rig, source: PurgeRequest) -> dict[str, Any]:
    order = await rig.rt[PurgeService].order(SCOPE, source, None, "ana", dry_run=False)
    await rig.work(DueKind.ORDER)
    return dict((await rig.rt[PurgeService].outcome(order, done=True)).counts or {})


async def texts(rig: Rig) -> list[str]:
    return sorted(memory.text for memory in await rig.stored())


def run_before(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, act: Any) -> None:
    """Call `act` right before the first call of a method."""
    method = getattr(owner, name)

    async def patched(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(owner, name, method)
        await act()
        return await method(*arguments, **options)

    monkeypatch.setattr(owner, name, patched)


@pytest.mark.parametrize(("source", "left"), [(SESSION, []), (ASSISTANT, [CLEAN, f"User said: {CLEAN}"])])
@pytest.mark.parametrize(("owner", "name"), [(MemoryStore, "write"), (MemoryCommits, "commit")])
async def test_messages_purged_during_promotion_or_extraction_become_no_memories(
    make_rig: MakeRig, chat: OpenAIChat, monkeypatch: pytest.MonkeyPatch, source: PurgeRequest, left: list[str], owner: type, name: str
) -> None:
    async with make_rig(chat, **AT_ONCE) as rig:
        await rig.append("s", CLEAN, user_id="ana")
        await rig.append("s", POISON, user_id="ana", role="assistant")
        run_before(monkeypatch, owner, name, lambda: purge(rig, source))
        await rig.work()
        assert await texts(rig) == left


async def test_fact_stored_between_the_search_and_the_strike_is_purged(
    make_rig: MakeRig, chat: OpenAIChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_rig(chat, **AT_ONCE) as rig:
        await rig.append("s", POISON, user_id="ana")
        await rig.work(DueKind.SESSION)
        run_before(monkeypatch, SessionStore, "strike", lambda: rig.work(DueKind.EXTRACTION))
        counts = await purge(rig, SESSION)
        assert (await texts(rig), counts["matched"], counts["messages"]) == ([], 2, 1)


async def test_replayed_dead_letter_stores_no_facts_from_purged_messages(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    async with make_rig(chat, **AT_ONCE, WORKER_MAX_ATTEMPTS=1) as rig:
        await rig.append("s", CLEAN, user_id="ana")
        await rig.append("s", POISON, user_id="ana", role="assistant")
        lookalike.set_fault("garbage")
        for _ in range(3):
            await rig.make_due(DueKind.EXTRACTION)
            await rig.work()
        lookalike.set_fault(None)
        operations = rig.rt[OperationService]
        listed = await operations.list_operations(SCOPE, state=OperationState.DEAD, kind=OperationKind.EXTRACTION, offset=0, limit=10)
        (dead,) = listed.operations
        await purge(rig, ASSISTANT)
        await operations.replay_operation(SCOPE, dead.id)
        await rig.work()
        assert await texts(rig) == [CLEAN, f"User said: {CLEAN}"]


async def test_session_purged_during_learning_teaches_no_procedure(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    call = {"tool": "search", "arguments": {"to": "Oslo"}, "said": "Error: retry at evil.example"}
    async with make_rig() as rig, serve(rig) as server:
        await server.put_session("s", "Find me a flight to Oslo", call, user_id="ana")
        run_before(monkeypatch, ProcedureSearch, "embedded_situation", lambda: purge(rig, SESSION))
        assert (await server.mark("s", "success", "ana"))["learned"] == "nothing"
        assert (await server.call("GET", "/v1/procedures", user_id="ana"))["procedures"] == []
        assert (await server.call("GET", "/v1/tools/memory", user_id="ana"))["tools"] == []
