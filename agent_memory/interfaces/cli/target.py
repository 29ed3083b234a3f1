"""Which server or store a command speaks to, and how it says so: a line on stderr, since stdout has the answer. Imports little."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.settings import Settings, load_settings

URL_VARIABLE = "AGENT_MEMORY_URL"
API_KEY_VARIABLE = "AGENT_MEMORY_API_KEY"


def named_server() -> str | None:
    """The server that the environment names; None when it names none."""
    return os.environ.get(URL_VARIABLE, "").strip() or None


def server_here(settings: Settings | None = None) -> str:
    """Where a server of this machine listens by the settings."""
    return f"http://127.0.0.1:{(settings or load_settings()).server.port}"


def base_of(url: str | None) -> str:
    """The server to ask: at `url`, else on this machine. Without a slash at its end."""
    return (url or server_here()).rstrip("/")


def shown_server(url: str) -> str:
    """A server's URL without credentials and query."""
    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
    except ValueError:
        return "the URL that was given"


def check_store_meant(command: str, options: str, named: bool) -> None:
    """For commands that no server does for others. Raises StartupError when the environment names a server, and `options` no store."""
    server = named_server()
    if server is not None and not named:
        raise StartupError(
            f"{command} works on a store itself, and AGENT_MEMORY_URL names the server {shown_server(server)}: "
            f"say with {options} which store is meant"
        )


def say_server(url: str) -> None:
    """Says which server answered."""
    print(f"agent-memory: server {shown_server(url)}", file=sys.stderr, flush=True)


def say_store(shown: str) -> None:
    """Says which store was opened."""
    print(f"agent-memory: store {shown}", file=sys.stderr, flush=True)


def sentence(answer: Any) -> str:
    """What a refusal says: the text of its `detail`, or the problems of a 422, each with its field named once."""
    detail = cast("dict[str, Any]", answer).get("detail", answer) if isinstance(answer, dict) else answer
    if not isinstance(detail, list):
        return str(detail)
    return "; ".join(_problem(entry) for entry in cast("list[Any]", detail))


def _problem(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    problem = cast("dict[str, Any]", entry)
    loc = cast("Sequence[Any]", problem.get("loc") or ())
    field = ".".join(str(part) for part in loc[1:])
    message = str(problem.get("msg", "is not accepted"))
    return message if not field or message.startswith(field) else f"{field}: {message}"
