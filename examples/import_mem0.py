"""Copy the memories of Mem0 into this server, with their ids, owners and dates. A second run overwrites the memories.

    pip install ./client mem0ai
    python examples/import_mem0.py --platform                  (reads Mem0's platform; MEM0_API_KEY names the key)
    python examples/import_mem0.py ada.json bo.json            (reads files that hold what `get_all` returned)

`--dry-run` only counts. `--key` or AGENT_MEMORY_API_KEY names a key of this server. docs/migrating-from-mem0.md says what is kept.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

try:
    from agent_memory_client import MemoryClientConfig
    from agent_memory_client.sync import SyncMemoryClient
except ImportError as missing:
    raise SystemExit(f"{missing.name} is missing: pip install ./client mem0ai") from None

BATCH = 100
EVERYTHING = {"OR": [{f"{kind}_id": "*"} for kind in ("user", "agent", "run", "app")]}


def platform_memories(host: str | None) -> Iterator[dict[str, Any]]:
    """Yield all memories of a project on Mem0's platform. Needs `mem0ai` 2.x and MEM0_API_KEY."""
    # Files are imported without `mem0ai`.
    client, page = import_module("mem0").MemoryClient(host=host), 0
    while True:
        page += 1
        answer = client.get_all(filters=EVERYTHING, page=page, page_size=BATCH)
        yield from answer["results"]
        if not answer["next"]:
            return


def file_memories(path: Path) -> list[dict[str, Any]]:
    """Return the memories of a file: a list, `{"results": [...]}`, or one memory per line."""
    text = path.read_text("utf-8")
    try:
        content = json.loads(text)
    except ValueError:
        content = [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(content, dict):
        content = content.get("results", [content])
    return content


def record_of(memory: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return a memory of Mem0 as a record of this server."""
    categories = memory.get("categories") or []
    metadata = dict(memory.get("metadata") or {})
    # The server's Mem0 API reads the app, and the names that a "*" in a filter matches, from these keys.
    if memory.get("app_id"):
        metadata["mem0_app_id"] = memory["app_id"]
    if named := [name for name in ("agent_id", "run_id") if memory.get(name)]:
        metadata["mem0_named"] = named
    record = {
        "id": memory["id"],
        "text": memory["memory"],
        "memory_type": "semantic",
        "namespace": namespace,
        "user_id": memory.get("user_id"),
        "agent_id": memory.get("agent_id"),
        "session_id": memory.get("run_id"),
        "created_at": memory.get("created_at"),
        "category": categories[0] if categories else None,
        "topics": categories or None,
        "expires_at": end_of(memory.get("expiration_date")),
        "metadata": metadata,
    }
    return {name: value for name, value in record.items() if value is not None}


def end_of(day: str | None) -> str | None:
    """Return the end of an expiration day in UTC."""
    return None if not day else (datetime.fromisoformat(day[:10]).replace(tzinfo=UTC) + timedelta(days=1)).isoformat()


def main() -> None:
    """Read, sort by date, write in batches, and count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, help="files that hold what get_all returned")
    parser.add_argument("--platform", action="store_true", help="read Mem0's platform")
    parser.add_argument("--mem0-host", help="another address of the platform")
    parser.add_argument("--url", default=os.environ.get("AGENT_MEMORY_URL", "http://127.0.0.1:8000"), help="this server")
    parser.add_argument("--key", default=os.environ.get("AGENT_MEMORY_API_KEY"), help="an API key of this server")
    parser.add_argument("--namespace", default="mem0", help="the namespace of the Mem0 API on this server")
    parser.add_argument("--dry-run", action="store_true", help="only count")
    options = parser.parse_args()
    if not options.platform and not options.files:
        parser.error("name files, or pass --platform")

    memories = list(platform_memories(options.mem0_host)) if options.platform else []
    memories += [memory for path in options.files for memory in file_memories(path)]
    now = datetime.now(UTC).isoformat()
    found = {memory["id"]: record_of(memory, options.namespace) for memory in memories}
    records = sorted(
        (record for record in found.values() if record["text"].strip() and record.get("expires_at", now) >= now),
        key=lambda record: record.get("created_at", now),
    )
    print(f"read {len(found)} memories; {len(found) - len(records)} are empty or expired")
    if options.dry_run:
        return
    with SyncMemoryClient(MemoryClientConfig(base_url=options.url, api_key=options.key)) as client:
        for start in range(0, len(records), BATCH):
            client.memories.create(records[start : start + BATCH], deduplicate=False)
            print(f"written {min(start + BATCH, len(records))} of {len(records)}")
        stored = client.memories.search("", namespace={"eq": options.namespace}, limit=1)
    print(f"the namespace {options.namespace} now holds {stored.total} memories")


if __name__ == "__main__":
    main()
