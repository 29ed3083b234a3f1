"""Queue the look-alike's faults."""

from __future__ import annotations

import threading
from dataclasses import dataclass

TRANSPORT = frozenset({"500", "503", "429", "401", "403", "404", "400", "timeout", "drip", "html", "null", "garbage_body"})
CHAT = frozenset(
    {
        "garbage",
        "fenced",
        "prose_around",
        "thinking",
        "truncated",
        "wrong_types",
        "refusal",
        "empty_choices",
        "no_content",
        "length",
        "parts",
    }
)
EMBEDDINGS = frozenset({"wrong_dimension", "nan", "zero", "short_batch", "shuffled", "ragged"})
# The server lacks these features until they are cleared; the other faults are queued and occur one after the other.
REJECTS = frozenset(
    {
        "reject_json_schema",
        "reject_response_format",
        "reject_max_tokens",
        "reject_max_completion_tokens",
        "reject_dimensions",
        "reject_base64",
        "reject_long",
        "reject_pictures",
        "ignore_response_format",
        "reject_stream",
        "reject_stream_options",
        "ignore_stream",
    }
)


@dataclass
class Fault:
    """A kind of fault, its remaining calls (None: unlimited), and its endpoint (None: all)."""

    kind: str
    times: int | None
    endpoint: str | None


class Script:
    """A thread-safe queue of faults."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: list[Fault] = []
        self._rejects: set[str] = set()

    def add(self, kind: str, times: int | None = None, endpoint: str | None = None) -> None:
        """Queue a fault. Raise ValueError if the kind is unknown."""
        with self._lock:
            if kind in REJECTS:
                self._rejects.add(kind)
            elif kind in TRANSPORT | CHAT | EMBEDDINGS:
                only = "chat" if kind in CHAT else (endpoint or "embeddings") if kind in EMBEDDINGS else endpoint
                self._queue.append(Fault(kind, times, only))
            else:
                raise ValueError(f"there is no fault {kind!r}")

    def clear(self) -> None:
        with self._lock:
            self._queue.clear()
            self._rejects.clear()

    def rejects(self, kind: str) -> bool:
        """True if the server rejects or ignores this parameter."""
        with self._lock:
            return kind in self._rejects

    def next(self, endpoint: str) -> str | None:
        """Consume and return the next fault for this endpoint, if there is one."""
        with self._lock:
            for fault in self._queue:
                if fault.endpoint in (None, endpoint):
                    if fault.times is not None:
                        fault.times -= 1
                        if fault.times <= 0:
                            self._queue.remove(fault)
                    return fault.kind
        return None
