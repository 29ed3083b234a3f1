"""Test that the fair queue shares slots and turns between tenants."""

from __future__ import annotations

from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.interfaces.http.middleware.admission import FairQueue

_STEPS = st.lists(st.tuples(st.sampled_from(["begin", "end", "give up", "overflow", "later"]), st.sampled_from("abc")), max_size=120)


@given(steps=_STEPS, limit=st.integers(1, 40))
def test_queue_keeps_order_and_shares_under_any_sequence_of_events(steps: list[tuple[str, str]], limit: int) -> None:
    """Compare the queue with a simple model under random events."""
    queue, now = FairQueue[int](fair=True), 0.0
    working: Counter[str] = Counter()
    lines: defaultdict[str, list[int]] = defaultdict(list)
    for number, (what, tenant) in enumerate(steps):
        if what == "later":
            now += 0.7
        elif what == "begin":
            queue.note_arrival(tenant, now)
            queue.append(tenant, number)
            lines[tenant].append(number)
        elif what == "end" and working[tenant]:
            queue.end(tenant)
            working[tenant] -= 1
        elif what == "give up" and lines[tenant]:
            queue.remove(tenant, lines[tenant].pop(len(lines[tenant]) // 2))
        elif what == "overflow" and (pushed := queue.push_out(tenant)) is not None:
            (loser,) = (each for each, line in lines.items() if pushed in line)
            assert lines[loser].pop() == pushed, "the last one of a line goes first"
            assert working[loser] + len(lines[loser]) > working[tenant] + len(lines[tenant]), "the pushed is left with more than the pusher"
        while (first := queue.next(limit, now)) is not None:
            whose, turn = first
            assert lines[whose].pop(0) == turn, "in the order in which they came"
            fewest = min((working[each] for each, line in lines.items() if line and each != whose), default=limit)
            assert working[whose] <= fewest, "who has least goes first"
            working[whose] += 1
        assert queue.working == working.total() <= limit
        assert queue.waiting == sum(map(len, lines.values()))
        assert all(queue.under_way(each) == working[each] + len(lines[each]) for each in "abc")


def starts(queue: FairQueue[str], tenant: str, limit: int, now: float) -> bool:
    """True if a new request from a tenant starts at once. Otherwise, withdraw the request."""
    queue.append(tenant, "new")
    started = queue.next(limit, now)
    if started is None:
        queue.remove(tenant, "new")
    return started == (tenant, "new")


def test_idle_tenant_is_next_despite_a_long_queue() -> None:
    queue = FairQueue[str](fair=True)
    for number in range(1000):
        queue.note_arrival("loud", 0.0)
        queue.append("loud", f"loud {number}")
        queue.next(16, 0.0)
    queue.note_arrival("quiet", 0.0)
    assert starts(queue, "quiet", 16, 0.0), "some places are kept free"
    for tenant in ("quiet", "other"):
        queue.append(tenant, f"{tenant}'s")
    queue.end("loud")
    assert queue.next(16, 0.0) == ("other", "other's")
    assert queue.next(16, 0.0) == ("quiet", "quiet's")
    assert queue.next(16, 0.0) is None, "the loud one has more than its share of contested places"
    queue.end("quiet")
    assert queue.next(16, 0.9) is None, "for a second after the others' last request"
    assert queue.next(16, 5.0) is not None, "alone again it has nearly all"


def test_busy_tenant_gets_only_the_contested_slots_while_rivals_exist() -> None:
    """A busy tenant gets at least one slot. A lone tenant gets all except the reserved slots."""
    queue = FairQueue[str](fair=True)
    for name in ("quiet", "loud"):
        queue.note_arrival(name, 0.0)
    for contested, places in ((100, 8), (3, 3), (0, 1)):
        queue.contested = contested
        began = 0
        while starts(queue, "loud", 32, 0.0):
            began += 1
        assert began == places
        assert starts(queue, "quiet", 32, 0.0)
        queue.end("quiet")
        for _ in range(began):
            queue.end("loud")
    queue.contested = 0
    began = 0
    while starts(queue, "loud", 32, 2.0):
        began += 1
    assert began == 28


def test_unfair_queue_serves_all_slots_in_arrival_order() -> None:
    queue = FairQueue[str](fair=False)
    for _ in range(4):
        queue.note_arrival("", 0.0)
        assert starts(queue, "", 4, 0.0)
    assert not starts(queue, "", 4, 0.0)
    queue.append("", "first")
    queue.append("", "second")
    assert queue.push_out("") is None
    queue.end("")
    assert queue.next(4, 0.0) == ("", "first")
