"""Read the arguments of an operation from a request.

Each parameter's annotation names its source: `Path`, `Query`, `Header`, `Body` or `Depends`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from inspect import Parameter, iscoroutine, signature
from typing import Any, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, unquote_to_bytes

from fastapi import Request, params
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from starlette.types import Scope

from agent_memory.foundation.api.body import AT_ONCE_BYTES, BodyReader, read_body
from agent_memory.foundation.api.errors import invalid, unknown
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.input.unknown_fields import (
    SCOPE_FIELDS,
    Unknown,
    UnknownFields,
    misplaced,
    narrowing_nothing,
    narrows,
    nearest,
)

MAX_QUERY_FIELDS = 2000
_SOURCES = (params.Param, params.Body, params.Depends)
# Clients of the archived server send their namespace beside the ids; that server ignored it.
_HARMLESS_FIELDS = {"delete_long_term_memory": frozenset({"namespace"})}


class ArgumentReader:
    """Read the arguments of one endpoint. Raises TypeError for a parameter without a source."""

    def __init__(self, endpoint: Callable[..., Any], last_parameter: str | None, *, deletes: bool) -> None:
        self._last_parameter = last_parameter
        self._deletes = deletes
        self._harmless_fields = _HARMLESS_FIELDS.get(endpoint.__name__, frozenset[str]())
        self._sources: dict[str, str] = {}  # "path", "query" or "header" by the parameter's name
        self._headers: dict[bytes, str] = {}
        self._lists: set[str] = set()
        self._query_names: dict[str, str] = {}
        self._providers: dict[str, Callable[[Request], Any]] = {}
        self._body: tuple[str, BodyReader] | None = None
        self._scope_fields_of_body: frozenset[str] = frozenset()
        fields: dict[str, Any] = {}
        hints = get_type_hints(endpoint, include_extras=True)
        for name, parameter in signature(endpoint).parameters.items():
            hint = hints[name]
            source = next((mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, _SOURCES)), None)
            if isinstance(source, params.Depends):
                assert source.dependency is not None
                self._providers[name] = source.dependency
            elif isinstance(source, params.Body):
                self._body = name, BodyReader(hint)
                self._scope_fields_of_body = SCOPE_FIELDS & getattr(get_args(hint)[0], "model_fields", {}).keys()
            elif isinstance(source, params.Param):
                fields[name] = (hint, ... if parameter.default is Parameter.empty else parameter.default)
                self._add_input(name, hint, source)
            else:
                raise TypeError(f"{endpoint.__name__}: parameter {name} does not say where it comes from")
        config = ConfigDict(validate_by_name=True, validate_by_alias=False)
        self._inputs: type[BaseModel] = create_model(f"{endpoint.__name__}_inputs", __config__=config, **fields)
        self._query_fields = frozenset(self._query_names)

    def _add_input(self, name: str, hint: Any, source: params.Param) -> None:
        self._sources[name] = source.in_.value
        if source.in_.value == "header":
            self._headers[(source.alias or name.replace("_", "-")).lower().encode()] = name
        if source.in_.value == "query":
            self._query_names[source.alias or name] = name
        if get_origin(get_args(hint)[0]) is list:
            self._lists.add(name)

    def is_provided_by(self, function: Callable[[Request], Any]) -> bool:
        return function in self._providers.values()

    async def read(self, request: Request) -> tuple[dict[str, Any], bytes, Sequence[Unknown]]:
        """Return arguments, body and unknown fields. Raises RequestValidationError and the errors of dependencies."""
        scope = request.scope
        ignored: list[Unknown] = []
        values = self._read_inputs(scope, ignored) if self._sources else {}
        for name, provide in self._providers.items():
            value = provide(request)
            values[name] = await value if iscoroutine(value) else value
        body = b""
        if self._body is not None:
            name, reader = self._body
            body = await read_body(scope, request.receive)
            parse = partial(reader.parse, body, strict=_is_strict(scope))
            values[name], unknown_fields = parse() if len(body) <= AT_ONCE_BYTES else await asyncio.to_thread(parse)
            if unknown_fields:
                if found := misplaced(unknown_fields, lambda meant: self._place_of(meant, reader)):
                    raise unknown(UnknownFields(found), "body")
                self._ignore(unknown_fields, "body", ignored)
        return values, body, ignored

    def _place_of(self, name: str, reader: BodyReader) -> str | None:
        if name in self._query_fields:
            return f"{name} in the query"
        return f"{name} where the body takes it" if name in reader.scope_fields else None

    def _read_inputs(self, scope: Scope, ignored: list[Unknown]) -> dict[str, Any]:
        values: dict[str, Any] = dict(scope["path_params"])
        if self._last_parameter in values and scope["path"].endswith("/") and scope.get("raw_path", b"").lower().endswith(b"%2f"):
            # A trailing `%2F` belongs to the id; only a literal slash is the other form of the path.
            values[self._last_parameter] += "/"
        if scope["query_string"]:
            self._read_query(scope, values, ignored)
        if self._headers:
            for name, value in scope["headers"]:
                if name in self._headers:
                    values[self._headers[name]] = value.decode("latin-1")
        for name, value in values.items():
            if "\ufffd" in value:
                self._check_utf8(scope, name)
        try:
            return vars(self._inputs.model_validate(values))
        except ValidationError as error:
            raise invalid(error, self._called) from None

    def _called(self, name: str) -> tuple[str, str]:
        return self._sources.get(name, "query"), next((alias for alias, named in self._query_names.items() if named == name), name)

    def _read_query(self, scope: Scope, values: dict[str, Any], ignored: list[Unknown]) -> None:
        try:
            pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS)
        except ValueError:
            message = f"must have at most {MAX_QUERY_FIELDS} parameters: send several requests"
            raise BadInput(message, field="query", where="query") from None
        unknown_names: list[str] = []
        for name, value in pairs:
            if name not in self._query_fields:
                unknown_names.append(name)
            elif self._deletes and not value and name in SCOPE_FIELDS:
                raise BadInput(
                    "must not be empty: that would not narrow what is deleted; name one, or leave it out", field=name, where="query"
                )
            elif (parameter := self._query_names[name]) in self._lists:
                values.setdefault(parameter, []).append(value)
            else:
                values[parameter] = value
        if unknown_names:
            self._check_unknown(scope, unknown_names, ignored)

    def _check_unknown(self, scope: Scope, names: Sequence[str], ignored: list[Unknown]) -> None:
        """Raise RequestValidationError for unknown parameters that resemble a scope field; ignore the others."""
        known = self._query_fields | self._scope_fields_of_body
        fields = [Unknown((name,), nearest(name, known) if name not in self._sources else None) for name in names]
        only_in_body = self._scope_fields_of_body - self._query_fields
        refused = [
            Unknown(field.path, f"{field.meant} in the body") if field.meant in only_in_body else field
            for field in fields
            if field.meant is not None or _is_strict(scope)
        ]
        if refused:
            raise unknown(UnknownFields(refused), "query")
        self._ignore(fields, "query", ignored)

    def _ignore(self, fields: Sequence[Unknown], part: str, ignored: list[Unknown]) -> None:
        """Raise RequestValidationError for an unknown field that would have narrowed a deletion."""
        if self._deletes:
            narrowing = [field for field in fields if narrows(field) and field.path[-1] not in self._harmless_fields]
            if narrowing:
                raise unknown(UnknownFields([narrowing_nothing(field) for field in narrowing]), part)
        ignored.extend(fields)

    def _check_utf8(self, scope: Scope, name: str) -> None:
        """Percent-decoding replaces bad bytes by U+FFFD: two different ids must not become one."""
        source = self._sources.get(name, "query")
        raw = scope["query_string"].replace(b"+", b" ") if source == "query" else scope.get("raw_path", b"")
        try:
            unquote_to_bytes(raw).decode()
        except UnicodeDecodeError:
            raise BadInput("must be percent-encoded UTF-8", field=name, where=source) from None


def _is_strict(scope: Scope) -> bool:
    return scope["app"].state.settings.server.strict_fields
