"""All routes, the busiest first: paths are matched in this order."""

from __future__ import annotations

from agent_memory.api.routes import (
    changes,
    compaction,
    forgetting,
    memories,
    operations,
    ops,
    persons,
    prompt,
    purging,
    quarantine,
    rules,
    search,
    tasks,
    tokens,
    views,
    working,
)

ROUTERS = (
    working.router,
    prompt.router,
    search.router,
    changes.router,
    memories.router,
    forgetting.router,
    compaction.router,
    purging.router,
    views.router,
    rules.router,
    tasks.router,
    operations.router,
    persons.router,
    quarantine.router,
    tokens.router,
    ops.router,
)
