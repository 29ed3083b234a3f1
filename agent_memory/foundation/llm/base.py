"""Define provider-independent protocols for models."""

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
_DECLINED = frozenset({"", "none", "n/a", "null", "no summary", "nothing"})


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message in a model call. `pictures` contains image URLs, including `data:` URLs."""

    role: str
    content: str
    pictures: Sequence[str] = ()


TextRole = Literal["query", "document"]
"""The role of a text. Search models embed queries and documents differently."""


@runtime_checkable
class EmbeddingModel(Protocol):
    """Embeds texts as unit vectors."""

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        """Return float32 unit vectors of shape (len(texts), dimensions).

        Raises ModelUnavailable or ModelAnswerInvalid.
        """
        ...

    async def close(self) -> None: ...


class Embedder(Protocol):
    """Embeds texts so that cosine similarities are comparable across models (`llm/profiles.py`)."""

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str], *, role: TextRole = "document", timeout: float | None = None) -> Vectors:
        """Embed texts like `EmbeddingModel.embed`.

        Only compare vectors between a query and documents, or within the same role.
        """
        ...

    def missing(self, texts: Sequence[str], *, role: TextRole = "document") -> list[str]:
        """Return the distinct texts that are neither cached nor in flight."""
        ...

    async def adopt(self, rows: Vectors) -> Vectors:
        """Convert vectors from another store to the form that `embed` returns.

        They must come from this model and from texts with no prefix. Raises the same errors as
        `embed`.
        """
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Reranker(Protocol):
    """Scores how well each text answers a query."""

    @property
    def description(self) -> str: ...

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> list[float]:
        """Return a score for each text; higher is better.

        Raises ModelUnavailable or ModelAnswerInvalid.
        """
        ...

    async def close(self) -> None: ...


@runtime_checkable
class ChatModel(Protocol):
    """Asks a language model for text or for a pydantic object."""

    @property
    def model(self) -> str: ...

    @property
    def context(self) -> ModelContext: ...

    async def ask_context(self) -> None:
        """Ask the server for its context size if it is time to. Never raises.

        Do not call this while users are waiting.
        """
        ...

    def room(self, prompt: Sequence[ChatMessage], answer: type[BaseModel] | None = None) -> int:
        """Return how many tokens remain after `prompt` and the schema of `answer`.

        The result is negative if they do not fit.
        """
        ...

    def with_model(self, model: str) -> ChatModel:
        """Return a client for another model. Only close the original client."""
        ...

    async def text(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        """Return the model's answer, stripped and non-empty.

        Raises ModelUnavailable, ModelAnswerInvalid, or ContextExceeded.
        """
        ...

    async def structured(
        self, messages: Sequence[ChatMessage], answer: type[Answer], *, max_tokens: int | None = None, timeout: float | None = None
    ) -> Answer:
        """Return a validated instance of `answer`. Raises the same errors as `text`.

        Tries json_schema, json_object, and plain text, in that order. If the answer is invalid,
        asks the model once to repair it.
        """
        ...

    async def close(self) -> None: ...


def is_declined(summary: str) -> bool:
    """True if a model responded with "no summary" or similar."""
    return summary.strip(".! ").casefold() in _DECLINED
