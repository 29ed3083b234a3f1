"""Run the look-alike's HTTP server in a thread."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

from tests.support.lookalike.answers import chat_answer, embed
from tests.support.lookalike.faults import Script
from tests.support.lookalike.limits import Context, tokens_of
from tests.support.lookalike.scripted import Scripted

# Characters of a streamed piece.
_PIECE = 16
_PIECES = 8
MODEL_DIMENSIONS = {"text-embedding-3-large": 3072, "text-embedding-3-small": 1536, "text-embedding-ada-002": 1536}


@dataclass(frozen=True)
class Recorded:
    """A received request."""

    endpoint: str
    body: dict[str, Any]
    headers: dict[str, str]


@dataclass
class Lookalike:
    """A model server for tests. `url` is its OPENAI_BASE_URL, which survives a restart."""

    dimensions: int = 1536
    port: int = 0
    retry_after: str | None = "7"
    latency_seconds: float = 0.0
    token_seconds: float = 0.0
    """Seconds before each piece of a streamed answer."""
    read_seconds_per_token: float = 0.0
    """Seconds for each token of a prompt before the first piece of the answer."""
    max_input_chars: int = 2000
    refused: tuple[str, str] | None = None
    """An embedding model, and a word that makes it refuse a text."""
    calls: Counter[str] = field(default_factory=Counter)
    requests: list[Recorded] = field(default_factory=list)
    script: Script = field(default_factory=Script)
    scripted: Scripted = field(default_factory=Scripted)
    context: Context = field(default_factory=Context)
    _server: uvicorn.Server | None = None
    _thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> Lookalike:
        """Start the server and wait until it is listening."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(_app(self), log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + 10
        while not self._server.started:
            if time.monotonic() > deadline:
                raise TimeoutError("the look-alike does not start")
            time.sleep(0.005)
        return self

    def stop(self) -> None:
        """Stop the server and close all connections. It is safe to call this twice."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._server.force_exit = True
            self._thread.join(10)
        self._server = self._thread = None

    def restart(self) -> Lookalike:
        """Stop the server, then start it on the same port."""
        self.stop()
        return self.start()

    def set_fault(self, kind: str | None, times: int | None = None, endpoint: str | None = None) -> None:
        """Queue a fault (see faults.py). None clears all faults, and `down` stops the server."""
        if kind is None:
            self.script.clear()
        elif kind == "down":
            self.stop()
        else:
            self.script.add(kind, times, endpoint)

    @property
    def running(self) -> bool:
        """True unless a test has stopped the server."""
        return self._thread is not None

    def forget(self) -> None:
        """Clear faults, scripted responses, the context limit, counters and recorded requests."""
        self.script.clear()
        self.scripted = Scripted()
        self.context = Context()
        self.token_seconds = self.read_seconds_per_token = 0.0
        self.refused = None
        self.calls.clear()
        self.requests.clear()

    async def wait_for_call(self, endpoint: str, count: int = 1, seconds: float = 10) -> None:
        """Wait until `count` calls have arrived at the endpoint."""
        async with asyncio.timeout(seconds):
            while self.calls[endpoint] < count:  # noqa: ASYNC110 - the counter belongs to another thread
                await asyncio.sleep(0.005)

    def bodies(self, endpoint: str) -> list[dict[str, Any]]:
        """Return the bodies of recorded requests to "chat", "embeddings" or "rerank"."""
        return [request.body for request in self.requests if request.endpoint == endpoint]


def _app(state: Lookalike) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @app.post("/v1/embeddings")
    async def embeddings(request: Request) -> Response:
        body, fault = await _begin(state, request, "embeddings")
        return await _transport_fault(state, fault) or _embeddings(state, body, fault)

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        body, fault = await _begin(state, request, "chat")
        if state.read_seconds_per_token:
            await asyncio.sleep(state.read_seconds_per_token * state.context.sent(body))
        return await _transport_fault(state, fault) or _chat(state, body, fault)

    @app.post("/v1/rerank")
    async def rerank(request: Request) -> Response:
        body, fault = await _begin(state, request, "rerank")
        return await _transport_fault(state, fault) or _rerank(body, fault)

    @app.get("/v1/models")
    @app.get("/props")
    @app.get("/api/v0/models")
    @app.get("/api/ps")
    @app.get("/info")
    async def told(request: Request) -> Response:
        answer = state.context.told(request.url.path)
        return _error(404, "File Not Found") if answer is None else JSONResponse(answer)

    @app.post("/_faults")
    async def faults(request: Request) -> Response:
        given = await request.json()
        try:
            state.set_fault(given.get("kind"), given.get("times"), given.get("endpoint"))
        except ValueError as error:
            return _error(400, str(error))
        return JSONResponse({"status": "ok"})

    @app.get("/_calls")
    async def calls() -> Response:
        return JSONResponse(dict(state.calls))

    return app


async def _begin(state: Lookalike, request: Request, endpoint: str) -> tuple[dict[str, Any], str | None]:
    body = json.loads(await request.body())
    state.calls[endpoint] += 1
    state.requests.append(Recorded(endpoint, body, dict(request.headers)))
    if state.latency_seconds:
        await asyncio.sleep(state.latency_seconds)
    return body, state.script.next(endpoint)


def _error(status: int, message: str, **headers: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": "error"}}, status_code=status, headers=headers)


async def _transport_fault(state: Lookalike, fault: str | None) -> Response | None:
    match fault:
        case "500" | "503" | "400" | "404":
            return _error(int(fault), "something is wrong")
        case "401" | "403":
            return _error(int(fault), "Incorrect API key provided: sk-secret-1234. Find yours at …")
        case "429":
            headers = {"retry-after": state.retry_after} if state.retry_after else {}
            return _error(429, "rate limit reached", **headers)
        case "timeout":
            await asyncio.sleep(60)
            return _error(500, "too late")
        case "drip":
            return StreamingResponse(_drip(), media_type="application/json")
        case "html":
            return HTMLResponse("<html><body>Welcome to nginx!</body></html>")
        case "null":
            return Response("null", media_type="application/json")
        case "garbage_body":
            return Response('{"id": "x", "choices": [{', media_type="application/json")
        case _:
            return None


async def _drip() -> AsyncIterator[bytes]:
    for _ in range(600):
        yield b" "
        await asyncio.sleep(0.1)
    yield b"{}"


def _embeddings(state: Lookalike, body: dict[str, Any], fault: str | None) -> Response:
    given = body.get("input")
    texts: list[str] = [given] if isinstance(given, str) else list(given or [])
    refusal = _embedding_refusal(state, body, texts)
    if refusal:
        return refusal
    native = MODEL_DIMENSIONS.get(str(body.get("model")), state.dimensions)
    size = int(body.get("dimensions") or native)
    if fault == "wrong_dimension":
        size += 8
    rows: list[Any] = [embed(text, size) for text in texts]
    if fault == "nan":
        rows[-1] = np.full(size, np.nan, dtype=np.float32)
    elif fault == "zero":
        rows[-1] = np.zeros(size, dtype=np.float32)
    elif fault == "ragged":
        rows[-1] = rows[-1][:-1]
    plain = body.get("encoding_format") != "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": row.tolist() if plain else base64.b64encode(row.astype("<f4").tobytes()).decode(),
        }
        for index, row in enumerate(rows)
    ]
    if fault == "short_batch":
        data.pop()
    elif fault == "shuffled":
        data.reverse()
    answer = {"object": "list", "data": data, "model": body.get("model"), "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    return Response(json.dumps(answer), media_type="application/json")  # NaN included, as careless servers write it


def _embedding_refusal(state: Lookalike, body: dict[str, Any], texts: list[str]) -> Response | None:
    if not texts or any(not isinstance(text, str) or not text for text in texts):
        return _error(400, "'$.input' is invalid: it must not be empty")
    if state.script.rejects("reject_dimensions") and "dimensions" in body:
        return _error(400, "unknown field: dimensions")
    if state.script.rejects("reject_base64") and body.get("encoding_format") == "base64":
        return _error(422, "encoding_format must be float")
    if state.refused is not None and body.get("model") == state.refused[0] and any(state.refused[1] in text for text in texts):
        return _error(400, "the input violates our content policy")
    longest = max(map(len, texts))
    if state.script.rejects("reject_long") and longest > state.max_input_chars:
        return _error(
            400, f"This model's maximum context length is {state.max_input_chars // 4} tokens, however you requested {longest // 4}"
        )
    return None


def _rerank(body: dict[str, Any], fault: str | None) -> Response:
    """Score texts by length, regardless of the query."""
    scores = [float(len(text)) for text in body["documents"]]
    if fault == "nan":
        scores[-1] = float("nan")
    results = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    results.sort(key=lambda result: -result["relevance_score"])
    if fault == "short_batch":
        results.pop()
    return Response(json.dumps({"id": "x", "results": results[: body["top_n"]]}), media_type="application/json")


def _chat(state: Lookalike, body: dict[str, Any], fault: str | None) -> Response:
    refusal = _chat_refusal(state, body)
    if refusal:
        return refusal
    if state.script.rejects("ignore_response_format"):
        body = {key: value for key, value in body.items() if key != "response_format"}
    prompt = "\n".join(str(message.get("content")) for message in body.get("messages", []))
    too_large = state.context.refusal(body)
    if too_large is not None:
        status, refused = too_large
        return HTMLResponse(refused, status) if isinstance(refused, str) else JSONResponse(refused, status)
    text, cut_off = state.context.cut(body, state.scripted.answer(prompt) or chat_answer(body))
    message, cut_short = _faulty_message(text, fault)
    finish = "length" if cut_off or cut_short else "stop"
    if calls := state.scripted.tool_calls(body.get("messages", [])):
        message, finish = {"role": "assistant", "content": "I think.", "tool_calls": calls}, "tool_calls"
    choices = [] if fault == "empty_choices" else [{"index": 0, "message": message, "finish_reason": finish}]
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if state.context.tokens is not None:
        sent, said = state.context.sent(body), state.context.tokens - state.context.sent(body) if cut_off else tokens_of(text)
        usage = {"prompt_tokens": sent, "completion_tokens": said, "total_tokens": sent + said}
    answer = {"id": "x", "object": "chat.completion", "created": 1, "model": body.get("model"), "choices": choices, "usage": usage}
    if body.get("stream") and not state.script.rejects("ignore_stream"):
        return StreamingResponse(_streamed(state, answer), media_type="text/event-stream")
    return JSONResponse(answer)


async def _streamed(state: Lookalike, answer: dict[str, Any]) -> AsyncIterator[bytes]:
    """Yield a response as events, its usage last. `token_seconds` makes them small and slow."""
    head = {**answer, "object": "chat.completion.chunk"}
    for choice in answer["choices"]:
        message = choice["message"]
        content = message.get("content")
        pieces: list[Any] = [content]
        if isinstance(content, str):
            # The client's library takes 0.3 ms of CPU for each event.
            size = _PIECE if state.token_seconds else max(_PIECE, len(content) // _PIECES + 1)
            pieces = [content[start : start + size] for start in range(0, len(content), size)]
        for piece in pieces:
            await asyncio.sleep(state.token_seconds)
            delta = {**message, "content": piece}
            yield _event({**head, "usage": None, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield _event({**head, "usage": None, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    yield _event({**head, "choices": []})
    yield b"data: [DONE]\n\n"


def _event(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _faulty_message(text: str, fault: str | None) -> tuple[dict[str, Any], bool]:
    """Return the answer's message with the fault applied, and whether it was truncated."""
    half = text[: max(1, len(text) // 2)]
    contents: dict[str | None, Any] = {
        "garbage": "{ this is not: JSON ]",
        "fenced": f"Sure! Here it is:\n```json\n{text}\n```\nAnything else?",
        "prose_around": f"Here is what you asked for: {text} I hope it helps.",
        "thinking": f'<think>They want {{"memories": 1}}…</think>\n{text}',
        "truncated": half,
        "wrong_types": json.dumps({"memories": "none", "summary": {"text": 1}, "answer": []}),
        "refusal": None,
        "no_content": None,
        "length": half,
        "parts": [{"type": "text", "text": text}],
    }
    message: dict[str, Any] = {"role": "assistant", "content": contents.get(fault, text)}
    if fault == "refusal":
        message["refusal"] = "I cannot help with that."
    return message, fault == "length"


def _chat_refusal(state: Lookalike, body: dict[str, Any]) -> Response | None:
    for name in ("stream_options", "stream"):
        if name in body and state.script.rejects(f"reject_{name}"):
            return _error(400, f"Unsupported parameter: '{name}' is not supported by this server.")
    if state.script.rejects("reject_pictures") and '"image_url"' in json.dumps(body["messages"]):
        return _error(500, "image input is not supported")  # llama.cpp's status, although a retry does not help
    kind = (body.get("response_format") or {}).get("type")
    if kind == "json_schema" and (state.script.rejects("reject_json_schema") or state.script.rejects("reject_response_format")):
        return _error(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.")
    if kind and state.script.rejects("reject_response_format"):
        return _error(422, "response_format: extra fields not permitted")
    for name in ("max_tokens", "max_completion_tokens"):
        if name in body and state.script.rejects(f"reject_{name}"):
            return _error(400, f"Unsupported parameter: '{name}' is not supported with this model.")
    return None
