"""Build requests. This module does not send them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from agent_memory_client._wire.problems import problem_line
from agent_memory_client.errors import MemoryValidationError
from agent_memory_client.models import RecencyConfig, new_id

Model = TypeVar("Model", bound=BaseModel)
Method: TypeAlias = Literal["GET", "PUT", "POST", "PATCH", "DELETE"]
Query: TypeAlias = Mapping[str, str | Sequence[str]]

Wait: TypeAlias = bool | float | None
"""Time to wait for background work: seconds (up to 20), or True for up to 10 seconds."""

MessageWait: TypeAlias = Wait | Literal["promoted", "searchable"]
"""A `Wait`, or the stage to wait for (up to 10 seconds). Seconds and True wait for "searchable"."""

IDEMPOTENCY_KEY = "Idempotency-Key"
MAX_KEY_CHARS = 255
MAX_QUERY_CHARS = 4096
"""Maximum length of a request's query string."""
WAIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Call:
    """A request. If `json` is None, the body consists of `lines` or is empty.

    `idempotent` is True if the request can safely be repeated. `wait` is how many seconds the
    server may delay the response.
    """

    method: Method
    path: str
    params: Query = field(default_factory=dict[str, str])
    json: dict[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    idempotent: bool = True
    wait: float = 0.0
    lines: bytes | None = None


def jsonable(value: Any) -> Any:
    """Convert `value` to plain JSON data, omitting model fields that are None.

    Raises MemoryValidationError.
    """
    try:
        return to_jsonable_python(value, exclude_none=True, by_alias=True)
    except ValueError as error:
        raise MemoryValidationError(f"the request cannot be sent as JSON: {error}") from error


def omit_none(**values: Any) -> dict[str, Any]:
    """Remove values that are None."""
    return {name: value for name, value in values.items() if value is not None}


def as_body(value: BaseModel | Mapping[str, Any]) -> dict[str, Any]:
    """Convert a model or mapping to a new JSON object. Raises MemoryValidationError."""
    return jsonable(value if isinstance(value, BaseModel) else dict(value))


def validation_error(error: ValidationError) -> MemoryValidationError:
    """Convert a pydantic error to a MemoryValidationError with a one-line message."""
    return MemoryValidationError(problem_line(error))


def checked(model: type[Model], **values: Any) -> Model:
    """Build a model from the given values. Raises MemoryValidationError."""
    try:
        return model(**values)
    except ValidationError as error:
        raise validation_error(error) from error


def segment(name: str, value: str) -> str:
    """Encode `value` as one segment of a URL path.

    Raises MemoryValidationError if it is empty.
    """
    if not value:
        raise MemoryValidationError(f"{name}: must not be empty")
    return quote(value, safe="").replace(".", "%2E") if value in (".", "..") else quote(value, safe="")


def query(**values: Any) -> dict[str, str]:
    """Convert query parameters to text, omitting None values."""
    present = {key: str(to_jsonable_python(value)) for key, value in omit_none(**values).items()}
    return {key: text.lower() if isinstance(values[key], bool) else text for key, text in present.items()}


def short_queries(memory_ids: Sequence[str]) -> list[list[str]]:
    """Split ids into batches that fit in a query string. No ids make one empty batch."""
    batches: list[list[str]] = [[]]
    length = 0
    for memory_id in memory_ids:
        cost = len(quote(memory_id, safe="")) + len("memory_ids=&")
        if batches[-1] and length + cost > MAX_QUERY_CHARS:
            batches.append([])
            length = 0
        batches[-1].append(memory_id)
        length += cost
    return batches


def idempotency_headers(key: str | None = None) -> dict[str, str]:
    """Return the header that makes a POST safe to repeat. Generate a key if `key` is None.

    Raises MemoryValidationError if `key` is not valid in a header.
    """
    if key is not None and not (0 < len(key) <= MAX_KEY_CHARS and key.isascii() and key.isprintable()):
        raise MemoryValidationError(f"idempotency_key: must be 1 to {MAX_KEY_CHARS} printable ASCII characters")
    return {IDEMPOTENCY_KEY: new_id() if key is None else key}


def wait_seconds(wait: MessageWait) -> float:
    """Convert `wait` to the number of seconds that the server may wait.

    Raises MemoryValidationError.
    """
    if wait is True or wait in ("promoted", "searchable"):
        return WAIT_SECONDS
    if isinstance(wait, str):
        raise MemoryValidationError(f"wait: must be promoted, searchable, seconds, True or False, got {wait!r}")
    if wait is not None and not 0 <= wait < float("inf"):
        raise MemoryValidationError(f"wait: must be seconds, True or False, got {wait}")
    return float(wait or 0.0)


def search_body(default_namespace: str | None, recency: RecencyConfig | None = None, **values: Any) -> dict[str, Any]:
    """Build the body of a search from filters (models or mappings) and plain values.

    The default namespace is used if there is no namespace filter.
    """
    body = within({key: _search_value(value) for key, value in omit_none(**values).items()}, default_namespace)
    for key, value in (recency.model_dump(exclude_none=True) if recency is not None else {}).items():
        plain = key in ("recency_boost", "server_side_recency")
        body[key if plain else f"recency_{key}"] = value
    return body


def within(search: dict[str, Any], namespace: str | None) -> dict[str, Any]:
    """Restrict `search` to `namespace`, unless it already specifies a namespace."""
    if "namespace" not in search and namespace is not None:
        search["namespace"] = {"eq": namespace}
    return search


def _search_value(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True, exclude={"field", "enum_class"})
    return jsonable(value)
