"""The two pages that show the API's document, with a policy that lets them run their own scripts and nothing else."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

from fastapi import Request
from fastapi.openapi.docs import get_redoc_html, get_swagger_ui_html
from starlette.responses import HTMLResponse
from starlette.routing import Route

CONTENT_POLICY = "agent_memory.content_policy"
"""Where an ASGI scope holds the Content-Security-Policy of an answer that is a page."""

_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_LIBRARIES = "https://cdn.jsdelivr.net"


def pages(title: str, openapi_url: str) -> list[Route]:
    """`/docs` and `/redoc`, for the document at `openapi_url`."""

    async def docs(request: Request) -> HTMLResponse:
        return _with_policy(request, get_swagger_ui_html(openapi_url=_root(request) + openapi_url, title=title))

    async def redoc(request: Request) -> HTMLResponse:
        return _with_policy(request, get_redoc_html(openapi_url=_root(request) + openapi_url, title=title, with_google_fonts=False))

    return [Route("/docs", docs, include_in_schema=False), Route("/redoc", redoc, include_in_schema=False)]


def _root(request: Request) -> str:
    return request.scope.get("root_path", "").rstrip("/")


def _with_policy(request: Request, page: HTMLResponse) -> HTMLResponse:
    """The page; the scripts that stand in it are named by their digests, so that none slipped into it would run."""
    digests = " ".join(f"'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in _INLINE.findall(bytes(page.body)))
    policy = (
        f"default-src 'none'; script-src {_LIBRARIES} {digests}; style-src {_LIBRARIES} 'unsafe-inline'; "
        "img-src 'self' data: https://fastapi.tiangolo.com; font-src data:; worker-src blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    request.scope[CONTENT_POLICY] = policy.encode()
    return page
