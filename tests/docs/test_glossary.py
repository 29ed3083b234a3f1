"""Test that the documented Redis keys and fields match the code and a real store."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
from redis.asyncio import Redis

from agent_memory.extensions.items.search_index import index_schemas as item_indexes
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search import indexes
from scripts.reference.key_table import table
from tests.support.cli import ROOT
from tests.support.key_spaces import key_names

FIELDS = (ROOT / "agent_memory" / "foundation" / "storage" / "fields.md").read_text("utf-8")
NAMED = set(re.findall(r"`([^`\n]+)`", FIELDS + table()))
PACKAGES = (ROOT / "agent_memory", ROOT / "worker" / "agent_memory_worker")
# Hashes whose fields are ids, digests or names.
BY_ID = (
    "bl",
    "bla",
    "blg",
    "blu",
    "use",
    "try",
    "why",
    "sv",
    "svp",
    "xr",
    "toks",
    "seen",
    "ev",
    "by",
    "j:o",
    "pf",
    "pfu",
    "pfx",
    "tl",
    "tlu",
    "itn",
    "ito",
)


def _first(key: str) -> str:
    """Return the kind of a key, which is the part before the first name."""
    return re.split(r"[:<]", key)[0]


def _sources() -> dict[Path, str]:
    files = [path for package in PACKAGES for kind in ("*.py", "*.lua") for path in package.rglob(kind)]
    return {path: path.read_text("utf-8") for path in files}


def _literals(text: str) -> set[str]:
    """Return the fields that appear in Redis hash commands in Lua and Python."""
    commands = re.findall(r"'H(?:SET|SETNX|GET|MGET|DEL|EXISTS|INCRBY)',.*?(?= then | end\b|$)", text, re.MULTILINE)
    calls = re.findall(r"\.h(?:set|setnx|get|mget|del|exists)\([^\n]*", text)
    # The arguments after the key. A literal joined with a name is a field that contains an id.
    words = [word for line in commands for word in re.findall(r"(?<!\.\. )'([a-z][a-z-]*)'(?! \.\.)", line.partition(",")[2])]
    return {*words, *(word for line in calls for word in re.findall(r'"([a-z][a-z-]*)"', line))}


def test_table_contains_every_key() -> None:
    kinds = {_first(key) for key in key_names()}
    assert len(kinds) > 40
    assert kinds - {_first(name) for name in NAMED} - {"<docket>", ""} == set()


def test_list_contains_every_index_field() -> None:
    keys, spec = Keys(), indexes.VectorSpec("m", 3)
    made = [*indexes.shared_schemas(keys, spec).values(), *item_indexes(keys, spec).values()]
    fields = {name for schema in made for name in schema.fields}
    assert len(fields) > 25
    assert fields - NAMED == {spec.field}
    assert "v_<digest>" in NAMED


def test_list_contains_every_field_named_by_a_command() -> None:
    missing = {name: str(path.relative_to(ROOT)) for path, text in _sources().items() for name in _literals(text) if name not in NAMED}
    assert missing == {}


async def test_list_contains_every_field_of_a_used_store(documented: str, lasting_redis_url: str) -> None:
    async with httpx.AsyncClient(base_url=documented, timeout=30) as http:
        owner = {"user_id": "glossary", "namespace": "words"}
        memory = {"id": "g1", "text": "Ada lives in Oslo.", "slot": "home", "topics": ["home"], "entities": ["Ada"], "metadata": {"a": 1}}
        dated = {"event_date": "2024-01-01T00:00:00Z", "valid_from": "2024-01-01T00:00:00Z", "valid_to": "2999-01-01T00:00:00Z"}
        said = {"role": "user", "content": "I am allergic to peanuts.", "name": "Ada"}
        session = {**owner, "messages": [said], "context": "c", "data": {"a": 1}, "memories": [{"id": "g2", "text": "Ada likes tea."}]}
        item = {"path": ["a"], "key": "k", "value": {"text": "Ada"}, "ttl_minutes": 9}
        for answer in (
            await http.put("/v1/items", params=owner, json=item),
            await http.post("/v1/long-term-memory/", json={"memories": [memory | dated | owner]}, headers={"Idempotency-Key": "glossary"}),
            await http.post("/v1/long-term-memory/", json={"memories": [memory | owner | {"id": "g3", "text": "Ada lives in Bergen."}]}),
            await http.put("/v1/working-memory/glossary", json=session | {"ttl_seconds": 60, "context_window_max": 9000}),
            await http.post(
                "/v1/working-memory/glossary/messages?wait=searchable", json={**owner, "messages": [said | {"content": "I keep bees."}]}
            ),
        ):
            assert answer.status_code < 300, answer.text
    root = "docs:{0}:"
    async with Redis.from_url(lasting_redis_url) as redis:
        kinds: set[str] = set()
        fields: set[str] = set()
        async for raw in redis.scan_iter(match=f"{root}*", count=1000):
            key = raw.decode().removeprefix(root)
            kinds.add(_first(key))
            if _first(key) not in BY_ID and not key.endswith((":o", ":s")) and await redis.type(raw) == b"hash":
                fields |= {name.decode() for name in await redis.hkeys(raw)}
    assert kinds >= {"w", "wd", "m", "h", "v", "cfg", "idem"}
    assert kinds - {_first(name) for name in NAMED} == set()
    # Hexadecimal fields are ids, for example of processes.
    assert {name for name in fields - NAMED if not re.fullmatch(r"v_.*|former .*|[0-9a-f]{32}", name)} == set()
