"""`agent-memory health`: does a running API live. Imports little, since containers ask every few seconds."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request

from agent_memory.foundation.core.errors import StartupError
from agent_memory.interfaces.cli.target import base_of, say_server, shown_server

_SECONDS = 5.0


def check_health(url: str | None) -> None:
    """Asks /v1/health of the API at `url` (default: this machine, the port of the settings). Raises StartupError when it is not well."""
    base = base_of(url)
    # Never through a proxy of the environment: this asks our own machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{base}/v1/health", timeout=_SECONDS) as answer:
            status = answer.status
    except urllib.error.HTTPError as error:
        status = error.code
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise StartupError(f"no server answers at {shown_server(base)}: {reason}") from error
    if status != 200:
        raise StartupError(f"the server at {shown_server(base)} answers /v1/health with status {status}")
    say_server(base)
