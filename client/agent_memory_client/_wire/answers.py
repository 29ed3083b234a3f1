"""Parse responses into models. A memory prompt becomes a dict with properties."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, TypeVar, cast

import httpx
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from agent_memory_client.errors import MemoryProtocolError
from agent_memory_client.models import ANSWER, AckResponse, MemoryPromptResponse, MemoryRecordResult, prompt_messages

Model = TypeVar("Model", bound=BaseModel)
Value = TypeVar("Value")

_DELETED = re.compile(r"deleted (\d+) memories")


class PromptAnswer(dict[str, Any]):
    """A memory prompt from the server: a dict with properties for its parts."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages exactly as the server sent them, with typed `content`."""
        return self["messages"]

    @property
    def long_term_memories(self) -> list[MemoryRecordResult] | None:
        """The memories in the prompt, or None if there was no search."""
        return self.to_model().long_term_memories

    @property
    def system(self) -> str | None:
        """The `system` text for format "anthropic", otherwise None."""
        return self.get("system")

    @property
    def text(self) -> str | None:
        """The complete prompt for format "text", otherwise None."""
        return self.get("text")

    @property
    def relevant(self) -> bool | None:
        """True if memory added anything besides the session's messages. None without a `format`."""
        return self.get("relevant")

    def to_model(self) -> MemoryPromptResponse:
        """Return the response as a model.

        Raises MemoryProtocolError if the response is invalid.
        """
        return _read_or_refuse(lambda: MemoryPromptResponse.model_validate(self, context=ANSWER), MemoryPromptResponse.__name__)

    def to_openai(self) -> list[dict[str, Any]]:
        """Return messages for chat completion APIs.

        The session's messages are returned as they were sent. All others contain only a role and
        text.
        """
        return prompt_messages(self)


class Acknowledgement(AckResponse):
    """An `AckResponse` with additional values from the response headers.

    `operation_id` identifies the background job. `pending` is True while the job is running. After
    a wait, `searchable` is True if semantic search can find the stored data.
    """

    operation_id: str | None = Field(default=None, exclude=True)
    searchable: bool | None = Field(default=None, exclude=True)
    pending: bool = Field(default=False, exclude=True)


def _read_or_refuse(read: Any, type_name: str) -> Any:
    try:
        return read()
    except (ValidationError, ValueError, RecursionError) as error:
        raise MemoryProtocolError(f"the memory server's answer is not a {type_name}: {str(error)[:300]}") from error


def parse(model: type[Model], response: httpx.Response) -> Model:
    """Parse a response as `model`, ignoring unknown keys. Raises MemoryProtocolError."""
    return cast("Model", _read_or_refuse(lambda: model.model_validate_json(response.content, context=ANSWER), model.__name__))


def parse_acknowledgement(response: httpx.Response) -> Acknowledgement:
    """Parse an acknowledgement with its headers. Raises MemoryProtocolError."""
    answer = parse(Acknowledgement, response)
    headers = response.headers
    header_values = {
        "operation_id": headers.get("X-Operation-Id"),
        "searchable": headers["X-Searchable"] == "true" if "X-Searchable" in headers else None,
        "pending": answer.status == "pending" or headers.get("X-Pending") == "true",
    }
    return answer.model_copy(update=header_values)


def parse_list(adapter: TypeAdapter[list[Value]], noun: str, response: httpx.Response) -> list[Value]:
    """Parse a response as a list. `noun` describes its items. Raises MemoryProtocolError."""
    return cast("list[Value]", _read_or_refuse(lambda: adapter.validate_json(response.content, context=ANSWER), f"list of {noun}"))


def parse_object(response: httpx.Response) -> dict[str, Any]:
    """Parse a response as a JSON object. Raises MemoryProtocolError."""
    value = _read_or_refuse(lambda: json.loads(response.content), "JSON object")
    if not isinstance(value, dict):
        raise MemoryProtocolError("the memory server's answer is not a JSON object")
    return cast("dict[str, Any]", value)


def parse_prompt(response: httpx.Response) -> PromptAnswer:
    """Parse a memory prompt. Raises MemoryProtocolError."""
    answer = PromptAnswer(parse_object(response))
    if not isinstance(answer.get("messages"), list):
        raise MemoryProtocolError("the memory server's answer is not a prompt: it has no list of messages")
    return answer


def add_up(acks: Iterable[AckResponse]) -> AckResponse:
    """Merge the responses to a deletion that was split into multiple requests."""
    answers = list(acks)
    if len(answers) == 1:
        return answers[0]
    counts = [int(match[1]) for match in (_DELETED.search(answer.status) for answer in answers) if match]
    return AckResponse(status=f"ok, deleted {sum(counts)} memories")
