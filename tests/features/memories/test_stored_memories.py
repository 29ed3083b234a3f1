"""Test the encoding of stored memories.

Encoding takes few steps. Decoding skips validation, even for memories from other versions.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, cast

import pytest
from pydantic import BaseModel

import agent_memory.interfaces.mcp.tools  # noqa: F401 # pyright: ignore[reportUnusedImport] - the server stores its models
from agent_memory.features.memories.records import TRUST, decode_memory, memory_digest, memory_fields, source_of
from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory.features.sessions.codec import decode_entry, decode_own, encode_own
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.keyspace import Keys, digest, new_mid
from agent_memory.foundation.text.normalization import kin, kin_name
from agent_memory_client.models import ANSWER, Evidence, ExtractedMemoryRecord, MemoryRecord, MemoryTypeEnum

_AT = datetime(2026, 5, 1, 12, 30, 0, 250_000, tzinfo=UTC)
_FULL = MemoryRecord(
    id="m",
    text="Ada plays the violin",
    user_id="ada",
    topics=["music"],
    created_at=_AT,
    event_date=_AT,
    expires_at=_AT,
    memory_type=MemoryTypeEnum.EPISODIC,
    metadata={"a": [1, {"b": 2.5}], "c": None},
    evidence=[Evidence(session_id="s", message_ids=["x"], at=_AT)],
    trust=0.5,
)


@pytest.mark.parametrize(
    "raw",
    [
        MemoryRecord(id="m", text="x").model_dump_json(),
        _FULL.model_dump_json(),
        _FULL.model_dump_json(exclude_none=True),
        _FULL.model_dump_json(exclude={"metadata", "updated_at"}).replace("{", '{"new_field": 1, ', 1),
        '{"id": "m", "text": "x", "created_at": "2026-05-01T14:30:00+02:00", "last_accessed": 1777638600, "memory_type": "semantic"}',
    ],
    ids=["plain", "full", "without nulls", "of another version", "of a program"],
)
def test_decoded_memory_equals_what_pydantic_reads(raw: str) -> None:
    wanted, found = MemoryRecord.model_validate_json(raw, context=ANSWER), decode_memory(raw.encode())
    for name in ("topics", "entities", "extracted_from"):
        setattr(wanted, name, getattr(wanted, name) or [])
    made = {"updated_at", "created_at", "last_accessed"} - wanted.model_fields_set
    assert found.model_copy(update={name: getattr(wanted, name) for name in made}) == wanted
    assert found.model_fields_set == wanted.model_fields_set
    assert [*vars(found)] == [*vars(wanted)]
    assert all(moment.tzinfo is UTC for moment in vars(found).values() if isinstance(moment, datetime))


_GIVEN: list[dict[str, Any]] = [
    {},
    {"user_id": "ada", "namespace": "home", "session_id": "s", "agent_id": "a", "slot": "instrument"},
    {"topics": ["music"], "entities": [], "metadata": {"a": None}, "pinned": True, "access_count": 3, "confidence": 0.5},
    {"user_id": None, "topics": None, "source_class": None},
    {"source_class": "tool", "extracted_from": ["x"], "memory_type": "message", "discrete_memory_extracted": "f"},
    {"source_class": "assistant", "event_date": 1777638600, "valid_to": "2026-05-01T14:30:00+02:00", "created_at": 1777638600.25},
    {"trust": 0.5, "evidence": [{"session_id": "s", "message_ids": ["x"], "source": "inference"}]},
    {"evidence": None, "trust": None},
    {"persisted_at": 1777638600, "recorded_at": 1777638600, "retired_at": 1777638600, "quarantine": "order", "approved": "x"},
]


@pytest.mark.parametrize("given", _GIVEN, ids=lambda given: " ".join(given) or "nothing more")
@pytest.mark.parametrize("kind", [MemoryRecord, ExtractedMemoryRecord])
def test_encoded_memory_equals_what_pydantic_writes(kind: type[MemoryRecord], given: dict[str, Any]) -> None:
    record = kind.model_validate({"id": "é", "text": 'She said ":null", Ⓐ\n'} | given)
    fields = memory_fields("t", record, "terms")
    trust = given.get("trust") or TRUST[source_of(record)]
    wanted = record.model_copy(update={"source_class": source_of(record), "trust": trust, "recorded_at": None, "retired_at": None})
    assert json.loads(cast("bytes", fields.own["j"])) == json.loads(wanted.model_dump_json(exclude_none=True))
    assert decode_memory(cast("bytes", fields.own["j"])).created_at == record.created_at
    own = {"persisted_at", "updated_at", "last_accessed", "recorded_at", "retired_at", "quarantine", "approved"}
    said = record.model_dump_json(exclude_unset=True, exclude=own).encode()
    assert fields.digest == memory_digest(record) == blake2b(said, digest_size=16).hexdigest()
    assert kin_name(record, "w") == repr(kin(record, "w"))


def _kinds(kind: type[MemoryRecord]) -> list[type[MemoryRecord]]:
    return [kind, *(below for one in kind.__subclasses__() for below in _kinds(one))]


def _containers(value: object) -> set[int]:
    """Return the ids of all lists and objects in a value, at any depth."""
    if isinstance(value, BaseModel):
        return _containers(vars(value))
    if isinstance(value, dict):
        return {id(value)}.union(*(_containers(one) for one in value.values()))
    return {id(value)}.union(*(_containers(one) for one in value)) if isinstance(value, list) else set()


@pytest.mark.parametrize("kind", _kinds(MemoryRecord), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("scope", [{}, {"user_id": "ada", "namespace": "home"}], ids=["no scope", "scope"])
def test_each_record_is_stored_with_its_own_defaults(kind: type[MemoryRecord], scope: dict[str, str]) -> None:
    def minimal(text: str) -> MemoryRecord:
        required = {"id": text, "dist": 0.0} if kind.model_fields["id"].is_required() else {}
        return kind.model_validate({"text": text, **required}).model_copy(update=scope)

    records = [minimal("one"), minimal("other")]
    stored = [json.loads(cast("bytes", memory_fields("t", record, "").own["j"])) for record in records]
    for record, found in zip(records, stored, strict=True):
        assert found == json.loads(record.model_copy(update={"source_class": "client", "trust": 1.0}).model_dump_json(exclude_none=True))
    assert stored[0]["id"] != stored[1]["id"]


@pytest.mark.parametrize(
    "read",
    [
        lambda: decode_memory(b'{"id": "m", "text": "x"}'),
        lambda: decode_memory(MemoryRecord(id="m", text="x").model_dump_json(exclude_none=True).encode()),
        lambda: decode_memory(_FULL.model_dump_json(exclude_none=True).encode()),
        lambda: decode_entry(b'1 1 {"i": "m", "r": "user", "c": "x", "t": "2026-05-01T00:00:00Z"}').message,
        lambda: decode_own(encode_own(MemoryRecord(id="m", text="x"), Scope("default"))).record,
        lambda: ShownMemory.of("m", MemoryRecord(id="m", text="x")).values,
    ],
    ids=["memory of little", "memory", "memory of much", "message", "waiting memory", "card"],
)
def test_decoding_twice_shares_no_mutable_value(read: Callable[[], object]) -> None:
    one, other = read(), read()
    assert _containers(one).isdisjoint(_containers(other))


def test_new_memory_key_equals_the_lookup_key() -> None:
    for tenant, name in (("default", "m"), ("é", "x" * 512), ("", "Ⓐ")):
        assert new_mid(tenant, name) == Keys("am").mid(tenant, name) == digest("memory", tenant, name)
