"""How the query engine has to behave, wherever it runs."""

from __future__ import annotations

# A search that takes too long fails instead of answering with what it has so far, and prefix queries see every tag.
REQUIRED: tuple[tuple[str, str], ...] = (
    ("TIMEOUT", "3000"),
    ("ON_TIMEOUT", "fail"),
    ("MINPREFIX", "1"),
    ("MAXEXPANSIONS", "1000000"),
)
# Documents that were overwritten leave the word statistics within seconds; only an engine of our own is told, and of a large index the
# collector runs less often (`embedded/upkeep.py`).
COLLECTOR_SECONDS = "5"
EMBEDDED: tuple[tuple[str, str], ...] = (
    ("FORK_GC_RUN_INTERVAL", COLLECTOR_SECONDS),
    ("FORK_GC_RETRY_INTERVAL", "5"),
    ("FORK_GC_CLEAN_THRESHOLD", "10"),
)
