"""Serve scripts, styles and the font. Browsers cache each file until it changes."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from agent_memory.foundation.core.errors import NotFound
from agent_memory.interfaces.console.paths import BASE

_FOLDER = Path(__file__).parent / "static"
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".woff2": "font/woff2", ".svg": "image/svg+xml"}
_FONT = "inter.woff2"


@dataclass(frozen=True, slots=True)
class Asset:
    content: bytes
    compressed: bytes | None
    media_type: str
    digest: str


def _load() -> dict[str, Asset]:
    assets: dict[str, Asset] = {}
    # Load the font first: the style sheet contains its path with its digest.
    for path in sorted(_FOLDER.iterdir(), key=lambda path: path.name != _FONT):
        if path.suffix in _TYPES:
            content = path.read_bytes()
            if path.suffix == ".css":
                content = content.replace(_FONT.encode(), f"{_FONT}?v={assets[_FONT].digest}".encode())
            compressed = None if path.suffix == ".woff2" else gzip.compress(content, mtime=0)
            assets[path.name] = Asset(content, compressed, _TYPES[path.suffix], sha256(content).hexdigest()[:16])
    return assets


ASSETS = _load()


def asset_path(name: str) -> str:
    """Return an asset's path, which changes whenever its content changes."""
    return f"{BASE}/static/{name}?v={ASSETS[name].digest}"


async def serve_asset(request: Request) -> Response:
    asset = ASSETS.get(request.path_params["name"])
    if asset is None:
        raise NotFound("there is no such file: reload the page")
    tag = f'"{asset.digest}"'
    is_versioned = request.query_params.get("v") == asset.digest
    headers = {
        "ETag": tag,
        "Cache-Control": "public, max-age=31536000, immutable" if is_versioned else "no-cache",
        "Vary": "Accept-Encoding",
    }
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    if asset.compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(asset.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=asset.media_type)
    return Response(asset.content, headers=headers, media_type=asset.media_type)
