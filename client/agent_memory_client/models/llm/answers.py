"""Read a model's reply from a JSON response or a stream of server-sent events."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar, cast

from agent_memory_client.models.llm.requests import Message, objects, tool_call

_MAX_CHARS = 4 * 1024 * 1024
"""Maximum size of the collected text, and of an event. Anything longer is not collected."""


class AnswerReader(ABC):
    """Collects a model's reply from pieces of a response body.

    `is_complete` is True after the end of the reply.
    """

    last_events: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.is_complete = False
        self._line = b""
        self._texts: list[str] = []
        self._chars = 0
        self._calls: list[dict[str, Any]] = []
        self._last_calls: dict[str, dict[str, Any]] = {}

    @property
    def begins_line(self) -> bool:
        """True if the next piece of the event stream starts on a new line."""
        return not self._line

    def feed(self, piece: bytes) -> bool:
        """Read a piece of an event stream. Return True if the reply is complete."""
        *lines, self._line = (self._line + piece).split(b"\n")
        if len(self._line) > _MAX_CHARS:
            self._line = b""
        for line in lines:
            if line.startswith(b"data:"):
                self._read_data(line[5:].strip())
        return self.is_complete

    def read_body(self, body: bytes) -> bool:
        """Read a complete JSON body. Return True if it is a reply."""
        if (value := _json_object(body)) is not None:
            self.read_answer(value)
            self.is_complete = True
        return self.is_complete

    def message(self) -> Message | None:
        """Return the reply received so far as a chat message, or None if there is none."""
        # A stream may split an emoji into two surrogates.
        text = "".join(self._texts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if not (text.strip() or self._calls):
            return None
        calls = [tool_call(call["id"], call["name"], "".join(call["arguments"]) or "{}") for call in self._calls]
        return {"role": "assistant", "content": text if text.strip() else None, **({"tool_calls": calls} if calls else {})}

    @abstractmethod
    def read_answer(self, answer: dict[str, Any]) -> None:
        """Read a reply that is not streamed."""

    @abstractmethod
    def read_event(self, event: dict[str, Any]) -> None: ...

    def _read_data(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.is_complete = True
        elif (event := _json_object(data)) is not None:
            self.read_event(event)
            self.is_complete |= event.get("type") in self.last_events

    def add_text(self, text: Any) -> None:
        if isinstance(text, str) and self._chars + len(text) <= _MAX_CHARS:
            self._texts.append(text)
            self._chars += len(text)

    def add_call(self, key: Any, call_id: Any, name: Any, arguments: Any) -> None:
        """Add a tool call, or append arguments to an existing one.

        Some servers, such as older versions of Ollama, use the same key for all calls in a stream.
        """
        call = self._last_calls.get(str(key))
        if call is None and not name:
            return  # a part of something else, such as a search on Anthropic's servers
        if call is None or (call_id and name and call_id != call["id"]):
            call = self._last_calls[str(key)] = {"id": call_id, "name": name, "arguments": []}
            self._calls.append(call)
        if isinstance(arguments, str) and self._chars + len(arguments) <= _MAX_CHARS:
            call["arguments"].append(arguments)
            self._chars += len(arguments)


class ChatAnswer(AnswerReader):
    """Reads chat completions. If there is more than one choice, only the first is read."""

    def read_answer(self, answer: dict[str, Any]) -> None:
        self.read_event(answer)

    def read_event(self, event: dict[str, Any]) -> None:
        for choice in objects(event.get("choices")):
            if choice.get("index", 0) == 0:
                message = _as_object(choice.get("delta") or choice.get("message"))
                content = message.get("content")
                # Mistral's reasoning models answer in parts.
                for text in (content, *(part.get("text") for part in objects(content)), message.get("refusal")):
                    self.add_text(text)
                for position, call in enumerate(objects(message.get("tool_calls"))):
                    function = _as_object(call.get("function"))
                    self.add_call(call.get("index", position), call.get("id"), function.get("name"), function.get("arguments"))


class ResponsesAnswer(AnswerReader):
    last_events: ClassVar[tuple[str, ...]] = ("response.completed", "response.incomplete", "response.failed")

    def read_answer(self, answer: dict[str, Any]) -> None:
        for item in objects(answer.get("output")):
            for part in objects(item.get("content")) if item.get("type") == "message" else ():
                self.add_text(part.get("text") or part.get("refusal"))
            self._read_call(item)

    def read_event(self, event: dict[str, Any]) -> None:
        if event.get("type") in ("response.output_text.delta", "response.refusal.delta"):
            self.add_text(event.get("delta"))
        elif event.get("type") == "response.output_item.done":
            self._read_call(_as_object(event.get("item")))

    def _read_call(self, item: dict[str, Any]) -> None:
        if item.get("type") == "function_call":
            self.add_call(item.get("call_id"), item.get("call_id"), item.get("name"), item.get("arguments"))


class AnthropicAnswer(AnswerReader):
    last_events: ClassVar[tuple[str, ...]] = ("message_stop",)

    def read_answer(self, answer: dict[str, Any]) -> None:
        for position, block in enumerate(objects(answer.get("content"))):
            self._read_block(position, block)

    def read_event(self, event: dict[str, Any]) -> None:
        delta = _as_object(event.get("delta"))
        self._read_block(event.get("index"), _as_object(event.get("content_block")))
        self.add_text(delta.get("text"))
        if "partial_json" in delta:
            self.add_call(event.get("index"), None, None, delta["partial_json"])

    def _read_block(self, index: Any, block: dict[str, Any]) -> None:
        if block.get("type") == "text":
            self.add_text(block.get("text"))
        elif block.get("type") == "tool_use":
            # In a stream, the arguments follow as deltas.
            self.add_call(index, block.get("id"), block.get("name"), json.dumps(block["input"]) if block.get("input") else "")


def _json_object(data: bytes) -> dict[str, Any] | None:
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _as_object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
