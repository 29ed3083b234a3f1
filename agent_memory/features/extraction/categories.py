"""Categories without a model: of those that an application declares, the one whose description is nearest to what was said."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agent_memory.foundation.bucket import Foundation
from agent_memory_client.models import ExtractionCategory

NEAREST_SIMILARITY = 0.12
"""The cosine similarity below which what was said belongs to no category."""


async def nearest_categories(
    foundation: Foundation, statements: Sequence[str], categories: Sequence[ExtractionCategory]
) -> list[str | None]:
    """For each statement the name of the category that it is most similar to; None where none is similar at all.

    None, too, where a model gives facts their categories, and where statements are embedded by a server: no write waits for one.
    """
    if foundation.extracts or foundation.settings.models.use_openai_embeddings or not statements or not categories:
        return [None] * len(statements)
    described = [f"{category.name.replace('_', ' ')}: {category.description}" for category in categories]
    vectors = np.asarray(await foundation.embedder.embed([*statements, *described]))
    similarities = vectors[: len(statements)] @ vectors[len(statements) :].T
    return [categories[int(row.argmax())].name if row.max() >= NEAREST_SIMILARITY else None for row in similarities]
