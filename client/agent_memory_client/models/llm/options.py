"""Memory options for a model call: request headers, and response headers that report the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, cast
from urllib.parse import quote

from pydantic import BaseModel, Field

from agent_memory_client.models._types import Identifier, OptionalIdentifier, SessionIdentifier

PREFIX: Final = "x-memory"
HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "mode": "x-memory",
        "user_id": "x-memory-user",
        "session_id": "x-memory-session",
        "namespace": "x-memory-namespace",
        "agent_id": "x-memory-agent",
        "max_tokens": "x-memory-tokens",
        "upstream": "x-memory-upstream",
    }
)
"""The request header of each option."""
_MAX_IDS_CHARS = 4096


class CallOptions(BaseModel):
    """Whose memory a call uses, and how."""

    mode: Literal["on", "read", "off"] = "on"
    """`on` recalls memories and stores the new messages, `read` only recalls, `off` does neither."""
    user_id: OptionalIdentifier = None
    session_id: SessionIdentifier | None = None
    namespace: OptionalIdentifier = None
    agent_id: OptionalIdentifier = None
    max_tokens: Annotated[int, Field(ge=64, le=1_000_000)] | None = None
    """The maximum number of tokens to add."""
    upstream: Identifier | None = None
    """The name of the upstream. Only the proxy can have more than one."""


def read_options(headers: Mapping[str, str], body: Mapping[str, Any]) -> CallOptions:
    """Read options from lowercase headers.

    Missing ids are taken from the body's `user`, `metadata` and `conversation`. Raises
    ValidationError for invalid options.
    """
    values: dict[str, Any] = {name: value for name, header in HEADERS.items() if (value := headers.get(header))}
    body_metadata = body.get("metadata")
    metadata = cast("Mapping[str, Any]", body_metadata) if isinstance(body_metadata, dict) else {}
    conversation = body.get("conversation")
    named = cast("Mapping[str, Any]", conversation).get("id") if isinstance(conversation, dict) else conversation
    for name, choices in (("user_id", (metadata.get("user_id"), body.get("user"))), ("session_id", (metadata.get("session_id"), named))):
        if name not in values and (first_choice := next((choice for choice in choices if isinstance(choice, str) and choice), None)):
            values[name] = first_choice
    return CallOptions.model_validate(values)


def memory_headers(
    status: Literal["added", "nothing", "failed", "off"],
    *,
    tokens: int | None = None,
    memory_ids: Sequence[str] = (),
    session_id: str | None = None,
    stored: Literal["yes", "no", "failed"] = "no",
) -> dict[str, str]:
    """Return response headers that list what was added to a request.

    Ids are percent-encoded, up to 4 KB in total.
    """
    ids = ""
    for encoded in (quote(name, safe="") for name in memory_ids):
        if len(ids) + len(encoded) >= _MAX_IDS_CHARS:
            break
        ids += f",{encoded}" if ids else encoded
    values = {"status": status, "added": str(len(memory_ids)), "stored": stored}
    values |= {} if tokens is None else {"tokens": str(tokens)}
    values |= {"ids": ids} if ids else {}
    values |= {} if session_id is None else {"session": quote(session_id, safe="")}
    return {f"{PREFIX}-{name}": value for name, value in values.items()}
