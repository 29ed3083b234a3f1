"""Show the consent page, which tells users which app is requesting access to which memories."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcp.server.auth.handlers.authorize import AuthorizationRequest
from mcp.shared.auth import InvalidRedirectUriError
from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response

from agent_memory.features.access import audit
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.input.validation import first_problem
from agent_memory.foundation.core.scope import Principal, Role
from agent_memory.interfaces.console.frame import Fields, Page
from agent_memory.interfaces.console.paths import BASE
from agent_memory.interfaces.oauth_server.connections import Connections, Wish
from agent_memory.interfaces.oauth_server.provider import SCOPES, Provider, is_our_resource, is_safe_redirect, redirect_to
from agent_memory_client.models import Identifier

CONSENT_PATH = f"{BASE}/connect"
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}\Z")  # a SHA-256 digest
_MOST_NAME_CHARS = 60
_USER: TypeAdapter[str] = TypeAdapter(Identifier)


@dataclass(frozen=True, slots=True)
class _ConsentRequest:
    wish: Wish
    state: str | None
    name: str
    host: str


async def show_consent(page: Page) -> Response:
    """Ask whether to connect an app, and send the browser back to the app.

    Errors are shown on a page instead of being sent to the app.
    """
    issuer = (page.settings.server.public_url or "").rstrip("/")
    request = await _read(page, issuer)
    caller = page.principal
    assert caller is not None, "the page requires a login"
    if page.request.method == "GET":
        may_write = caller.role is not Role.READ and SCOPES[1] in request.wish.scopes
        return page.render(
            "connect/ask.html", app=request.name, goes_to=request.host, users=sorted(caller.users or ()), may_write=may_write
        )
    form = await page.form()
    allows = form.get("answer") == "allow"
    answer = {"code": await _approve(page, caller, request, form)} if allows else {"error": "access_denied"}
    # A redirect would be part of the form submission, which our content policy allows only to this server.
    target = redirect_to(request.wish.redirect_uri, issuer, request.state, **answer)
    return page.render("connect/return.html", app=request.name, target=target)


async def _read(page: Page, issuer: str) -> _ConsentRequest:
    try:
        request = AuthorizationRequest.model_validate(page.query)
    except ValidationError as error:
        field, reason = first_problem(error)
        raise BadInput(reason, field=field or "query", where="query") from None
    client = await Provider(page.runtime[Connections]).get_client(request.client_id)
    if client is None or request.redirect_uri is None:
        raise BadInput("is unknown here: let the app connect again", field="client_id", where="query")
    try:
        uri = client.validate_redirect_uri(request.redirect_uri)
    except InvalidRedirectUriError:
        uri = None
    if uri is None or not is_safe_redirect(uri):
        raise BadInput("is not registered for this client", field="redirect_uri", where="query")
    if not _CHALLENGE.match(request.code_challenge):
        raise BadInput("must be an S256 challenge", field="code_challenge", where="query")
    if request.resource is not None and not is_our_resource(issuer, request.resource):
        raise BadInput(f"this server is {issuer}/mcp", field="resource", where="query")
    # Other scopes, such as offline_access, have no meaning here.
    scopes = SCOPES if request.scope is None else [scope for scope in SCOPES if scope in request.scope.split()]
    if not scopes:
        raise BadInput(f"give {' or '.join(SCOPES)}", field="scope", where="query")
    # Names are not verified: characters that hide or reorder text could imitate another app.
    name = "".join(filter(str.isprintable, client.client_name or "")).strip()[:_MOST_NAME_CHARS] or request.client_id[:_MOST_NAME_CHARS]
    host = f"{uri.scheme}://{uri.host or ''}" if uri.scheme != "https" else uri.host or ""
    return _ConsentRequest(Wish(request.client_id, str(uri), request.code_challenge, scopes), request.state, name, host)


async def _approve(page: Page, caller: Principal, request: _ConsentRequest, form: Fields) -> str:
    """Connect the app and return its authorization code.

    Raises BadInput and the same errors as `Connections.approve`.
    """
    user = form.get("user", "").strip()
    try:
        users = frozenset({_USER.validate_python(user)}) if user else None
    except ValidationError as error:
        raise BadInput(first_problem(error)[1], field="user") from None
    can_write = form.get("role") == Role.WRITE.value and SCOPES[1] in request.wish.scopes and caller.role is not Role.READ
    wish = Wish(request.wish.client_id, request.wish.redirect_uri, request.wish.challenge, SCOPES if can_write else SCOPES[:1])
    description = f"{request.name} ({request.host})"
    role = Role.WRITE if can_write else Role.READ
    code, key_id = await page.runtime[Connections].approve(caller, wish, description, role, users)
    if page.settings.server.audit_log:
        ids = {"token_id": key_id, "user_id": user or None}
        request_id = page.request.scope["agent_memory.request_id"].decode()
        subject = caller.subject
        audit.record(operation="connect app", status=200, tenant=caller.tenant, actor=subject, ids=ids, request_id=request_id)
    return code
