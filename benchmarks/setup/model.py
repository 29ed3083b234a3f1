"""Serve embeddings without delay: `python -m benchmarks.setup.model PORT`.

Vectors are deterministic and have 384 dimensions by default. The server counts its calls.
"""

from __future__ import annotations

import base64
import sys

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.support.lookalike.answers import embed

DIMENSIONS = 384
_calls = {"calls": 0, "texts": 0}


async def _embeddings(request: Request) -> JSONResponse:
    body = await request.json()
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    _calls["calls"] += 1
    _calls["texts"] += len(texts)
    data = [{"object": "embedding", "index": n, "embedding": _encoded(text, body)} for n, text in enumerate(texts)]
    return JSONResponse({"object": "list", "data": data, "model": body["model"], "usage": {"prompt_tokens": 1, "total_tokens": 1}})


def _encoded(text: str, body: dict[str, object]) -> object:
    vector = embed(text, int(str(body.get("dimensions") or DIMENSIONS)))
    if body.get("encoding_format") == "base64":
        return base64.b64encode(vector.astype(np.float32).tobytes()).decode()
    return vector.tolist()


async def _count(_: Request) -> JSONResponse:
    return JSONResponse(_calls)


app = Starlette(routes=[Route("/v1/embeddings", _embeddings, methods=["POST"]), Route("/calls", _count)])

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
