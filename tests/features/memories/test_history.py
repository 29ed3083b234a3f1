"""Test bitemporal facts: what was true and known at a time, a fact's history, and exact undo."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.commit import ChangeOrigin, MemoryCommits, Merge, Supersede, Update
from agent_memory.features.memories.records import StoredMemory
from agent_memory.features.memories.retention.service import Policy, RetentionService
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.features.recall.service import RecallService
from agent_memory.foundation.core.errors import Conflict, NotFound
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.text.normalization import begins_at
from agent_memory_client.models import (
    Condition,
    CreateMemoryRecordRequest,
    EditMemoryRecordRequest,
    ExtractedMemoryRecord,
    MemoryPromptRequest,
    MetadataFilter,
    SearchRequest,
)
from agent_memory_worker.memories.expiry import sweep
from tests.support.rig import SCOPE, Rig, record

BY = ChangeOrigin("tests")


def fact(text: str, name: str, **more: Any) -> ExtractedMemoryRecord:
    return ExtractedMemoryRecord(id=name, text=text, user_id="ada", **more)


async def create(rig: Rig, *records: ExtractedMemoryRecord, dedupe: bool = True) -> None:
    await rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest(memories=list(records), deduplicate=dedupe))


async def found(rig: Rig, name: str) -> StoredMemory:
    (one,) = await rig.rt[MemoryStore].find(SCOPE, [name])
    assert one is not None
    return one


async def listed(rig: Rig, **request: Any) -> list[str]:
    return sorted(one.id for one in (await rig.rt[SearchService].search(SCOPE, SearchRequest(**request))).memories)


async def everything(rig: Rig, *names: str) -> list[Any]:
    """Return search, get and prompt responses."""
    texts = ["Where does Ada live?", "What does Ada drink?"]
    fixed: dict[str, Any] = {"recency_boost": False, "reference_time": datetime(2025, 1, 1, tzinfo=UTC)}
    answers: list[Any] = [await rig.rt[SearchService].search(SCOPE, SearchRequest(text=text, limit=20, **fixed)) for text in texts]
    answers += [await rig.rt[SearchService].search(SCOPE, SearchRequest(limit=20))]
    search = SearchRequest(limit=20, **fixed)
    answers += [await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest(query=texts[0], long_term_search=search))]
    for name in names:
        one = (await rig.rt[MemoryStore].find(SCOPE, [name]))[0]
        answers.append(None if one is None else one.record)
    # BM25 counts documents that RediSearch has not collected yet, so scores may change; the order and all other fields may not.
    dumped = [None if answer is None else answer.model_dump(mode="json") for answer in answers]
    for answer in dumped:
        for one in (answer or {}).get("memories") or (answer or {}).get("long_term_memories") or ():
            one.pop("score", None)
    return dumped


DAYS = [datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=365 * n) for n in range(6)]


async def test_timeline_shows_past_statements_and_when_they_were_recorded(rig: Rig) -> None:
    """Ada lived in Rome (2018-2019, learned late), Turin (from 2020), and Oslo (from 2022).

    The text about Turin is corrected later.
    """
    await create(rig, fact("Ada lives in Turin", "turin", slot="home_city", valid_from=DAYS[0], created_at=DAYS[0]))
    first = (await found(rig, "turin")).record.recorded_at
    await create(rig, fact("Ada lives in Oslo", "oslo", slot="home_city", valid_from=DAYS[2], created_at=DAYS[2]))
    moved = (await found(rig, "oslo")).record.recorded_at
    early = DAYS[0] - timedelta(days=700)
    await create(rig, fact("Ada lives in Rome", "rome", slot="home_city", valid_from=early, created_at=DAYS[3]))
    turin = await found(rig, "turin")
    await rig.rt[MemoryCommits].commit(SCOPE, [Update(turin, turin.record.model_copy(update={"text": "Ada lives in Torino"}))], BY)
    await rig.index()
    await sweep(rig.rt)
    assert await listed(rig) == ["oslo"]
    assert await listed(rig, as_of=DAYS[1]) == ["turin"]
    assert await listed(rig, as_of=DAYS[3]) == ["oslo"]
    assert await listed(rig, as_of=DAYS[0] - timedelta(days=300)) == ["rome"]
    assert await listed(rig, as_of=DAYS[3], known_at=first) == ["turin"], "nobody knew of the move"
    assert await listed(rig, as_of=DAYS[1], known_at=moved) == ["turin"]
    assert await listed(rig, as_of=DAYS[0] - timedelta(days=300), known_at=moved) == [], "Rome was learned later"
    assert await listed(rig, as_of=early - timedelta(days=1)) == []
    assert await listed(rig, history=True) == ["oslo", "rome", "turin", "turin", "turin"]
    words = {"text": "Ada lives in", "search_mode": "keyword", "recency_boost": False}
    for more in ({}, {"search_mode": "keyword"}, {"search_mode": "semantic"}):
        asked = {**words, **more}
        texts = [one.text for one in (await rig.rt[SearchService].search(SCOPE, SearchRequest(**asked, as_of=DAYS[1]))).memories]
        assert texts == ["Ada lives in Torino"], more
        texts = [
            one.text for one in (await rig.rt[SearchService].search(SCOPE, SearchRequest(**asked, as_of=DAYS[1], known_at=moved))).memories
        ]
        assert texts == ["Ada lives in Turin"], more
    assert (await rig.rt[HistoryService].record_at(SCOPE, "turin", DAYS[1], moved)).text == "Ada lives in Turin"
    with pytest.raises(NotFound):
        await rig.rt[HistoryService].record_at(SCOPE, "turin", DAYS[3], None)
    versions = (await rig.rt[HistoryService].read_history(SCOPE, "turin")).versions
    assert [sorted(one.diff) for one in versions] == [["text"], ["superseded_by", "valid_to"], []]


async def test_expired_memory_is_hidden_from_lists_but_readable_by_id(rig: Rig) -> None:
    now = datetime.now(UTC)
    await create(rig, fact("Ada sprained her ankle", "ankle", expires_at=now + timedelta(days=1)), fact("Ada swims", "swims"))
    assert await listed(rig) == ["ankle", "swims"]
    await rig.rt[MemoryService].patch(SCOPE, "ankle", _edit(expires_at=now - timedelta(seconds=1)))
    assert await listed(rig) == ["swims"]
    assert (await rig.rt[MemoryService].get(SCOPE, "ankle")).expires_at is not None
    assert await listed(rig, as_of=now - timedelta(seconds=2)) == []  # The memory was created after that time.
    await create(rig, fact("Ada will move", "later", valid_from=now + timedelta(days=9)))
    assert await listed(rig) == ["swims"]
    assert await listed(rig, as_of=now + timedelta(days=10)) == ["later", "swims"]


def _edit(**fields: Any) -> Any:
    from agent_memory_client.models import EditMemoryRecordRequest

    return EditMemoryRecordRequest(**fields)


async def test_repeated_text_is_one_memory_with_evidence_of_each_create(rig: Rig) -> None:
    await create(rig, fact("Ada likes tea", "one", topics=["tea"]))
    await create(rig, fact("ada likes tea.", "two", topics=["drinks"], metadata={"k": 1}), fact("Ada likes tea", "three"))
    await create(rig, fact("Ada likes tea", "three"))
    assert await listed(rig) == ["one"]
    for name in ("one", "two", "three"):
        one = await rig.rt[MemoryService].get(SCOPE, name)
        assert (one.id, one.topics, one.metadata) == (name, ["tea", "drinks"], {"k": 1})
    pieces = (await rig.rt[HistoryService].read_evidence(SCOPE, "two")).evidence
    assert sorted(str(piece.memory_id) for piece in pieces) == ["one", "three", "two"]
    await create(rig, fact("Ada likes tea", "other", metadata={"k": 2}), fact("Ada likes tea", "pinned", pinned=True))
    assert await listed(rig) == ["one", "other", "pinned"], "what contradicts it, or says more, is a memory of its own"
    await create(rig, fact("Ada likes tea", "apart"), dedupe=False)
    assert "apart" in await listed(rig)


async def test_undoing_supersession_merge_and_forgetting_restores_every_response(rig: Rig) -> None:
    await create(
        rig,
        fact("Ada lives in Turin", "turin", slot="home_city", valid_from=DAYS[0], metadata={"a": 1}, topics=["home"]),
        fact("Ada drinks green tea", "tea", created_at=DAYS[1], last_accessed=DAYS[1]),
        fact("Ada drinks tea that is green", "green", created_at=DAYS[2], last_accessed=DAYS[2], extracted_from=["m"]),
        fact("Ada climbs", "climbs", pinned=True, created_at=DAYS[0], last_accessed=DAYS[0]),
    )
    await rig.index()
    names = ("turin", "oslo", "tea", "green", "climbs")
    before = await everything(rig, *names)
    oslo = fact("Ada lives in Oslo", "oslo", slot="home_city", valid_from=DAYS[2])
    superseded = await rig.rt[MemoryCommits].commit(SCOPE, [Supersede([await found(rig, "turin")], oslo)], BY)
    tea, green = await found(rig, "tea"), await found(rig, "green")
    mixed = tea.record.model_copy(update={"topics": ["drinks"]})
    merged = await rig.rt[MemoryCommits].commit(SCOPE, [Merge(tea, mixed, [green])], BY)
    await rig.index()
    assert (await found(rig, "green")).record.id == "tea"
    after = await everything(rig, *names)
    assert after != before
    gone = await rig.rt[RetentionService].forget_by_policy(SCOPE, Policy(max_age_days=1), Selection(), limit=10, dry_run=False)
    assert "climbs" not in gone.deleted_ids
    assert gone.deleted
    (forgotten,) = {one.batch_id for one in (await rig.rt[HistoryService].read_changes(SCOPE, {"kd": "forget"}, None, 0, 50)).changes}
    await rig.rt[HistoryService].undo_batch(SCOPE, forgotten)
    assert await everything(rig, *names) == after, "forgetting"
    assert merged.changes[0]
    assert superseded.changes[0]
    undone = await rig.rt[HistoryService].undo_by_id(SCOPE, merged.changes[0])
    with pytest.raises(Conflict, match="undone"):
        await rig.rt[HistoryService].undo_by_id(SCOPE, merged.changes[0])
    await rig.rt[HistoryService].undo_by_id(SCOPE, superseded.changes[0])
    assert await everything(rig, *names) == before, "a merge and a supersession"
    await rig.rt[HistoryService].undo_by_id(SCOPE, undone.id)
    assert (await found(rig, "green")).record.id == "tea", "an undo can be undone"


async def _superseded(rig: Rig) -> None:
    oslo = fact("Ada lives in Oslo", "oslo", slot="home_city", valid_from=DAYS[2])
    await rig.rt[MemoryCommits].commit(SCOPE, [Supersede([await found(rig, "turin")], oslo)], BY)


async def _merged(rig: Rig) -> None:
    stays, goes = await found(rig, "turin"), await found(rig, "turin too")
    mixed = stays.record.model_copy(update={"topics": ["home", "city"]})
    await rig.rt[MemoryCommits].commit(SCOPE, [Merge(stays, mixed, [goes])], BY)


async def _forgotten(rig: Rig) -> None:
    policy = Policy(max_age_days=1, types=frozenset({"semantic"}))
    gone = await rig.rt[RetentionService].forget_by_policy(SCOPE, policy, Selection(), limit=10, dry_run=False)
    assert {"turin", "turin too"} <= set(gone.deleted_ids)


@pytest.mark.parametrize("act", [_superseded, _merged, _forgotten])
async def test_each_undo_restores_search_list_prompt_and_get_responses(rig: Rig, act: Any) -> None:
    old = [{"created_at": day, "last_accessed": day} for day in DAYS]
    said = record("Ada lives near the river, she says", "said", user_id="ada", session_id="s", memory_type="message", **old[0])
    await rig.remember(said)
    await create(
        rig,
        fact("Ada lives in Turin", "turin", slot="home_city", metadata={"a": 1}, topics=["home"], **old[1]),
        fact("Ada has her home in Turin", "turin too", entities=["Turin"], **old[2]),
        fact("Ada drinks green tea", "tea", pinned=True, **old[3]),
    )
    await rig.index()

    async def answers() -> dict[str, Any]:
        first, second, listed, prompt, *got = await everything(rig, "turin", "turin too", "oslo", "said")
        return {"search": [first, second], "list": listed, "prompt": prompt, "get": got}

    before = await answers()
    await act(rig)
    await rig.index()
    after = await answers()
    assert [name for name in before if before[name] == after[name]] == [], "each answer was another one"
    for change in (await rig.rt[HistoryService].read_changes(SCOPE, {"st": "applied"}, None, 0, 50)).changes:
        await rig.rt[HistoryService].undo_by_id(SCOPE, change.id)
    for name, answer in (await answers()).items():
        assert answer == before[name], name


async def test_memories_with_equal_creation_times_keep_their_order_after_undos(rig: Rig) -> None:
    """The engine returns recently rewritten memories first, but list pages must not overlap."""
    names = [f"n{place:02}" for place in range(30)]
    when = [DAYS[1 + (place > 9) + (place > 24)] for place in range(30)]
    await create(rig, *(fact(f"Ada has boat {n}", n, created_at=at, last_accessed=DAYS[0]) for n, at in zip(names, when, strict=True)))
    await rig.index()

    async def order(limit: int, **request: Any) -> list[str]:
        found: list[str] = []
        for offset in range(0, 33, limit):
            page = await rig.rt[SearchService].search(SCOPE, SearchRequest(limit=limit, offset=offset, **request))
            assert page.total == 30
            found += [one.id for one in page.memories]
        return found

    searched: dict[str, Any] = {"text": "boat", "recency_boost": False}
    ways = [{}, searched, searched | {"search_mode": "keyword"}, searched | {"search_mode": "semantic"}]
    before = [await order(100, **way) for way in ways]
    assert sorted(before[0]) == names
    gone = await rig.rt[RetentionService].forget_by_policy(SCOPE, Policy(budget=12), Selection(), limit=100, dry_run=False)
    assert gone.deleted == 18
    kept = next(name for name in names if name not in gone.deleted_ids)
    await rig.rt[MemoryService].patch(SCOPE, kept, EditMemoryRecordRequest(metadata={"written": "anew"}))
    for one in (await rig.rt[HistoryService].read_changes(SCOPE, {"kd": "forget"}, None, 0, 100)).changes:
        await rig.rt[HistoryService].undo_by_id(SCOPE, one.id)
    assert [await order(100, **way) for way in ways] == before
    for limit in (1, 4, 7, 10, 15, 29):
        assert await order(limit) == before[0], limit
    await rig.rt[RetentionService].forget_by_policy(SCOPE, Policy(budget=12), Selection(), limit=100, dry_run=False)
    past: dict[str, Any] = {"history": True}
    whole = [one.id for one in (await rig.rt[SearchService].search(SCOPE, SearchRequest(limit=100, **past))).memories]
    paged = [await rig.rt[SearchService].search(SCOPE, SearchRequest(limit=7, offset=offset, **past)) for offset in range(0, len(whole), 7)]
    assert [one.id for page in paged for one in page.memories] == whole


async def test_undo_is_a_conflict_if_the_memory_changed_since(rig: Rig) -> None:
    await create(rig, fact("Ada lives in Turin", "turin"))
    turin = await found(rig, "turin")
    done = await rig.rt[MemoryCommits].commit(SCOPE, [Update(turin, turin.record.model_copy(update={"text": "Ada lives in Rome"}))], BY)
    await rig.rt[MemoryService].patch(SCOPE, "turin", _edit(text="Ada lives in Bari"))
    assert done.changes[0]
    with pytest.raises(Conflict, match="changed since"):
        await rig.rt[HistoryService].undo_by_id(SCOPE, done.changes[0])
    assert (await found(rig, "turin")).record.text == "Ada lives in Bari"


@pytest.mark.parametrize(
    ("name", "new_begin", "turin", "rome"),
    [
        ("turin", None, (2020, 2022, "rome"), (2022, 2024, "oslo")),
        ("turin", 2019, (2019, 2022, "rome"), (2022, 2024, "oslo")),
        ("rome", None, (2020, 2022, "rome"), (2022, 2024, "oslo")),
        ("rome", 2021, (2020, 2021, "rome"), (2021, 2024, "oslo")),
    ],
)
async def test_former_fact_edited_to_have_no_end_ends_when_the_next_fact_begins(
    rig: Rig, name: str, new_begin: int | None, turin: tuple[int, int, str], rome: tuple[int, int, str]
) -> None:
    def year(number: int) -> datetime:
        return datetime(number, 1, 1, tzinfo=UTC)

    for city, begins in (("turin", 2020), ("rome", 2022), ("oslo", 2024)):
        await create(rig, fact(f"Ada lives in {city}", city, slot="home_city", valid_from=year(begins)))
    changes: dict[str, Any] = {} if new_begin is None else {"valid_from": year(new_begin)}
    await rig.rt[MemoryService].patch(SCOPE, name, EditMemoryRecordRequest(valid_to=None, **changes))
    for former, (begins, ends, successor) in (("turin", turin), ("rome", rome)):
        memory = (await found(rig, former)).record
        assert (memory.valid_from, memory.valid_to, memory.superseded_by) == (year(begins), year(ends), successor)
    current = (await found(rig, "oslo")).record
    assert (current.valid_to, current.superseded_by) == (None, None)


async def test_proposals_change_nothing_until_approved(rig: Rig) -> None:
    await create(rig, fact("Ada lives in Turin", "turin", slot="home_city"))
    oslo = record("Ada lives in Oslo", "oslo", user_id="ada", slot="home_city")
    for end in ("reject_proposal", "approve_proposal"):
        held = await rig.rt[MemoryCommits].commit(SCOPE, [Supersede([await found(rig, "turin")], oslo)], BY, review=True)
        assert held.states == ["proposed"]
        assert await listed(rig) == ["turin"]
        (waiting,) = (await rig.rt[HistoryService].read_changes(SCOPE, {"st": "proposed"}, None, 0, 10)).changes
        assert [one.memory_id for one in waiting.memories] == ["oslo", "turin"]
        await getattr(rig.rt[HistoryService], end)(SCOPE, waiting.id)
        assert (await rig.rt[HistoryService].read_changes(SCOPE, {"st": "proposed"}, None, 0, 10)).total == 0
    assert await listed(rig) == ["oslo"]
    assert (await found(rig, "turin")).record.superseded_by == "oslo"


async def test_agent_limited_caller_cannot_see_changes_of_other_agents(rig: Rig) -> None:
    await create(rig, fact("Ada lives in Turin", "turin", slot="home_city", agent_id="coach"))
    oslo = record("Ada lives in Oslo", "oslo", user_id="ada", slot="home_city", agent_id="coach")
    await rig.rt[MemoryCommits].commit(SCOPE, [Supersede([await found(rig, "turin")], oslo)], BY, review=True)
    rome = (await found(rig, "turin")).record.model_copy(update={"text": "Ada lives in Rome"})
    await rig.rt[MemoryCommits].commit(SCOPE, [Update(await found(rig, "turin"), rome)], BY)
    history = rig.rt[HistoryService]
    changes = (await history.read_changes(SCOPE, {}, None, 0, 10)).changes
    assert len(changes) == 2
    robot, coach = [replace(SCOPE, agents=frozenset({agent})) for agent in ("robot", "coach")]
    ben, ada = [replace(SCOPE, users=frozenset({user})) for user in ("ben", "ada")]
    for stranger in (robot, ben):
        for memory_id in (None, "turin"):
            none = await history.read_changes(stranger, {}, memory_id, 0, 10)
            assert (none.changes, none.total) == ([], 0)
    for owner in (coach, ada):
        assert (await history.read_changes(owner, {}, "turin", 0, 10)).changes == changes
    for change in changes:
        for ask in (history.read_change, history.undo_by_id, history.approve_proposal, history.reject_proposal):
            with pytest.raises(NotFound):
                await ask(robot, change.id)
        with pytest.raises(NotFound):
            await history.undo_batch(robot, change.batch_id)
    assert (await history.read_changes(SCOPE, {}, None, 0, 10)).changes == changes


async def test_filters_cover_metadata_and_combine(rig: Rig) -> None:
    await create(
        rig,
        fact("a", "a", agent_id="bot", metadata={"level": 3, "team": "red", "since": "2024-05-01", "on": True}),
        fact("b", "b", agent_id="bot", metadata={"level": -1.5, "team": "blue) | @t:{x"}),
        fact("c", "c", metadata={"level": 12, "tags": ["x", "y"], "since": "2023-01-01T00:00:00Z"}),
    )

    async def where(**filters: dict[str, Any]) -> list[str]:
        return await listed(rig, metadata={name: MetadataFilter(**value) for name, value in filters.items()})

    assert await where(level={"gt": 3}) == ["c"]
    assert await where(level={"gte": 3}) == ["a", "c"]
    assert await where(level={"lt": 0}) == ["b"]
    assert await where(level={"gte": -1.5, "lte": 3}) == ["a", "b"]
    assert await where(level={"eq": 3}) == ["a"]
    assert await where(level={"eq": "3"}) == []
    assert await where(team={"ne": "red"}) == ["b", "c"]
    assert await where(team={"eq": "blue) | @t:{x"}) == ["b"]
    assert await where(tags={"any": ["y", "z"]}) == ["c"]
    assert await where(since={"gte": "2024-01-01"}) == ["a"]
    assert await where(on={"eq": True}) == ["a"]
    assert await where(team={"exists": False}) == ["c"]
    either = Condition.model_validate({"or": [{"agent_id": {"eq": "bot"}}, {"metadata": {"level": {"gt": 10}}}]})
    assert await listed(rig, filter=either) == ["a", "b", "c"]
    neither = Condition.model_validate({"and": [{"not": {"metadata": {"team": {"eq": "red"}}}}, {"agent_id": {"eq": "bot"}}]})
    assert await listed(rig, filter=neither) == ["b"]
    assert await listed(rig, text="b", search_mode="keyword", filter=neither) == ["b"]


async def test_erasing_a_user_leaves_no_version_change_proposal_evidence_or_alias(rig: Rig) -> None:
    await create(
        rig,
        fact("Ada lives in Turin", "turin", slot="home_city"),
        fact("Ada likes tea", "tea", created_at=DAYS[0], last_accessed=DAYS[0]),
        fact("Ada likes teas", "teas"),
        fact("Ada sails", "sails", created_at=DAYS[0], last_accessed=DAYS[0]),
    )
    await create(rig, fact("Ada likes tea", "again"), fact("Ada lives in Oslo", "oslo", slot="home_city"))
    await rig.append("s", "Ada likes tea", "I keep three boats", user_id="ada")
    await rig.work()
    await rig.rt[MemoryCommits].commit(
        SCOPE, [Merge(await found(rig, "tea"), (await found(rig, "tea")).record, [await found(rig, "teas")])], BY
    )
    rome = record("Ada lives in Rome", "rome", user_id="ada", slot="home_city")
    held = await rig.rt[MemoryCommits].commit(SCOPE, [Supersede([await found(rig, "oslo")], rome)], BY, review=True)
    assert held.states == ["proposed"]
    gone = await rig.rt[RetentionService].forget_by_policy(SCOPE, Policy(budget=3), Selection(), limit=1, dry_run=False)
    assert gone.deleted == 1
    places = {"m", "v", "h", "mh", "ev", "al", "by", "ch", "mo", "bare"}
    assert {key.partition(":")[0] for key in await rig.raw_keys()} >= places - {"bare"}
    await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, "ada", None))
    await rig.work(DueKind.DELETION)
    assert [key for key in await rig.raw_keys() if key.partition(":")[0] in places] == []


async def test_moving_the_beginning_of_a_fact_moves_the_end_of_the_fact_before_it(rig: Rig) -> None:
    service, history = rig.rt[MemoryService], rig.rt[HistoryService]

    async def periods() -> list[tuple[int, int | None]]:
        records = [(await found(rig, name)).record for name in ("oslo", "rome", "bonn")]
        return [(begins_at(one).month, one.valid_to and one.valid_to.month) for one in records]

    async def begin(name: str, month: int) -> None:
        await service.patch(SCOPE, name, EditMemoryRecordRequest(valid_from=datetime(2026, month, 1, tzinfo=UTC)))

    for name, month in (("oslo", 1), ("rome", 4), ("bonn", 7)):
        await service.store(SCOPE, [record(f"Lives in {name}", name, slot="home", valid_from=datetime(2026, month, 1, tzinfo=UTC))])
    before = await periods()
    assert before == [(1, 4), (4, 7), (7, None)]
    for name, month, after in (
        ("bonn", 6, [(1, 4), (4, 6), (6, None)]),
        ("bonn", 8, [(1, 4), (4, 8), (8, None)]),
        ("rome", 3, [(1, 3), (3, 7), (7, None)]),
        ("rome", 5, [(1, 5), (5, 7), (7, None)]),
    ):
        await begin(name, month)
        assert await periods() == after
        change = (await history.read_changes(SCOPE, {}, name, 0, 1)).changes[0]
        await history.undo_batch(SCOPE, change.batch_id)
        assert await periods() == before
    # Both belong to one change, so that its undo restores both.
    await begin("bonn", 6)
    (change,) = (await history.read_changes(SCOPE, {}, "bonn", 0, 1)).changes
    assert {memory.memory_id for memory in change.memories} == {"bonn", "rome"}
    await history.undo_by_id(SCOPE, change.id)
    assert await periods() == before
    # An end that a user set does not depend on the next fact's beginning.
    await service.patch(SCOPE, "rome", EditMemoryRecordRequest(valid_to=datetime(2026, 6, 1, tzinfo=UTC)))
    ended = await periods()
    await begin("bonn", 8)
    assert await periods() == [*ended[:2], (8, None)]
