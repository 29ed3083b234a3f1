"""Read an operation's arguments from a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import iscoroutine
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_flat_params, request_params_to_args
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, QueryParams
from starlette.types import Scope

from agent_memory.foundation.api.body import AT_ONCE_BYTES, BodyReader, read_body
from agent_memory.foundation.api.errors import unknown
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.input.unknown_fields import SCOPE_FIELDS, Unknown, UnknownFields, nearest, refuse_narrowing

MAX_QUERY_FIELDS = 2000
# Clients of the archived server send a namespace along with the ids. That server ignored the namespace.
_HARMLESS_FIELDS = {"delete_long_term_memory": frozenset({"namespace"})}


class ArgumentReader:
    """Reads one endpoint's arguments from a request, based on FastAPI's `Dependant`."""

    def __init__(self, endpoint: Dependant, last_parameter: str | None, *, deletes: bool) -> None:
        self._endpoint = endpoint
        self._last_parameter = last_parameter
        self._deletes = deletes
        self._harmless_fields = _HARMLESS_FIELDS.get(getattr(endpoint.call, "__name__", ""), frozenset[str]())
        self._elsewhere = frozenset(field.alias for field in (*endpoint.path_params, *endpoint.header_params))
        self._query_fields = frozenset(field.alias for field in get_flat_params(endpoint)) - self._elsewhere
        self._headers = frozenset(field.alias.lower().encode() for field in endpoint.header_params)
        self._without_query = _defaults(endpoint.query_params, QueryParams())
        self._without_headers = _defaults(endpoint.header_params, Headers())
        self._body: tuple[str, BodyReader] | None = None
        self._scope_fields_of_body: frozenset[str] = frozenset()
        for field in endpoint.body_params:
            model = field.field_info.annotation
            self._body = field.name, BodyReader(model)
            self._scope_fields_of_body = SCOPE_FIELDS & getattr(model, "model_fields", {}).keys()

    def is_provided_by(self, function: Callable[[Request], Any]) -> bool:
        return any(provider.call is function for provider in self._endpoint.dependencies)

    async def read(self, request: Request) -> tuple[dict[str, Any], bytes, Sequence[Unknown]]:
        """Return the arguments, the body, and any ignored fields.

        Raises RequestValidationError or BadInput.
        """
        scope = request.scope
        ignored: list[Unknown] = []
        values = self._read_parameters(request, ignored)
        for provider in self._endpoint.dependencies:
            assert provider.call is not None
            value = provider.call(request)
            values[str(provider.name)] = await value if iscoroutine(value) else value
        body = b""
        if self._body is not None:
            name, reader = self._body
            body = await read_body(scope, request.receive)
            parse = partial(reader.parse, body, strict=_is_strict(scope))
            values[name], unknown_fields = parse() if len(body) <= AT_ONCE_BYTES else await asyncio.to_thread(parse)
            if unknown_fields:
                self._ignore(unknown_fields, "body", ignored, lambda field_name: self._place_of(field_name, reader))
        return values, body, ignored

    def _place_of(self, name: str, reader: BodyReader) -> str | None:
        if name in self._query_fields:
            return f"{name} in the query"
        return f"{name} where the body takes it" if name in reader.scope_fields else None

    def _read_parameters(self, request: Request, ignored: list[Unknown]) -> dict[str, Any]:
        scope, path = request.scope, dict(request.path_params)
        if self._last_parameter in path and scope["path"].endswith("/") and scope.get("raw_path", b"").lower().endswith(b"%2f"):
            # The server ignores a trailing slash in the path, but a trailing `%2F` belongs to the id.
            path[self._last_parameter] += "/"
        _check_utf8(path, scope.get("raw_path", b""), "path")
        if scope["query_string"]:
            self._check_query(request, ignored)
        values: dict[str, Any] = {}
        problems: list[Any] = []
        endpoint = self._endpoint
        sources: list[tuple[Any, Any]] = [(endpoint.path_params, path)] if path else []
        if self._without_headers is None or any(name in self._headers for name, _ in scope["headers"]):
            sources.append((endpoint.header_params, request.headers))
        else:
            values.update(self._without_headers)
        if scope["query_string"] or self._without_query is None:
            sources.append((endpoint.query_params, request.query_params))
        else:
            values.update(self._without_query)
        for fields, received in sources:
            parsed, refused = request_params_to_args(fields, received)
            values.update(parsed)
            problems += refused
        if problems:
            raise RequestValidationError(problems)
        return values

    def _check_query(self, request: Request, ignored: list[Unknown]) -> None:
        scope = request.scope
        if scope["query_string"].count(b"&") >= MAX_QUERY_FIELDS:
            message = f"must have at most {MAX_QUERY_FIELDS} parameters: send several requests"
            raise BadInput(message, field="query", where="query")
        query = request.query_params
        _check_utf8({name: value for name, value in query.multi_items() if name in self._query_fields}, scope["query_string"], "query")
        for name, value in query.multi_items() if self._deletes else ():
            if not value and name in SCOPE_FIELDS & self._query_fields:
                raise BadInput(
                    "must not be empty, because the deletion would ignore it: send a value or omit it",
                    field=name,
                    where="query",
                )
        if unknown_names := [name for name, _ in query.multi_items() if name not in self._query_fields]:
            self._check_unknown(scope, unknown_names, ignored)

    def _check_unknown(self, scope: Scope, names: Sequence[str], ignored: list[Unknown]) -> None:
        """Raise RequestValidationError if an unknown parameter resembles a field that narrows the request."""
        accepted_fields = self._query_fields | self._scope_fields_of_body
        fields = [Unknown((name,), nearest(name, accepted_fields) if name not in self._elsewhere else None) for name in names]
        only_in_body = self._scope_fields_of_body - self._query_fields
        refused = [
            Unknown(field.path, f"{field.suggestion} in the body") if field.suggestion in only_in_body else field
            for field in fields
            if field.suggestion is not None or _is_strict(scope)
        ]
        if refused:
            raise unknown(UnknownFields(refused), "query")
        self._ignore(fields, "query", ignored)

    def _ignore(
        self, fields: Sequence[Unknown], part: str, ignored: list[Unknown], places: Callable[[str], str | None] = lambda name: None
    ) -> None:
        try:
            refuse_narrowing(fields, places, deletes=self._deletes, harmless=self._harmless_fields)
        except UnknownFields as refused:
            raise unknown(refused, part) from None
        ignored.extend(fields)


def _defaults(fields: Sequence[Any], empty: QueryParams | Headers) -> dict[str, Any] | None:
    """Return the default values, or None if any default is missing or mutable."""
    values, refused = request_params_to_args(fields, empty)
    is_constant = all(value is None or isinstance(value, (str, int, float)) for value in values.values())
    return values if is_constant and not refused else None


def _check_utf8(values: Mapping[str, str], raw: bytes, source: str) -> None:
    # Decoding replaces invalid bytes, which could make two ids equal.
    field = next((name for name, value in values.items() if "\ufffd" in value), None)
    if field is None:
        return
    try:
        unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise BadInput("must be percent-encoded UTF-8", field=field, where=source) from None


def _is_strict(scope: Scope) -> bool:
    return scope["app"].state.settings.server.strict_fields
