"""The page that shows the API's document: Swagger UI, which comes with us, under a policy that lets it run its own scripts only."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from fastapi import Request
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse
from starlette.routing import Route

CONTENT_POLICY = "agent_memory.content_policy"
"""Where an ASGI scope holds the Content-Security-Policy of an answer that is a page."""

_FOLDER = Path(__file__).parent / "swagger_ui"
_SCRIPT, _STYLE, _ICON = "swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png"
_TYPES = {_SCRIPT: "text/javascript", _STYLE: "text/css", _ICON: "image/png"}
PATHS = frozenset({"/docs", "/redoc", "/openapi.json", *(f"/docs/{name}" for name in _TYPES)})
"""The paths of the documentation: open to everybody, counted and audited for nobody."""

_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_DAY_SECONDS = 86_400


def pages(title: str, openapi_url: str) -> list[Route]:
    """`/docs` for the document at `openapi_url`, the files that it is made of, and `/redoc`, its other name."""

    async def docs(request: Request) -> HTMLResponse:
        here = _root(request)
        page = get_swagger_ui_html(
            openapi_url=here + openapi_url,
            title=title,
            swagger_js_url=f"{here}/docs/{_SCRIPT}",
            swagger_css_url=f"{here}/docs/{_STYLE}",
            swagger_favicon_url=f"{here}/docs/{_ICON}",
            # Otherwise the document is sent to a validator on the Internet, when it is not one of this machine.
            swagger_ui_parameters={"validatorUrl": None},
        )
        return _with_policy(request, page)

    async def file(request: Request) -> FileResponse:
        name = request.url.path.rpartition("/")[2]
        return FileResponse(_FOLDER / name, media_type=_TYPES[name], headers={"Cache-Control": f"public, max-age={_DAY_SECONDS}"})

    async def redoc(request: Request) -> RedirectResponse:
        return RedirectResponse(_root(request) + "/docs")

    files = [Route(f"/docs/{name}", file, include_in_schema=False) for name in _TYPES]
    return [Route("/docs", docs, include_in_schema=False), Route("/redoc", redoc, include_in_schema=False), *files]


def _root(request: Request) -> str:
    return request.scope.get("root_path", "").rstrip("/")


def _with_policy(request: Request, page: HTMLResponse) -> HTMLResponse:
    """The page; the scripts that stand in it are named by their digests, so that none slipped into it would run."""
    digests = " ".join(f"'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in _INLINE.findall(bytes(page.body)))
    policy = (
        f"default-src 'none'; script-src 'self' {digests}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    request.scope[CONTENT_POLICY] = policy.encode()
    return page
