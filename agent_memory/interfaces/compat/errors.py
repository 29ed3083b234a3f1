"""Convert errors to the form of compatible APIs: one line of text and a status code."""

from __future__ import annotations

from pydantic import ValidationError

from agent_memory.foundation.core.errors import AgentMemoryError, BadInput, NotSupported, RetryLater

_MOST_TEXT = 400


def bad_input(error: ValidationError) -> BadInput:
    """Return the first problem in a body as an error that contains the field."""
    problem = error.errors(include_input=False, include_url=False)[0]
    return BadInput(problem["msg"], field=".".join(map(str, problem["loc"])) or "body")


def error_line(error: AgentMemoryError) -> str:
    """Return an error and its field as a single line of at most 400 characters."""
    if isinstance(error, NotSupported):
        text = f"{error.message} is not supported by this server"
    else:
        text = f"{error.field}: {error.message}" if isinstance(error, BadInput) else error.message
    return text[:_MOST_TEXT].encode("utf-8", "replace").decode()


def error_status(error: AgentMemoryError) -> tuple[int, dict[str, str] | None]:
    """Return the status code of an error response (400 instead of 422) and its headers."""
    headers = {"Retry-After": str(error.retry_after)} if isinstance(error, RetryLater) else None
    return (400 if error.status == 422 else error.status), headers
