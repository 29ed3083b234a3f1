"""`agent-memory health`: does a running API live. Imports little, since containers ask every few seconds."""

from __future__ import annotations

import urllib.error
import urllib.request

from agent_memory.settings import load_settings

_SECONDS = 5.0


def healthy(url: str | None) -> bool:
    """Whether the API at `url` (default: this machine, the port of the settings) answers /v1/health."""
    base = url.rstrip("/") if url else f"http://127.0.0.1:{load_settings().server.port}"
    # Never through a proxy of the environment: this asks our own machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{base}/v1/health", timeout=_SECONDS) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError, urllib.error.URLError):
        return False
