"""Serve the packaged Swagger UI, and redirect `/` to the start page.

Each page's content security policy allows only resources from this server.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from fastapi import Request
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from agent_memory.foundation.api.responses import CONTENT_POLICY
from agent_memory.foundation.core.errors import NotFound

_FOLDER = Path(__file__).parent / "swagger_ui"
_SCRIPT, _STYLE, _ICON = "swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png"
_TYPES = {_SCRIPT: "text/javascript", _STYLE: "text/css", _ICON: "image/png"}
PATHS = frozenset({"/", "", "/favicon.ico", "/docs", "/redoc", "/openapi.json", *(f"/docs/{name}" for name in _TYPES)})
"""Public paths of these pages, with and without a trailing slash. They are not counted or audited."""

_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_DAY_SECONDS = 86_400


def pages(title: str, openapi_url: str, start_page: str) -> list[Route]:
    """Return the routes for `/`, `/docs` and `/redoc`.

    `/` redirects browsers to `start_page`. `/docs` shows the document at `openapi_url`.
    """

    async def start(request: Request) -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            raise NotFound("Not Found: the API begins at /v1, /docs shows it")
        return RedirectResponse(_root(request) + start_page, 303, headers={"Vary": "Accept"})

    async def docs(request: Request) -> HTMLResponse:
        root = _root(request)
        page = get_swagger_ui_html(
            openapi_url=root + openapi_url,
            title=title,
            swagger_js_url=f"{root}/docs/{_SCRIPT}",
            swagger_css_url=f"{root}/docs/{_STYLE}",
            swagger_favicon_url=f"{root}/docs/{_ICON}",
            # Otherwise Swagger UI sends the document to an external validator.
            swagger_ui_parameters={"validatorUrl": None},
        )
        return _with_policy(request, page)

    async def file(request: Request) -> FileResponse:
        name = request.url.path.rpartition("/")[2].replace("favicon.ico", _ICON)
        return FileResponse(_FOLDER / name, media_type=_TYPES[name], headers={"Cache-Control": f"public, max-age={_DAY_SECONDS}"})

    async def redoc(request: Request) -> RedirectResponse:
        return RedirectResponse(_root(request) + "/docs")

    files = [Route(f"/docs/{name}", file, include_in_schema=False) for name in _TYPES]
    named = {"/": start, "/favicon.ico": file, "/docs": docs, "/redoc": redoc}
    return [*(Route(path, page, include_in_schema=False) for path, page in named.items()), *files]


def _root(request: Request) -> str:
    return request.scope.get("root_path", "").rstrip("/")


def _with_policy(request: Request, page: HTMLResponse) -> HTMLResponse:
    """Allow only the page's own scripts, identified by their digests."""
    digests = " ".join(f"'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in _INLINE.findall(bytes(page.body)))
    policy = (
        f"default-src 'none'; script-src 'self' {digests}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    request.scope[CONTENT_POLICY] = policy.encode()
    return page
