"""Compare filters with plain Python conditions on records that are easy to confuse."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import pytest

from agent_memory.features.memories.store import MemoryStore, parse_hits
from agent_memory.foundation.core.clock import calendar_day, zone_of
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.search import filters, syntax
from agent_memory.foundation.storage.search.results import parse_listed
from agent_memory_client.models import MemoryRecord, SearchRequest
from tests.support.rig import SCOPE, Rig, record

HOSTILE = [
    *("*", "a*", "|", "a|b", "{}", "{*}", '"', "\\", "\\|", "-@t:{x}", "@u:{*}", "(", ")", "[", "]", "$q", "=>", "%", "~", ";", ","),
    *(
        "a",
        "A",
        "ab",
        "abc",
        " a",
        "a ",
        "a b",
        "a:b",
        "a/b",
        "ä",
        "Ä",
        "ß",
        "ss",
        "日本",
        "日",
        "😀",
        "None",
        "null",
        "61",
        "none",
        "x" * 250,
    ),
]
OTHER = Scope("other")


@pytest.fixture
async def found(rig: Rig) -> Callable[..., Any]:
    """Store records with hostile field values, and return a function that filters them."""
    records = [record("no fields", "none of all", memory_type="semantic")]
    for place, value in enumerate(HOSTILE):
        tags = [] if "," in value or not value.strip() else [value, f"t{place}"]
        more = {"user_id": value, "namespace": value, "session_id": value.replace("/", "_"), "extraction_strategy": value}
        records.append(record(f"text {place}", f"id{place}", topics=tags, entities=tags, **more))
    await rig.rt[MemoryStore].write(SCOPE, records)
    await rig.rt[MemoryStore].write(OTHER, records)

    async def ids(scope: Scope = SCOPE, **wanted: Any) -> set[str]:
        request = SearchRequest.model_validate(wanted)
        clause = filters.where(scope, request)
        replies = await read(rig.rt.client, lambda pipe: rig.rt[MemoryStore].queue_newest(pipe, clause, 0, 1000))
        hits = parse_listed(replies[0])
        stored = await rig.rt[MemoryStore].fetch_records(scope, [hit.mid for hit in hits.rows])
        assert all(one is not None for one in stored)
        assert hits.total == len(hits.rows)
        return {one.id for one in stored if one is not None}

    ids.records = records  # pyright: ignore[reportFunctionMemberAccess]
    return ids


def expected(records: list[MemoryRecord], test: Callable[[MemoryRecord], bool]) -> set[str]:
    return {one.id for one in records if test(one)}


@pytest.mark.parametrize("field", ["user_id", "namespace", "session_id", "extraction_strategy"])
async def test_identity_filters_match_exactly(found: Any, field: str) -> None:
    records = found.records
    for value in HOSTILE:
        if field == "session_id" and "/" in value:
            continue
        same = expected(records, lambda r, v=value: getattr(r, field) == v)
        assert len(same) == 1
        assert await found(**{field: {"eq": value}}) == same, value
        assert await found(**{field: {"ne": value}}) == expected(records, lambda r: True) - same, value
        assert await found(**{field: {"not_eq": value}}) == expected(records, lambda r: True) - same, value
        starts = expected(records, lambda r, v=value: (getattr(r, field) or "").startswith(v))
        assert await found(**{field: {"startswith": value}}) == starts, value
    some = HOSTILE[:5]
    among = expected(records, lambda r: getattr(r, field) in some)
    for operator in ("any", "in_"):
        assert await found(**{field: {operator: some}}) == among
    for operator in ("not_in", "none"):
        assert await found(**{field: {operator: some}}) == expected(records, lambda r: True) - among
    assert await found(**{field: {"all": [HOSTILE[0]]}}) == expected(records, lambda r: getattr(r, field) == HOSTILE[0])
    assert await found(**{field: {"all": HOSTILE[:2]}}) == set()
    assert await found(**{field: {"eq": "nobody"}}) == set()


@pytest.mark.parametrize("field", ["topics", "entities"])
async def test_tag_filters_ignore_case(found: Any, field: str) -> None:
    records = found.records

    def folded(one: MemoryRecord) -> set[str]:
        return {tag.casefold() for tag in getattr(one, field) or []}

    for value in HOSTILE:
        if not value.strip():
            continue
        v = value.casefold()
        has = expected(records, lambda r, v=v: v in folded(r))
        assert await found(**{field: {"eq": value}}) == has, value
        assert await found(**{field: {"none": [value]}}) == expected(records, lambda r: True) - has, value
        assert await found(**{field: {"startswith": value}}) == expected(records, lambda r, v=v: any(t.startswith(v) for t in folded(r))), (
            value
        )
    assert await found(**{field: {"all": ["a", "T21"]}}) == expected(records, lambda r: {"a", "t21"} <= folded(r))
    assert await found(**{field: {"all": ["a", "t0"]}}) == set()
    assert await found(**{field: {"any": ["a", "t0"]}}) == expected(records, lambda r: bool({"a", "t0"} & folded(r)))


async def test_all_operators_and_fields_of_a_filter_must_match(found: Any) -> None:
    everything = {one.id for one in found.records}
    assert await found(topics={"any": ["t0", "t1", "t3"], "none": ["t1"]}) == {"id0", "id3"}
    assert await found(topics={"any": ["t0", "t1"]}, user_id={"eq": HOSTILE[1]}) == {"id1"}
    assert await found(topics={"any": ["t0", "t1"]}, user_id={"eq": HOSTILE[2]}) == set()
    assert await found(user_id={"ne": "*"}, namespace={"not_in": ["*", "a*"]}) == everything - {"id0", "id1"}
    assert await found() == everything


async def test_filters_never_match_another_tenant(found: Any, rig: Rig) -> None:
    for scope in (SCOPE, OTHER):
        assert len(await found(scope)) == len(found.records)
    assert await found(Scope("third")) == set()
    assert await found(Scope("defaul")) == set()
    assert await found(Scope("*")) == set()
    for value in (None, SearchRequest(), SearchRequest.model_validate({"user_id": {"ne": "x"}}), object()):
        assert filters.where(SCOPE, value).startswith("@t:{64656661756c74}")


async def test_narrowed_scope_limits_every_filter(found: Any) -> None:
    narrow = Scope("default", namespaces=frozenset({"a", "ab"}), users=frozenset({"a"}))
    assert await found(narrow) == {f"id{HOSTILE.index('a')}"}
    assert await found(narrow, user_id={"eq": "ab"}) == set()
    assert await found(narrow, user_id={"ne": "zz"}) == {f"id{HOSTILE.index('a')}"}
    assert await found(Scope("default", namespaces=frozenset())) == set()
    assert await found(Scope("default", users=frozenset())) == set()


async def test_memory_type_filter_supports_every_operator(rig: Rig, found: Any) -> None:
    kinds = ("semantic", "episodic", "message", "procedural")
    await rig.rt[MemoryStore].write(SCOPE, [record(kind, kind, memory_type=kind, user_id="kinds") for kind in kinds])

    async def of(**wanted: Any) -> set[str]:
        return await found(user_id={"eq": "kinds"}, memory_type=wanted)

    assert await of(eq="episodic") == {"episodic"}
    assert await of(ne="episodic") == await of(not_eq="episodic") == {"semantic", "message", "procedural"}
    assert await of(any=["message", "episodic"]) == await of(in_=["message", "episodic"]) == {"message", "episodic"}
    assert await of(not_in=["message", "episodic"]) == {"semantic", "procedural"}
    assert await of(all=["message"]) == {"message"}
    assert await of(all=["message", "episodic"]) == set()


NOON = datetime(2024, 2, 29, 12, 0, 0, tzinfo=UTC)
TIMES = {
    "before": NOON - timedelta(seconds=1),
    "noon": NOON,
    "half": NOON + timedelta(milliseconds=500),
    "after": NOON + timedelta(seconds=1),
}
TIMES |= {"epoch": datetime(1970, 1, 1, tzinfo=UTC), "older": datetime(1900, 1, 1, tzinfo=UTC), "last": datetime(9999, 12, 31, tzinfo=UTC)}


@pytest.fixture
async def timed(rig: Rig, found: Any) -> Callable[..., Any]:
    await rig.rt[MemoryStore].write(
        SCOPE, [record(name, name, user_id="t", created_at=at, last_accessed=at, event_date=at) for name, at in TIMES.items()]
    )
    await rig.rt[MemoryStore].write(SCOPE, [record("never", "never", user_id="t", created_at=NOON, last_accessed=NOON)])

    async def ids(field: str, **wanted: Any) -> set[str]:
        return await found(user_id={"eq": "t"}, **{field: wanted}) - ({"never"} if field != "event_date" else set())

    return ids


@pytest.mark.parametrize("field", ["created_at", "last_accessed", "event_date"])
async def test_time_filters_compare_whole_seconds(timed: Any, field: str) -> None:
    everything = set(TIMES)
    never = {"never"} if field == "event_date" else set[str]()
    late, early = {"after", "last"}, {"before", "epoch", "older"}
    second = {"noon", "half"}
    assert await timed(field, eq=NOON) == second
    assert await timed(field, ne=NOON) == everything - second | never
    assert await timed(field, gt=NOON) == late
    assert await timed(field, gte=NOON) == late | second
    assert await timed(field, lt=NOON) == early
    assert await timed(field, lte=NOON) == early | second
    assert await timed(field, gte=NOON, lte=NOON) == second
    assert await timed(field, gt=NOON, lt=NOON) == set()
    assert await timed(field, gt=TIMES["before"], lt=TIMES["after"]) == second
    assert await timed(field, gte=NOON, lte=TIMES["after"], ne=NOON) == {"after"}
    assert await timed(field, eq=TIMES["older"]) == {"older"}
    assert await timed(field, lt=TIMES["epoch"]) == {"older"}
    assert await timed(field, gte=TIMES["last"]) == {"last"}


DAY = "2026-03-10"
OF_DAYS = {
    "day before": "2026-03-09T23:59:59Z",
    "stored as the day": "2026-03-10T00:00:00Z",
    "early": "2026-03-10T00:00:01Z",
    "noon": "2026-03-10T12:00:00Z",
    "late": "2026-03-10T23:59:59.9Z",
    "stored as the next day": "2026-03-11T00:00:00Z",
    "next day": "2026-03-11T00:00:01Z",
    "far": "2026-03-11T13:00:00Z",
}


@pytest.mark.parametrize("zone", [None, "UTC", "America/Los_Angeles", "Asia/Tokyo", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
async def test_plain_day_filter_covers_the_whole_day_in_the_requests_zone(rig: Rig, found: Any, zone: str | None) -> None:
    """A time stored as midnight UTC falls on that day in every time zone."""
    moments = {name: datetime.fromisoformat(at) for name, at in OF_DAYS.items()}
    records = [record(name, name, user_id="d", created_at=at, last_accessed=at, event_date=at) for name, at in moments.items()]
    await rig.rt[MemoryStore].write(SCOPE, records)
    days = {name: calendar_day(at, zone_of(zone)) for name, at in moments.items()}
    day, tests = date.fromisoformat(DAY), {"eq": eq, "ne": ne, "gt": gt, "gte": ge, "lt": lt, "lte": le}
    for field in ("created_at", "last_accessed", "event_date"):

        async def ids(wanted: Any, name: str = field) -> set[str]:
            return await found(user_id={"eq": "d"}, timezone=zone, **{name: wanted})

        for operator, test in tests.items():
            of_day = {name for name, at in days.items() if test(at, day)}
            assert await ids({operator: DAY}) == of_day, operator
            if test is eq:
                assert await ids(DAY) == await ids({"gte": DAY, "lte": DAY}) == await ids({"between": [DAY, DAY]}) == of_day
        for inclusive, low, high in (("both", ge, le), ("left", ge, lt), ("right", gt, le), ("neither", gt, lt)):
            wanted = {name for name, at in days.items() if low(at, day) and high(at, date(2026, 3, 11))}
            assert await ids({"between": [DAY, "2026-03-11"], "inclusive": inclusive}) == wanted, inclusive


async def test_day_filters_accept_the_first_and_last_calendar_day(found: Any) -> None:
    for day in ("0001-01-01", "9999-12-31"):
        for zone in ("Asia/Tokyo", "America/Los_Angeles"):
            await found(user_id={"eq": "d"}, timezone=zone, created_at={"gte": day, "lte": day}, event_date=day)


@pytest.mark.parametrize("inclusive", ["both", "neither", "left", "right"])
async def test_between_filter_respects_its_inclusive_option(timed: Any, inclusive: str) -> None:
    ends = {"before": inclusive in ("both", "left"), "after": inclusive in ("both", "right")}
    wanted = {"noon", "half"} | {name for name, counts in ends.items() if counts}
    assert await timed("created_at", between=[TIMES["before"], TIMES["after"]], inclusive=inclusive) == wanted
    assert await timed("created_at", between=[TIMES["after"], TIMES["before"]], inclusive=inclusive) == set()


async def test_time_operators_partition_all_stored_times(timed: Any) -> None:
    for at in TIMES.values():
        below, above, equal = [await timed("created_at", **{operator: at}) for operator in ("lt", "gt", "eq")]
        assert below | above | equal == set(TIMES)
        assert all(not a & b for a, b in itertools.combinations((below, above, equal), 2))


async def test_filters_accept_a_thousand_values_and_long_prefix_expansions(rig: Rig, found: Any) -> None:
    users = [f"user-{number:04d}" for number in range(1500)]
    await rig.rt[MemoryStore].write(SCOPE, [record(user, user, user_id=user, namespace="many") for user in users])
    clause = filters.where(SCOPE, SearchRequest.model_validate({"user_id": {"startswith": "user-"}}))
    replies = await read(rig.rt.client, lambda pipe: rig.rt[MemoryStore].queue_count(pipe, clause))
    assert parse_hits(replies[0]).total == 1500, "a prefix stands for every value that begins with it"
    assert await found(user_id={"any": users[:1000]}) == set(users[:1000])
    assert not await found(namespace={"eq": "many"}, user_id={"not_in": users[:1000]}) & set(users[:1000])


async def test_unsafe_search_terms_are_rejected() -> None:
    for hostile in ("a|b", "*", "a)", "ä", "a b", ""):
        with pytest.raises(AssertionError):
            syntax.having("@t:{00}", [hostile])
    with pytest.raises(AssertionError):
        syntax.having("@t:{00}", [])


async def test_memory_scores_by_every_matching_term(rig: Rig) -> None:
    """RediSearch's union can drop terms that no other memory has."""
    texts = ("The cat sat on the mat", "Walrus penguin", "Who knows", "Something else", "Another thing")
    await rig.rt[MemoryStore].write(SCOPE, [record(text, namespace="a" if place < 3 else "b") for place, text in enumerate(texts)])
    clause = filters.where(SCOPE, SearchRequest.model_validate({"namespace": {"eq": "a"}}))

    async def scores(*terms: str) -> list[float]:
        (reply,) = await read(rig.rt.client, lambda pipe: rig.rt[MemoryStore].queue_words(pipe, clause, terms, 10))
        return [hit.value for hit in parse_hits(reply).hits]

    (walrus,), (penguin,), (cat,) = await scores("walrus"), await scores("penguin"), await scores("cat")
    assert walrus == penguin > 0
    assert await scores("walrus", "penguin") == pytest.approx([walrus + penguin])
    assert await scores("walrus", "nowher") == pytest.approx([walrus])
    assert await scores("walrus", "nowher", "penguin", "cat") == pytest.approx([walrus + penguin, cat])
