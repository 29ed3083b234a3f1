"""Embed texts with any OpenAI-compatible server."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import httpx2
import numpy as np
import openai

from agent_memory.foundation.core.errors import ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.base import Vectors
from agent_memory.foundation.llm.catalog import embedding_dimensions
from agent_memory.foundation.llm.embedding_checks import clean_text, unit_rows
from agent_memory.foundation.llm.openai.server import Deadline, ModelServer, RequestRefused
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.text.redaction import redact

log = get_logger(__name__)

DEFAULT_DIMENSIONS = 1536
PROBE_TIMEOUT = 3.0
MAX_INPUTS = 256
MAX_INPUT_TOKENS = 8191
MAX_BATCH_CHARS = 400_000  # below the limit of 300,000 tokens per request: a token averages two or more characters
MIN_INPUT_TOKENS = 64
_STATED_LIMIT = re.compile(r"(?:maximum|max|limit|most)\D{0,40}(\d{2,6})", re.IGNORECASE)


class OpenAIEmbedder:
    def __init__(self, server: ModelServer, settings: Settings, dimensions: int, counter: TokenCounter | None = None) -> None:
        self.model = settings.models.embedding_model
        self.dimensions = dimensions
        self._server = server
        self._counter = counter
        self._redacts = settings.longterm.redact_secrets
        self._description = f"{self.model} at {server.shown_url}"
        self._subject = {"model": self.model, "url": server.shown_url}
        self._limit = MAX_INPUT_TOKENS
        # Parameters to try, best first. The first set that the server accepts stays in use. base64 takes a quarter of
        # the bytes and parses faster.
        own_fields = [{"dimensions": dimensions}] if settings.models.embedding_dimensions else []
        self._ways: list[dict[str, Any]] = [
            {**extra, "encoding_format": form} for extra in [*own_fields, {}] for form in ("base64", "float")
        ]

    @classmethod
    async def open(cls, settings: Settings, *, server: ModelServer | None = None, counter: TokenCounter | None = None) -> OpenAIEmbedder:
        """Create a client for EMBEDDING_MODEL. Raises StartupError for an invalid address or key.

        The dimensions come from EMBEDDING_DIMENSIONS, the catalog, or a test call, in that order.
        If the call fails, they default to 1536.
        """
        server, models = server or embedding_server(settings), settings.models
        dimensions = models.embedding_dimensions or embedding_dimensions(models.embedding_model)
        if dimensions is None:
            dimensions = await cls(server, settings, 0).probe()
        return cls(server, settings, dimensions, counter)

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        """Embed texts like `EmbeddingModel.embed`, but truncate texts above the model's limit."""
        deadline = Deadline(timeout)
        rows = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for batch in _batches(texts):
            answer = await self._ask([texts[index] for index in batch], deadline)
            rows[batch] = unit_rows(answer, count=len(batch), dimensions=self.dimensions, model=self._description)
        return rows

    async def close(self) -> None:
        """Close the connections that all models on this server share."""
        await self._server.close()

    async def probe(self) -> int:
        try:
            rows = await self._ask(["dimension"], Deadline(PROBE_TIMEOUT))
            if len(rows) == 1 and len(rows[0]) > 0:
                log.info("embedding model returned its dimensions", **self._subject, dimensions=len(rows[0]))
                return len(rows[0])
            reason = "its answer has no vector"
        except (ModelUnavailable, ModelAnswerInvalid, TypeError) as error:
            reason = str(error)
        log.warning(
            "embedding model's dimensions unknown; using the default",
            **self._subject,
            dimensions=DEFAULT_DIMENSIONS,
            error=reason,
            hint="set EMBEDDING_DIMENSIONS",
        )
        return DEFAULT_DIMENSIONS

    async def _ask(self, texts: list[str], deadline: Deadline) -> list[Any]:
        """Request embeddings. If rejected, try shorter texts or other parameters."""
        way = 0
        while True:
            sent = await self._fitted(texts)
            try:
                rows = await self._once(sent, self._ways[way], deadline)
            except RequestRefused as refused:
                if refused.too_long and self._shorten(sent, refused):
                    continue
                way += 1
                if refused.status == 404 or way == len(self._ways):
                    raise refused.as_error(self._description) from refused
                continue
            # If the vectors have the wrong length, later requests try all parameters again, including the dimensions.
            if way and (not self.dimensions or all(len(row) == self.dimensions for row in rows)):
                self._ways = self._ways[way:]
            return rows

    async def _once(self, texts: list[str], way: dict[str, Any], deadline: Deadline) -> list[Any]:
        # Read the raw answer, because the SDK's models take more time than all our own work.
        body = {"model": self.model, "input": texts, **way}
        address = self._server.address("/embeddings")

        async def ask(client: openai.AsyncOpenAI) -> list[Any]:
            answer = await client.post(address, body=body, cast_to=httpx2.Response)
            return [_row(item["embedding"]) for item in _in_order(json.loads(answer.content)["data"])]

        return await self._server.call(self._description, ask, timeout=deadline.seconds_left)

    async def _fitted(self, texts: list[str]) -> list[str]:
        return await run_in_thread(lambda: [self._fit(text) for text in texts], sum(map(len, texts)))

    def _fit(self, text: str) -> str:
        text = clean_text(redact(text) if self._redacts else text)
        if len(text) * 4 <= self._limit or len(text.encode()) <= self._limit:  # no token is shorter than a byte
            return text
        cut = self._counter.truncate(text, self._limit) if self._counter else text[: 3 * self._limit]
        return clean_text(cut)

    def _shorten(self, sent: list[str], refused: RequestRefused) -> bool:
        """Lower the token limit to 85% of the limit that the server reported, or else halve it.

        Return False if the new limit would be too low.
        """
        longest = max(map(len, sent))
        limit = min(self._limit, longest)  # a token is seldom shorter than a character
        stated_limit = refused.overflow.limit if refused.overflow is not None else None
        if stated_limit is None and (match := _STATED_LIMIT.search(refused.detail)) is not None:
            stated_limit = int(match[1])
        safe_limit = int(stated_limit * 0.85) if stated_limit else 0
        limit = safe_limit if MIN_INPUT_TOKENS <= safe_limit < limit else limit // 2
        if limit < MIN_INPUT_TOKENS:
            return False
        log.info("embedding model accepts shorter texts than assumed; truncating them", **self._subject, tokens=limit)
        self._limit = limit
        return True


def embedding_server(settings: Settings) -> ModelServer:
    """Return the server at EMBEDDING_BASE_URL or OPENAI_BASE_URL, using only its own key."""
    models = settings.models
    key = models.embedding_api_key
    if key is None and models.embedding_base_url in (None, models.openai_base_url):
        key = models.openai_api_key
    return ModelServer(models.embedding_base_url or models.openai_base_url, key, models)


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    batch: list[int] = []
    chars = 0
    for index, text in enumerate(texts):
        size = min(len(text), 4 * MAX_INPUT_TOKENS)
        if batch and (len(batch) == MAX_INPUTS or chars + size > MAX_BATCH_CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(index)
        chars += size
    if batch:
        yield batch


def _in_order(items: list[Any]) -> list[Any]:
    """Sort items by `index` if the server numbers them correctly."""
    indices = [item.get("index") for item in items]
    if sorted(indices, key=str) == sorted(range(len(items)), key=str):
        return sorted(items, key=itemgetter("index"))
    return items


def _row(value: Any) -> Any:
    return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4") if isinstance(value, str) else value
