"""Open the models that the settings specify."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.settings import ModelSettings, Settings
from agent_memory.foundation.llm.base import ChatModel, EmbeddingModel, Reranker
from agent_memory.foundation.llm.local.embedder import LocalEmbedder
from agent_memory.foundation.llm.tokens import TokenCounter


@dataclass(frozen=True)
class Models:
    """The models that a process uses. `chat` is None if there is no model server."""

    embedder: EmbeddingModel
    chat: ChatModel | None
    counter: TokenCounter
    description: str
    reranker: Reranker | None = None

    async def close(self) -> None:
        if self.reranker is not None:
            await self.reranker.close()
        if self.chat is not None:
            await self.chat.close()
        await self.embedder.close()


async def open_models(settings: Settings) -> Models:
    """Open the configured models. Model servers may be offline. Raises StartupError."""
    opened = await _open_models(settings)
    if settings.models.rerank_base_url is None:
        return opened
    from agent_memory.foundation.llm import rerank  # noqa: PLC0415

    reranker = rerank.RemoteReranker(settings.models)
    return replace(opened, reranker=reranker, description=f"{opened.description}; reranking {reranker.description}")


async def _open_models(settings: Settings) -> Models:
    models = settings.models
    _check(models)
    counter = await TokenCounter.open()
    if not (models.use_openai_chat or models.use_openai_embeddings):
        embedder = await LocalEmbedder.open(settings)
        return Models(embedder, None, counter, f"embeddings {_local(embedder)}; summaries extractive (local); no key needed")
    # Import the SDK only with a model server: it takes most of a second and 50 MB.
    from agent_memory.foundation.llm.openai import chat as openai  # noqa: PLC0415
    from agent_memory.foundation.llm.openai import embeddings  # noqa: PLC0415

    chat_server = openai.chat_server(settings) if models.use_openai_chat else None
    chat = await openai.OpenAIChat.open(settings, server=chat_server, counter=counter) if chat_server else None
    about_chat = f"chat {chat.model} at {chat_server.shown_url}" if chat and chat_server else "summaries extractive (local)"
    if not models.use_openai_embeddings:
        local = await LocalEmbedder.open(settings)
        return Models(local, chat, counter, f"embeddings {_local(local)}; {about_chat}")
    # Chat and embeddings from the same server share one circuit breaker.
    shared = chat_server if models.embedding_base_url is None and models.embedding_api_key is None else None
    server = shared or embeddings.embedding_server(settings)
    remote = await embeddings.OpenAIEmbedder.open(settings, server=server, counter=counter)
    where = f"embeddings {remote.model} at {server.shown_url} ({remote.dimensions} dimensions)"
    return Models(remote, chat, counter, f"{where}; {about_chat}")


def _local(embedder: EmbeddingModel) -> str:
    return f"{embedder.model} (local, {embedder.dimensions} dimensions)"


def _check(models: ModelSettings) -> None:
    """Raise StartupError if a model server is required but not configured."""
    has_server = models.openai_api_key is not None or models.openai_base_url is not None
    if models.provider == "openai" and not has_server:
        raise StartupError("MODEL_PROVIDER=openai needs OPENAI_API_KEY or OPENAI_BASE_URL")
    own = models.embedding_api_key is not None or models.embedding_base_url is not None
    if models.embedding_provider == "openai" and not (has_server or own):
        raise StartupError("EMBEDDING_PROVIDER=openai needs OPENAI_API_KEY, OPENAI_BASE_URL or EMBEDDING_BASE_URL")
