"""Validate external input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agent_memory.foundation.core.errors import BadInput
from agent_memory_client._wire.problems import plain_problems
from agent_memory_client.models import ANSWER

Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], values: Mapping[str, Any]) -> Model:
    """Validate the values and return them as a model.

    Raises BadInput, which includes the field's name but never its value.
    """
    try:
        return model.model_validate(values, context=ANSWER)
    except ValidationError as error:
        field, reason = first_problem(error)
        raise BadInput(reason, field=field) from None


def first_problem(error: ValidationError) -> tuple[str, str]:
    """Return the path of an invalid field and the reason, but not the rejected value."""
    problem = plain_problems(error)[0]
    return ".".join(str(part) for part in problem["loc"][:6]), problem["msg"]
