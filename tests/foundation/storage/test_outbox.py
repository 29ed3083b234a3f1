"""Test the outbox, including claims, leases, failures, dead letters, and marks set during work."""

from __future__ import annotations

from itertools import count

import pytest

from agent_memory.features.sessions.session_write import NewMessage, SessionWrite
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.outbox import Claim
from agent_memory_client.models import MemoryMessage
from tests.support.rig import SCOPE, Rig, gathered

S, X = DueKind.SESSION, DueKind.EXTRACTION
REF = SessionRef("s")


async def write(rig: Rig, text: str, **more: int) -> None:
    new = NewMessage(MemoryMessage(role="user", content=text, id=text), 1)
    await rig.rt[SessionStore].write(SCOPE, REF, SessionWrite("append", [new], **more))  # pyright: ignore[reportArgumentType]


_LEASES = count(60)


async def begun(rig: Rig, kind: DueKind = S) -> Claim:
    """Claim and start the only mark, and return its claim."""
    claims = await rig.begin(kind, await rig.claim(kind), lease_seconds=next(_LEASES))
    assert len(claims) == 1
    return claims[0]


async def test_mark_is_claimed_once_and_removed_when_done(rig: Rig) -> None:
    await write(rig, "a")
    found = await gathered(rig.claim(S) for _ in range(10))
    assert sorted(len(claims) for claims in found) == [0] * 9 + [1]
    claim = next(claims[0] for claims in found if claims)
    assert claim.member == rig.sid(REF)
    assert (await rig.rt.outbox.backlog())[S].pending == 1
    (claim,) = await rig.begin(S, [claim], lease_seconds=60)
    assert await rig.rt.outbox.end_claim(S, claim)
    assert (await rig.rt.outbox.backlog())[S].pending == 0
    assert not {key for key in await rig.raw_keys() if key.startswith(("try:", "why:", "dead:", "due:"))}


async def test_expired_lease_is_claimed_again(rig: Rig) -> None:
    await write(rig, "a")
    first = await begun(rig)
    assert await rig.claim(S) == []
    await rig.make_due(S)
    second = await begun(rig)
    assert (first.attempt, second.attempt) == (1, 2)
    # The first worker was only slow: its end must not end the second claim.
    assert not await rig.rt.outbox.end_claim(S, first)
    await rig.rt.outbox.fail_claim(S, first, "late", delay_seconds=0)
    assert await rig.claim(S) == []
    assert await rig.rt.outbox.end_claim(S, second)


async def test_work_of_a_silent_worker_is_due_within_one_lease(rig: Rig) -> None:
    """Another worker can take over the work whether it was only claimed or already started."""
    await write(rig, "figs")
    (claim,) = await rig.claim(S, lease_seconds=5)
    for sign in ("claimed", "begun"):
        if sign == "begun":
            (claim,) = await rig.begin(S, [claim], lease_seconds=5)
        (due,) = (await rig.marks(S)).values()
        seconds, micros = await rig.rt.client.time()
        assert due == claim.lease, sign
        assert due / 1000 - (seconds + micros / 1e6) <= 5.01, sign


async def test_mark_set_during_the_work_is_due_again_afterwards(rig: Rig) -> None:
    await write(rig, "a")
    claim = await begun(rig)
    await write(rig, "b")
    assert await rig.claim(S) == [], "nobody else works on it meanwhile"
    assert not await rig.rt.outbox.end_claim(S, claim)
    again = await begun(rig)
    assert again.attempt == 1
    assert await rig.rt.outbox.end_claim(S, again)


async def test_work_outliving_its_lease_continues_and_is_due_once_more(rig: Rig) -> None:
    await write(rig, "a")
    claim = await begun(rig)
    for _ in range(12):
        await rig.make_due(S)
        (overdue,) = await rig.claim(S)
        assert overdue.overdue
    assert not await rig.rt.outbox.end_claim(S, claim)
    again = await begun(rig)
    assert again.attempt == 1, "that it took long is no failure"
    assert await rig.rt.outbox.end_claim(S, again)


async def test_failed_work_outliving_its_lease_waits_for_its_delay(rig: Rig) -> None:
    await write(rig, "a")
    claim = await begun(rig)
    await rig.make_due(S)
    assert len(await rig.claim(S)) == 1
    await rig.rt.outbox.fail_claim(S, claim, "no", delay_seconds=60)
    assert await rig.claim(S) == []
    assert (await rig.rt.outbox.reasons(S)) == {claim.member: "no"}


async def test_work_put_back_is_due_again_without_a_counted_attempt(rig: Rig) -> None:
    await write(rig, "a")
    await rig.rt.outbox.fail_claim(S, await begun(rig), "no", delay_seconds=0)
    (claim,) = await rig.claim(S)
    await rig.rt.outbox.put_back(S, claim, delay_seconds=0)
    (again,) = await rig.claim(S)
    assert (again.attempt, again.overdue) == (claim.attempt, False)
    assert await rig.rt.outbox.reasons(S) == {claim.member: "no"}


async def test_a_busy_session_is_never_given_up(rig: Rig) -> None:
    """Writes during long work are not failed attempts."""
    await write(rig, "first", extract_after_ms=0, extract_within_ms=0)
    claims = {kind: await begun(rig, kind) for kind in (S, X)}
    for number in range(30):
        await write(rig, f"m{number}", extract_after_ms=0, extract_within_ms=0)
        for kind in (S, X):
            found = await rig.claims(kind)
            assert (found.claims, found.given_up) == ([], 0)
    for kind, claim in claims.items():
        assert not await rig.rt.outbox.end_claim(kind, claim)
        assert (await begun(rig, kind)).attempt == 1
        assert (await rig.rt.outbox.backlog())[kind].dead == 0


async def test_lease_expiring_before_the_start_counts_no_attempt(rig: Rig) -> None:
    """In a long queue, leases can expire before a worker starts. That is not a failure."""
    await write(rig, "a")
    for _ in range(20):
        found = await rig.claims(S)
        assert (len(found.claims), found.given_up) == (1, 0)
        await rig.make_due(S)
    assert (await begun(rig)).attempt == 1


async def test_work_that_kills_its_workers_becomes_dead_and_can_recover(rig: Rig) -> None:
    await write(rig, "a")
    (claim,) = await rig.claim(S, max_attempts=3)
    for attempt in range(1, 4):
        (started,) = await rig.begin(S, [claim], max_attempts=3)
        assert started.attempt == attempt
        # The worker dies; docket delivers the same message again, or the lease ends first.
        if attempt == 2:
            await rig.make_due(S)
            (claim,) = await rig.claim(S, max_attempts=3)
            assert claim.overdue
    assert await rig.begin(S, [claim], max_attempts=3) == []
    backlog = (await rig.rt.outbox.backlog())[S]
    assert (backlog.pending, backlog.dead) == (0, 1)
    assert "crashed the workers" in (await rig.rt.outbox.reasons(S))[rig.sid(REF)]
    assert await rig.claim(S) == []
    # New work on it is another attempt, and success removes it from the list.
    await write(rig, "b")
    claim = await begun(rig)
    assert claim.attempt == 1
    assert await rig.rt.outbox.end_claim(S, claim)
    assert (await rig.rt.outbox.backlog())[S].dead == 0
    assert await rig.rt.outbox.reasons(S) == {}


async def test_failed_work_is_due_after_its_delay_with_the_reason(rig: Rig) -> None:
    await write(rig, "a")
    claim = await begun(rig)
    await rig.rt.outbox.fail_claim(S, claim, "ModelAnswerInvalid: ü" + "x" * 5000, delay_seconds=100)
    assert await rig.claim(S) == []
    reason = (await rig.rt.outbox.reasons(S))[rig.sid(REF)]
    assert reason.startswith("ModelAnswerInvalid: ü")
    assert len(reason) == 1000
    await rig.make_due(S)
    assert (await begun(rig)).attempt == 2


async def test_forgiven_failure_counts_no_attempt(rig: Rig) -> None:
    await write(rig, "a")
    for _ in range(20):
        claim = await begun(rig)
        assert claim.attempt == 1
        await rig.rt.outbox.fail_claim(S, claim, "ModelUnavailable", delay_seconds=0, forgive=True)
        await rig.make_due(S)


async def test_write_after_a_failure_is_due_immediately(rig: Rig) -> None:
    await write(rig, "a")
    await rig.rt.outbox.fail_claim(S, await begun(rig), "x", delay_seconds=300)
    await write(rig, "b")
    assert (await begun(rig)).attempt == 2


async def test_extraction_debounce_has_a_maximum_delay(rig: Rig) -> None:
    times: list[float] = []
    for number in range(3):
        await write(rig, f"m{number}", extract_after_ms=10_000, extract_within_ms=10_001)
        times += (await rig.marks(X)).values()
    assert times == sorted(times)
    assert times[-1] <= times[0] + 1, "at most extract_within_ms after the first message"
    await write(rig, "m2", extract_after_ms=20_000, extract_within_ms=100_000)
    assert list((await rig.marks(X)).values()) == [times[-1]], "a repeat puts nothing off"


async def test_extraction_marked_during_the_work_keeps_its_debounce(rig: Rig) -> None:
    await write(rig, "a", extract_after_ms=0, extract_within_ms=0)
    claim = await begun(rig, X)
    await write(rig, "b", extract_after_ms=50_000, extract_within_ms=50_000)
    assert not await rig.rt.outbox.end_claim(X, claim)
    assert await rig.claim(X) == []
    (score,) = (await rig.marks(X)).values()
    assert score < claim.lease, "the debounce counts, not the lease"


async def test_claims_take_the_oldest_first_and_return_the_next_wait(rig: Rig) -> None:
    names = [f"{number:032x}" for number in range(30)]
    await rig.rt.client.zadd(rig.keys.due(S), {name: place + 1 for place, name in enumerate(names)})
    first = await rig.claims(S, limit=12)
    assert [claim.member for claim in first.claims] == names[:12]
    assert first.wait_ms == 0
    second = await rig.claims(S, limit=100)
    assert [claim.member for claim in second.claims] == names[12:]
    assert 50_000 < second.wait_ms <= 60_001
    assert (await rig.claims(X)).wait_ms == -1


async def test_marking_claimed_work_makes_it_due_again(rig: Rig) -> None:
    await rig.rt.outbox.mark_due(S, [])
    await rig.rt.outbox.mark_due(S, ["a", "b"])
    first = await rig.claim(S)
    assert {claim.member for claim in first} == {"a", "b"}
    held = await rig.begin(S, first, lease_seconds=60)
    await rig.rt.outbox.mark_due(S, ["a"])
    assert [await rig.rt.outbox.end_claim(S, claim) for claim in sorted(held, key=lambda claim: claim.member)] == [False, True]
    assert [claim.member for claim in await rig.claim(S)] == ["a"]


async def test_write_wakes_a_waiting_worker_once(rig: Rig) -> None:
    await write(rig, "a")
    await write(rig, "b")
    assert await rig.rt.client.llen(rig.keys.wake) == 1
    await rig.rt.outbox.wait_for_due(5)
    assert await rig.rt.client.llen(rig.keys.wake) == 0


async def test_backlog_reports_the_age_of_the_oldest_due_mark(rig: Rig) -> None:
    assert (await rig.rt.outbox.backlog())[S].oldest_seconds == 0
    await write(rig, "a", extract_after_ms=60_000, extract_within_ms=60_000)
    await rig.rt.client.zadd(rig.keys.due(S), {"old": 1})
    backlog = await rig.rt.outbox.backlog()
    assert backlog[S].oldest_seconds > 1e9
    assert (backlog[X].pending, backlog[X].oldest_seconds) == (1, 0)


@pytest.mark.parametrize("kind", list(DueKind))
async def test_ending_or_failing_an_unknown_claim_changes_nothing(rig: Rig, kind: DueKind) -> None:
    ghost = Claim("0" * 32, 12345, 1)
    assert await rig.begin(kind, [ghost], lease_seconds=60) == []
    assert await rig.rt.outbox.end_claim(kind, ghost)
    await rig.rt.outbox.fail_claim(kind, ghost, "x", delay_seconds=1, forgive=True)
    assert await rig.begin(kind, [], lease_seconds=60) == []
    assert not {key for key in await rig.raw_keys() if key.startswith(("try:", "why:", "dead:", "due:"))}
