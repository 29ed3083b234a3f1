"""Get structured output from any model."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from agent_memory.foundation.llm.base import Answer, ChatMessage

JSON_SCHEMA, JSON_OBJECT, TEXT = 0, 1, 2
_ABOUT_LIMIT = re.compile(r"max_tokens|max_completion_tokens", re.IGNORECASE)
_NO_FORMAT = re.compile(r"model.{0,80}(not found|does not exist|not exist)|unknown model|no such model", re.IGNORECASE)
_FORMAT = re.compile(r"response_format|json|schema|structured|grammar|guided", re.IGNORECASE)
_FENCE = re.compile(r"```[\w-]*+[^\S\n]*+\n(.*?)```", re.DOTALL)
_THINKING = re.compile(r"^\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_MAX_CANDIDATES = 32
_SHOWN_ANSWER = 4000  # characters of a bad answer to show in the repair call
# The strict mode of some servers refuses these keywords. Answers are validated anyway.
_DROPPED = ("default", "title", "examples", "minLength", "maxLength", "minItems", "maxItems", "pattern", "format")


class UnusableAnswer(Exception):
    """The answer is invalid. The message tells the model what to fix."""


def about_token_limit(detail: str) -> bool:
    """True if the rejection is about the maximum answer length."""
    return _ABOUT_LIMIT.search(detail) is not None


def may_be_about_format(status: int, detail: str) -> bool:
    """True if a simpler response format is worth trying after this rejection."""
    if _FORMAT.search(detail):
        return True
    return status in (400, 404, 415, 422) and not _NO_FORMAT.search(detail)


def response_format(rung: int, answer: type[BaseModel]) -> dict[str, Any] | None:
    """Return the `response_format` for a rung. None means plain text."""
    if rung == JSON_SCHEMA:
        return {"type": "json_schema", "json_schema": {"name": answer.__name__, "strict": True, "schema": strict_schema(answer)}}
    return {"type": "json_object"} if rung == JSON_OBJECT else None


def with_schema(messages: Sequence[ChatMessage], rung: int, answer: type[BaseModel]) -> list[ChatMessage]:
    """Add the schema as a message if the `response_format` does not include it."""
    if rung == JSON_SCHEMA:
        return list(messages)
    return [*messages, ChatMessage("user", _instruction(answer))]


def repair_messages(messages: Sequence[ChatMessage], answer: type[BaseModel], bad: str, problem: UnusableAnswer) -> list[ChatMessage]:
    """Return the messages that ask the model to fix its answer."""
    answer_messages = [ChatMessage("assistant", bad[:_SHOWN_ANSWER])] if bad.strip() else []
    return [*messages, *answer_messages, ChatMessage("user", f"That answer cannot be used: {problem}. {_instruction(answer)}")]


def _instruction(answer: type[BaseModel]) -> str:
    schema = json.dumps(strict_schema(answer), ensure_ascii=False)
    return f"Answer with one JSON object and nothing else, without a code fence. It must fit this JSON schema:\n{schema}"


@functools.lru_cache(maxsize=64)
def strict_schema(answer: type[BaseModel]) -> dict[str, Any]:
    """Return the schema in strict mode. Callers must not modify it."""
    return cast("dict[str, Any]", _strict(answer.model_json_schema()))


def _strict(value: Any, *, names: bool = False) -> Any:
    """Make part of a schema strict. If `names` is true, its keys are property names."""
    if isinstance(value, list):
        return [_strict(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    schema = cast("dict[str, Any]", value)
    allowed = {key: item for key, item in schema.items() if names or key not in _DROPPED}
    strict = {key: _strict(item, names=not names and key in ("properties", "$defs")) for key, item in allowed.items()}
    if not names and isinstance(strict.get("properties"), dict):
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    return strict


def without_thinking(text: str) -> str:
    """Remove the reasoning that some models output before the answer."""
    return _THINKING.sub("", text, count=1).strip()


def parse_answer(text: str, answer: type[Answer]) -> Answer:
    """Return the first JSON value that matches `answer`. Raises UnusableAnswer."""
    problem = UnusableAnswer("it contains no JSON value")
    for candidate, value in enumerate(_values(without_thinking(text))):
        try:
            return answer.model_validate(_wrapped(value, answer))
        except ValidationError as error:
            if candidate == 0:  # the first value is what the model meant
                problem = UnusableAnswer(_summary(error))
        except RecursionError:
            break
    prose = _prose(without_thinking(text), answer)
    if prose is None:
        raise problem
    return prose


def _prose(text: str, answer: type[Answer]) -> Answer | None:
    """Put plain text into the answer's only string field. Return None if that is impossible."""
    fields = list(answer.model_fields.items())
    if not text or text[0] in '{[<`"' or len(fields) != 1 or fields[0][1].annotation is not str:
        return None
    try:
        return answer.model_validate({fields[0][0]: text})
    except ValidationError:
        return None


def _values(text: str) -> Iterator[Any]:
    """Yield JSON objects and lists, starting with those in code fences.

    Skip a list that follows an unclosed bracket, because the answer may be truncated.
    """
    decoder = json.JSONDecoder()
    tried = 0
    for source in [*_FENCE.findall(text), text]:
        position, broken = 0, False
        while tried < _MAX_CANDIDATES:
            start = min((at for at in (source.find("{", position), source.find("[", position)) if at >= 0), default=-1)
            if start < 0:
                break
            tried += 1
            try:
                value, position = decoder.raw_decode(source, start)
            except (ValueError, RecursionError):
                position, broken = start + 1, True
                continue
            if not (broken and isinstance(value, list)):
                yield value


def _wrapped(value: Any, answer: type[BaseModel]) -> Any:
    """Wrap a bare list in an object if the answer has only one field."""
    fields = list(answer.model_fields)
    return {fields[0]: value} if isinstance(value, list) and len(fields) == 1 else cast("object", value)


def _summary(error: ValidationError) -> str:
    problems = [
        f"{'.'.join(map(str, item['loc'])) or 'the value'}: {item['msg']}"
        for item in error.errors(include_input=False, include_url=False, include_context=False)[:5]
    ]
    return "; ".join(problems)
