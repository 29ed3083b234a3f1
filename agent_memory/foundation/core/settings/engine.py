"""Define options for the Redis query engine. `EMBEDDED` applies only to embedded Redis."""

from __future__ import annotations

# A search that times out fails instead of returning partial results. Prefix queries match up to a million tags.
REQUIRED: tuple[tuple[str, str], ...] = (
    ("TIMEOUT", "3000"),
    ("ON_TIMEOUT", "fail"),
    ("MINPREFIX", "1"),
    ("MAXEXPANSIONS", "1000000"),
)
# With this interval, word statistics exclude overwritten documents within seconds. Garbage in large indexes is
# collected less often (`embedded/upkeep.py`).
COLLECTOR_SECONDS = "5"
EMBEDDED: tuple[tuple[str, str], ...] = (
    ("FORK_GC_RUN_INTERVAL", COLLECTOR_SECONDS),
    ("FORK_GC_RETRY_INTERVAL", "5"),
    ("FORK_GC_CLEAN_THRESHOLD", "10"),
)
