"""Categorize statements by their embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agent_memory.foundation.foundation import Foundation
from agent_memory_client.models import ExtractionCategory

NEAREST_SIMILARITY = 0.12


async def nearest_categories(
    foundation: Foundation, statements: Sequence[str], categories: Sequence[ExtractionCategory]
) -> list[str | None]:
    """Return each statement's most similar category, or None.

    All results are None if a model extracts facts or if embeddings come from a remote service.
    """
    if foundation.extracts or foundation.settings.models.use_openai_embeddings or not statements or not categories:
        return [None] * len(statements)
    described = [f"{category.name.replace('_', ' ')}: {category.description}" for category in categories]
    vectors = np.asarray(await foundation.embedder.embed([*statements, *described]))
    similarities = vectors[: len(statements)] @ vectors[len(statements) :].T
    return [categories[int(row.argmax())].name if row.max() >= NEAREST_SIMILARITY else None for row in similarities]
