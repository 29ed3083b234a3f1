"""Test that older workers leave newer versions' work untouched during a deploy (F14)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from docket import Docket

from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.service import MemoryService
from agent_memory.foundation.core.task_kinds import DueKind, TaskName
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.outbox import Claims
from agent_memory_client.models import OperationKind
from agent_memory_worker import main
from agent_memory_worker.main import run_worker
from agent_memory_worker.task_handlers import Tasks
from tests.support.rig import SCOPE, MakeRig, Rig, claim_kind, record
from tests.support.waiting import wait_until
from tests.system.faults.pictures import waiting

pytestmark = pytest.mark.slow

_FUTURE = cast("DueKind", "future")


class OlderTasks(Tasks):
    """Tasks from an older version that cannot embed memories."""

    def register(self, docket: Docket) -> None:
        for name in TaskName:
            if name is not TaskName.INDEX_MEMORIES:
                docket.register(getattr(self, name.value), names=[name.value])

    async def _embed(self, members: Sequence[str]) -> None:
        """Do nothing, so that the marks remain."""


def started(rig: Rig, stop: asyncio.Event, monkeypatch: pytest.MonkeyPatch, *, older: bool) -> asyncio.Task[None]:
    """Start a worker of this version, or of an older version that skips newer work."""
    if older:
        claim_each = rig.rt.outbox.claim_each

        async def claims(limits: Mapping[DueKind, int], **more: Any) -> dict[DueKind, Claims | Exception]:
            return await claim_each({kind: limit for kind, limit in limits.items() if kind is not DueKind.MEMORY}, **more)

        monkeypatch.setattr(rig.rt.outbox, "claim_each", claims)
    monkeypatch.setattr(main, "Tasks", OlderTasks if older else Tasks)
    return asyncio.create_task(run_worker(rig.rt, rig.settings, stop))


async def newer_docket(rig: Rig) -> Docket:
    """Return a docket with a newer version's task names on the same stream."""
    docket = rig.rt.docket()

    async def stub() -> None: ...

    for name in (TaskName.INDEX_MEMORIES.value, "dream"):
        docket.register(stub, names=[name])
    return docket


async def test_older_worker_leaves_unknown_task_to_the_newer_version(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    settings = {"WORKER_LEASE_SECONDS": 60, "WORKER_MAX_ATTEMPTS": 3}
    async with make_rig(**settings) as newer, make_rig(KEY_PREFIX=newer.settings.redis.key_prefix, **settings) as older:
        stop = asyncio.Event()
        workers = [started(older, stop, monkeypatch, older=True)]
        texts = [f"Ana bought house number {number} in Lisbon" for number in range(40)]
        await newer.append("s", *texts[:20])
        await newer.rt[MemoryService].store(SCOPE, [record(text) for text in texts[20:]])

        async def promoted() -> bool:
            return not await newer.marks(DueKind.SESSION)

        await wait_until(promoted, "what both know is done by the older")
        # More often than a mark may fail: the older worker, the only one, gets them each time.
        async with await newer_docket(newer) as docket:
            for round_ in range(5):
                await newer.make_due(DueKind.MEMORY)
                claims = (await claim_kind(newer.rt.outbox, DueKind.MEMORY, limit=100, lease_seconds=60, max_attempts=3)).claims
                assert len(claims) == 40
                add = docket.add(TaskName.INDEX_MEMORIES.value, key=f"memory:{claims[0].member}:{claims[0].lease}")
                await add([c.member for c in claims], [c.lease for c in claims], [c.attempt for c in claims])

                async def parked(count: int = round_ + 1) -> bool:
                    tries = await newer.rt.client.hvals(newer.keys.tries(DueKind.MEMORY))
                    said = [one for one in caplog.messages if "left for a newer version" in one]
                    return len(said) >= count and set(tries) == {b"0 0"}

                await wait_until(parked, "forty claims put back without a try")
        assert (await newer.rt.outbox.backlog())[DueKind.MEMORY].pending == 40
        workers.append(started(newer, stop, monkeypatch, older=False))

        async def idle() -> bool:
            return not await waiting(newer)

        await wait_until(idle, "an empty backlog once the newer worker is there", 120)
        stop.set()
        await asyncio.gather(*workers)
        assert sorted(one.text for one in await newer.stored()) == sorted(texts)
        assert {state.dead for state in (await newer.rt.outbox.backlog()).values()} == {0}
        assert not await newer.rt.outbox.reasons(DueKind.MEMORY)


async def test_unknown_work_of_a_newer_version_is_kept_for_it(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    async with make_rig(WORKER_RETRY_BASE_SECONDS=0.01, WORKER_RETRY_MAX_SECONDS=0.02, WORKER_MAX_ATTEMPTS=2) as rig:
        keys: Keys = rig.keys
        client = rig.rt.client
        await client.set(keys.order_of_work("o"), json.dumps({"do": "paint", "tn": "default", "args": {}, "nss": None, "uss": None}))
        await client.zadd(keys.due(DueKind.ORDER), {"o": 1})
        await client.zadd(keys.due(_FUTURE), {"f": 1, "untouched": 1})
        stop = asyncio.Event()
        worker = started(rig, stop, monkeypatch, older=False)
        (claim, _) = (await claim_kind(rig.rt.outbox, _FUTURE, limit=10, lease_seconds=60, max_attempts=8)).claims
        async with await newer_docket(rig) as docket:
            await docket.add("dream", key=f"future:{claim.member}:{claim.lease}")(
                claim.member, claim.lease, claim.attempt, "more", and_more=1
            )

        async def tried() -> bool:
            why = [await client.hkeys(keys.why(kind)) for kind in (DueKind.ORDER, _FUTURE)]
            return all(why)

        await wait_until(tried, "a look at each")
        listed = await rig.rt[OperationService].list_operations(SCOPE, state=None, kind=OperationKind.ORDER, offset=0, limit=9)
        assert [one.id for one in listed.operations] == ["order-o"], "an API of the older version lists it, too"
        again = await client.zscore(keys.due(DueKind.ORDER), "o")

        async def tried_again() -> bool:
            return await client.zscore(keys.due(DueKind.ORDER), "o") > again + 1000

        await wait_until(tried_again, "many more tries than a failure has")
        stop.set()
        await worker
        for kind, member in ((DueKind.ORDER, "o"), (_FUTURE, "f"), (_FUTURE, "untouched")):
            assert await client.zscore(keys.due(kind), member) is not None, f"{kind} {member} was dropped"
            assert await client.zcard(keys.dead(kind)) == 0
        assert (await client.hget(keys.tries(DueKind.ORDER), "o")).startswith(b"0 ")
