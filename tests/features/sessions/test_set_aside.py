"""Test that extraction sets aside a batch that it cannot process.

Later messages are extracted. The batch itself can be replayed or dropped, once.
"""

from __future__ import annotations

import pytest

from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.errors import NotFound
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory_client.models import AppendMessagesRequest, MemoryMessage, OperationKind, OperationState, UpdateWorkingMemory
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig

X = DueKind.EXTRACTION
REF = SessionRef("s", "n", "ann")
OFF = {"EXTRACTION_DEBOUNCE_SECONDS": "0"}


async def says(rig: Rig, text: str) -> None:
    body = AppendMessagesRequest(messages=[MemoryMessage(role="user", content=text, id=text)], namespace="n", user_id="ann")
    await rig.rt[SessionService].append(SCOPE, "s", body)


async def facts(rig: Rig) -> list[str]:
    return sorted(one.text for one in await rig.stored() if one.memory_type != "message")


async def given_up(rig: Rig, lookalike: Lookalike) -> str:
    """Create a session whose extraction fails permanently, and return the dead operation's id."""
    await says(rig, "Anna lives in Oslo")
    await rig.work(DueKind.SESSION)
    lookalike.set_fault("garbage")
    for _ in range(10):
        await rig.make_due(X)
        await rig.work(X)
    lookalike.set_fault(None)
    listed = await rig.rt[OperationService].list_operations(
        SCOPE, state=OperationState.DEAD, kind=OperationKind.EXTRACTION, offset=0, limit=10
    )
    (dead,) = listed.operations
    assert (dead.session_id, dead.user_id, dead.namespace) == ("s", "ann", "n")
    assert dead.attempts == rig.rt.settings.worker.max_attempts
    assert dead.reason is not None
    assert "ModelAnswerInvalid" in dead.reason
    return dead.id


async def left(rig: Rig) -> list[str]:
    """Return the keys of pending work, except the followers' marks."""
    await rig.make_due(DueKind.FOLLOW)
    await rig.work(DueKind.FOLLOW)
    return sorted(key for key in await rig.raw_keys() if key.split(":")[0] in ("j", "jx", "wt", "due", "dead", "why", "try"))


async def test_dead_batch_does_not_block_later_messages_and_can_be_replayed_once(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike
) -> None:
    async with make_rig(chat, **OFF) as rig:
        await says(rig, "Greetings from the harbour of Bergen")
        await rig.work()
        operation = await given_up(rig, lookalike)
        calls = lookalike.calls["chat"]
        await rig.work()
        assert lookalike.calls["chat"] == calls, "what was given up costs nothing"
        await says(rig, "Ben lives in Rome")
        await rig.work()
        assert await facts(rig) == ["User said: Ben lives in Rome", "User said: Greetings from the harbour of Bergen"]
        await rig.rt[OperationService].replay_operation(SCOPE, operation)
        await rig.work()
        assert "User said: Anna lives in Oslo" in await facts(rig)
        assert len(await facts(rig)) == 3
        await rig.rt[SessionService].delete(SCOPE, "s", namespace="n", user_id="ann")
        assert await left(rig) == []
        with pytest.raises(NotFound):
            await rig.rt[OperationService].replay_operation(SCOPE, operation)


async def test_dead_batch_can_be_dropped(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    async with make_rig(chat, **OFF) as rig:
        operation = await given_up(rig, lookalike)
        await rig.rt[OperationService].drop_operation(SCOPE, operation)
        await says(rig, "Ben lives in Rome")
        await rig.work()
        assert await facts(rig) == ["User said: Ben lives in Rome"]
        assert not [key for key in await left(rig) if not key.startswith("j:")], "nothing waits; the live session keeps its journal"


async def test_a_batch_that_fails_again_stays_a_dead_letter(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    async with make_rig(chat, **OFF) as rig:
        operation = await given_up(rig, lookalike)
        await rig.rt[OperationService].replay_operation(SCOPE, operation)
        lookalike.set_fault("garbage")
        for _ in range(10):
            await rig.make_due(X)
            await rig.work(X)
        assert (await rig.rt[OperationService].get_operation(SCOPE, operation)).state is OperationState.DEAD
        lookalike.set_fault(None)
        await rig.rt[OperationService].replay_operation(SCOPE, operation)
        await rig.work()
        assert await facts(rig) == ["User said: Anna lives in Oslo"]


@pytest.mark.parametrize("how", ["session", "memories", "user"])
async def test_dead_batch_is_deleted_with_its_session_or_user(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, how: str) -> None:
    """This holds even if the session has expired, because its pending batch outlives it."""
    async with make_rig(chat, **OFF) as rig:
        await given_up(rig, lookalike)
        if how == "session":
            await rig.rt[SessionService].delete(SCOPE, "s", namespace="n", user_id="ann")
            await rig.work()
        else:
            k = rig.keys.session(rig.sid(REF))
            await rig.rt.client.delete(k.meta, k.messages, k.ids, k.doc)
            await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, "n", "ann", "s" if how == "memories" else None))
            await rig.work(DueKind.DELETION)
            assert await rig.stored() == []
        assert await left(rig) == []


async def test_user_erasure_includes_unpromoted_messages_of_expired_sessions(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        for session, user, namespace in (("s", "ann", "n"), ("t", "ann", "o"), ("u", "ben", "n")):
            body = {"messages": [{"role": "user", "content": f"{session} figs"}], "user_id": user, "namespace": namespace}
            await rig.rt[SessionService].put(SCOPE, session, UpdateWorkingMemory.model_validate(body))
            k = rig.keys.session(rig.sid(SessionRef(session, namespace, user)))
            await rig.rt.client.delete(k.meta, k.messages, k.ids, k.doc)
        await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, "n", "ann", None))
        await rig.work(DueKind.DELETION)
        await rig.work()
        assert sorted(one.text for one in await rig.stored()) == ["t figs", "u figs"]
        assert not [key for key in await left(rig) if not key.startswith("dead")]


@pytest.mark.parametrize("live", [True, False])
async def test_setting_aside_and_settling_a_batch_twice_has_one_effect(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, live: bool
) -> None:
    """This can happen if the script's reply is lost or another worker is late."""
    async with make_rig(chat, **OFF) as rig:
        await says(rig, "Anna lives in Oslo")
        await rig.work(DueKind.SESSION)
        sid = rig.sid(REF)
        journal = await rig.rt[SessionStore].journal(sid, "je", 10)
        assert journal is not None
        if not live:
            k = rig.keys.session(sid)
            await rig.rt.client.delete(k.meta, k.messages, k.ids, k.doc)
        assert [await rig.rt[SessionStore].move_to_dead_batch(sid, journal, 1) for _ in range(3)] == [True, False, False]
        await rig.work()
        assert (await rig.rt.outbox.backlog())[X].dead == 1
        await rig.rt[OperationService].replay_operation(SCOPE, f"extraction-{sid}.0")
        await rig.work()
        assert await facts(rig) == ["User said: Anna lives in Oslo"]
        for _ in range(2):
            await rig.rt[SessionStore].settle(sid, SCOPE.tenant, "ann", batch=f"{sid}.0")
        assert bool([key for key in await left(rig) if key.startswith("j:")]) is live
        assert not [key for key in await left(rig) if not key.startswith("j:")]
