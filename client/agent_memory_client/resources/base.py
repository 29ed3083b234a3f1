"""Base class for API resources."""

from __future__ import annotations

from typing import Any, TypeVar

import httpx
from pydantic import BaseModel

from agent_memory_client._wire.answers import parse
from agent_memory_client._wire.requests import Call, omit_none
from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.transport import Transport

Model = TypeVar("Model", bound=BaseModel)


class Resource:
    """Base class for API resources, which share one transport.

    Every call can raise these errors from `agent_memory_client.errors`:

    - MemoryValidationError: the input is invalid, and no request was sent.
    - MemoryProtocolError: the response is invalid.
    - MemoryServerError: the server rejected the request.
    - MemoryUnavailableError: no server responded.

    Docstrings of individual calls mention only other errors.
    """

    def __init__(self, transport: Transport, config: MemoryClientConfig) -> None:
        self._transport = transport
        self._config = config

    def _namespace(self, namespace: str | None) -> str | None:
        return namespace if namespace is not None else self._config.default_namespace

    def _scope(self, namespace: str | None, user_id: str | None) -> dict[str, str | None]:
        return {"namespace": self._namespace(namespace), "user_id": user_id}

    def _window(self, model_name: str | None, context_window_max: int | None) -> dict[str, Any]:
        return omit_none(
            model_name=model_name or self._config.default_model_name,
            context_window_max=context_window_max or self._config.default_context_window_max,
        )

    async def _send(self, call: Call) -> httpx.Response:
        return await self._transport.send(call)

    async def _read(self, model: type[Model], call: Call) -> Model:
        return parse(model, await self._transport.send(call))
