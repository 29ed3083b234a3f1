"""Test memory followers. Each change sets a mark, which is removed once the followers are done."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from agent_memory.features.memories.commit import AddEvidence, ChangeOrigin, Forget, MemoryCommits, Merge, Supersede
from agent_memory.features.memories.records import StoredMemory
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import Evidence
from agent_memory_worker.task_handlers import Tasks
from tests.support.rig import SCOPE, Rig, record

BY_TEST = ChangeOrigin("test")


class Recorder:
    """A follower that records the memories, and fails `failures` times."""

    def __init__(self) -> None:
        self.mids: list[str] = []
        self.failures = 0

    async def follow_memories(self, mids: Sequence[str]) -> None:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the follower fails")
        self.mids += mids


@pytest.fixture
async def follower(rig: Rig) -> AsyncGenerator[Recorder]:
    """Replace all followers of the rig's runtime."""
    recorder = Recorder()
    before = [*rig.rt.services.followers]
    rig.rt.services.followers[:] = [recorder]
    yield recorder
    rig.rt.services.followers[:] = before


async def followed(rig: Rig, follower: Recorder) -> set[str]:
    """Run the followers, and return the memories they received. Assert that no mark is left."""
    follower.mids.clear()
    await rig.make_due(DueKind.FOLLOW)
    await rig.work(DueKind.FOLLOW)
    assert not await rig.marks(DueKind.FOLLOW)
    return set(follower.mids)


def mid(rig: Rig, name: str) -> str:
    return rig.keys.mid(SCOPE.tenant, name)


async def test_followers_are_called_for_every_memory_change(rig: Rig, follower: Recorder) -> None:
    store, commits = rig.rt[MemoryStore], rig.rt[MemoryCommits]
    one, two, three = (mid(rig, name) for name in ("one", "two", "three"))

    async def read(name: str) -> StoredMemory:
        (memory,) = await store.find(SCOPE, [name])
        assert memory is not None
        return memory

    await store.write(SCOPE, [record("Ada likes tea", "one", user_id="ada"), record("Ada likes green tea", "two", user_id="ada")])
    assert await followed(rig, follower) == {one, two}
    await store.write(SCOPE, [record("Ada likes black tea", "one", user_id="ada")])
    assert await followed(rig, follower) == {one}
    await commits.commit(SCOPE, [AddEvidence(await read("one"), Evidence(session_id="s", message_ids=["m"]))], BY_TEST)
    assert await followed(rig, follower) == {one}
    await commits.commit(SCOPE, [Supersede([await read("one")], record("Ada likes coffee", "three", user_id="ada"))], BY_TEST)
    assert await followed(rig, follower) == {one, three}
    third = await read("three")
    await commits.commit(SCOPE, [Merge(third, third.record, [await read("two")])], BY_TEST)
    assert await followed(rig, follower) == {two, three}
    await commits.commit(SCOPE, [Forget(await read("three"))], BY_TEST)
    assert three in await followed(rig, follower)
    await store.delete_records(SCOPE, [record("Ada likes black tea", "one", user_id="ada")])
    assert await followed(rig, follower) == {one}


async def test_followers_are_called_when_an_expired_memory_is_swept(rig: Rig, follower: Recorder) -> None:
    store = rig.rt[MemoryStore]
    ends = datetime.now(UTC) + timedelta(seconds=0.2)
    await store.write(SCOPE, [record("Ada's ankle hurts", "ankle", user_id="ada", expires_at=ends)])
    await followed(rig, follower)
    await rig.rt.client.hset(rig.keys.memory(mid(rig, "ankle")), "z", "1")
    assert await store.sweep_memories([mid(rig, "ankle")]) == 1
    assert await followed(rig, follower) == {mid(rig, "ankle")}


async def test_followers_are_called_for_messages_of_users_only(rig: Rig, follower: Recorder) -> None:
    await rig.append("s", "I only train at home, there is no gym", user_id="ada")
    await rig.append("s", "You could train in the park as well", role="assistant", user_id="ada")
    await rig.work(DueKind.SESSION)
    memories = {memory.text: memory.id for memory in await rig.stored()}
    assert len(memories) == 2
    assert await followed(rig, follower) == {mid(rig, memories["I only train at home, there is no gym"])}


async def test_mark_stays_due_until_the_follower_succeeds(rig: Rig, follower: Recorder) -> None:
    await rig.rt[MemoryStore].write(SCOPE, [record("Ada likes tea", "one", user_id="ada")])
    follower.failures = 1
    await rig.make_due(DueKind.FOLLOW)
    for claim in await rig.claim(DueKind.FOLLOW):
        await Tasks(rig.rt).follow_memories([claim.member], [claim.lease], [claim.attempt])
    assert not follower.mids
    assert set(await rig.marks(DueKind.FOLLOW)) == {mid(rig, "one")}
    assert await followed(rig, follower) == {mid(rig, "one")}


async def test_followers_are_called_again_if_a_memory_changed_meanwhile(rig: Rig, follower: Recorder) -> None:
    store = rig.rt[MemoryStore]
    await store.write(SCOPE, [record("Ada likes tea", "one", user_id="ada")])
    await rig.make_due(DueKind.FOLLOW)
    claims = await rig.begin(DueKind.FOLLOW, await rig.claim(DueKind.FOLLOW))
    await store.write(SCOPE, [record("Ada likes coffee", "one", user_id="ada")])
    await rig.rt.outbox.end_claims(DueKind.FOLLOW, claims)
    assert await followed(rig, follower) == {mid(rig, "one")}
