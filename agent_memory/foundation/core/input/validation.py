"""Validate values from outside the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agent_memory.foundation.core.errors import BadInput
from agent_memory_client.models import ANSWER

Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], values: Mapping[str, Any]) -> Model:
    """Validate the values and return them as a model.

    Raises BadInput if a value is invalid. The error names the field but never reveals the value.
    """
    try:
        return model.model_validate(values, context=ANSWER)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"][:6])
        raise BadInput(first["msg"], field=field) from None
