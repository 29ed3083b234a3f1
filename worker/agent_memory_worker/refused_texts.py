"""Find the texts that an embedding model refuses, so that they do not keep others from being embedded."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ulid import ULID

from agent_memory.foundation.core.errors import ModelAnswerInvalid
from agent_memory.foundation.llm.base import Embedder

log = logging.getLogger(__name__)

T = TypeVar("T")


async def embed_singly(embedder: Embedder, names: Sequence[T], embed: Callable[[T], Awaitable[object]]) -> list[T]:
    """Call `embed` for each name, and return the names whose texts the model refuses.

    Raises ModelAnswerInvalid if the model also refuses an ordinary text, and ModelUnavailable.
    """
    refused = list[T]()
    for name in names:
        try:
            await embed(name)
        except ModelAnswerInvalid as error:
            log.warning("no vector for %s: %s", name, error.message)
            refused.append(name)
    if refused:
        await embedder.embed([f"An ordinary text, not in the cache: {ULID()}"])
    return refused
