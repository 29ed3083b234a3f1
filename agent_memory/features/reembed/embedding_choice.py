"""Identify an embedding model independently of the settings."""

from __future__ import annotations

import json
from typing import NamedTuple

from agent_memory.foundation.core.settings import ModelSettings, Settings


class EmbeddingChoice(NamedTuple):
    """A provider ("local" or "openai"), its model, and the number of dimensions to request."""

    provider: str
    model: str
    dimensions: int | None = None

    @classmethod
    def of(cls, models: ModelSettings) -> EmbeddingChoice:
        if models.use_openai_embeddings:
            return cls("openai", models.embedding_model, models.embedding_dimensions)
        return cls("local", models.local_model)

    @classmethod
    def parse(cls, raw: bytes) -> EmbeddingChoice:
        return cls(*json.loads(raw))

    def successor(self, raw: bytes | None) -> EmbeddingChoice | None:
        """Return the store's model if it matches or has replaced this one, otherwise None.

        `raw` is the store's `choice` field.
        """
        if raw is None:
            return None
        change = json.loads(raw)
        return EmbeddingChoice(*change["choice"]) if list(self) in [change["choice"], *change["replaces"]] else None

    def is_set(self, models: ModelSettings) -> bool:
        """True if a model is explicitly configured for this provider."""
        return ("embedding_model" if self.provider == "openai" else "local_model") in models.model_fields_set

    def applied(self, settings: Settings) -> Settings:
        """Return a copy of the settings with this model selected."""
        name = "embedding_model" if self.provider == "openai" else "local_model"
        update = {"embedding_provider": self.provider, name: self.model, "embedding_dimensions": self.dimensions}
        return settings.model_copy(update={"models": settings.models.model_copy(update=update)})
