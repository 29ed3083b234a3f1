"""Test sessions in Redis: identity, idempotent writes, order, TTL, data and deletion."""

from __future__ import annotations

import asyncio
import json

import pytest
from ulid import ULID

from agent_memory.features.sessions.session_write import NewMessage, SessionWrite
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.errors import VersionMismatch
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import MemoryMessage, MemoryRecord
from tests.support.rig import SCOPE, Rig, gathered

REF = SessionRef("s")


def message(text: str, message_id: str | None = None, role: str = "user") -> NewMessage:
    return NewMessage(MemoryMessage(role=role, content=text, id=message_id or f"id-{text}"[:64]), tokens=len(text) or 1)


def appending(*texts: str, **more: object) -> SessionWrite:
    return SessionWrite("append", [message(text) for text in texts], **more)  # pyright: ignore[reportArgumentType]


def putting(*texts: str, **more: object) -> SessionWrite:
    return SessionWrite("put", [message(text) for text in texts], **more)  # pyright: ignore[reportArgumentType]


async def texts(rig: Rig, ref: SessionRef = REF) -> list[str]:
    state = await rig.rt[SessionStore].get(SCOPE, ref)
    assert state is not None
    return [stored.message.content for stored in state.messages]


HOSTILE = [
    (SessionRef("c", "a", "b"), SessionRef("c", "a:b"), SessionRef("b:c", "a"), SessionRef("a:b:c"), SessionRef("c", None, "a:b")),
    (SessionRef("s", "x"), SessionRef("s", None, "x"), SessionRef("s", "x", "x"), SessionRef("s")),
    (SessionRef("Ä"), SessionRef("ä"), SessionRef("A"), SessionRef("a")),
    (SessionRef("s "), SessionRef(" s"), SessionRef("s")),
    (SessionRef("*"), SessionRef("s|t"), SessionRef("{0}"), SessionRef('"'), SessionRef("\\"), SessionRef("-@t:{x}"), SessionRef("@s:{*}")),
    (SessionRef("s", "None"), SessionRef("s", "-"), SessionRef("s", "0:")),
    (SessionRef("日本語", "名前空間", "利用者"), SessionRef("日本語", "名前空間利", "用者")),
]


@pytest.mark.parametrize("refs", HOSTILE, ids=lambda refs: "/".join(str(ref.session_id) for ref in refs))
async def test_different_identities_are_different_sessions(rig: Rig, refs: tuple[SessionRef, ...]) -> None:
    for place, ref in enumerate(refs):
        await rig.rt[SessionStore].write(SCOPE, ref, appending(f"for {place}"))
    for place, ref in enumerate(refs):
        assert await texts(rig, ref) == [f"for {place}"]
        assert (await rig.rt[SessionStore].get(SCOPE, ref)).ref == ref  # pyright: ignore[reportOptionalMemberAccess]
        total, listed = await rig.rt[SessionStore].list(SCOPE, ref.namespace, ref.user_id, 0, 100)
        assert ref in listed
        assert total == sum(
            (ref.namespace is None or other.namespace == ref.namespace) and (ref.user_id is None or other.user_id == ref.user_id)
            for other in refs
        )
        found = await rig.rt[SessionStore].find(SCOPE, ref.session_id, ref.namespace, ref.user_id)
        assert ref in found or len(found) == 2
        assert all(other.session_id == ref.session_id for other in found)


async def test_tenants_cannot_see_each_others_sessions(rig: Rig) -> None:
    await rig.rt[SessionStore].write(SCOPE, REF, appending("mine"))
    other = Scope("other")
    assert await rig.rt[SessionStore].get(other, REF) is None
    assert await rig.rt[SessionStore].list(other, None, None, 0, 10) == (0, [])
    assert await rig.rt[SessionStore].find(other, "s", None, None) == []
    assert not await rig.rt[SessionStore].delete(other, REF)
    assert await texts(rig) == ["mine"]


async def test_a_repeated_append_changes_nothing(rig: Rig) -> None:
    first = await rig.rt[SessionStore].write(SCOPE, REF, appending("a", "b"))
    again = await rig.rt[SessionStore].write(SCOPE, REF, appending("a", "b"))
    assert (first.added, again.added) == (2, 0)
    assert (again.version, again.tokens, again.messages, again.epoch) == (first.version, first.tokens, first.messages, first.epoch)
    partly = await rig.rt[SessionStore].write(SCOPE, REF, appending("b", "c"))
    assert (partly.added, partly.messages, partly.version) == (1, 3, first.version + 1)
    assert await texts(rig) == ["a", "b", "c"]


async def test_same_message_id_with_other_text_is_another_message(rig: Rig) -> None:
    """Two programs may both number their messages from 1, and neither may lose one."""
    await rig.rt[SessionStore].write(SCOPE, REF, SessionWrite("append", [message("first", "1"), message("second", "1")]))
    await rig.rt[SessionStore].write(SCOPE, REF, SessionWrite("append", [message("third", "1"), message("first", "1")]))
    assert await texts(rig) == ["first", "second", "third"]


async def test_put_keeps_duplicate_messages_and_their_order(rig: Rig) -> None:
    await rig.rt[SessionStore].write(SCOPE, REF, putting("a", "b", "a"))
    assert await texts(rig) == ["a", "b", "a"]
    await rig.rt[SessionStore].write(SCOPE, REF, putting("b", "a"))
    assert await texts(rig) == ["b", "a"]


async def test_fifty_concurrent_writers_lose_nothing_and_number_without_gaps(rig: Rig) -> None:
    async def one(writer: int) -> None:
        for turn in range(4):
            await rig.rt[SessionStore].write(SCOPE, REF, appending(f"{writer}-{turn}-a", f"{writer}-{turn}-b"))

    await gathered(one(writer) for writer in range(50))
    state = await rig.rt[SessionStore].get(SCOPE, REF)
    assert state is not None
    assert [stored.seq for stored in state.messages] == list(range(1, 401))
    said = [stored.message.content for stored in state.messages]
    assert len(set(said)) == 400
    for writer in range(50):
        own = [text for text in said if text.startswith(f"{writer}-")]
        assert own == [f"{writer}-{turn}-{part}" for turn in range(4) for part in "ab"]
    assert state.version == 200
    journal = await rig.rt[SessionStore].journal(rig.sid(REF), "jp", 1000)
    assert journal is not None
    assert [stored.message.content for stored in journal.waiting] == said
    assert journal.complete


async def test_thousands_of_messages_and_a_very_long_one_are_stored(rig: Rig) -> None:
    many = [message(f"m{number}") for number in range(5001)]
    written = await rig.rt[SessionStore].write(SCOPE, REF, SessionWrite("append", many))
    assert (written.added, written.messages) == (5001, 5001)
    huge = "long 'quoted' \"text\" é 😀\n" * 100_000
    await rig.rt[SessionStore].write(SCOPE, REF, SessionWrite("append", [message(huge, "huge")]))
    state = await rig.rt[SessionStore].get(SCOPE, REF, 1)
    assert state is not None
    assert state.messages[0].message.content == huge
    assert state.messages[0].seq == 5002
    replaced = await rig.rt[SessionStore].write(SCOPE, REF, SessionWrite("put", many[::-1]))
    assert (replaced.added, replaced.messages) == (0, 5001)


async def test_get_returns_the_requested_number_of_last_messages(rig: Rig) -> None:
    await rig.rt[SessionStore].write(SCOPE, REF, appending(*"abcde"))
    for last, expected in ((1, "e"), (3, "cde"), (99, "abcde"), (None, "abcde")):
        state = await rig.rt[SessionStore].get(SCOPE, REF, last)
        assert state is not None
        assert "".join(stored.message.content for stored in state.messages) == expected


DATA = {
    "empty": {},
    "list": [],
    "nested": {"list": [{}, [], None, True, False], "deep": {"a": {"b": []}}},
    "big": 2**60 + 1,
    "float": 0.1 + 0.2,
    "tiny": 5e-324,
    "text": '\\u0000 \\ " / é 日本 😀 \u2028 \t\n',
    "": "empty key",
}


async def test_session_data_is_read_back_unchanged(rig: Rig) -> None:
    held = MemoryRecord(id="1", text="a", topics=[])
    await rig.rt[SessionStore].write(SCOPE, REF, putting("a", data=DATA, context="ctx", memories=[held]))
    state = await rig.rt[SessionStore].get(SCOPE, REF)
    assert state is not None
    assert json.dumps(state.data) == json.dumps(DATA)
    assert state.memories == [held.model_dump(mode="json")]
    await rig.rt[SessionStore].merge_data(SCOPE, REF, dict.fromkeys(DATA), None)
    state = await rig.rt[SessionStore].get(SCOPE, REF)
    assert state is not None
    assert (state.data, state.context, len(state.messages), state.version) == ({}, "ctx", 1, 2)


async def test_put_clears_unnamed_fields_and_append_keeps_them(rig: Rig) -> None:
    full = {"context": "ctx", "context_tokens": 3, "data": {"k": 1}, "client_tokens": 7, "window": 500, "ttl_seconds": 900}
    await rig.rt[SessionStore].write(SCOPE, REF, putting("a", **full))
    await rig.rt[SessionStore].write(SCOPE, REF, appending("b"))
    kept = await rig.rt[SessionStore].get(SCOPE, REF)
    assert kept is not None
    assert (kept.context, kept.data, kept.client_tokens, kept.window, kept.ttl_seconds) == ("ctx", {"k": 1}, 7, 500, 900)
    await rig.rt[SessionStore].write(SCOPE, REF, putting("a"))
    bare = await rig.rt[SessionStore].get(SCOPE, REF)
    assert bare is not None
    assert (bare.context, bare.context_tokens, bare.data, bare.client_tokens, bare.window, bare.ttl_seconds) == (
        None,
        0,
        None,
        0,
        None,
        None,
    )


@pytest.mark.parametrize("mode", ["put", "append"])
async def test_if_match_requires_the_current_version(rig: Rig, mode: str) -> None:
    def write(expected: str | None, text: str) -> SessionWrite:
        return SessionWrite(mode, [message(text)], if_match=expected)

    with pytest.raises(VersionMismatch) as none:
        await rig.rt[SessionStore].write(SCOPE, REF, write("*", "a"))
    assert none.value.data["current"] == 0
    assert await rig.rt[SessionStore].get(SCOPE, REF) is None
    await rig.rt[SessionStore].write(SCOPE, REF, write("0", "a"))
    with pytest.raises(VersionMismatch) as stale:
        await rig.rt[SessionStore].write(SCOPE, REF, write("0", "b"))
    assert stale.value.data["current"] == 1
    await rig.rt[SessionStore].write(SCOPE, REF, write("1", "b"))
    await rig.rt[SessionStore].write(SCOPE, REF, write("*", "c"))
    assert (await texts(rig))[-1] == "c"
    for wrong in ("2", "03", "3.0", "", "W/3", "abc"):
        with pytest.raises(VersionMismatch):
            await rig.rt[SessionStore].write(SCOPE, REF, write(wrong, "d"))
    with pytest.raises(VersionMismatch):
        await rig.rt[SessionStore].merge_data(SCOPE, REF, {"a": 1}, "2")
    assert await rig.rt[SessionStore].merge_data(SCOPE, REF, {"a": 1}, "3") == 4


async def test_only_one_of_concurrent_writers_with_the_same_version_wins(rig: Rig) -> None:
    await rig.rt[SessionStore].write(SCOPE, REF, appending("a"))

    async def one(writer: int) -> bool:
        try:
            await rig.rt[SessionStore].write(SCOPE, REF, appending(f"w{writer}", if_match="1"))
        except VersionMismatch:
            return False
        return True

    assert sum(await gathered(one(writer) for writer in range(20))) == 1
    assert len(await texts(rig)) == 2


async def ttls(rig: Rig) -> list[int]:
    k = rig.keys.session(rig.sid(REF))
    return [await rig.rt.client.ttl(key) for key in (k.meta, k.messages, k.ids, k.doc)]


async def test_ttl_is_kept_by_appends_and_cleared_by_a_put_without_one(rig: Rig) -> None:
    await rig.rt[SessionStore].write(SCOPE, REF, putting("a", ttl_seconds=500))
    assert all(400 < ttl <= 500 for ttl in await ttls(rig))
    await rig.rt[SessionStore].write(SCOPE, REF, appending("b"))
    assert all(400 < ttl <= 500 for ttl in await ttls(rig))
    await rig.rt[SessionStore].merge_data(SCOPE, REF, {"a": 1}, None)
    assert all(400 < ttl <= 500 for ttl in await ttls(rig))
    await rig.rt[SessionStore].write(SCOPE, REF, putting("a"))
    assert await ttls(rig) == [-1, -1, -1, -1]


@pytest.mark.parametrize("texts_", [(), ("a",)])
async def test_ttl_of_zero_expires_a_session_immediately(rig: Rig, texts_: tuple[str, ...]) -> None:
    await rig.rt[SessionStore].write(SCOPE, REF, putting(*texts_, ttl_seconds=0))
    assert await rig.rt[SessionStore].get(SCOPE, REF) is None
    assert (await rig.rt[SessionStore].list(SCOPE, None, None, 0, 10))[0] == 0


async def test_a_deleted_session_leaves_no_key(rig: Rig) -> None:
    await rig.rt[SessionStore].write(SCOPE, REF, putting("a", data={"a": 1}, extract_after_ms=5, extract_within_ms=50))
    await rig.claim(DueKind.SESSION)
    assert await rig.rt[SessionStore].delete(SCOPE, REF)
    assert not await rig.rt[SessionStore].delete(SCOPE, REF)
    assert await rig.raw_keys() <= {"wake", "cfg"}


async def test_recreated_session_has_a_new_epoch_and_no_old_data(rig: Rig) -> None:
    first = await rig.rt[SessionStore].write(SCOPE, REF, putting("a", data={"a": 1}, context="c", ttl_seconds=100))
    await rig.rt[SessionStore].delete(SCOPE, REF)
    second = await rig.rt[SessionStore].write(SCOPE, REF, appending("a"))
    assert second.epoch != first.epoch
    assert (second.version, second.added) == (1, 1)
    state = await rig.rt[SessionStore].get(SCOPE, REF)
    assert state is not None
    assert (state.data, state.context, state.ttl_seconds) == (None, None, None)
    assert await ttls(rig) == [-1, -1, -1, -1]


async def expire(rig: Rig) -> None:
    k = rig.keys.session(rig.sid(REF))
    await rig.rt.client.delete(k.meta, k.messages, k.ids, k.doc)


async def test_message_numbers_continue_after_expiry_with_unpromoted_messages(rig: Rig) -> None:
    await rig.rt[SessionStore].write(SCOPE, REF, appending("a", "b"))
    await expire(rig)
    await rig.rt[SessionStore].write(SCOPE, REF, appending("c"))
    journal = await rig.rt[SessionStore].journal(rig.sid(REF), "jp", 10)
    assert journal is not None
    assert [(stored.seq, stored.message.content) for stored in journal.waiting] == [(1, "a"), (2, "b"), (3, "c")]
    state = await rig.rt[SessionStore].get(SCOPE, REF)
    assert state is not None
    assert [stored.seq for stored in state.messages] == [3]
    assert journal.epoch == state.epoch


async def test_applied_summary_removes_exactly_its_messages(rig: Rig) -> None:
    await rig.rt[SessionStore].write(SCOPE, REF, putting(*"abcde", ttl_seconds=500))
    state = await rig.rt[SessionStore].get(SCOPE, REF)
    assert state is not None
    await rig.rt[SessionStore].write(SCOPE, REF, appending("f"))
    assert await rig.rt[SessionStore].apply_summary(rig.sid(REF), state.fence, 3, "a to c", 4)
    after = await rig.rt[SessionStore].get(SCOPE, REF)
    assert after is not None
    assert ([stored.message.content for stored in after.messages], after.context, after.context_tokens) == (["d", "e", "f"], "a to c", 4)
    assert after.message_tokens == sum(stored.tokens for stored in after.messages)
    assert not await rig.rt[SessionStore].apply_summary(rig.sid(REF), state.fence, 3, "again", 4)
    assert all(400 < ttl <= 500 for ttl in await ttls(rig))
    late = await rig.rt[SessionStore].write(SCOPE, REF, appending("a", "b", "g"))
    assert late.added == 1, "a late repeat of a summarized message is not a new one"


@pytest.mark.parametrize(
    ("change", "still"),
    [
        (putting("a", "b", "c", "d"), True),
        (putting("a", "b", "c"), True),
        (putting("x", "b", "c"), False),
        (putting("b", "c"), False),
        (putting("a", "b"), False),
        (putting("a", "b", "c", context="other"), False),
        (putting(), False),
        (appending("d"), True),
    ],
    ids=["longer", "same", "other first", "first gone", "last gone", "other context", "empty", "append"],
)
async def test_summary_is_refused_if_the_summarized_messages_changed(rig: Rig, change: SessionWrite, still: bool) -> None:
    await rig.rt[SessionStore].write(SCOPE, REF, putting("a", "b", "c"))
    state = await rig.rt[SessionStore].get(SCOPE, REF)
    assert state is not None
    await rig.rt[SessionStore].write(SCOPE, REF, change)
    before = await texts(rig)
    assert await rig.rt[SessionStore].apply_summary(rig.sid(REF), state.fence, 2, "sum", 1) is still
    assert await texts(rig) == (before[2:] if still else before)


async def test_summary_of_a_deleted_session_is_refused_for_its_successor(rig: Rig) -> None:
    await rig.rt[SessionStore].write(SCOPE, REF, appending("a", "b"))
    state = await rig.rt[SessionStore].get(SCOPE, REF)
    assert state is not None
    await rig.rt[SessionStore].delete(SCOPE, REF)
    assert not await rig.rt[SessionStore].apply_summary(rig.sid(REF), state.fence, 1, "sum", 1)
    assert await rig.rt[SessionStore].get(SCOPE, REF) is None
    await rig.rt[SessionStore].write(SCOPE, REF, appending("a", "b"))
    assert not await rig.rt[SessionStore].apply_summary(rig.sid(REF), state.fence, 1, "sum", 1)


async def test_known_message_ids_are_bounded(rig: Rig) -> None:
    """A program that PUTs a rolling window must not fill Redis with message ids."""
    system = message("system prompt", "system")
    for turn in range(60):
        window = [system, *(message(f"m{number}") for number in range(turn * 100, turn * 100 + 150))]
        await rig.rt[SessionStore].write(SCOPE, REF, SessionWrite("put", window))
    assert await rig.rt.client.zcard(rig.keys.session(rig.sid(REF)).ids) < 6000
    again = await rig.rt[SessionStore].write(SCOPE, REF, SessionWrite("append", [system, message("m6049"), message("m5900")]))
    assert again.added == 0


async def test_session_list_is_ordered_and_pages_do_not_overlap(rig: Rig) -> None:
    names = [f"s{number}" for number in range(25)]
    for name in names:
        await rig.rt[SessionStore].write(SCOPE, SessionRef(name, "ns"), appending("a"))
    await rig.rt[SessionStore].write(SCOPE, SessionRef("s3", "ns"), appending("b"))
    seen: list[str] = []
    for offset in range(0, 30, 10):
        total, page = await rig.rt[SessionStore].list(SCOPE, "ns", None, offset, 10)
        assert total == 25
        seen += [ref.session_id for ref in page]
    assert seen == names


async def test_flushed_lua_script_is_loaded_again(rig: Rig) -> None:
    await rig.rt[SessionStore].write(SCOPE, REF, appending("a"))
    await rig.rt.client.script_flush()
    await rig.rt[SessionStore].write(SCOPE, REF, appending("b"))
    await rig.rt.client.script_flush()
    assert await rig.claim(DueKind.SESSION)
    assert await texts(rig) == ["a", "b"]


async def test_concurrent_writes_and_deletes_leave_a_consistent_session(rig: Rig) -> None:
    """In any order, the session is complete or deleted, and the journal matches it."""

    async def write(number: int) -> None:
        await rig.rt[SessionStore].write(SCOPE, REF, appending(f"m{number}"))

    async def delete() -> None:
        await asyncio.sleep(0)
        await rig.rt[SessionStore].delete(SCOPE, REF)

    await gathered([*(write(number) for number in range(60)), *(delete() for _ in range(20))])
    state = await rig.rt[SessionStore].get(SCOPE, REF)
    journal = await rig.rt[SessionStore].journal(rig.sid(REF), "jp", 100)
    if state is None:
        assert journal is None
        assert await rig.raw_keys() <= {"wake", "cfg"}
    else:
        assert journal is not None
        assert journal.epoch == state.epoch
        assert (
            [stored.seq for stored in state.messages]
            == [stored.seq for stored in journal.waiting]
            == list(range(1, len(state.messages) + 1))
        )


async def test_same_message_id_is_independent_between_sessions(rig: Rig) -> None:
    shared = str(ULID())
    for ref in (SessionRef("a"), SessionRef("b"), SessionRef("a", "n")):
        written = await rig.rt[SessionStore].write(SCOPE, ref, SessionWrite("append", [message("same", shared)]))
        assert written.added == 1
