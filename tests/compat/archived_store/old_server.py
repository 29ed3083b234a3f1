"""Fill Redis with data in the archived server's formats, including unusual records."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis
from ulid import ULID

from tests.registrations import registrations

BEGIN = datetime(2025, 3, 1, 9, 0, tzinfo=UTC)
PLACES = ("Lisbon", "Oslo", "Kyoto", "Quito", "Accra", "Perth", "Turin", "Galway")
THINGS = ("a bicycle", "two cats", "a telescope", "an old piano", "a sailing boat", "bees", "a vineyard")


def at(minutes: float) -> float:
    return BEGIN.timestamp() + 60 * minutes


@dataclass
class Left:
    """The expected data after a migration."""

    memories: dict[str, dict[str, Any]] = field(default_factory=dict[str, Any])
    sessions: dict[tuple[str | None, str | None, str], dict[str, Any]] = field(default_factory=dict[Any, Any])
    skipped: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


def memory(place: int) -> dict[str, Any]:
    """Return a regular memory for one of a few users and namespaces."""
    return {
        "id": str(ULID.from_bytes(int(at(place) * 1000).to_bytes(6, "big") + bytes([*range(9), place]))),
        "text": f"The friend number {place} lives in {PLACES[place % 8]} and keeps {THINGS[place % 7]}.",
        "user_id": ("ada", "ben", None)[place % 3],
        "namespace": ("work", None)[place % 2],
        "session_id": f"s{place % 5}" if place % 4 == 0 else None,
        "memory_type": ("semantic", "episodic")[place % 2],
        "topics": ["friends", f"topic {place % 4}"],
        "entities": [PLACES[place % 8]],
        "extracted_from": [f"m{place}", f"m{place + 1}"],
        "memory_hash": f"{place:064x}",
        "discrete_memory_extracted": "t",
        "pinned": place % 10 == 0,
        "access_count": place % 6,
        "created_at": at(place),
        "last_accessed": at(place + 1),
        "updated_at": at(place + 2),
        "persisted_at": at(place + 3) if place % 2 else None,
        "event_date": at(-60 * 24 * place) if place % 2 else None,
        "extraction_strategy": "discrete",
        "extraction_strategy_config": {},
        "metadata": {"number": place, "nested": {"list": [1, None]}},
    }


def hashed(one: dict[str, Any], vector: NDArray[np.float32] | None, *, joint: str = ",") -> dict[bytes, bytes]:
    """Return the hash that the archived server would store for a memory."""
    flat: dict[str, Any] = {"id_": one["id"]}
    for name, value in one.items():
        if name == "id" or value is None:
            continue
        if name in ("topics", "entities", "extracted_from"):
            flat[name] = joint.join(value)
        elif name in ("metadata", "extraction_strategy_config"):
            flat[name] = json.dumps(value)
        else:
            flat[name] = str(int(value)) if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)
    packed = {name.encode(): value.encode("utf-8", "surrogatepass") for name, value in flat.items()}
    return packed if vector is None else packed | {b"vector": vector.astype("<f4").tobytes()}


def session(place: int, *, flag: str = "t", **more: Any) -> dict[str, Any]:
    """Return a regular session document."""
    return {
        "session_id": f"talk-{place}",
        "namespace": ("work", None)[place % 2],
        "user_id": ("ada", None)[place % 3 == 0],
        "messages": [
            {
                "id": f"talk-{place}-{number}",
                "role": ("user", "assistant")[number % 2],
                "content": f"Line {number} of talk {place}: my {THINGS[number % 7]} needs a name.",
                "created_at": datetime.fromtimestamp(at(place + number), UTC).isoformat(),
                "persisted_at": None,
                "discrete_memory_extracted": flag,
            }
            for number in range(4)
        ],
        "memories": [],
        "context": f"They met in {PLACES[place % 8]}." if place % 2 else None,
        "tokens": 12 + place,
        "ttl_seconds": None,
        "data": {"step": place, "deep": {"list": [1, 2.5, None, "é"]}},
        "long_term_memory_strategy": {"strategy": "discrete", "config": {}},
        "created_at": int(at(place)),
        "last_accessed": int(at(place + 5)),
        "updated_at": int(at(place + 6)),
        **more,
    }


def key_of(one: dict[str, Any]) -> str:
    return "working_memory:" + ":".join(part for part in (one["namespace"], one["user_id"], one["session_id"]) if part)


async def fill(client: Redis, texts: dict[str, NDArray[np.float32]]) -> Left:
    """Fill an empty Redis. `texts` maps the regular memories' texts to their vectors."""
    left = Left()
    await _regular_memories(client, left, texts)
    await _odd_memories(client, left)
    await _sessions(client, left)
    for one in registrations():
        left.skipped |= await one.fill_moved(client)
    async with client.pipeline(transaction=False) as pipe:
        for number in range(2):
            pipe.set(f"auth_token:$2b$12${number:053d}", json.dumps({"description": "ci", "token_hash": "$2b$12$…"}))
        pipe.sadd("auth_tokens:list", "a", "b")
        pipe.set("task:1", "{}")
        pipe.set("extraction_pending:talk-1", "1")
        pipe.set("working_memory:migration:complete", "1")
        pipe.set("working_memory:migration:remaining", "0")
        pipe.xadd("memory-server:stream", {"a": "b"})
        pipe.set("somebody:else", "1")
        await pipe.execute()
    return left


async def _regular_memories(client: Redis, left: Left, texts: dict[str, NDArray[np.float32]]) -> None:
    async with client.pipeline(transaction=False) as pipe:
        for place in range(80):
            one = memory(place)
            pipe.hset(f"memory_idx:{one['id']}", mapping=hashed(one, texts[one["text"]], joint="|" if place % 5 == 0 else ","))
            left.memories[one["id"]] = one
        for number in range(12):  # messages of a session, as INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY stored them
            one = {
                **memory(number),
                "id": f"line-{number}",
                "text": f"user: line {number} about {THINGS[number % 7]}",
                "memory_type": "message",
                "session_id": "long talk",
                "user_id": "ada",
                "namespace": None,
                "extraction_strategy": "message",
                "created_at": at(1000 + number),
            }
            pipe.hset(f"memory_idx:{one['id']}", mapping=hashed(one, None))
            left.memories[one["id"]] = one
        await pipe.execute()


def memory_texts() -> Sequence[str]:
    """Return the texts of the memories that have a vector from the local model."""
    return [memory(place)["text"] for place in range(80)]


async def _odd_memories(client: Redis, left: Left) -> None:
    plain = {"topics": None, "entities": None, "metadata": {}, "pinned": False, "access_count": 0}
    odd: dict[str, tuple[dict[bytes, bytes], dict[str, Any]]] = {
        "bare": ({b"text": b"Only a text, no other field."}, {**plain, "text": "Only a text, no other field.", "memory_type": "semantic"}),
        "no such type": ({b"id_": b"no such type", b"text": b"x y", b"memory_type": b"dream"}, {**plain, "memory_type": "semantic"}),
        "bad dates": (
            {b"id_": b"bad dates", b"text": b"dates", b"created_at": b"1e99", b"event_date": b"nan", b"last_accessed": b"1741000000"},
            {**plain, "created_at": 1741000000.0, "event_date": None},
        ),
        "iso dates": (
            {b"id_": b"iso dates", b"text": b"iso", b"created_at": b"2024-02-29T12:00:00", b"pinned": b"True"},
            {**plain, "created_at": datetime(2024, 2, 29, 12, tzinfo=UTC).timestamp(), "pinned": True},
        ),
        "not utf-8": ({b"id_": b"not utf-8", b"text": b"caf\xe9 \x00 ole"}, {**plain, "text": "caf\ufffd \ufffd ole"}),
        "bad json": (
            {b"id_": b"bad json", b"text": b"json", b"metadata": b"{no", b"access_count": b"many"},
            {**plain, "metadata": {"unreadable": "{no"}},
        ),
        "{*} @user:(a|b) 'quoted' \"id\" 日本": ({b"text": "日本語 🎻".encode()}, {**plain, "text": "日本語 🎻"}),
        "long": ({b"id_": b"long", b"text": b"word " * 20_000}, {**plain, "text": "word " * 20_000}),
        "tags": (
            {b"id_": b"tags", b"text": b"tags", b"topics": b"a, b,,c,a", b"entities": b"x|y z|"},
            {**plain, "topics": ["a", "b", "c"], "entities": ["x", "y z"]},
        ),
        "other model": (
            {b"id_": b"other model", b"text": b"a vector of 1536 numbers", b"vector": np.ones(1536, "<f4").tobytes()},
            plain,
        ),
        "no number": ({b"id_": b"no number", b"text": b"a broken vector", b"vector": np.full(384, math.nan, "<f4").tobytes()}, plain),
    }
    async with client.pipeline(transaction=False) as pipe:
        for name, (fields, wanted) in odd.items():
            pipe.hset(f"memory_idx:{name}", mapping=fields)
            left.memories[name] = wanted
        pipe.hset("memory_idx:empty", mapping={b"id_": b"empty", b"text": b"  "})
        pipe.hset("memory_idx:no text", mapping={b"id_": b"no text"})
        pipe.hset("memory_idx:" + "x" * 600, mapping={b"text": b"an id of 600 letters"})
        pipe.set("memory_idx:a string", "?")
        await pipe.execute()
    left.skipped |= {("memory", name) for name in ("empty", "no text", "x" * 512, "a string")}


async def _sessions(client: Redis, left: Left) -> None:
    own = {"id": "own-1", "text": "Ada collects stamps.", "memory_type": "semantic", "topics": ["stamps"], "user_id": "ada"}
    documents = [session(place, flag="f" if place == 7 else "t") for place in range(40)]
    documents[3]["memories"] = [{**own, "persisted_at": "2025-03-01T10:00:00Z"}]
    documents[4]["memories"] = [{**own, "id": "own-2", "text": "Ada lost the blue stamp.", "persisted_at": None}]
    documents[5] |= {"long_term_memory_strategy": {"strategy": "summary", "config": {"max_summary_length": 100}}}
    documents[6] |= {"ttl_seconds": 90_000}
    documents[8] |= {"ttl_seconds": None, "messages": []}
    documents[9]["messages"][0]["persisted_at"] = "2025-03-01T10:00:00Z"
    documents[9]["messages"][0]["discrete_memory_extracted"] = "f"
    documents[10] |= {"user_id": "ä b/c:{x}", "session_id": "söme thing"}
    documents[11] |= {"namespace": "", "user_id": ""}
    async with client.pipeline(transaction=False) as pipe:
        for place, one in enumerate(documents):
            if place % 3 == 1:  # early releases
                pipe.set(key_of(one), json.dumps(one))
            else:
                pipe.execute_command("JSON.SET", key_of(one), ".", json.dumps(one))
            left.sessions[one["namespace"] or None, one["user_id"] or None, one["session_id"]] = one
        pipe.expire(key_of(documents[6]), 4000)
        pipe.expire(key_of(documents[8]), 4000)  # its last PUT had no ttl: the client expects that it never expires
        await pipe.execute()
    odd = {
        "bare": {"session_id": "bare"},
        "numbers": {"session_id": "numbers", "created_at": "soon", "tokens": "x", "ttl_seconds": "y", "data": [1], "messages": "z"},
        "lines": {
            "session_id": "lines",
            "created_at": int(at(0)),
            "messages": [
                {"role": "", "content": "no role", "id": None},
                {"role": "user", "content": ""},
                {"role": "tool", "content": [{"type": "text", "text": "parts"}], "created_at": at(3)},
                {"role": "user", "content": "nul \u0000 byte", "id": "a\u0000b", "created_at": "2025-03-01T12:00:00"},
                "not a message",
            ],
        },
    }
    async with client.pipeline(transaction=False) as pipe:
        for name, one in odd.items():
            pipe.execute_command("JSON.SET", f"working_memory:{name}", ".", json.dumps(one))
        pipe.set("working_memory:broken", b"{not json \xff")
        pipe.set("working_memory:a list", b"[1, 2]")
        pipe.execute_command("JSON.SET", "working_memory:a/b", ".", json.dumps(session(0, session_id="a/b")))
        pipe.rpush("working_memory:queue", "1")
        await pipe.execute()
    left.skipped |= {("session", name) for name in ("broken", "a list", "a/b", "queue")}
    left.sessions[None, None, "bare"] = {"messages": [], "data": {}, "context": None}
    left.sessions[None, None, "numbers"] = {"messages": [], "data": {"value": [1]}, "context": None, "ttl_seconds": None}
    left.sessions[None, None, "lines"] = {"data": {}, "context": None}
