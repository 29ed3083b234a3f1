"""What the rest of the house knows of models: two protocols, and nothing of any provider."""

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
"""Whether a text asks or is found: models that learned to search want to be told."""


@runtime_checkable
class EmbeddingModel(Protocol):
    """Turns texts into unit vectors, as the model gives them.

    `model` names the model, `dimensions` is the length of its vectors.
    """

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        """Returns float32 of shape (len(texts), dimensions), each row of length 1.

        Raises ModelUnavailable when the server is away or `timeout` seconds are over, and ModelAnswerInvalid
        for an answer with a wrong count, a wrong dimension, NaN or a zero vector.
        """
        ...

    async def close(self) -> None: ...


class Embedder(Protocol):
    """Turns texts into unit vectors whose cosines mean the same for every model: see `llm/profiles.py`."""

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str], *, role: TextRole = "document", timeout: float | None = None) -> Vectors:
        """See EmbeddingModel.embed. Texts of one role are compared with each other, queries with documents."""
        ...

    def missing(self, texts: Sequence[str], *, role: TextRole = "document") -> list[str]:
        """Return the texts that the model must be asked for, each once: those that are neither remembered nor on their way."""
        ...

    async def adopt(self, rows: Vectors) -> Vectors:
        """Return vectors that the model gave elsewhere, without a prefix, as `embed` gives them. Raises as `embed`."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Reranker(Protocol):
    """Says how well texts answer a query."""

    @property
    def description(self) -> str: ...

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> list[float]:
        """Returns a score for each text, in their order; more is better, the scale is the model's.

        Raises ModelUnavailable when there is no answer within `timeout` seconds, and ModelAnswerInvalid for one that lacks scores.
        """
        ...

    async def close(self) -> None: ...


@runtime_checkable
class ChatModel(Protocol):
    """Asks a language model for text or for an object of a pydantic model."""

    @property
    def model(self) -> str: ...

    @property
    def context_window(self) -> int:
        """Tokens that prompt and answer may have together, as we count them and as far as it is known now."""
        ...

    @property
    def context(self) -> ModelContext:
        """What is known of the model's context."""
        ...

    async def ask_context(self) -> None:
        """Asks the server how large its context is, if it is time to; raises nothing. Not for what somebody waits for."""
        ...

    def room(self, prompt: Sequence[ChatMessage], answer: type[BaseModel] | None = None) -> int:
        """Tokens that the window has left beside `prompt`, asked for an `answer`, for more text and the answer; may be negative."""
        ...

    def with_model(self, model: str) -> ChatModel:
        """Another model at the same server, which stays this one's to close."""
        ...

    async def text(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        """Returns the answer's text, stripped and not empty.

        Raises ModelUnavailable, ModelAnswerInvalid, or ContextExceeded (one of the latter) when it is too much for the model.
        """
        ...

    async def structured(
        self, messages: Sequence[ChatMessage], answer: type[Answer], *, max_tokens: int | None = None, timeout: float | None = None
    ) -> Answer:
        """Returns a validated `answer`: json_schema, then json_object, then text, then one repair.

        Raises as `text`.
        """
        ...

    async def close(self) -> None: ...
