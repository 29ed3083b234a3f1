"""Test the Redis encoding: keys cannot collide, and models survive a round trip."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from hashlib import blake2b
from unicodedata import normalize

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.features.memories.records import decode_memory, memory_digest
from agent_memory.features.sessions.codec import content_mark, decode_entry, decode_own, encode_message, encode_own, message_identity
from agent_memory.foundation.core.clock import iso
from agent_memory.foundation.core.scope import Rights, Scope, SessionRef
from agent_memory.foundation.storage.keyspace import Keys, digest, tag, untag
from agent_memory_client.models import ExtractedMemoryRecord, MemoryMessage, MemoryRecord

# As requests send them: an id is the same in every Unicode composition.
NAME = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40).map(lambda name: normalize("NFC", name))
PART = st.one_of(st.none(), NAME)
WHEN = st.datetimes(timezones=st.just(UTC))
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1).filter(
    lambda text: bool(text.strip()) and not any(ord(c) < 32 and c not in "\t\n\r" for c in text)
)


@given(st.lists(PART, max_size=4), st.lists(PART, max_size=4))
def test_digests_are_equal_only_for_equal_parts(one: list[str | None], other: list[str | None]) -> None:
    assert (digest(*one) == digest(*other)) == (one == other)


@given(NAME, PART, PART, NAME, PART, PART)
def test_session_keys_are_equal_only_for_equal_identities(
    a: str, b: str | None, c: str | None, d: str, e: str | None, f: str | None
) -> None:
    keys = Keys()
    one, other = SessionRef(a, b, c), SessionRef(d, e, f)
    assert (keys.sid("t", one) == keys.sid("t", other)) == (one == other)
    assert keys.sid("t", one) != keys.sid("u", one)


def test_moving_a_border_between_parts_changes_the_digest() -> None:
    parts = [
        ("a", "b:c"),
        ("a:b", "c"),
        ("ab", "c"),
        ("a", "bc"),
        ("abc",),
        ("a", "b", "c"),
        ("", "abc"),
        (None, "abc"),
        ("1:a",),
        ("-", "a"),
    ]
    assert len({digest(*part) for part in parts}) == len(parts)


@given(NAME)
def test_tags_are_hexadecimal_and_reversible(value: str) -> None:
    assert untag(tag(value)) == value
    assert set(tag(value)) <= set("0123456789abcdef")


@given(NAME, NAME)
def test_a_prefix_of_a_value_is_a_prefix_of_its_tag(one: str, other: str) -> None:
    assert tag(one + other).startswith(tag(one))
    assert tag(other).startswith(tag(one)) == other.startswith(one)


@given(TEXT, NAME, WHEN, st.one_of(st.none(), WHEN), st.sampled_from("tf"), st.integers(1, 2**53), st.integers(0, 10**9), st.booleans())
def test_message_is_decoded_unchanged(
    text: str, name: str, at: datetime, stored: datetime | None, flag: str, seq: int, tokens: int, promote: bool
) -> None:
    message = MemoryMessage.model_construct(
        role=name, content=text, id=name, created_at=at, persisted_at=stored, discrete_memory_extracted=flag
    )
    entry = f"{'' if promote else '-'}{seq} {tokens} {encode_message(message)}".encode()
    back = decode_entry(entry)
    assert (back.seq, back.tokens, back.promote) == (seq, tokens, promote)
    assert back.message.model_dump() == message.model_dump()


def test_message_identity_covers_id_content_and_role_only() -> None:
    base = MemoryMessage(role="user", content="a", id="1")
    assert message_identity(base) == message_identity(base.model_copy(update={"created_at": datetime(2000, 1, 1, tzinfo=UTC)}))
    for change in ({"id": "2"}, {"content": "b"}, {"role": "assistant"}):
        assert message_identity(base) != message_identity(base.model_copy(update=change))
    shifted = [MemoryMessage(role="userx", content="y", id="1"), MemoryMessage(role="user", content="xy", id="1")]
    assert message_identity(shifted[0]) != message_identity(shifted[1])


def test_memory_digest_ignores_only_server_times() -> None:
    def one(**more: object) -> MemoryRecord:
        return MemoryRecord.model_validate({"id": "1", "text": "a", **more})

    base = memory_digest(one())
    assert memory_digest(one()) == base
    for field in ("persisted_at", "updated_at", "last_accessed"):
        assert memory_digest(one(**{field: "2000-01-01T00:00:00Z"})) == base
    for change in ({"text": "b"}, {"user_id": "u"}, {"pinned": True}, {"topics": []}, {"created_at": 0}, {"metadata": {"a": 1}}):
        assert memory_digest(one(**change)) != base


def test_memory_digest_equals_the_hash_of_its_json() -> None:
    given_: dict[str, object] = {
        "text": 'é "\n',
        "pinned": True,
        "topics": ["a"],
        "metadata": {"b": None, "a": [1.0, 2**70]},
        "slot": None,
        "trust": 1,
        "category": "c",
        "memory_type": "episodic",
        "event_date": "2026-05-01T10:00:00.5+02:00",
        "valid_to": 0,
        "updated_at": 0,
        "evidence": [{"message_ids": ["m"]}],
        "extraction_strategy_config": {"x": True},
        "user_id": None,
        "supersedes": ["s"],
    }
    names = list(given_)
    for many in range(len(names) + 1):
        for some in (names[:many], names[many:], names[many : many + 1]):
            record = ExtractedMemoryRecord.model_validate({"text": "t", **{name: given_[name] for name in some}, "id": "1"})
            whole = record.model_dump_json(exclude_unset=True, exclude={"updated_at"}).encode()
            assert memory_digest(record) == blake2b(whole, digest_size=16).hexdigest()


def test_waiting_memory_keeps_its_given_fields_and_the_writers_rights() -> None:
    given_ = MemoryRecord.model_validate({"id": "1", "text": "é 😀", "topics": ["a"]})
    limited = Scope("default", users=frozenset({"ada", "bob"}))
    back, rights, written = decode_own(encode_own(given_, limited))
    assert rights == Rights(None, frozenset({"ada", "bob"}), None)
    assert written is None
    assert back == given_
    assert back.model_fields_set == {"id", "text", "topics"}
    later = MemoryRecord.model_validate({"id": "1", "text": "é 😀", "topics": ["a"]})
    assert memory_digest(back) == memory_digest(later)
    assert decode_own(encode_own(given_, Scope("default"))).rights == Rights()


def test_content_mark_is_the_same_for_every_notation_of_a_memory() -> None:
    base = MemoryRecord.model_validate({"id": "1", "text": "a", "topics": ["x"]})
    for same in (base.model_dump(mode="json"), {"id": "1", "text": "a", "topics": ["x"], "entities": [], "user_id": "", "created_at": 0}):
        assert content_mark(MemoryRecord.model_validate(same)) == content_mark(base)
    for other in ({"text": "b"}, {"topics": []}, {"user_id": "u"}, {"pinned": True}, {"metadata": {"a": 1}}, {"memory_type": "episodic"}):
        assert content_mark(base.model_copy(update=other)) != content_mark(base)


def test_times_are_sent_in_utc() -> None:
    at = datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert iso(at) == "2024-01-01T06:30:00+00:00"


def test_stored_memory_may_exceed_the_callers_length_limit() -> None:
    raw = MemoryRecord.model_construct(
        **dict(MemoryRecord(id="1", text="x")) | {"text": "x" * 100_000, "extracted_from": ["a,b"]}
    ).model_dump_json()
    assert len(decode_memory(raw.encode()).text) == 100_000
