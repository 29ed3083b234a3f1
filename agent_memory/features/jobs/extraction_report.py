"""What a session's journal says of the extraction of facts from it: how quick the model is, and which facts of its answers are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LAST_ASKED = "xa"
"""Messages of the last batch that a model was asked about, and how long (ms) that took."""
REFUSED = "xf"
"""How many facts of answers could not be used."""
LAST_REFUSED = "xw"
"""Why the last of them could not."""
_MOST_REASON = 200


def asked_report(messages: int, seconds: float, refused: Sequence[str]) -> dict[str, Any]:
    """Return what is written with the cursor after a batch: fields that are set, and by how much fields grow."""
    fields = {LAST_ASKED: f"{messages} {max(round(seconds * 1000), 1)}"}
    if refused:
        fields[LAST_REFUSED] = refused[-1][:_MOST_REASON]
    return {"fields": [part for item in fields.items() for part in item], "grows": [REFUSED, len(refused)] if refused else []}


def read_report(journal: Mapping[bytes, bytes]) -> dict[str, Any]:
    """Return the fields of an operation that tell of it."""
    messages, _, milliseconds = journal.get(LAST_ASKED.encode(), b"").decode().partition(" ")
    refused = int(journal.get(REFUSED.encode(), 0))
    why = journal.get(LAST_REFUSED.encode(), b"").decode("utf-8", "replace")
    notices = [f"{refused} facts of the model's answers could not be used and were left out; the last: {why}"] if refused else []
    return {"messages_per_minute": round(60_000 * int(messages) / int(milliseconds), 1) if messages else None, "notices": notices}
