"""The start page, and the API document in the packaged Swagger UI.

Each page's content policy allows only its own parts.
"""

from __future__ import annotations

import html
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from fastapi import Request
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from agent_memory.foundation.core.errors import NotFound

CONTENT_POLICY = "agent_memory.content_policy"
"""Key in an ASGI scope: the Content-Security-Policy of a page."""

_FOLDER = Path(__file__).parent / "swagger_ui"
_SCRIPT, _STYLE, _ICON = "swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png"
_TYPES = {_SCRIPT: "text/javascript", _STYLE: "text/css", _ICON: "image/png"}
PATHS = frozenset({"/", "", "/favicon.ico", "/docs", "/redoc", "/openapi.json", *(f"/docs/{name}" for name in _TYPES)})
"""Paths of the pages, with and without a trailing slash: open to everybody, neither counted nor audited."""

_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_DAY_SECONDS = 86_400
_STYLE_OF_START = "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}pre{overflow-x:auto}"
_START = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>agent-memory</title><link rel="icon" href="{root}/favicon.ico"><style>{style}</style></head>
<body>
<h1>agent-memory {version}</h1>
<p>The memory server for AI agents answers here. It is spoken to by programs.</p>
<ul>
<li><a href="{root}/docs">All requests, to read and to try</a></li>
<li><a href="{root}/v1/ready">Whether it is ready</a>, <a href="{root}/v1/health">whether it lives</a></li>
</ul>
<p>Search what it remembers of a user, on its machine or from another one:</p>
<pre>agent-memory search "What must Ada not eat?" --user ada</pre>
<pre>curl {address}/v1/long-term-memory/search -H 'content-type: application/json' \\
  -d '{{"text": "What must Ada not eat?", "user_id": {{"eq": "ada"}}}}'</pre>
</body>
</html>
"""


def pages(title: str, version: str, openapi_url: str) -> list[Route]:
    """Return `/` for browsers, `/docs` for the document at `openapi_url`, its files, and `/redoc`, its other name."""

    async def start(request: Request) -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            raise NotFound("Not Found: the API begins at /v1, /docs shows it")
        here, address = _root(request), html.escape(str(request.base_url).rstrip("/"))
        page = _START.format(root=html.escape(here), style=_STYLE_OF_START, version=version, address=address)
        digest = b64encode(sha256(_STYLE_OF_START.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src 'self'; base-uri 'none'; form-action 'none'; "
        request.scope[CONTENT_POLICY] = f"{policy}frame-ancestors 'none'".encode()
        return HTMLResponse(page, headers={"Vary": "Accept"})

    async def icon(request: Request) -> FileResponse:
        return FileResponse(_FOLDER / _ICON, media_type=_TYPES[_ICON], headers={"Cache-Control": f"public, max-age={_DAY_SECONDS}"})

    async def docs(request: Request) -> HTMLResponse:
        here = _root(request)
        page = get_swagger_ui_html(
            openapi_url=here + openapi_url,
            title=title,
            swagger_js_url=f"{here}/docs/{_SCRIPT}",
            swagger_css_url=f"{here}/docs/{_STYLE}",
            swagger_favicon_url=f"{here}/docs/{_ICON}",
            # Swagger UI sends documents to an external validator otherwise.
            swagger_ui_parameters={"validatorUrl": None},
        )
        return _with_policy(request, page)

    async def file(request: Request) -> FileResponse:
        name = request.url.path.rpartition("/")[2]
        return FileResponse(_FOLDER / name, media_type=_TYPES[name], headers={"Cache-Control": f"public, max-age={_DAY_SECONDS}"})

    async def redoc(request: Request) -> RedirectResponse:
        return RedirectResponse(_root(request) + "/docs")

    files = [Route(f"/docs/{name}", file, include_in_schema=False) for name in _TYPES]
    named = {"/": start, "/favicon.ico": icon, "/docs": docs, "/redoc": redoc}
    return [*(Route(path, page, include_in_schema=False) for path, page in named.items()), *files]


def _root(request: Request) -> str:
    return request.scope.get("root_path", "").rstrip("/")


def _with_policy(request: Request, page: HTMLResponse) -> HTMLResponse:
    """Allow the page's own scripts by digest, so that injected ones do not run."""
    digests = " ".join(f"'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in _INLINE.findall(bytes(page.body)))
    policy = (
        f"default-src 'none'; script-src 'self' {digests}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    request.scope[CONTENT_POLICY] = policy.encode()
    return page
