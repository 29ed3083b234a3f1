"""Code shared by all pages."""

from __future__ import annotations

import gzip
import hmac
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, FileSystemLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from agent_memory import __version__
from agent_memory.features.access.browser_sessions import LIFETIME_SECONDS, BrowserSessions
from agent_memory.foundation.api.principals import EVERYBODY, PRINCIPAL
from agent_memory.foundation.api.responses import CONTENT_POLICY
from agent_memory.foundation.core.errors import AgentMemoryError, BadInput, Forbidden, TooLarge
from agent_memory.foundation.core.scope import Principal, Role
from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.console.assets import asset_path
from agent_memory.interfaces.console.paths import BASE
from agent_memory.interfaces.console.rest import Rest, RestError
from agent_memory.runtime import Runtime

CSRF_FIELD, CSRF_HEADER = "csrf", "x-csrf-token"
_COOKIE = "agent_memory_console"
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    b"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_MOST_FORM_BYTES = 1024 * 1024
_MOST_FIELDS = 50
# Other interfaces with pages have folders for UI strings and templates, too.
_INTERFACES = Path(__file__).parents[1]
_WORDS: dict[str, dict[str, str]] = {}
for _file in sorted(_INTERFACES.glob("*/words/*.json")):
    _WORDS.setdefault(_file.stem, {}).update(json.loads(_file.read_bytes()))


def _day(text: str) -> str:
    return moment(text).partition(",")[0]


def moment(text: str) -> str:
    """Format a time for display."""
    at = datetime.fromisoformat(text)
    return f"{at if at.tzinfo is None else at.astimezone(UTC):%-d %b %Y, %H:%M}"


def _origin(memory: Any) -> str | None:
    """Return the id of the first message that a memory came from."""
    cited = [name for each in memory.get("evidence") or () for name in each["message_ids"]]
    return next(iter(memory.get("extracted_from") or cited), None)


def _month(text: str) -> str:
    return f"{datetime.fromisoformat(text):%b %Y}"


# REST omits fields without a value: templates treat these as false.
_LOADER = FileSystemLoader(sorted(_INTERFACES.glob("*/templates")))
_TEMPLATES = Environment(loader=_LOADER, autoescape=True, trim_blocks=True, lstrip_blocks=True)
_TEMPLATES.filters |= {"moment": moment, "day": _day, "month": _month, "origin": _origin, "number": "{:,}".format}


class Fields(dict[str, str]):
    """Fields from a form or query. Raises BadInput if a field is missing."""

    def __missing__(self, name: str) -> str:
        raise BadInput("is required: add it", field=name)

    def number(self, name: str, default: int) -> int:
        """Return a field as an integer from 0 to 999,999,999. Raises BadInput."""
        text = self.get(name, str(default))
        if not (text.isascii() and text.isdecimal() and len(text) <= 9):
            raise BadInput("must be a whole number from 0 to 999,999,999", field=name)
        return int(text)


class Page:
    """A request from a browser to the console."""

    def __init__(self, request: Request, settings: Settings, rest_app: ASGIApp) -> None:
        self.request = request
        self.settings = settings
        self.query = Fields({name: value for name, value in request.query_params.items() if value.strip()})
        self._rest_app = rest_app
        self._cookie = request.cookies.get(_COOKIE, "")
        self._new_cookie: str | None = None
        if len(self._cookie) < 32:
            self._cookie = self._new_cookie = token_urlsafe(32)
        self.principal: Principal | None = None
        self.decisions = 0
        """The number of proposals and quarantined memories that await a decision."""
        self.key_names: dict[str, str] = {}
        """Descriptions of API keys, by key name in changes (`token:<id>`)."""

    @property
    def runtime(self) -> Runtime:
        return self.request.app.state.runtime

    @cached_property
    def rest(self) -> Rest:
        return Rest(self._rest_app, self.request, self.principal if self.settings.auth.required else None)

    @cached_property
    def words(self) -> dict[str, str]:
        """Return the UI strings in the browser's preferred supported language."""
        accepted = (part.split(";")[0].strip()[:2].lower() for part in self.request.headers.get("accept-language", "").split(","))
        return next((_WORDS[language] for language in accepted if language in _WORDS), _WORDS["en"])

    async def identify(self) -> bool:
        """Identify the caller. Return False if required credentials are missing."""
        if not self.settings.auth.required:
            self.principal = EVERYBODY
        else:
            self.principal = self.request.scope.get(PRINCIPAL) or await self.runtime[BrowserSessions].find_principal(self._cookie)
        return self.principal is not None

    def log_in(self, session: str) -> None:
        """Set the cookie for the browser's new session."""
        self._cookie = self._new_cookie = session

    async def log_out(self) -> None:
        await self.runtime[BrowserSessions].delete_session(self._cookie)
        self._cookie = self._new_cookie = token_urlsafe(32)

    async def read_if_allowed(self, path: str, **query: Any) -> Any:
        """Return the response to a GET request, or None if REST returns 403 or 404."""
        try:
            return await self.rest("GET", path, **query)
        except RestError as error:
            if error.status not in (403, 404):
                raise
            return None

    async def count_decisions(self) -> None:
        """Count pending reviews for the navigation. Skip counts that REST rejects."""
        for path in ("/v1/changes", "/v1/quarantine"):
            with suppress(RestError):
                self.decisions += (await self.rest("GET", path, limit=1, state="proposed" if path == "/v1/changes" else None))["total"]

    async def name_keys(self) -> None:
        """Load the names of API keys, which only administrators can read."""
        if self.settings.auth.required and self.principal is not None and self.principal.role is Role.ADMIN:
            token_list = await self.read_if_allowed("/v1/auth/tokens") or {"tokens": []}
            self.key_names = {f"token:{key['id']}": key["description"] for key in token_list["tokens"] if key["description"]}

    def writer_name(self, name: str) -> str:
        """Return a writer's display name, or the end of its id if the name is hidden."""
        if name in self.key_names or not name.startswith("token:"):
            return self.key_names.get(name, name)
        is_own = self.principal is not None and self.principal.subject == name
        return self.words["own_key"] if is_own else f"{self.words['some_key']} …{name[-4:]}"

    async def readiness(self) -> Any:
        try:
            return await self.rest("GET", "/v1/ready")
        except RestError as error:
            return {"ready": False, "checks": {}, "message": error.message}

    @property
    def csrf(self) -> str:
        return hmac.digest(self._cookie.encode(), b"csrf", "sha256").hex()

    async def form(self) -> Fields:
        """Return the fields of a form.

        Raises Forbidden if the form came from another site, TooLarge, or BadInput.
        """
        body = bytearray()
        async for part in self.request.stream():
            body += part
            if len(body) > _MOST_FORM_BYTES:
                raise TooLarge(f"this form is larger than {_MOST_FORM_BYTES:,} bytes: send less", limit=_MOST_FORM_BYTES)
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise BadInput("must be an encoded form", field="body") from None
        fields = Fields({name: value.replace("\r\n", "\n") for name, value in pairs})
        token = fields.pop(CSRF_FIELD, None) or self.request.headers.get(CSRF_HEADER, "")
        if not hmac.compare_digest(token.encode(), self.csrf.encode()):
            raise Forbidden(self.words["stale_form"])
        return fields

    def url(self, path: str = "", **query: Any) -> str:
        """Return a page's URL. Omit parameters that are None or empty."""
        parameters = {name: value for name, value in query.items() if value not in (None, "")}
        return f"{self._root}{BASE}{quote(path)}" + (f"?{urlencode(parameters)}" if parameters else "")

    def page_url(self, **query: Any) -> str:
        """Return this page's URL with different query parameters."""
        return self.url(self.path.removeprefix(BASE), **{**self.query, "done": None, "undo": None, "changed": None, **query})

    def local(self, address: str | None) -> str:
        """Return `address` if it is part of the console, or else the overview's URL."""
        begin = self._root + BASE
        return address if address and (address == begin or address.startswith((f"{begin}/", f"{begin}?"))) else begin

    def _asset(self, name: str) -> str:
        return self._root + asset_path(name)

    @property
    def path(self) -> str:
        return self.request.scope["path"].removeprefix(self._root)

    @property
    def host(self) -> str:
        return str(self.request.base_url).rstrip("/")

    @property
    def _root(self) -> str:
        return self.request.scope.get("root_path", "").rstrip("/")

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        request = self.request
        content = _TEMPLATES.get_template(template).render(
            asset=self._asset,
            by_key=self.settings.auth.takes_keys,
            by_provider=self.settings.auth.takes_jwts and self.settings.auth.oauth2_client_id is not None,
            can_administer=self.principal is not None and self.principal.role is Role.ADMIN,
            can_write=self.principal is not None and self.principal.role is not Role.READ,
            csrf=self.csrf,
            decisions=self.decisions,
            page_url=self.page_url,
            host=self.host,
            is_open=not self.settings.auth.required,
            language=self.words["language"],
            path=self.path,
            principal=self.principal,
            query=dict(self.query),
            root=self._root,
            status=status,
            t=self.words,
            url=self.url,
            version=__version__,
            writer_name=self.writer_name,
            **values,
        )
        request.scope[CONTENT_POLICY] = _POLICY
        headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding, Accept-Language, Cookie"}
        body = content.encode()
        # The compressed size cannot reveal the form token: other sites open pages without our strict cookie.
        if "gzip" in request.headers.get("accept-encoding", ""):
            body, headers["Content-Encoding"] = gzip.compress(body, 5, mtime=0), "gzip"
        return self._with_cookie(HTMLResponse(body, status, headers=headers))

    def redirect(self, address: str) -> Response:
        return self._with_cookie(RedirectResponse(address, 303))

    def _with_cookie(self, response: Response) -> Response:
        if self._new_cookie is not None:
            is_secure = self.request.url.scheme == "https" or (self.settings.server.public_url or "").startswith("https:")
            path = self._root + BASE
            response.set_cookie(
                _COOKIE, self._new_cookie, max_age=LIFETIME_SECONDS, path=path, secure=is_secure, httponly=True, samesite="strict"
            )
        return response


Handler = Callable[[Page], Awaitable[Response]]


def page_endpoint(
    handler: Handler, settings: Settings, rest_app: ASGIApp, *, public: bool = False
) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint for a route.

    It requires a login unless `public` is set, and shows errors as pages.
    """

    async def endpoint(request: Request) -> Response:
        page = Page(request, settings, rest_app)
        try:
            if not await page.identify() and not public:
                return page.redirect(page.url("/login", next=page.page_url() if request.method == "GET" else None))
            return await handler(page)
        except RestError as error:
            return page.render("parts/error.html", error.status, message=error.message)
        except AgentMemoryError as error:
            return page.render("parts/error.html", error.status, message=error.message)

    return endpoint
