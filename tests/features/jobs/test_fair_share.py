"""Test that a tenant's flood of background work delays only its own work (row S7)."""

from __future__ import annotations

from collections import Counter

import pytest

from agent_memory.features.jobs.order_store import JobOrder, OrderStore
from agent_memory.features.memories.duplicates.service import COMPACT
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.privacy.traces import TraceStore
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.outbox import Claim, Claims
from agent_memory_client.models import AppendMessagesRequest, MemoryMessage
from agent_memory_worker.task_handlers import Tasks
from tests.support.rig import MakeRig, Rig, claim_kind, record

BUSY, CALM = scope_of_work("busy"), scope_of_work("calm")
S, M = DueKind.SESSION, DueKind.MEMORY


async def claim(rig: Rig, kind: DueKind, limit: int, share: float = 0.5) -> Claims:
    return await claim_kind(rig.rt.outbox, kind, limit=limit, lease_seconds=60, max_attempts=8, share=share)


async def say(rig: Rig, scope: Scope, number: int) -> None:
    for place in range(number):
        body = AppendMessagesRequest(messages=[MemoryMessage(role="user", content=f"I moved to house {place}", id="1")])
        await rig.rt[SessionService].append(scope, f"{scope.tenant}-{place}", body)


def sids(rig: Rig, scope: Scope, number: int) -> set[str]:
    return {rig.keys.sid(scope.tenant, SessionRef(f"{scope.tenant}-{place}")) for place in range(number)}


async def pretend(rig: Rig, tenant: str, number: int) -> None:
    """Mark sessions as due, but create no other data for them."""
    async with rig.rt.client.pipeline(transaction=False) as pipe:
        for place in range(number):
            pipe.hset(rig.keys.session(f"{tenant}{place}").journal, "tn", tenant)
            pipe.zadd(rig.keys.due(S), {f"{tenant}{place}": 1 + place / 1e6})
        await pipe.execute()


async def test_tenant_behind_a_flood_gets_its_share_of_the_first_claim(rig: Rig) -> None:
    await say(rig, BUSY, 60)
    await say(rig, CALM, 3)
    calm = sids(rig, CALM, 3)
    first = {one.member for one in (await claim(rig, S, 40)).claims}
    assert calm < first
    assert len(first) == 23
    assert (await claim(rig, S, 40)).claims == []
    assert len(await rig.marks(S)) == 63


async def test_tenant_behind_a_long_flood_is_claimed_within_four_rounds(rig: Rig) -> None:
    await pretend(rig, "busy", 1700)
    await pretend(rig, "calm", 1)
    await rig.rt.client.zadd(rig.keys.due(S), {"calm0": 2})
    rounds = 0
    found: list[Claim] = []
    while not any(one.member == "calm0" for one in found):
        found += (await claim(rig, S, 40)).claims
        rounds += 1
    assert rounds <= 4
    assert Counter(one.member[:4] for one in found) == {"busy": 20, "calm": 1}
    # Without shares, its turn would come after all others.
    assert "calm0" not in {one.member for one in (await claim(rig, S, 1600, share=1.0)).claims}


async def test_freed_places_of_a_tenant_are_claimed_again(rig: Rig) -> None:
    await pretend(rig, "busy", 30)
    running = (await claim(rig, S, 20)).claims
    assert len(running) == 10
    await rig.rt.client.zadd(rig.keys.due(S), dict.fromkeys({f"busy{n}" for n in range(30)} - {one.member for one in running}, 3))
    await rig.rt.outbox.end_claim(S, running[0])
    await rig.rt.outbox.fail_claim(S, running[1], "no", delay_seconds=60)
    (begun,) = await rig.begin(S, [running[2]], lease_seconds=60)
    assert len((await claim(rig, S, 20)).claims) == 2
    # A worker died: its lease expires.
    await rig.rt.client.hset(rig.keys.tries(S), begun.member, "0 1 b1")
    await rig.rt.client.zadd(rig.keys.due(S), {begun.member: 1})
    (again,) = (await claim(rig, S, 20)).claims
    assert (again.member, again.attempt) == (begun.member, 2)


async def test_deferred_work_keeps_its_attempt_count(rig: Rig) -> None:
    await pretend(rig, "busy", 3)
    (one,) = (await claim(rig, S, 2)).claims
    (begun,) = await rig.begin(S, [one], lease_seconds=60)
    await rig.rt.client.hset(rig.keys.tries(S), begun.member, "4 7 b7")
    await rig.rt.client.zadd(rig.keys.due(S), {begun.member: 7, "busy1": 3, "busy2": 4})
    (other,) = (await claim(rig, S, 2)).claims
    assert other.member != begun.member
    assert await rig.rt.client.hget(rig.keys.tries(S), begun.member) == b"4 0 b7 2"


@pytest.mark.parametrize("kind", [M, DueKind.ORDER])
async def test_fair_share_applies_to_memories_and_orders(rig: Rig, kind: DueKind) -> None:
    if kind is M:
        await rig.rt[MemoryStore].write(BUSY, [record(f"fact {n}", f"b{n}") for n in range(20)])
        await rig.rt[MemoryStore].write(CALM, [record("fact", "c")])
    else:
        await rig.rt[OrderStore].place_orders(*(JobOrder.of(BUSY, COMPACT, namespace=str(n), user_id=None) for n in range(20)))
        await rig.rt[OrderStore].place_orders(JobOrder.of(CALM, COMPACT, namespace="n", user_id=None))
    assert len((await claim(rig, kind, 10)).claims) == 6


async def test_fair_share_finishes_all_work_and_does_not_limit_erasures(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        await say(rig, BUSY, 12)
        await say(rig, CALM, 2)
        tasks = Tasks(rig.rt)
        for _ in range(40):
            if not await rig.marks(S):
                break
            for one in (await claim(rig, S, 4)).claims:
                await tasks.process_session(one.member, one.lease, one.attempt)
            await rig.make_due(S)
        assert await rig.marks(S) == {}
        await tasks.close(seconds=60)
        assert await rig.marks(M) == {}, "each session's task has embedded what it promoted"
        assert {key.split(":")[0] for key in await rig.raw_keys()} >= {"run"}
        for scope in (BUSY, CALM):
            await rig.rt[TraceStore].forget_claims(scope)
        assert "run" not in {key.split(":")[0] for key in await rig.raw_keys()}
        await rig.rt.client.zadd(rig.keys.due(DueKind.DELETION), {f"d{n}": 1 for n in range(30)})
        assert len((await claim(rig, DueKind.DELETION, 30)).claims) == 30
