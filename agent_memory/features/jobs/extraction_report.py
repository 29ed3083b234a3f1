"""Journal fields that report on a session's extraction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LAST_BATCH = "xa"
"""The number of messages in the last batch, and the time the model took (ms)."""
REFUSED = "xf"
"""The number of unusable facts."""
LAST_REFUSED = "xw"
"""Why the latest unusable fact was rejected."""
_MOST_REASON = 200


def batch_report(messages: int, seconds: float, refused: Sequence[str]) -> dict[str, Any]:
    """Return the journal fields to set and increment."""
    fields = {LAST_BATCH: f"{messages} {max(round(seconds * 1000), 1)}"}
    if refused:
        fields[LAST_REFUSED] = refused[-1][:_MOST_REASON]
    return {"fields": [part for item in fields.items() for part in item], "grows": [REFUSED, len(refused)] if refused else []}


def read_report(journal: Mapping[bytes, bytes]) -> dict[str, Any]:
    messages, _, milliseconds = journal.get(LAST_BATCH.encode(), b"").decode().partition(" ")
    refused = int(journal.get(REFUSED.encode(), 0))
    why = journal.get(LAST_REFUSED.encode(), b"").decode("utf-8", "replace")
    notices = [f"{refused} facts of the model's answers could not be used and were left out; the last: {why}"] if refused else []
    return {"messages_per_minute": round(60_000 * int(messages) / int(milliseconds), 1) if messages else None, "notices": notices}
