"""Reading answers: JSON to models, and the prompt answer that is a dict and an object at once."""

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
    """The answer to a memory prompt: its JSON as a dict, with the parts as attributes as well."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages as they came: `{"role": …, "content": {"type": "text", "text": …}}`."""
        return self["messages"]

    @property
    def long_term_memories(self) -> list[MemoryRecordResult] | None:
        """The memories that went into the prompt, None when none were searched."""
        return self.to_model().long_term_memories

    @property
    def system(self) -> str | None:
        """What the format "anthropic" takes as `system`; None when there is nothing to say, and with another format."""
        return self.get("system")

    @property
    def text(self) -> str | None:
        """The whole prompt in the format "text"; None with another one."""
        return self.get("text")

    @property
    def relevant(self) -> bool | None:
        """Whether memory had anything to add to the session's messages; None for a prompt without a format."""
        return self.get("relevant")

    def to_model(self) -> MemoryPromptResponse:
        """The answer as a model. Raises MemoryProtocolError when it is not one."""
        return _read_or_refuse(lambda: MemoryPromptResponse.model_validate(self, context=ANSWER), MemoryPromptResponse.__name__)

    def to_openai(self) -> list[dict[str, Any]]:
        """The messages as chat completion APIs take them: those of the session as they were sent, the others as role and text."""
        return prompt_messages(self)


class Acknowledgement(AckResponse):
    """An `AckResponse` with what the headers of the answer say.

    `operation_id` names the background work (see `get_operation`) and `pending` says that it goes on; `searchable` says after a
    wait whether what was stored can be found by meaning already. None where the server says nothing; no part of the JSON.
    """

    operation_id: str | None = Field(default=None, exclude=True)
    searchable: bool | None = Field(default=None, exclude=True)
    pending: bool = Field(default=False, exclude=True)


def _read_or_refuse(read: Any, what: str) -> Any:
    try:
        return read()
    except (ValidationError, ValueError, RecursionError) as error:
        raise MemoryProtocolError(f"the memory server's answer is not a {what}: {str(error)[:300]}") from error


def parse(model: type[Model], response: httpx.Response) -> Model:
    """The answer as `model`; unknown keys are ignored. Raises MemoryProtocolError when it is something else."""
    return cast("Model", _read_or_refuse(lambda: model.model_validate_json(response.content, context=ANSWER), model.__name__))


def parse_acknowledgement(response: httpx.Response) -> Acknowledgement:
    """The answer and its headers. Raises MemoryProtocolError when it is something else."""
    answer = parse(Acknowledgement, response)
    headers = response.headers
    said = {
        "operation_id": headers.get("X-Operation-Id"),
        "searchable": headers["X-Searchable"] == "true" if "X-Searchable" in headers else None,
        "pending": answer.status == "pending" or headers.get("X-Pending") == "true",
    }
    return answer.model_copy(update=said)


def parse_list(adapter: TypeAdapter[list[Value]], what: str, response: httpx.Response) -> list[Value]:
    """The answer as a list of `what`."""
    return cast("list[Value]", _read_or_refuse(lambda: adapter.validate_json(response.content, context=ANSWER), f"list of {what}"))


def parse_object(response: httpx.Response) -> dict[str, Any]:
    """The answer as a JSON object."""
    value = _read_or_refuse(lambda: json.loads(response.content), "JSON object")
    if not isinstance(value, dict):
        raise MemoryProtocolError("the memory server's answer is not a JSON object")
    return cast("dict[str, Any]", value)


def parse_prompt(response: httpx.Response) -> PromptAnswer:
    """The answer to a memory prompt."""
    answer = PromptAnswer(parse_object(response))
    if not isinstance(answer.get("messages"), list):
        raise MemoryProtocolError("the memory server's answer is not a prompt: it has no list of messages")
    return answer


def add_up(acks: Iterable[AckResponse]) -> AckResponse:
    """The answers of a delete that was sent in parts, as one."""
    answers = list(acks)
    if len(answers) == 1:
        return answers[0]
    counts = [int(match[1]) for match in (_DELETED.search(answer.status) for answer in answers) if match]
    return AckResponse(status=f"ok, deleted {sum(counts)} memories")
