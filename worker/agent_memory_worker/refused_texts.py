"""Find the texts that an embedding model rejects, so that the others can be embedded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ulid import ULID

from agent_memory.foundation.core.errors import ModelAnswerInvalid
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.llm.base import Embedder

log = get_logger(__name__)

T = TypeVar("T")


async def embed_singly(embedder: Embedder, names: Sequence[T], embed: Callable[[T], Awaitable[object]]) -> list[T]:
    """Call `embed` for each name. Return the names whose texts the model rejects.

    Raises ModelUnavailable, or ModelAnswerInvalid if the model rejects even an ordinary text.
    """
    refused = list[T]()
    for name in names:
        try:
            await embed(name)
        except ModelAnswerInvalid as error:
            log.warning("embedding model refuses a text", record=str(name), model=embedder.model, error=error)
            refused.append(name)
    if refused:
        await embedder.embed([f"An ordinary text, not in the cache: {ULID()}"])
    return refused
