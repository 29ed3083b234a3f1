"""`agent-memory rebuild-index`: makes the search indexes anew from what is stored."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter

from rich.console import Console

from agent_memory.features.memories.upkeep.reindex import Reindexer
from agent_memory.foundation.core.logs import configure_logging
from agent_memory.interfaces.cli.store import existing_store, settings_with
from agent_memory.interfaces.cli.target import check_store_meant, say_store
from agent_memory.runtime import open_runtime


def rebuild(redis_url: str | None, data_dir: str | None, *, embed: bool, form: str) -> None:
    """Drops and builds the indexes, and with `embed` lets workers make every vector anew. Raises StartupError in one line."""
    check_store_meant("rebuild-index", "--redis-url or --data-dir", bool(redis_url or data_dir))
    settings = settings_with(redis_url, data_dir)
    configure_logging(settings.server.model_copy(update={"log_level": "WARNING"}))

    async def run() -> dict[str, int]:
        done: Counter[str] = Counter()
        async with (
            existing_store(settings, must_rest=True) as store,
            open_runtime(settings, store.url, data_dir=store.data_dir) as home,
        ):
            for runtime in home.all:
                done.update(await runtime[Reindexer].rebuild_indexes())
                done["to_embed"] += await runtime[Reindexer].mark_all_memories() if embed else 0
        say_store(store.shown)
        return done

    with Console(stderr=True, quiet=not sys.stderr.isatty()).status("building the indexes"):
        done = asyncio.run(run())
    if form == "json":
        print(json.dumps(done))
    else:
        print(f"indexed {done['memories']} memories, {done['vectors']} vectors and {done['sessions']} sessions")
        if embed:
            print(f"{done['to_embed']} memories get new vectors from the workers")
