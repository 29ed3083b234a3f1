"""Stream answers to distinguish slow models from dead ones."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, cast

import openai
from openai.types.chat import ChatCompletion

_EVENTS = "text/event-stream"


class Streaming(IntEnum):
    """Ways to stream an answer, in the order to try them."""

    WITH_USAGE = 0
    PLAIN = 1
    NONE = 2

    @property
    def options(self) -> dict[str, Any]:
        if self is Streaming.NONE:
            return {}
        return {"stream": True} | ({"stream_options": {"include_usage": True}} if self is Streaming.WITH_USAGE else {})

    def less(self, refusal: str) -> Streaming | None:
        """Return the next option to try, or None if the rejection has another reason."""
        return Streaming(self + 1) if self is not Streaming.NONE and "stream" in refusal.lower() else None


async def complete(client: openai.AsyncOpenAI, body: dict[str, Any], streaming: Streaming, alive: Callable[[], None]) -> Any:
    """Stream a completion and return the full result. Call `alive` when tokens arrive."""
    if streaming is Streaming.NONE:
        return await client.chat.completions.create(**body)
    async with client.chat.completions.with_streaming_response.create(**body, **streaming.options) as response:
        if not response.headers.get("content-type", "").startswith(_EVENTS):
            return ChatCompletion.construct(**cast("dict[str, Any]", await response.json()))
        choice: dict[str, Any] = {}
        message: dict[str, Any] = {}
        usage: Any = None
        async for chunk in cast("Any", await response.parse()):
            alive()
            usage = getattr(chunk, "usage", None) or usage
            for part in chunk.choices or ():
                choice["finish_reason"] = part.finish_reason or choice.get("finish_reason")
                _append(message, part.delta)
        choices = [choice | {"message": {"content": None, "refusal": None} | message}] if choice else []
        return ChatCompletion.construct(choices=cast("Any", choices), usage=usage)


def _append(message: dict[str, Any], delta: Any) -> None:
    for name in ("content", "refusal"):
        text = getattr(delta, name, None)
        if isinstance(text, list):  # some servers stream parts
            text = "".join(part.get("text") or "" for part in cast("list[Any]", text) if isinstance(part, dict))
        if text:
            message[name] = (message.get(name) or "") + text
