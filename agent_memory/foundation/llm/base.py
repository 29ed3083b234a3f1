"""Protocols of models, independent of any provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from agent_memory.foundation.llm.model_context import ModelContext

Vectors = NDArray[np.float32]
Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a model call: `role` is system, user or assistant."""

    role: str
    content: str


TextRole = Literal["query", "document"]
"""Search models embed queries and documents differently."""


@runtime_checkable
class EmbeddingModel(Protocol):
    """Turn texts into unit vectors, as the model returns them."""

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        """Return unit rows, float32 of (len(texts), dimensions). Raises ModelUnavailable, ModelAnswerInvalid."""
        ...

    async def close(self) -> None: ...


class Embedder(Protocol):
    """Turn texts into unit vectors whose cosines are comparable across models (`llm/profiles.py`)."""

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str], *, role: TextRole = "document", timeout: float | None = None) -> Vectors:
        """As EmbeddingModel.embed. Compare texts of one role with each other, queries with documents."""
        ...

    def missing(self, texts: Sequence[str], *, role: TextRole = "document") -> list[str]:
        """Return the texts that the model must embed, each once: neither cached nor in flight."""
        ...

    async def adopt(self, rows: Vectors) -> Vectors:
        """Return vectors that the model made elsewhere, without a prefix, as `embed` returns them. Raises as `embed`."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Reranker(Protocol):
    """Score how well texts answer a query."""

    @property
    def description(self) -> str: ...

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> list[float]:
        """Return a score for each text; more is better. Raises ModelUnavailable, ModelAnswerInvalid."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class ChatModel(Protocol):
    """Ask a language model for text or for a pydantic object."""

    @property
    def model(self) -> str: ...

    @property
    def context_window(self) -> int:
        """Tokens for prompt and answer together, by our count and as far as known."""
        ...

    @property
    def context(self) -> ModelContext: ...

    async def ask_context(self) -> None:
        """Ask the server for its context size if it is due; raises nothing. Not for requests that somebody waits for."""
        ...

    def room(self, prompt: Sequence[ChatMessage], answer: type[BaseModel] | None = None) -> int:
        """Return the window's tokens left beside `prompt` and the schema of `answer`; may be negative."""
        ...

    def with_model(self, model: str) -> ChatModel:
        """Return another model at the same server; this one still closes the connection."""
        ...

    async def text(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        """Return the stripped, non-empty answer. Raises ModelUnavailable, ModelAnswerInvalid, ContextExceeded."""
        ...

    async def structured(
        self, messages: Sequence[ChatMessage], answer: type[Answer], *, max_tokens: int | None = None, timeout: float | None = None
    ) -> Answer:
        """Return a validated `answer`: json_schema, then json_object, then text, then one repair. Raises as `text`."""
        ...

    async def close(self) -> None: ...
