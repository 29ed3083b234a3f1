"""Define FastAPI dependencies that several endpoints share."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple, Protocol

from fastapi import Depends, Header, Path, Query, Request
from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from agent_memory.foundation.api.principals import administering, principal_of_request, scope_of_request, writing
from agent_memory.foundation.core.errors import Unauthenticated, Unavailable, UnsupportedRequest, VersionMismatch
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.scope import Principal, Scope
from agent_memory.foundation.core.task_kinds import MAX_WAIT_SECONDS
from agent_memory_client.models import Identifier, MessageStage, OptionalIdentifier, SessionIdentifier, WindowTokens

STOPPING = "agent_memory.stopping"
"""Key in the ASGI scope. True while the process is stopping."""
_WAIT_SECONDS = 10.0
_SECONDS = {"true": _WAIT_SECONDS, "false": 0.0}
_ETAG = re.compile(r'(?:W/)?"([^"]*)"\Z')


class OpenedStore(Protocol):
    """The part of the runtime that routes use."""

    @property
    def services(self) -> Services: ...

    @property
    def others(self) -> Sequence[OpenedStore]: ...

    def of(self, tenant: str, /) -> OpenedStore: ...


def home_of(request: Request) -> OpenedStore:
    """Return the runtime for a request that does not involve a tenant. Raises Unavailable."""
    runtime: OpenedStore | None = request.scope["app"].state.runtime
    if runtime is None:
        raise Unavailable("the server is starting: try again")
    return runtime


def services_of(request: Request) -> Services:
    """Return the services for the caller's tenant.

    Raises Unavailable during startup. May raise Unauthenticated if there is more than one bucket.
    """
    home = home_of(request)
    return (home.of(scope_of(request).tenant) if home.others else home).services


def scope_of(request: Request) -> Scope:
    """Return the caller's scope. Raises Unauthenticated."""
    return scope_of_request(request.scope["app"].state.settings, request.scope)


def writing_scope_of(request: Request) -> Scope:
    """Return the caller's scope for a write. Raises Unauthenticated or Forbidden."""
    return writing(scope_of(request))


def admin_scope_of(request: Request) -> Scope:
    """Return an administrator's scope. Raises Unauthenticated or Forbidden."""
    return administering(scope_of(request))


def caller_of(request: Request) -> Principal:
    """Return the caller. Raises Unauthenticated."""
    return principal_of_request(request.scope["app"].state.settings, request.scope)


def version_of(if_match: str | None) -> str | None:
    """Return the version in an `If-Match` header, or None if the header is missing.

    `*` matches any existing session. Raises UnsupportedRequest or VersionMismatch.
    """
    if if_match is None:
        return None
    text = if_match.strip()
    if text == "*":
        return text
    match = _ETAG.match(text)
    if match is None:
        message = 'If-Match must be one version in quotation marks, as the ETag header gives it, such as "3", or *'
        raise UnsupportedRequest(message, field="If-Match", where="header")
    tag = match[1]
    if not (tag.isascii() and tag.isdecimal() and len(tag) <= 15):
        raise VersionMismatch(f"the session has no version {tag[:40]}: read it again and send its ETag")
    return str(int(tag))


def required_version(if_match: str | None, if_none_match: str | None) -> str | None:
    """Return "absent" for `If-None-Match: *`, otherwise the version from `If-Match`.

    Raises UnsupportedRequest or VersionMismatch.
    """
    if if_none_match is None:
        return version_of(if_match)
    if if_none_match.strip() != "*" or if_match is not None:
        raise UnsupportedRequest("If-None-Match must be * and the only precondition", field="If-None-Match", where="header")
    return "absent"


def is_authenticated(request: Request) -> bool:
    """True if the credentials are valid or none are required."""
    try:
        caller_of(request)
    except Unauthenticated:
        return False
    return True


def is_stopping(request: Request) -> bool:
    return request.scope.get(STOPPING, False)


class OwnerParameters(BaseModel):
    """The query parameters that identify the owner of the requested data."""

    user_id: Annotated[OptionalIdentifier, Field(description="The user that owns the data.")] = None
    namespace: Annotated[OptionalIdentifier, Field(description="The namespace of the data.")] = None


class AgentOwnerParameters(OwnerParameters):
    agent_id: Annotated[OptionalIdentifier, Field(description="The agent that owns the data.")] = None


class MessageWait(NamedTuple):
    """The processing stage to wait for, and the maximum wait in seconds."""

    stage: MessageStage
    seconds: float


def _message_wait(values: list[str]) -> object:
    text = values[-1].lower()  # FastAPI passes a list, because it treats a NamedTuple as a sequence
    if text in ("promoted", "searchable"):
        return MessageWait("promoted" if text == "promoted" else "searchable", _WAIT_SECONDS)
    seconds = _wait_seconds(text, "promoted, searchable, ")
    return MessageWait("searchable", seconds) if seconds else None


def _wait_seconds(value: object, others: str = "") -> float:
    text = str(value).lower()
    try:
        seconds = _SECONDS[text] if text in _SECONDS else float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= MAX_WAIT_SECONDS:
        raise ValueError(f"must be {others}true, false, or seconds from 0 to {MAX_WAIT_SECONDS:g}")
    return seconds


ServicesDep = Annotated[Services, Depends(services_of)]
# Every operation takes one of these three scopes, so that its signature shows the role that it requires.
ScopeDep = Annotated[Scope, Depends(scope_of)]
WriteScopeDep = Annotated[Scope, Depends(writing_scope_of)]
AdminScopeDep = Annotated[Scope, Depends(admin_scope_of)]
AuthenticatedDep = Annotated[bool, Depends(is_authenticated)]
StoppingDep = Annotated[bool, Depends(is_stopping)]
CallerDep = Annotated[Principal, Depends(caller_of)]

SessionPath = Annotated[SessionIdentifier, Path(description="The session's id, without `/`.")]
MemoryPath = Annotated[Identifier, Path(description="The memory's id, which may contain `/`.")]
UserQuery = Annotated[OptionalIdentifier, Query(description="The user that owns the data.")]
NamespaceQuery = Annotated[OptionalIdentifier, Query(description="The namespace of the data.")]
OwnerQuery = Annotated[OwnerParameters, Query()]
AgentOwnerQuery = Annotated[AgentOwnerParameters, Query()]
TimezoneQuery = Annotated[
    str | None, Query(max_length=64, description="The time zone for days, such as `Europe/Berlin`. Default: the user's.")
]
ModelQuery = Annotated[str | None, Query(max_length=256, description="The name of any model. Its context window is used.")]
WindowQuery = Annotated[WindowTokens | None, Query(description="The context window in tokens. Overrides `model_name`.")]
OptimizeQuery = Annotated[bool, Query(description="Let the model rewrite the query before the search.")]
IfMatch = Annotated[str | None, Header(alias="If-Match", max_length=64, description="The ETag that the session must have, or `*`.")]
WaitQuery = Annotated[
    float,
    BeforeValidator(_wait_seconds),
    Query(ge=0, le=20, allow_inf_nan=False, description="Seconds to wait for background work. `true` waits up to 10, 0 does not wait."),
]
MessageWaitQuery = Annotated[
    MessageWait | None,
    BeforeValidator(_message_wait),
    Query(
        description="Wait up to 10 s for the messages to become long-term memories (`promoted`) or searchable by meaning "
        "(`searchable`). `true` or a number of seconds (up to 20) waits for `searchable`. "
        "`reached` in the response is the stage reached."
    ),
    WithJsonSchema({"anyOf": [{"enum": ["promoted", "searchable"]}, {"type": "number", "minimum": 0, "maximum": 20}, {"type": "boolean"}]}),
]
IfNoneMatch = Annotated[
    str | None, Header(alias="If-None-Match", max_length=64, description="`*`: only if the session does not exist yet.")
]
