"""`agent-memory rebuild-index`: makes the search indexes anew from what is stored."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter

from rich.console import Console

from agent_memory.cli.migrate import opened
from agent_memory.cli.run import check_redis_url
from agent_memory.logs import configure_logging
from agent_memory.settings import load_settings


def rebuild(given: dict[str, str], *, embed: bool, form: str) -> None:
    """Drops and builds the indexes, and with `embed` lets workers make every vector anew."""
    settings = load_settings(**given)
    configure_logging(settings.server.model_copy(update={"log_level": "WARNING"}))
    check_redis_url(settings)

    async def run() -> dict[str, int]:
        done: Counter[str] = Counter()
        async with opened(settings) as home:
            for runtime in home.all:
                done.update(await runtime.reindexer.rebuild())
                done["to_embed"] += await runtime.reindexer.mark_all() if embed else 0
        return done

    with Console(stderr=True, quiet=not sys.stderr.isatty()).status("building the indexes"):
        done = asyncio.run(run())
    if form == "json":
        print(json.dumps(done))
    else:
        print(f"indexed {done['memories']} memories, {done['vectors']} vectors and {done['sessions']} sessions")
        if embed:
            print(f"{done['to_embed']} memories get new vectors from the workers")
