"""Define the settings for models and model servers."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import SecretStr

from agent_memory.foundation.core.settings.base import Group, archived, internal, setting


class ModelSettings(Group):
    """Settings for models. `auto` uses the model server if configured, or else a local model."""

    provider: Literal["auto", "openai", "local"] = setting(
        "auto",
        "MODEL_PROVIDER",
        meaning="for summaries and facts: `openai` (a model server), `local` or `auto` (a model server if a key or URL is set, "
        "otherwise `local`)",
    )
    embedding_provider: Literal["auto", "openai", "local"] = setting(
        "auto",
        "EMBEDDING_PROVIDER",
        meaning="for embeddings: `openai`, `local` or `auto` (a model server if EMBEDDING_BASE_URL or EMBEDDING_API_KEY is set, "
        "otherwise same as `MODEL_PROVIDER`)",
    )
    openai_api_key: SecretStr | None = setting(None, "OPENAI_API_KEY", meaning="API key of the model server")
    openai_base_url: str | None = setting(
        None, "OPENAI_BASE_URL", "OPENAI_API_BASE", meaning="URL of an OpenAI-compatible server, including `/v1`"
    )
    embedding_base_url: str | None = setting(None, "EMBEDDING_BASE_URL", meaning="URL of a separate server for embeddings")
    embedding_api_key: SecretStr | None = setting(None, "EMBEDDING_API_KEY", meaning="API key of the embedding server")
    generation_model: str = setting("gpt-5-mini", "GENERATION_MODEL", meaning="model for summaries and facts (any name)")
    fast_model: str | None = archived(None, "FAST_MODEL")
    embedding_model: str = setting("text-embedding-3-small", "EMBEDDING_MODEL", meaning="model for embeddings (any name)")
    embedding_dimensions: int | None = archived(None, "EMBEDDING_DIMENSIONS", "REDISVL_VECTOR_DIMENSIONS", ge=1, le=32768)
    rerank_base_url: str | None = setting(
        None, "RERANK_BASE_URL", meaning="URL of a server with Cohere's rerank API (`POST <url>/rerank`); no reranking if unset"
    )
    rerank_api_key: SecretStr | None = setting(None, "RERANK_API_KEY", meaning="API key of the reranking server")
    rerank_model: str = setting("rerank-v3.5", "RERANK_MODEL", meaning="reranking model", min_length=1)
    context_windows: dict[str, int] = setting(
        {}, "MODEL_CONTEXT_WINDOWS", meaning="JSON object of model names and their context windows in tokens"
    )
    default_context_window: int = internal(16000, "DEFAULT_CONTEXT_WINDOW", ge=256)
    timeout_seconds: float = setting(
        60.0,
        "MODEL_TIMEOUT_SECONDS",
        meaning="seconds to wait for a model: in requests, for the whole answer (searches: at most 2 s); in background work, "
        "for each next token",
        gt=0,
    )
    query_embedding_timeout_seconds: float = internal(2.0, "QUERY_EMBEDDING_TIMEOUT_SECONDS", gt=0)
    max_concurrent_calls: int = internal(16, "MODEL_MAX_CONCURRENT_CALLS", ge=1)
    local_model: str = setting(
        "multilingual-e5-small",
        "LOCAL_MODEL",
        meaning="`multilingual-e5-small`, `all-MiniLM-L6-v2`, `use-multilingual-v3`, or a directory",
        min_length=1,
    )
    local_threads: ClassVar[int] = 1
    local_precision: Literal["int8", "fp32"] = internal("int8", "LOCAL_MODEL_PRECISION")

    @property
    def use_openai_chat(self) -> bool:
        """True if summaries and facts come from an OpenAI-compatible server."""
        return self.provider == "openai" or (self.provider == "auto" and self._has_server)

    @property
    def use_openai_embeddings(self) -> bool:
        """True if embeddings come from an OpenAI-compatible server."""
        own = self.embedding_base_url is not None or self.embedding_api_key is not None
        return self.embedding_provider == "openai" or (self.embedding_provider == "auto" and (own or self.use_openai_chat))

    @property
    def embeds_latin_only(self) -> bool:
        """True if embeddings come from all-MiniLM-L6-v2."""
        return not self.use_openai_embeddings and self.local_model == "all-MiniLM-L6-v2"

    @property
    def _has_server(self) -> bool:
        return self.openai_api_key is not None or self.openai_base_url is not None
