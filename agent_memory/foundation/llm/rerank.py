"""Rerank texts with the API used by Cohere and Jina (`POST <base>/rerank`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import openai

from agent_memory.foundation.core.errors import ModelAnswerInvalid
from agent_memory.foundation.core.settings import ModelSettings
from agent_memory.foundation.llm.openai.server import ModelServer, RequestRefused

# Rerankers read only a few hundred tokens, and reading takes most of their time.
_MOST_CHARACTERS = 4000


class RemoteReranker:
    def __init__(self, models: ModelSettings) -> None:
        self._server = ModelServer(models.rerank_base_url, models.rerank_api_key, models)
        self._model = models.rerank_model
        self.description = f"{self._model} at {self._server.shown_url}"
        """The name of the model and its server, without secrets."""

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> list[float]:
        if not texts:
            return []
        documents = [text[:_MOST_CHARACTERS] for text in texts]
        body = {"model": self._model, "query": query[:_MOST_CHARACTERS], "documents": documents, "top_n": len(documents)}

        async def ask(client: openai.AsyncOpenAI) -> list[float]:
            return _scores(await client.post("/rerank", body=body, cast_to=cast("type[Any]", object)), len(documents), self.description)

        try:
            return await self._server.call(self.description, ask, timeout=timeout)
        except RequestRefused as refused:
            raise refused.as_error(self.description) from refused

    async def close(self) -> None:
        await self._server.close()


def _scores(answer: Any, count: int, description: str) -> list[float]:
    scores: dict[int, float] = {}
    for result in answer["results"]:
        index, score = result["index"], float(result["relevance_score"])
        if isinstance(index, int) and 0 <= index < count and math.isfinite(score):
            scores[index] = score
    if len(scores) != count:
        raise ModelAnswerInvalid(f"{description}: scores for {len(scores)} of {count} texts", reason="wrong_count")
    return [scores[index] for index in range(count)]
