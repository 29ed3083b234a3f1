"""The fair line: places and turns are shared between tenants, whoever sends how much."""

from __future__ import annotations

from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.api.turns import Turns

_STEPS = st.lists(st.tuples(st.sampled_from(["begin", "end", "give up", "overflow", "later"]), st.sampled_from("abc")), max_size=120)


@given(steps=_STEPS, limit=st.integers(1, 40))
def test_nobody_is_lost_or_overtaken_and_no_share_is_exceeded(steps: list[tuple[str, str]], limit: int) -> None:
    """Any course of requests that come, end, give up and are pushed out, against what a plain count of them says."""
    turns, now = Turns[int](fair=True), 0.0
    working: Counter[str] = Counter()
    lines: defaultdict[str, list[int]] = defaultdict(list)
    for number, (what, tenant) in enumerate(steps):
        if what == "later":
            now += 0.7
        elif what == "begin":
            turns.arrives(tenant, now)
            if turns.may_begin(tenant, limit, now):
                assert working.total() < limit
                turns.begins(tenant)
                working[tenant] += 1
            else:
                turns.waits(tenant, number)
                lines[tenant].append(number)
        elif what == "end" and working[tenant]:
            turns.ends(tenant)
            working[tenant] -= 1
        elif what == "give up" and lines[tenant]:
            turns.leaves(tenant, lines[tenant].pop(len(lines[tenant]) // 2))
        elif what == "overflow" and (pushed := turns.makes_room(tenant)) is not None:
            (loser,) = (each for each, line in lines.items() if pushed in line)
            assert lines[loser].pop() == pushed, "the last one of a line goes first"
            assert working[loser] + len(lines[loser]) > working[tenant] + len(lines[tenant]), "the pushed is left with more than the pusher"
        while (found := turns.next(limit, now)) is not None:
            whose, place = found
            assert lines[whose].pop(0) == place, "in the order in which they came"
            fewest = min((working[each] for each, line in lines.items() if line and each != whose), default=limit)
            assert working[whose] <= fewest, "who has least goes first"
            turns.begins(whose)
            working[whose] += 1
        assert turns.working == working.total() <= limit
        assert turns.waiting == sum(map(len, lines.values()))
        assert all(turns.under_way(each) == working[each] + len(lines[each]) for each in "abc")


def test_whoever_has_nothing_under_way_is_next_however_many_wait() -> None:
    turns = Turns[str](fair=True)
    for number in range(1000):
        turns.arrives("loud", 0.0)
        if turns.may_begin("loud", 16, 0.0):
            turns.begins("loud")
        else:
            turns.waits("loud", f"loud {number}")
    turns.arrives("quiet", 0.0)
    assert turns.may_begin("quiet", 16, 0.0), "some places are kept free"
    turns.begins("quiet")
    for tenant in ("quiet", "other"):
        turns.waits(tenant, f"{tenant}'s")
    turns.ends("loud")
    assert turns.next(16, 0.0) == ("other", "other's")
    turns.begins("other")
    assert turns.next(16, 0.0) == ("quiet", "quiet's")
    turns.begins("quiet")
    assert turns.next(16, 0.0) is None, "the loud one has more than its share of contested places"
    turns.ends("quiet")
    assert turns.next(16, 0.9) is None, "for a second after the others' last request"
    assert turns.next(16, 5.0) is not None, "alone again it has nearly all"


def test_who_competes_has_the_places_that_rivals_are_left() -> None:
    """The fewer, the later the loop is; one in any case, and all but the free ones for whoever is alone."""
    turns = Turns[int](fair=True)
    for name in ("quiet", "loud"):
        turns.arrives(name, 0.0)
    for contested, places in ((100, 8), (3, 3), (0, 1)):
        turns.contested = contested
        began = 0
        while turns.may_begin("loud", 32, 0.0):
            turns.begins("loud")
            began += 1
        assert began == places
        assert turns.may_begin("quiet", 32, 0.0)
        for _ in range(began):
            turns.ends("loud")
    turns.contested = 0
    began = 0
    while turns.may_begin("loud", 32, 2.0):
        turns.begins("loud")
        began += 1
    assert began == 28


def test_where_all_are_one_they_have_all_places_in_the_order_of_their_coming() -> None:
    turns = Turns[int](fair=False)
    for _ in range(4):
        turns.arrives("", 0.0)
        assert turns.may_begin("", 4, 0.0)
        turns.begins("")
    assert not turns.may_begin("", 4, 0.0)
    turns.waits("", 1)
    turns.waits("", 2)
    assert turns.makes_room("") is None
    assert not turns.is_new("")
    turns.ends("")
    assert turns.next(4, 0.0) == ("", 1)
