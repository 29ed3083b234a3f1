"""Options of the query engine, wherever it runs."""

from __future__ import annotations

# A slow search fails instead of returning partial results; prefix queries match every tag.
REQUIRED: tuple[tuple[str, str], ...] = (
    ("TIMEOUT", "3000"),
    ("ON_TIMEOUT", "fail"),
    ("MINPREFIX", "1"),
    ("MAXEXPANSIONS", "1000000"),
)
# Overwritten documents leave the word statistics within seconds. Large indexes are collected less often
# (`embedded/upkeep.py`).
COLLECTOR_SECONDS = "5"
EMBEDDED: tuple[tuple[str, str], ...] = (
    ("FORK_GC_RUN_INTERVAL", COLLECTOR_SECONDS),
    ("FORK_GC_RETRY_INTERVAL", "5"),
    ("FORK_GC_CLEAN_THRESHOLD", "10"),
)
